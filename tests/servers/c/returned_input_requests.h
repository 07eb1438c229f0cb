/* Calls that return their input requests and are made again with the answers. */
#ifndef RETURNED_H
#define RETURNED_H

#include <mcpline.h>

/* A call with its answers and its state. */
typedef struct {
    mcpl_call *call;
    char *json;
    size_t length;
} round;

typedef struct {
    const char *key;
    const char *method;
    const char *params; /* NULL: none */
} input_request;

round round_of(mcpl_call *call);
void round_free(round *round);

/* Returns the user's text for a member of a form; release with mcpl_string_free. NULL if there is none. */
char *accepted_text(const round *round, const char *key, const char *member);

/* Ends this round of the call with input requests and a state; NULL for no state. */
void return_input_requests(const round *round, const input_request *requests, size_t count, const char *state);

#endif
