/* A server whose calls never end by themselves, over stdio, a Unix socket or HTTP. */
#include <mcpline.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void cancelled(mcpl_call *call, void *user) {
    fprintf(stderr, "cancelled %s\n", (const char *)user);
    mcpl_call_fail(call, "cancelled", MCPL_AUTO_LENGTH);
}

static void free_label(void *label) { mcpl_string_free(label); }

static void waits(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)user;
    char *label = NULL;
    mcpl_json_string(arguments, length, "/label", &label, NULL);
    mcpl_call_keep(call);
    mcpl_call_progress(call, 0, 1, "waiting");
    fprintf(stderr, "waiting %s\n", label);
    mcpl_call_on_cancel(call, cancelled, label, free_label);
}

static void diagnose(mcpl_log_level level, const char *target, const char *message, void *user) {
    (void)level;
    (void)user;
    fprintf(stderr, "%s: %s\n", target, message);
}

int main(int count, char **arguments) {
    mcpl_set_diagnostics(MCPL_LOG_WARNING, diagnose, NULL, NULL);
    const char *info = "{\"name\": \"shutdown\", \"version\": \"1\"}";
    const char *options = "{\"shutdown_timeout\": 1}";
    mcpl_server *server = mcpl_server_new_with(info, MCPL_AUTO_LENGTH, options, MCPL_AUTO_LENGTH);
    mcpl_status status =
        mcpl_server_add_tool(server, "waits", "Waits until it is cancelled",
                             "{\"type\": \"object\", \"properties\": {\"label\": {\"type\": \"string\"}},"
                             " \"required\": [\"label\"]}",
                             waits, NULL, NULL);
    if (status == MCPL_OK) {
        status = mcpl_server_stop_on_signals(server);
    }
    if (status == MCPL_OK) {
        if (count < 3) {
            status = mcpl_server_run_stdio(server);
        } else if (strcmp(arguments[1], "unix") == 0) {
            status = mcpl_server_run_unix(server, arguments[2], NULL);
        } else {
            status = mcpl_server_run_http(server, "127.0.0.1", (uint16_t)atoi(arguments[2]), NULL);
        }
    }
    if (status != MCPL_OK) {
        fprintf(stderr, "%s: %s\n", mcpl_status_name(status), mcpl_error_message(mcpl_last_error()));
    }
    mcpl_server_free(server);
    return status == MCPL_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
