/* A host in libuv's event loop: it starts a server and calls a tool, and the loop does other work meanwhile.
 *
 *     libuv PROGRAM [ARGUMENT…]
 *
 * Calls the tool `forecast` of the server (weather.c) for three cities at the same time. All callbacks run on the
 * loop's thread.
 */

#include <mcpline.h>

#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

struct host {
  uv_loop_t *uv;
  uv_poll_t poll;
  uv_timer_t timer;
  mcpl_loop *loop;
  mcpl_client *client;
  int running;
  int failed;
  int ticks;
};

static void complain(const char *doing, const mcpl_error *error) {
  fprintf(stderr, "libuv: %s: %s\n", doing, mcpl_error_message(error));
}

/* Closes what keeps the loop running. */
static void end(struct host *host) {
  uv_close((uv_handle_t *)&host->poll, NULL);
  uv_close((uv_handle_t *)&host->timer, NULL);
}

/* A response, or an error: `result` is valid until this returns. */
static void answered(mcpl_request *request, const mcpl_error *error, const char *result, size_t length, void *user) {
  (void)request;
  struct host *host = user;
  char *text = NULL;
  if (error != NULL) {
    complain("the call failed", error);
    host->failed = 1;
  } else if (mcpl_json_string(result, length, "/content/0/text", &text, NULL) == MCPL_OK) {
    printf("%s\n", text);
  }
  mcpl_string_free(text);
  if (--host->running == 0) {
    end(host);
  }
}

static void call(struct host *host, const char *city) {
  char arguments[64];
  snprintf(arguments, sizeof arguments, "{\"city\": \"%s\"}", city);
  if (mcpl_client_call_tool_async(host->client, "forecast", arguments, MCPL_AUTO_LENGTH, NULL, answered, host, NULL) ==
      MCPL_OK) {
    host->running++;
  } else {
    complain("forecast", mcpl_last_error());
    host->failed = 1;
  }
}

/* The library's descriptor is readable: callbacks are queued. */
static void dispatch(uv_poll_t *handle, int status, int events) {
  (void)status, (void)events;
  mcpl_loop_dispatch(((struct host *)handle->data)->loop, 0, NULL);
}

/* Other work of the program. */
static void tick(uv_timer_t *handle) { ((struct host *)handle->data)->ticks++; }

int main(int argc, char **argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: libuv PROGRAM [ARGUMENT…]\n");
    return EXIT_FAILURE;
  }
  struct host host = {.uv = uv_default_loop(), .loop = mcpl_loop_new(), .client = mcpl_client_new("host", "1.0.0")};
  if (mcpl_client_use_loop(host.client, host.loop) != MCPL_OK ||
      mcpl_client_spawn(host.client, (const char *const *)(argv + 1), (size_t)argc - 1) != MCPL_OK) {
    complain(argv[1], mcpl_last_error());
    host.failed = 1;
  } else {
    uv_poll_init(host.uv, &host.poll, mcpl_loop_fd(host.loop));
    uv_timer_init(host.uv, &host.timer);
    host.poll.data = host.timer.data = &host;
    uv_poll_start(&host.poll, UV_READABLE, dispatch);
    uv_timer_start(&host.timer, tick, 0, 10);
    call(&host, "Oslo");
    call(&host, "Bergen");
    call(&host, "Tromsø");
    if (host.running == 0) {
      end(&host);
    }
    uv_run(host.uv, UV_RUN_DEFAULT);
    fprintf(stderr, "the loop ran %d ticks of other work\n", host.ticks);
  }
  mcpl_client_free(host.client);
  mcpl_loop_free(host.loop);
  uv_loop_close(host.uv);
  return host.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
