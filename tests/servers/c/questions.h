/* What the client is asked, and what it answered, for both styles of asking. */
#ifndef QUESTIONS_H
#define QUESTIONS_H

#include <mcpline.h>

/* Schemas of forms with one member, which must be filled in. */
#define FORM(name, type) \
    "{\"type\":\"object\",\"properties\":{\"" name "\":{\"type\":\"" type "\"}},\"required\":[\"" name "\"]}"

/* A tool that a model may use. */
#define GET_WEATHER \
    "{\"name\":\"get_weather\",\"description\":\"Weather of a city\",\"inputSchema\":{\"type\":\"object\"," \
    "\"properties\":{\"city\":{\"type\":\"string\"}},\"required\":[\"city\"]}}"

/* What was written, as a text of its own, released with free; the writer is released. */
char *taken(mcpl_json *json);

/* Asks and waits; without an answer, the call has ended and the result is NULL. Released with mcpl_string_free. */
char *ask(mcpl_call *call, const char *key, mcpl_ask what, const char *params, size_t *length);

/* Parameters of `elicitation/create` and `sampling/createMessage`; released with free. */
char *form(const char *message, const char *schema);
char *message_to_model(const char *text, int64_t most_tokens);

/* The text of a model's answer, whose content may be one block or a list of them; released with free. */
char *said(const char *answer, size_t length);

#endif
