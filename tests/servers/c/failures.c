/* Tools that fail. */
#include <stdio.h>

#include "fixtures.h"

static void error_handling(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    mcpl_call_fail(call, "This tool intentionally returns an error for testing", MCPL_AUTO_LENGTH);
}

static void exception(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    mcpl_call_fail_internal(call, "secret-detail-7c1f");
}

static void protocol_error(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    mcpl_call_fail_rpc(call, -31050, "deliberate protocol error", JSON({"reason": "fixture"}), MCPL_AUTO_LENGTH);
}

static void missing_capability(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    char *info = NULL;
    size_t size = 0;
    const char *sampling = NULL;
    mcpl_call_info(call, &info, &size);
    if (mcpl_json_find(info, size, "/clientCapabilities/sampling", &sampling, NULL) == MCPL_OK) {
        mcpl_call_reply_text(call, "sampling is available", MCPL_AUTO_LENGTH);
    } else {
        mcpl_call_fail_rpc(call, -32021, "the client must support sampling",
                           JSON({"requiredCapabilities": {"sampling": {}}}), MCPL_AUTO_LENGTH);
    }
    mcpl_string_free(info);
}

static void stray_output(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    puts("stray output");
    fflush(stdout);
    size_t count = 0;
    while (getchar() != EOF) {
        count++;
    }
    reply_formatted(call, "read %zu bytes", count);
}

static const tool TOOLS[] = {
    {.name = "test_error_handling",
     .description = "Fails in a way that the model should read",
     .handler = error_handling},
    {.name = "test_exception", .description = "Fails unexpectedly", .handler = exception},
    {.name = "test_protocol_error",
     .description = "Answers with a JSON-RPC error",
     .handler = protocol_error,
     .flags = MCPL_HANDLER_INLINE},
    {.name = "test_missing_capability",
     .description = "Needs a client that can sample",
     .handler = missing_capability},
    {.name = "test_stray_output", .description = "Prints to stdout and reads stdin", .handler = stray_output},
};

void add_failure_tools(everything *everything) {
    add_tools(everything, TOOLS, COUNT(TOOLS));
}
