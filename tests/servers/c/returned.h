/* Calls that return their questions and come again with the answers. */
#ifndef RETURNED_H
#define RETURNED_H

#include <mcpline.h>

/* What a call came with. */
typedef struct {
    mcpl_call *call;
    char *json;
    size_t length;
} round;

typedef struct {
    const char *key;
    const char *method;
    const char *params; /* NULL: none */
} question;

round round_of(mcpl_call *call);
void round_free(round *round);

/* The text that the user gave for a member of a form; released with mcpl_string_free, NULL if there is none. */
char *accepted_text(const round *round, const char *key, const char *member);

/* Ends this round of the call with questions and a state, or none if that is NULL. */
void ask_again(const round *round, const question *questions, size_t count, const char *state);

#endif
