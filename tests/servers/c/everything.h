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

/* The server of ../README.md with lists in pages of this many items, or in one page if it is 0. */
void everything_make(everything *everything, long page_size);
void everything_free(everything *everything);

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

#endif
