/* Features of `--extras 1`, for tests/hostile and some vectors: a tool that logs as many messages as requested, one
 * that makes the mistakes of an author, a template that is costly to match, and one for files. */
#include <stdlib.h>

#include "fixtures.h"

static void flood(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)user;
    int64_t messages = 0, size = 0;
    if (mcpl_json_int64(arguments, length, "/count", &messages) != MCPL_OK ||
        mcpl_json_int64(arguments, length, "/size", &size) != MCPL_OK || size < 0) {
        mcpl_call_fail_rpc(call, -32602, "count and size must be integers", NULL, 0);
        return;
    }
    char *text = allocated((size_t)size + 1);
    memset(text, 'x', (size_t)size);
    for (int64_t sent = 0; sent < messages; sent++) {
        mcpl_call_log_text(call, MCPL_LOG_INFO, NULL, text, (size_t)size);
    }
    free(text);
    mcpl_call_reply_text(call, "flooded", MCPL_AUTO_LENGTH);
}

#define HI \
    "\"messages\": [{\"role\": \"user\", \"content\": {\"type\": \"text\", \"text\": \"hi\"}}], \"maxTokens\": 1"

/* The mistakes, which mcpline rejects. */
static const struct {
    const char *kind;
    mcpl_input_request_method what;
    const char *params;
} MISTAKES[] = {
    {"nested form", MCPL_INPUT_REQUEST_METHOD_ELICIT,
     JSON({
         "message": "Where?",
         "requestedSchema": {"type": "object", "properties": {"address": {"type": "object", "properties": {}}}}
     })},
    {"bad url", MCPL_INPUT_REQUEST_METHOD_ELICIT, JSON({"mode": "url", "message": "Go", "url": "not a url"})},
    {"lonely result", MCPL_INPUT_REQUEST_METHOD_SAMPLE,
     JSON({
         "messages": [{"role": "user", "content": [{"type": "tool_result", "toolUseId": "a", "content": []}]}],
         "maxTokens": 1
     })},
    {"priority", MCPL_INPUT_REQUEST_METHOD_SAMPLE, "{" HI ", \"modelPreferences\": {\"costPriority\": 2}}"},
    {"context", MCPL_INPUT_REQUEST_METHOD_SAMPLE, "{" HI ", \"includeContext\": \"thisServer\"}"},
};

static void mistake(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)user;
    if (says(arguments, length, "/kind", "reserved code")) {
        mcpl_call_fail_rpc(call, -32050, "secret-detail-7c1f", NULL, 0);
        return;
    }
    for (size_t index = 0; index < COUNT(MISTAKES); index++) {
        if (!says(arguments, length, "/kind", MISTAKES[index].kind)) {
            continue;
        }
        char *answer = NULL;
        if (mcpl_call_request_input_wait(call, "wrong", MISTAKES[index].what, MISTAKES[index].params, MCPL_AUTO_LENGTH, &answer,
                               NULL) == MCPL_OK) {
            mcpl_call_reply_text(call, "answered", MCPL_AUTO_LENGTH);
        } else {
            mcpl_call_fail_with(call, mcpl_last_error());
        }
        mcpl_string_free(answer);
        return;
    }
    mcpl_call_fail_rpc(call, -32602, "no mistake", NULL, 0);
}

static void logs(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)user;
    mcpl_call_reply_text(call, arguments, length);
}

static void list_files(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    mcpl_call_reply_content(call,
                            "[\"file:///extras/one\","
                            "{\"uri\":\"file:///extras/two\",\"name\":\"two\",\"description\":\"The second file\"},"
                            "\"file:///other/three\"]",
                            MCPL_AUTO_LENGTH);
}

static const tool TOOLS[] = {
    {.name = "test_flood",
     .description = "Logs a number of messages of a size",
     .input = JSON({
         "type": "object",
         "properties": {"count": {"type": "integer"}, "size": {"type": "integer"}},
         "required": ["count", "size"]
     }),
     .handler = flood},
    {.name = "test_mistake",
     .description = "Does what its author must not",
     .input = JSON({"type": "object", "properties": {"kind": {"type": "string"}}, "required": ["kind"]}),
     .handler = mistake},
};

void add_extras(everything *everything) {
    add_tools(everything, TOOLS, COUNT(TOOLS));
    must(mcpl_server_add_resource_template(everything->server, "file:///extras/{name}", "extras", "application/json",
                                           logs, everything, NULL),
         "the template of files");
    must(mcpl_server_set_resource_template_list(everything->server, "file:///extras/{name}", list_files, NULL, NULL),
         "the list of files");
    must(mcpl_server_add_resource_template(everything->server, "log://{host}-{day}-{name}", "logs", "application/json",
                                           logs, everything, NULL),
         "the template of logs");
}
