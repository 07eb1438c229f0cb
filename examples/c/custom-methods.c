/* A server of a request of its own, acme/echo.
 *
 *     custom-methods [--http PORT]      without a port it serves stdio
 */

#include <mcpline.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the text, after progress and a notification of our own. Params fit the schema by the time it is called. */
static void echo(mcpl_call *call, const char *params, size_t length, void *user) {
  (void)user;
  const char *text = NULL;
  const char *result = NULL;
  size_t text_length = 0;
  size_t result_length = 0;
  mcpl_json *json = mcpl_json_new();
  mcpl_json_find(params, length, "/text", &text, &text_length);
  mcpl_json_begin_object(json);
  mcpl_json_name(json, "text");
  mcpl_json_put_json(json, text, text_length);
  mcpl_json_end_object(json);
  if (mcpl_json_text(json, &result, &result_length) == MCPL_OK) {
    mcpl_call_progress(call, 1, 2, NULL);
    mcpl_call_notify(call, "acme/echoing", result, result_length);
    mcpl_call_reply_result(call, result, result_length);
  }
  mcpl_json_free(json);
}

int main(int argc, char **argv) {
  mcpl_server *server = mcpl_server_new("custom-methods", "1.0.0");
  mcpl_status status =
      mcpl_server_on_request(server, "acme/echo",
                             "{\"type\": \"object\", \"properties\": {\"text\": {\"type\": \"string\"}},"
                             " \"required\": [\"text\"]}",
                             NULL, echo, NULL, NULL);
  if (status == MCPL_OK) {
    status = mcpl_server_stop_on_signals(server);
  }
  if (status == MCPL_OK) {
    status = argc == 3 && strcmp(argv[1], "--http") == 0
                 ? mcpl_server_run_http(server, "127.0.0.1", (uint16_t)atoi(argv[2]), NULL)
                 : mcpl_server_run_stdio(server);
  }
  if (status != MCPL_OK) {
    fprintf(stderr, "custom-methods: %s: %s\n", mcpl_status_name(status), mcpl_error_message(mcpl_last_error()));
  }
  mcpl_server_free(server);
  return status == MCPL_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
