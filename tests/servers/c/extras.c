/* What only tests/hostile uses: a tool that logs as much as it is told, and a template that is costly to match. */
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

static void logs(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)user;
    mcpl_call_reply_text(call, arguments, length);
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
};

void add_extras(everything *everything) {
    add_tools(everything, TOOLS, COUNT(TOOLS));
    must(mcpl_server_add_resource_template(everything->server, "log://{host}-{day}-{name}", "logs", "application/json",
                                           logs, everything, NULL),
         "the template of logs");
}
