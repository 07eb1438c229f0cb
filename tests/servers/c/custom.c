/* Custom requests and notifications, which no revision of the protocol defines. */
#include <stdlib.h>

#include "fixtures.h"
#include "input_request_params.h"

#define LABELLED JSON({"type": "object", "properties": {"label": {"type": "string"}}, "required": ["label"]})
#define NAMED JSON({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]})
#define TEXT JSON({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]})

static void echo(mcpl_call *call, const char *params, size_t length, void *user) {
    (void)user;
    const char *text = NULL;
    size_t size = 0;
    mcpl_json_find(params, length, "/text", &text, &size);
    char *echoed = formatted("{\"text\":%.*s}", (int)size, text);
    mcpl_call_progress(call, 1, 2, NULL);
    mcpl_call_notify(call, "acme/echoing", echoed, MCPL_AUTO_LENGTH);
    mcpl_call_reply_result(call, echoed, MCPL_AUTO_LENGTH);
    free(echoed);
}

static void give_params(mcpl_call *call, const char *params, size_t length, void *user) {
    (void)user;
    char *result = formatted("{\"params\":%.*s}", (int)length, params);
    mcpl_call_reply_result(call, result, MCPL_AUTO_LENGTH);
    free(result);
}

static void reply_name(mcpl_call *call, const mcpl_error *error, const char *answer, size_t length, void *user) {
    (void)user;
    const char *content = NULL;
    size_t size = 0;
    if (error != NULL) {
        mcpl_call_fail_with(call, error);
    } else if (says(answer, length, "/action", "accept") &&
               mcpl_json_find(answer, length, "/content", &content, &size) == MCPL_OK) {
        mcpl_call_reply_result(call, content, size);
    } else {
        mcpl_call_reply_result(call, "{}", MCPL_AUTO_LENGTH);
    }
}

static void request_name(mcpl_call *call, const char *params, size_t length, void *user) {
    (void)params, (void)length, (void)user;
    char *elicitation = form("Who?", FORM("name", "string"));
    mcpl_call_request_input(call, "user", MCPL_INPUT_REQUEST_METHOD_ELICIT, elicitation, MCPL_AUTO_LENGTH, reply_name, NULL, NULL);
    free(elicitation);
}

static void fail(mcpl_call *call, const char *params, size_t length, void *user) {
    (void)params, (void)length, (void)user;
    mcpl_call_fail_rpc(call, -31050, "deliberate protocol error", JSON({"reason": "fixture"}), MCPL_AUTO_LENGTH);
}

static void exception(mcpl_call *call, const char *params, size_t length, void *user) {
    (void)params, (void)length, (void)user;
    mcpl_call_fail_internal(call, "secret-detail-7c1f");
}

static void list(mcpl_call *call, const char *params, size_t length, void *user) {
    (void)params, (void)length, (void)user;
    if (mcpl_call_reply_result(call, "[1]", MCPL_AUTO_LENGTH) != MCPL_OK) {
        mcpl_call_fail_with(call, mcpl_last_error());
    }
}

static void reply_picked(mcpl_call *call, const mcpl_error *error, const char *answer, size_t length, void *user) {
    (void)user;
    const char *picked = NULL;
    size_t size = 0;
    if (error != NULL) {
        mcpl_call_fail_with(call, error);
        return;
    }
    mcpl_json_find(answer, length, "/picked", &picked, &size);
    char *result = formatted("{\"picked\":%.*s}", (int)size, picked);
    mcpl_call_reply_result(call, result, MCPL_AUTO_LENGTH);
    free(result);
}

static void choose(mcpl_call *call, const char *params, size_t length, void *user) {
    (void)params, (void)length, (void)user;
    mcpl_call_send_request(call, "pick", "acme/pick", JSON({"from": [1, 2, 3]}), MCPL_AUTO_LENGTH, reply_picked, NULL,
                           NULL);
}

static void publish(mcpl_call *call, const char *params, size_t length, void *user) {
    (void)params, (void)length, (void)user;
    mcpl_call_reply_result(call, JSON({"published": true}), MCPL_AUTO_LENGTH);
}

static void note(mcpl_call *call, const char *params, size_t length, void *user) {
    everything *everything = user;
    char *name = text_argument(call, params, length, "/name");
    if (name != NULL) {
        doors_open(&everything->gates, name);
        mcpl_call_reply_text(call, "", 0);
    }
    mcpl_string_free(name);
}

void add_custom_requests(everything *everything) {
    static const struct {
        const char *method;
        const char *schema;
        mcpl_handler handler;
    } REQUESTS[] = {
        {"acme/echo", TEXT, echo},
        {"acme/params", NULL, give_params},
        {"acme/ask", NULL, request_name},
        {"acme/wait", LABELLED, wait_until_cancelled},
        {"acme/fail", NULL, fail},
        {"acme/exception", NULL, exception},
        {"acme/list", NULL, list},
        {"acme/choose", NULL, choose},
    };
    for (size_t index = 0; index < COUNT(REQUESTS); index++) {
        must(mcpl_server_on_request(everything->server, REQUESTS[index].method, REQUESTS[index].schema, NULL,
                                    REQUESTS[index].handler, everything, NULL),
             REQUESTS[index].method);
    }
    must(mcpl_server_on_notification(everything->server, "acme/note", NAMED, NULL, note, everything, NULL), "acme/note");

    const mcpl_handler_options writes = {.size = sizeof writes, .scopes = "acme:write"};
    must(mcpl_server_on_request(everything->server, "acme/publish", NULL, &writes, publish, everything, NULL),
         "acme/publish");
    must(mcpl_server_on_notification(everything->server, "acme/published", NAMED, &writes, note, everything, NULL),
         "acme/published");
}
