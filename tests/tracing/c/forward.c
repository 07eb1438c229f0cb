/* A server that exports its spans, and whose tool calls the same tool of the next server: forward [--http PORT].
 *
 * Reads TRACING_NEXT (the next server: a URL, or a command as JSON) and TRACING_REVISION. Where spans are exported to,
 * the library reads from the variables of OpenTelemetry. */
#include <mcpline.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ARGUMENTS 32

static void report(const char *what, mcpl_status status) {
    fprintf(stderr, "%s: %s: %s\n", what, mcpl_status_name(status), mcpl_error_message(mcpl_last_error()));
}

static mcpl_status spawn(mcpl_client *client, const char *command) {
    char *arguments[MAX_ARGUMENTS];
    size_t count = 0;
    mcpl_status status = mcpl_json_count(command, MCPL_AUTO_LENGTH, "", &count);
    if (status != MCPL_OK || count > MAX_ARGUMENTS) {
        return status == MCPL_OK ? MCPL_LIMIT_EXCEEDED : status;
    }
    size_t read = 0;
    while (status == MCPL_OK && read < count) {
        char pointer[24];
        snprintf(pointer, sizeof pointer, "/%zu", read);
        status = mcpl_json_string(command, MCPL_AUTO_LENGTH, pointer, &arguments[read], NULL);
        if (status == MCPL_OK) {
            read++;
        }
    }
    if (status == MCPL_OK) {
        status = mcpl_client_spawn(client, (const char *const *)arguments, count);
    }
    while (read > 0) {
        mcpl_string_free(arguments[--read]);
    }
    return status;
}

/* Connects to the next server for one call. */
static mcpl_status connect_to(mcpl_client *client, const char *next) {
    char settings[64];
    snprintf(settings, sizeof settings, "{\"revisions\": [\"%s\"]}", getenv("TRACING_REVISION"));
    mcpl_status status = mcpl_client_set_options(client, settings, MCPL_AUTO_LENGTH);
    if (status != MCPL_OK) {
        return status;
    }
    return strncmp(next, "http", 4) == 0 ? mcpl_client_connect(client, next) : spawn(client, next);
}

static void trace_context(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)user;
    mcpl_client *client = mcpl_client_new("forward", "1");
    char *result = NULL;
    size_t result_length = 0;
    mcpl_status status = connect_to(client, getenv("TRACING_NEXT"));
    if (status == MCPL_OK) {
        /* On this thread, so that the span of the call is current. */
        status = mcpl_client_call_tool(client, "trace_context", arguments, length, NULL, &result, &result_length);
    }
    if (status == MCPL_OK) {
        mcpl_call_reply_result(call, result, result_length);
    } else {
        report("the call was not forwarded", status);
        mcpl_call_fail(call, "not forwarded", MCPL_AUTO_LENGTH);
    }
    mcpl_string_free(result);
    mcpl_client_free(client);
}

static void diagnose(mcpl_log_level level, const char *target, const char *message, void *user) {
    (void)level;
    (void)user;
    fprintf(stderr, "%s: %s\n", target, message);
}

int main(int count, char **arguments) {
    mcpl_status exporting = mcpl_export_spans(NULL);
    if (exporting != MCPL_OK) {
        report("spans are not exported", exporting);
        return EXIT_FAILURE;
    }
    mcpl_set_diagnostics(MCPL_LOG_WARNING, diagnose, NULL, NULL);
    mcpl_server *server = mcpl_server_new("forward", "1");
    mcpl_status status = mcpl_server_add_tool(server, "trace_context", "Returns what the next server has received",
                                              "{\"type\": \"object\"}", trace_context, NULL, NULL);
    if (status == MCPL_OK) {
        status = mcpl_server_stop_on_signals(server);
    }
    if (status == MCPL_OK) {
        status = count < 3 ? mcpl_server_run_stdio(server)
                           : mcpl_server_run_http(server, "127.0.0.1", (uint16_t)atoi(arguments[2]), NULL);
    }
    if (status != MCPL_OK) {
        report("the server failed", status);
    }
    mcpl_server_free(server);
    exporting = mcpl_stop_exporting_spans();
    if (exporting != MCPL_OK) {
        report("spans were lost", exporting);
    }
    return status == MCPL_OK && exporting == MCPL_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
