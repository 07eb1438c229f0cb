/* mcpline for C serving echo tools over stdio, or over HTTP with `--http PORT`. */
#define _GNU_SOURCE /* for the cores that it may use */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mcpline.h>

#define INPUT "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"}},\"required\":[\"text\"]}"

static void echo(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)user;
  char *text = NULL;
  size_t size = 0;
  if (mcpl_json_string(arguments, length, "/text", &text, &size) == MCPL_OK) {
    mcpl_call_reply_text(call, text, size);
  } else {
    mcpl_call_fail(call, "there is no text", MCPL_AUTO_LENGTH);
  }
  mcpl_string_free(text);
}

/* Responds with an event stream: progress is sent before the result. */
static void echo_stream(mcpl_call *call, const char *arguments, size_t length, void *user) {
  mcpl_call_progress(call, 1, 0, NULL);
  echo(call, arguments, length, user);
}

/* The options of the HTTP server: an I/O thread for each of both cores, if it may use both. */
static const char *http_options(void) {
  cpu_set_t cores;
  const int failed = sched_getaffinity(0, sizeof cores, &cores);
  return failed == 0 && CPU_COUNT(&cores) > 1 ? "{\"io_threads\": 2}" : NULL;
}

int main(int count, char **arguments) {
  static const char INLINE[] =
      "{\"name\":\"echo_inline\",\"description\":\"Echo on the I/O thread\",\"inputSchema\":" INPUT "}";
  const mcpl_handler_options options = {.size = sizeof options, .flags = MCPL_HANDLER_INLINE};
  mcpl_server *server = mcpl_server_new("bench", "1.0.0");
  mcpl_status status = mcpl_server_add_tool(server, "echo", "Echo", INPUT, echo, NULL, NULL);
  if (status == MCPL_OK) {
    status = mcpl_server_add_tool_with(server, INLINE, sizeof INLINE - 1, &options, echo, NULL, NULL);
  }
  if (status == MCPL_OK) {
    status = mcpl_server_add_tool(server, "echo_stream", "Echo after a progress notification", INPUT, echo_stream, NULL,
                                  NULL);
  }
  if (status == MCPL_OK && count == 3 && strcmp(arguments[1], "--http") == 0) {
    status = mcpl_server_run_http(server, "127.0.0.1", (uint16_t)strtoul(arguments[2], NULL, 10), http_options());
  } else if (status == MCPL_OK) {
    status = mcpl_server_run_stdio(server);
  }
  if (status != MCPL_OK) {
    fprintf(stderr, "%s\n", mcpl_error_message(mcpl_last_error()));
    return EXIT_FAILURE;
  }
  mcpl_server_free(server);
  return EXIT_SUCCESS;
}
