/* A server whose tool returns the trace context that it has received, over stdio or HTTP: context [--http PORT]. */
#include <mcpline.h>

#include <stdio.h>
#include <stdlib.h>

static void trace_context(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments;
    (void)length;
    (void)user;
    char *context = NULL;
    size_t context_length = 0;
    if (mcpl_call_trace_context(call, &context, &context_length) != MCPL_OK || context == NULL) {
        mcpl_call_fail(call, "no trace context", MCPL_AUTO_LENGTH);
        return;
    }
    mcpl_call_reply_text(call, context, context_length);
    mcpl_string_free(context);
}

static void diagnose(mcpl_log_level level, const char *target, const char *message, void *user) {
    (void)level;
    (void)user;
    fprintf(stderr, "%s: %s\n", target, message);
}

int main(int count, char **arguments) {
    mcpl_set_diagnostics(MCPL_LOG_WARNING, diagnose, NULL, NULL);
    mcpl_server *server = mcpl_server_new("context", "1");
    mcpl_status status =
        mcpl_server_add_tool(server, "trace_context", "Returns the trace context that it has received",
                             "{\"type\": \"object\"}", trace_context, NULL, NULL);
    if (status == MCPL_OK) {
        status = mcpl_server_stop_on_signals(server);
    }
    if (status == MCPL_OK) {
        status = count < 3 ? mcpl_server_run_stdio(server)
                           : mcpl_server_run_http(server, "127.0.0.1", (uint16_t)atoi(arguments[2]), NULL);
    }
    if (status != MCPL_OK) {
        fprintf(stderr, "%s: %s\n", mcpl_status_name(status), mcpl_error_message(mcpl_last_error()));
    }
    mcpl_server_free(server);
    return status == MCPL_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
