/* What the client is asked, and what it answered, for both styles of asking. */
#ifndef QUESTIONS_H
#define QUESTIONS_H

#include <mcpline.h>

/* Schemas of forms with one member, which must be filled in. */
#define FORM(name, type) \
    "{\"type\":\"object\",\"properties\":{\"" name "\":{\"type\":\"" type "\"}},\"required\":[\"" name "\"]}"

/* Parameters of `elicitation/create` and `sampling/createMessage`; released with free. */
char *form(const char *message, const char *schema);
char *message_to_model(const char *text, int64_t most_tokens);

/* The text of a model's answer, whose content may be one block or a list of them; released with free. */
char *said(const char *answer, size_t length);

#endif
