/* The features of the everything-server; each family has its own file. */
#ifndef EVERYTHING_H
#define EVERYTHING_H

#include <mcpline.h>

#include "doors.h"

/* State of the process, which outlives the server. Every handler's user data. */
typedef struct {
    mcpl_server *server;
    doors gates;
    doors cancellations;
    doors elicitations;
    long version; /* of the watched resource; read and written only under `changing` */
    pthread_mutex_t changing;
} everything;

/* The command line; 0 stands for the default. */
typedef struct {
    long port;
    long channel; /* the custom transport: 1 without a principal, 2 and 3 with one */
    long page_size;
    long max_suspended_handlers;
    long max_sessions;
    long read_timeout;
    long write_timeout;
    long extras;       /* adds features that only tests/hostile uses */
    long blocking;     /* adds tools that block worker threads */
    long more;         /* adds features that most tests do not need */
    long extensions;   /* adds extensions of the protocol */
    long declared;     /* no features, but declares tools, prompts and resources */
    long tools_only;   /* one tool only */
    long prompts_only; /* one prompt only */
} arguments;

/* Creates the server of ../README.md. */
void everything_make(everything *everything, const arguments *given);
void everything_free(everything *everything);

/* Serves one client over a custom transport on stdin and stdout, until stdin ends. */
void serve_channel(everything *everything, long number);

/* Add only the first tool, and only the first prompt. */
void add_simple_tool(everything *everything);
void add_simple_prompt(everything *everything);

/* Waits until its call is cancelled, and records its label. */
void wait_until_cancelled(mcpl_call *call, const char *arguments, size_t length, void *user);

void add_content_tools(everything *everything);
void add_schema_tools(everything *everything);
void add_failure_tools(everything *everything);
void add_running_tools(everything *everything);
void add_input_request_tools(everything *everything);
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

/* Sets the number of worker threads that the tools of `add_blocking` expect. Call before the server is created. */
void limit_workers(void);

#endif
