/* An event-loop program: it waits in poll() for its own input and for the library, and runs all callbacks on that
 * thread, so its state needs no lock.
 *
 *     poll [PORT]
 *
 * Serves a list of notes over HTTP. Each line that you type becomes a note, too. Ends at the end of input or by a
 * signal.
 */

#include <mcpline.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 100, LONGEST = 200 };

/* Used by a single thread: for typed lines and for calls of clients. */
struct notes {
  char text[MOST][LONGEST + 1];
  int count;
  int served;
};

static int add(struct notes *notes, const char *text) {
  if (notes->count == MOST) {
    return -1;
  }
  snprintf(notes->text[notes->count], LONGEST + 1, "%s", text);
  return ++notes->count;
}

static void note(mcpl_call *call, const char *arguments, size_t length, void *user) {
  char *text = NULL;
  char words[32];
  if (mcpl_json_string(arguments, length, "/text", &text, NULL) != MCPL_OK || strlen(text) > LONGEST) {
    mcpl_call_fail(call, "a note has at most 200 bytes", MCPL_AUTO_LENGTH);
  } else if (add(user, text) < 0) {
    mcpl_call_fail(call, "there is no room for more notes", MCPL_AUTO_LENGTH);
  } else {
    snprintf(words, sizeof words, "%d", ((struct notes *)user)->count);
    mcpl_call_reply_text(call, words, MCPL_AUTO_LENGTH);
  }
  mcpl_string_free(text);
}

static void list(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments;
  (void)length;
  const struct notes *notes = user;
  mcpl_json *json = mcpl_json_new();
  mcpl_json_begin_array(json);
  for (int index = 0; index < notes->count; index++) {
    mcpl_json_put_string(json, notes->text[index], MCPL_AUTO_LENGTH);
  }
  mcpl_json_end_array(json);
  const char *text = NULL;
  size_t text_length = 0;
  if (mcpl_json_text(json, &text, &text_length) == MCPL_OK) {
    mcpl_call_reply_text(call, text, text_length);
  }
  mcpl_json_free(json);
}

static void ended(mcpl_server *server, const mcpl_error *error, void *user) {
  (void)server;
  if (error != NULL) {
    fprintf(stderr, "poll: %s\n", mcpl_error_message(error));
  }
  ((struct notes *)user)->served = 0;
}

/* Reads typed input and adds a note when a line is complete; returns false at the end of input. */
static int read_line(struct notes *notes) {
  static char line[LONGEST + 1];
  static size_t filled;
  const ssize_t count = read(STDIN_FILENO, line + filled, LONGEST - filled);
  if (count <= 0) {
    return count < 0 && errno == EINTR;
  }
  filled += (size_t)count;
  line[filled] = '\0';
  char *end = strchr(line, '\n');
  if (end != NULL || filled == LONGEST) {
    if (end != NULL) {
      *end = '\0';
    }
    printf("note %d\n", add(notes, line));
    fflush(stdout);
    filled = end == NULL ? 0 : filled - (size_t)(end + 1 - line);
    memmove(line, end == NULL ? line : end + 1, filled);
  }
  return 1;
}

/* Waits and dispatches until the server has stopped. */
static int run(mcpl_server *server, mcpl_loop *loop, struct notes *notes) {
  struct pollfd watched[] = {{.fd = mcpl_loop_fd(loop), .events = POLLIN}, {.fd = STDIN_FILENO, .events = POLLIN}};
  while (notes->served) {
    if (poll(watched, 2, -1) < 0 && errno != EINTR) {
      perror("poll");
      return EXIT_FAILURE;
    }
    if (watched[0].revents != 0) {
      mcpl_loop_dispatch(loop, 0, NULL);
    }
    if (watched[1].revents != 0 && !read_line(notes)) {
      watched[1].fd = -1;
      mcpl_server_stop(server);
    }
  }
  return EXIT_SUCCESS;
}

int main(int argc, char **argv) {
  static struct notes notes = {.served = 1};
  uint16_t port = argc > 1 ? (uint16_t)strtoul(argv[1], NULL, 10) : 0;
  mcpl_loop *loop = mcpl_loop_new();
  mcpl_server *server = mcpl_server_new("notes", "1.0.0");
  int result = EXIT_FAILURE;
  if (mcpl_server_use_loop(server, loop) == MCPL_OK &&
      mcpl_server_add_tool(server, "note", "Adds a note",
                           "{\"type\": \"object\", \"properties\": {\"text\": {\"type\": \"string\"}},"
                           " \"required\": [\"text\"]}",
                           note, &notes, NULL) == MCPL_OK &&
      mcpl_server_add_tool(server, "list", "All notes", NULL, list, &notes, NULL) == MCPL_OK &&
      mcpl_server_on_end(server, ended, &notes, NULL) == MCPL_OK && mcpl_server_stop_on_signals(server) == MCPL_OK &&
      mcpl_server_start_http(server, "127.0.0.1", port, NULL, &port) == MCPL_OK) {
    printf("listening on http://127.0.0.1:%u/mcp\n", (unsigned)port);
    fflush(stdout);
    result = run(server, loop, &notes);
  } else {
    fprintf(stderr, "poll: %s\n", mcpl_error_message(mcpl_last_error()));
  }
  mcpl_server_free(server);
  mcpl_loop_free(loop);
  return result;
}
