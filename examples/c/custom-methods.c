/* A server and a client with custom requests and notifications.
 *
 *     custom-methods [--http PORT]                             the server; without a port it serves stdio
 *     custom-methods --client PROGRAM-OR-URL [ARGUMENT...]     the client of such a server
 */

#include <mcpline.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char TEXT[] = "{\"type\": \"object\", \"properties\": {\"text\": {\"type\": \"string\"}},"
                           " \"required\": [\"text\"]}";

/* A text that is passed from one thread to another. */
struct slot {
  pthread_mutex_t lock;
  pthread_cond_t filled;
  char *text;
};

#define SLOT {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL}

/* Replaces the text of the slot by the member `text` of a JSON object. */
static void give(struct slot *slot, const char *json, size_t length) {
  char *text = NULL;
  mcpl_json_string(json, length, "/text", &text, NULL);
  pthread_mutex_lock(&slot->lock);
  mcpl_string_free(slot->text);
  slot->text = text;
  pthread_cond_signal(&slot->filled);
  pthread_mutex_unlock(&slot->lock);
}

/* Waits for a text. Release it with mcpl_string_free. */
static char *take(struct slot *slot) {
  pthread_mutex_lock(&slot->lock);
  while (slot->text == NULL) {
    pthread_cond_wait(&slot->filled, &slot->lock);
  }
  char *text = slot->text;
  slot->text = NULL;
  pthread_mutex_unlock(&slot->lock);
  return text;
}

/* ---- the server */

/* Ends a call with an object of one member, whose value is JSON. If a notification's method is given, sends the
 * object as that notification first. */
static void reply_member(mcpl_call *call, const char *notification, const char *name, const char *value,
                         size_t length) {
  const char *result = NULL;
  size_t result_length = 0;
  mcpl_json *json = mcpl_json_new();
  mcpl_json_begin_object(json);
  mcpl_json_name(json, name);
  mcpl_json_put_json(json, value, length);
  mcpl_json_end_object(json);
  if (mcpl_json_text(json, &result, &result_length) == MCPL_OK) {
    if (notification != NULL) {
      mcpl_call_notify(call, notification, result, result_length);
    }
    mcpl_call_reply_result(call, result, result_length);
  }
  mcpl_json_free(json);
}

/* Returns the text, after progress and a custom notification. The params have been validated against the schema. */
static void echo(mcpl_call *call, const char *params, size_t length, void *user) {
  (void)user;
  const char *text = NULL;
  size_t text_length = 0;
  mcpl_json_find(params, length, "/text", &text, &text_length);
  mcpl_call_progress(call, 1, 2, NULL);
  reply_member(call, "acme/echoing", "text", text, text_length);
}

/* Stores a note from the client. */
static void note(mcpl_call *call, const char *params, size_t length, void *user) {
  give(user, params, length);
  mcpl_call_reply_text(call, "", 0);
}

/* Returns the note, or waits for one. */
static void take_note(mcpl_call *call, const char *params, size_t length, void *user) {
  (void)params, (void)length;
  const char *text = NULL;
  size_t text_length = 0;
  char *taken = take(user);
  mcpl_json *json = mcpl_json_new();
  mcpl_json_put_string(json, taken, MCPL_AUTO_LENGTH);
  if (mcpl_json_text(json, &text, &text_length) == MCPL_OK) {
    reply_member(call, NULL, "text", text, text_length);
  }
  mcpl_json_free(json);
  mcpl_string_free(taken);
}

static void picked(mcpl_call *call, const mcpl_error *error, const char *answer, size_t length, void *user) {
  (void)user;
  const char *tea = NULL;
  size_t tea_length = 0;
  if (error != NULL) {
    mcpl_call_fail_with(call, error);
  } else if (mcpl_json_find(answer, length, "/picked", &tea, &tea_length) == MCPL_OK) {
    reply_member(call, NULL, "tea", tea, tea_length);
  } else {
    mcpl_call_fail_internal(call, "the client has picked nothing");
  }
}

/* Sends the client a custom request. */
static void choose(mcpl_call *call, const char *params, size_t length, void *user) {
  (void)params, (void)length, (void)user;
  mcpl_call_send_request(call, NULL, "acme/pick", "{\"from\": [\"green\", \"black\"]}", MCPL_AUTO_LENGTH, picked, NULL,
                         NULL);
}

static mcpl_status serve(const char *port) {
  static struct slot notes = SLOT;
  mcpl_server *server = mcpl_server_new("custom-methods", "1.0.0");
  mcpl_status status = mcpl_server_on_request(server, "acme/echo", TEXT, NULL, echo, NULL, NULL);
  if (status == MCPL_OK) {
    status = mcpl_server_on_notification(server, "acme/note", TEXT, NULL, note, &notes, NULL);
  }
  if (status == MCPL_OK) {
    status = mcpl_server_on_request(server, "acme/take", NULL, NULL, take_note, &notes, NULL);
  }
  if (status == MCPL_OK) {
    status = mcpl_server_on_request(server, "acme/choose", NULL, NULL, choose, NULL, NULL);
  }
  if (status == MCPL_OK) {
    status = mcpl_server_stop_on_signals(server);
  }
  if (status == MCPL_OK) {
    status = port != NULL ? mcpl_server_run_http(server, "127.0.0.1", (uint16_t)atoi(port), NULL)
                          : mcpl_server_run_stdio(server);
  }
  mcpl_server_free(server);
  return status;
}

/* ---- the client */

/* Picks the first of the server's offers. */
static void pick(mcpl_input_request *request, const char *params, size_t length, void *user) {
  (void)user;
  const char *first = NULL;
  size_t first_length = 0;
  char answer[256];
  if (mcpl_json_find(params, length, "/from/0", &first, &first_length) == MCPL_OK) {
    snprintf(answer, sizeof answer, "{\"picked\": %.*s}", (int)first_length, first);
    mcpl_input_request_answer(request, answer, MCPL_AUTO_LENGTH);
  } else {
    mcpl_input_request_refuse(request, -32602, "there is nothing to pick from", NULL, 0);
  }
}

static void listen(mcpl_client *client, const char *method, const char *params, size_t length, void *user) {
  (void)client;
  if (strcmp(method, "acme/echoing") == 0) {
    give(user, params, length);
  }
}

/* Sends a request and prints a member of its result. */
static mcpl_status print(mcpl_client *client, const char *label, const char *method, const char *params,
                         const char *pointer) {
  char *result = NULL;
  char *text = NULL;
  size_t length = 0;
  mcpl_status status = mcpl_client_request(client, method, params, MCPL_AUTO_LENGTH, NULL, &result, &length);
  if (status == MCPL_OK) {
    status = mcpl_json_string(result, length, pointer, &text, NULL);
  }
  if (status == MCPL_OK) {
    printf("%s: %s\n", label, text);
  }
  mcpl_string_free(text);
  mcpl_string_free(result);
  return status;
}

/* Connects to the server, sends custom requests, and serves those of the server. */
static mcpl_status call(char **command, size_t count) {
  static struct slot echoing = SLOT;
  mcpl_client *client = mcpl_client_new("host", "1.0.0");
  mcpl_status status = mcpl_client_on_request(client, "acme/pick", pick, NULL, NULL);
  if (status == MCPL_OK) {
    status = mcpl_client_on_notification(client, listen, &echoing, NULL);
  }
  if (status == MCPL_OK) {
    status = strncmp(command[0], "http", 4) == 0 ? mcpl_client_connect(client, command[0])
                                                 : mcpl_client_spawn(client, (const char *const *)command, count);
  }
  if (status == MCPL_OK) {
    status = print(client, "echoed", "acme/echo", "{\"text\": \"hello\"}", "/text");
  }
  if (status == MCPL_OK) {
    char *text = take(&echoing);
    printf("echoing: %s\n", text);
    mcpl_string_free(text);
    status = mcpl_client_notify(client, "acme/note", "{\"text\": \"a note\"}", MCPL_AUTO_LENGTH);
  }
  if (status == MCPL_OK) {
    status = print(client, "took", "acme/take", NULL, "/text");
  }
  if (status == MCPL_OK) {
    status = print(client, "picked", "acme/choose", NULL, "/tea");
  }
  mcpl_client_free(client);
  return status;
}

int main(int argc, char **argv) {
  mcpl_status status = MCPL_OK;
  if (argc >= 3 && strcmp(argv[1], "--client") == 0) {
    status = call(argv + 2, (size_t)(argc - 2));
  } else {
    status = serve(argc == 3 && strcmp(argv[1], "--http") == 0 ? argv[2] : NULL);
  }
  if (status != MCPL_OK) {
    fprintf(stderr, "custom-methods: %s: %s\n", mcpl_status_name(status), mcpl_error_message(mcpl_last_error()));
  }
  return status == MCPL_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
