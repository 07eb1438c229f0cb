/* Everything that the everything-servers have; each family has a file of its own. */
#ifndef EVERYTHING_H
#define EVERYTHING_H

#include <mcpline.h>

#include "doors.h"

/* What the tools share: it belongs to the process, and outlives the server. Every handler's user data. */
typedef struct {
    mcpl_server *server;
    doors gates;
    doors cancellations;
    doors visits;
    long version; /* of the watched resource; only read and written under `changing` */
    pthread_mutex_t changing;
} everything;

/* What the command line says; 0 stands for the default. */
typedef struct {
    long port;
    long page_size;
    long suspended;
    long sessions;
    long read_timeout;
    long write_timeout;
    long extras;       /* whether it has what only tests/hostile uses */
    long blocking;     /* whether it has what holds worker threads */
    long more;         /* whether it has what other tests' servers do without */
    long extensions;   /* whether it has extensions of the protocol */
    long declared;     /* whether it has nothing, and declares tools, prompts and resources */
    long tools_only;   /* whether it has one tool and nothing else */
    long prompts_only; /* whether it has one prompt and nothing else */
} arguments;

/* The server of ../README.md. */
void everything_make(everything *everything, const arguments *given);
void everything_free(everything *everything);

/* The first tool and the first prompt alone. */
void add_simple_tool(everything *everything);
void add_simple_prompt(everything *everything);

/* The handler that waits until its call is cancelled, and records its label. */
void wait_until_cancelled(mcpl_call *call, const char *arguments, size_t length, void *user);

void add_content_tools(everything *everything);
void add_schema_tools(everything *everything);
void add_failure_tools(everything *everything);
void add_running_tools(everything *everything);
void add_asking_tools(everything *everything);
void add_visit_tools(everything *everything);
void add_returning_tools(everything *everything);
void add_caller_tools(everything *everything);
void add_changing_tools(everything *everything);
void add_prompts(everything *everything);
void add_resources(everything *everything);
void add_custom_requests(everything *everything);
void add_more(everything *everything);
void add_extensions(everything *everything);
void add_extras(everything *everything);
void add_blocking(everything *everything);

/* Writes the options that declare the extensions. */
void put_extensions(mcpl_json *options);

/* Before the server is made: as many worker threads as a test of `add_blocking` can hold. */
void limit_workers(void);

#endif
