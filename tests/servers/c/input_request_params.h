/* Input requests and their answers, for handlers that wait and for those that return input requests. */
#ifndef QUESTIONS_H
#define QUESTIONS_H

#include <mcpline.h>

/* Schemas of forms with one required member. */
#define FORM(name, type) \
    "{\"type\":\"object\",\"properties\":{\"" name "\":{\"type\":\"" type "\"}},\"required\":[\"" name "\"]}"

/* A tool that the model may use. */
#define GET_WEATHER \
    "{\"name\":\"get_weather\",\"description\":\"Weather of a city\",\"inputSchema\":{\"type\":\"object\"," \
    "\"properties\":{\"city\":{\"type\":\"string\"}},\"required\":[\"city\"]}}"

/* Returns the writer's text; release with free. Releases the writer. */
char *taken(mcpl_json *json);

/* Sends an input request and waits; ends the call and returns NULL if that fails. Release with mcpl_string_free. */
char *request_input(mcpl_call *call, const char *key, mcpl_input_request_method what, const char *params, size_t *length);

/* Parameters of `elicitation/create` and `sampling/createMessage`; release with free. */
char *form(const char *message, const char *schema);
char *message_to_model(const char *text, int64_t most_tokens);

/* Returns the text of a model's answer, whose content is one block or an array; release with free. */
char *said(const char *answer, size_t length);

#endif
