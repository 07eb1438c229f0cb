/* A server in GLib's main loop: handlers, a timer and signals run on one thread, so their state needs no lock.
 *
 *     glib [PORT]
 *
 * Serves a stopwatch over HTTP. GTK programs run the same loop. Ends by SIGINT or SIGTERM.
 */

#include <mcpline.h>

#include <glib-unix.h>
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>

struct stopwatch {
  GMainLoop *main_loop;
  mcpl_server *server;
  guint timer;
  unsigned tenths;
};

static gboolean advance(gpointer user) {
  ((struct stopwatch *)user)->tenths++;
  return G_SOURCE_CONTINUE;
}

static void start(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length;
  struct stopwatch *watch = user;
  watch->tenths = 0;
  if (watch->timer == 0) {
    watch->timer = g_timeout_add(100, advance, watch);
  }
  mcpl_call_reply_text(call, "started", MCPL_AUTO_LENGTH);
}

static void stop(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length;
  struct stopwatch *watch = user;
  if (watch->timer == 0) {
    mcpl_call_fail(call, "the stopwatch does not run", MCPL_AUTO_LENGTH);
    return;
  }
  g_source_remove(watch->timer);
  watch->timer = 0;
  char *text = g_strdup_printf("%u.%u s", watch->tenths / 10, watch->tenths % 10);
  mcpl_call_reply_text(call, text, MCPL_AUTO_LENGTH);
  g_free(text);
}

/* The library's descriptor is readable: callbacks are queued. */
static gboolean dispatch(gint descriptor, GIOCondition condition, gpointer user) {
  (void)descriptor, (void)condition;
  mcpl_loop_dispatch(user, 0, NULL);
  return G_SOURCE_CONTINUE;
}

static gboolean end(gpointer user) {
  /* Calls in flight end first: `ended` leaves the main loop. */
  mcpl_server_stop(((struct stopwatch *)user)->server);
  return G_SOURCE_CONTINUE;
}

static void ended(mcpl_server *server, const mcpl_error *error, void *user) {
  (void)server;
  if (error != NULL) {
    fprintf(stderr, "glib: %s\n", mcpl_error_message(error));
  }
  g_main_loop_quit(((struct stopwatch *)user)->main_loop);
}

int main(int argc, char **argv) {
  uint16_t port = argc > 1 ? (uint16_t)strtoul(argv[1], NULL, 10) : 0;
  mcpl_loop *loop = mcpl_loop_new();
  struct stopwatch watch = {.main_loop = g_main_loop_new(NULL, FALSE), .server = mcpl_server_new("stopwatch", "1.0.0")};
  int result = EXIT_FAILURE;
  g_unix_fd_add(mcpl_loop_fd(loop), G_IO_IN, dispatch, loop);
  g_unix_signal_add(SIGINT, end, &watch);
  g_unix_signal_add(SIGTERM, end, &watch);
  if (mcpl_server_use_loop(watch.server, loop) == MCPL_OK &&
      mcpl_server_add_tool(watch.server, "start", "Starts the stopwatch", NULL, start, &watch, NULL) == MCPL_OK &&
      mcpl_server_add_tool(watch.server, "stop", "Stops the stopwatch", NULL, stop, &watch, NULL) == MCPL_OK &&
      mcpl_server_on_end(watch.server, ended, &watch, NULL) == MCPL_OK &&
      mcpl_server_start_http(watch.server, "127.0.0.1", port, NULL, &port) == MCPL_OK) {
    printf("listening on http://127.0.0.1:%u/mcp\n", (unsigned)port);
    fflush(stdout);
    g_main_loop_run(watch.main_loop);
    result = EXIT_SUCCESS;
  } else {
    fprintf(stderr, "glib: %s\n", mcpl_error_message(mcpl_last_error()));
  }
  mcpl_server_free(watch.server);
  mcpl_loop_free(loop);
  g_main_loop_unref(watch.main_loop);
  return result;
}
