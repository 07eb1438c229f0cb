#include "input_request_params.h"

#include <stdlib.h>

#include "fixtures.h"

char *taken(mcpl_json *json) {
    const char *text = NULL;
    must(mcpl_json_text(json, &text, NULL), "a question");
    char *own = copied(text);
    mcpl_json_free(json);
    return own;
}

char *request_input(mcpl_call *call, const char *key, mcpl_input_request_method what, const char *params, size_t *length) {
    char *answer = NULL;
    if (mcpl_call_request_input_wait(call, key, what, params, MCPL_AUTO_LENGTH, &answer, length) != MCPL_OK) {
        mcpl_call_fail_with(call, mcpl_last_error());
    }
    return answer;
}

char *form(const char *message, const char *schema) {
    mcpl_json *params = mcpl_json_new();
    mcpl_json_begin_object(params);
    put_string_member(params, "message", message);
    put_json_member(params, "requestedSchema", schema);
    mcpl_json_end_object(params);
    return taken(params);
}

char *message_to_model(const char *text, int64_t most_tokens) {
    mcpl_json *params = mcpl_json_new();
    mcpl_json_begin_object(params);
    mcpl_json_name(params, "messages");
    mcpl_json_begin_array(params);
    mcpl_json_begin_object(params);
    put_string_member(params, "role", "user");
    mcpl_json_name(params, "content");
    mcpl_json_begin_object(params);
    put_string_member(params, "type", "text");
    put_string_member(params, "text", text);
    mcpl_json_end_object(params);
    mcpl_json_end_object(params);
    mcpl_json_end_array(params);
    mcpl_json_name(params, "maxTokens");
    mcpl_json_put_int64(params, most_tokens);
    mcpl_json_end_object(params);
    return taken(params);
}

/* Appends the text of a block, if it is a text block. */
static char *append_text(char *so_far, const char *block, size_t length) {
    char *text = NULL;
    if (says(block, length, "/type", "text") && mcpl_json_string(block, length, "/text", &text, NULL) == MCPL_OK) {
        char *longer = formatted("%s%s", so_far, text);
        free(so_far);
        so_far = longer;
    }
    mcpl_string_free(text);
    return so_far;
}

char *said(const char *answer, size_t length) {
    const char *content = NULL;
    size_t size = 0;
    mcpl_json_kind kind = MCPL_JSON_NULL;
    char *text = copied("");
    if (mcpl_json_find(answer, length, "/content", &content, &size) != MCPL_OK) {
        return text;
    }
    mcpl_json_kind_of(content, size, &kind);
    if (kind != MCPL_JSON_ARRAY) {
        return append_text(text, content, size);
    }
    const char *block = NULL;
    size_t block_size = 0;
    for (size_t index = 0; mcpl_json_item(content, size, index, NULL, &block, &block_size) == MCPL_OK; index++) {
        text = append_text(text, block, block_size);
    }
    return text;
}
