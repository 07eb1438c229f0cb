/* Many threads at once, for race detectors: calls are made, completed on other threads, cancelled and closed
 * concurrently. */

#include "check.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CALLERS = 4, CALLS_EACH = 25 };

/* Rounds of the test of surplus workers: fewer under valgrind, which needs two seconds for each. */
#ifndef ROUNDS
#define ROUNDS 40
#endif

/* Calls wait here for a thread that completes them. */
struct desk {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  mcpl_call *waiting[CALLERS * CALLS_EACH];
  int count;
  bool closed;
};

#define DESK {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER}

static void hand_in(mcpl_call *call, const char *arguments, size_t length, void *user) {
  struct desk *desk = user;
  (void)arguments, (void)length;
  OK(mcpl_call_keep(call));
  pthread_mutex_lock(&desk->lock);
  CHECK(desk->count < CALLERS * CALLS_EACH);
  desk->waiting[desk->count++] = call;
  pthread_cond_broadcast(&desk->changed);
  pthread_mutex_unlock(&desk->lock);
}

static void *complete_calls(void *user) {
  struct desk *desk = user;
  pthread_mutex_lock(&desk->lock);
  while (!desk->closed || desk->count > 0) {
    if (desk->count == 0) {
      pthread_cond_wait(&desk->changed, &desk->lock);
      continue;
    }
    mcpl_call *call = desk->waiting[--desk->count];
    pthread_mutex_unlock(&desk->lock);
    (void)mcpl_call_is_cancelled(call);
    (void)mcpl_call_progress(call, 1, 1, NULL);
    /* Ended calls return MCPL_STALE_HANDLE; the other ones are answered. */
    const mcpl_status status = mcpl_call_reply_text(call, "completed", MCPL_AUTO_LENGTH);
    CHECK(status == MCPL_OK || status == MCPL_STALE_HANDLE);
    pthread_mutex_lock(&desk->lock);
  }
  pthread_mutex_unlock(&desk->lock);
  return NULL;
}

static void close_desk(struct desk *desk) {
  pthread_mutex_lock(&desk->lock);
  desk->closed = true;
  pthread_cond_broadcast(&desk->changed);
  pthread_mutex_unlock(&desk->lock);
}

static void *make_calls(void *client) {
  for (int index = 0; index < CALLS_EACH; index++) {
    CALLS(client, "desk", NULL, "completed");
  }
  return NULL;
}

static void calls_are_completed_by_other_threads(void) {
  struct desk desk = DESK;
  struct tally finalizer = TALLY;
  pthread_t callers[CALLERS];
  pthread_t completers[2];
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "desk", "Waits at a desk", NULL, hand_in, &desk, NULL));
  OK(mcpl_server_add_tool(server, "other", "Not called", NULL, hand_in, &finalizer, finalized));
  mcpl_client *client = joined(server);
  OK(mcpl_client_open(client));
  for (int index = 0; index < 2; index++) {
    CHECK(pthread_create(&completers[index], NULL, complete_calls, &desk) == 0);
  }
  for (int index = 0; index < CALLERS; index++) {
    CHECK(pthread_create(&callers[index], NULL, make_calls, client) == 0);
  }
  for (int index = 0; index < CALLERS; index++) {
    CHECK(pthread_join(callers[index], NULL) == 0);
  }
  close_desk(&desk);
  for (int index = 0; index < 2; index++) {
    CHECK(pthread_join(completers[index], NULL) == 0);
  }
  mcpl_client_free(client);
  mcpl_server_free(server);
  CHECK(tally_count(&finalizer) == 1);
}

struct cancelling {
  mcpl_client *client;
  struct pending pending[CALLS_EACH];
};

static void *make_and_cancel(void *user) {
  struct cancelling *cancelling = user;
  for (int index = 0; index < CALLS_EACH; index++) {
    mcpl_request *request = NULL;
    cancelling->pending[index] = (struct pending)PENDING;
    OK(mcpl_client_call_tool_async(cancelling->client, "desk", NULL, 0, NULL, completed, &cancelling->pending[index],
                                   &request));
    const mcpl_status status = mcpl_request_cancel(request);
    CHECK(status == MCPL_OK || status == MCPL_STALE_HANDLE);
  }
  return NULL;
}

static void calls_are_cancelled_while_they_are_completed(void) {
  static struct cancelling cancelling[2];
  struct desk desk = DESK;
  pthread_t threads[2];
  pthread_t completer;
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "desk", "Waits at a desk", NULL, hand_in, &desk, NULL));
  mcpl_client *client = joined(server);
  OK(mcpl_client_open(client));
  CHECK(pthread_create(&completer, NULL, complete_calls, &desk) == 0);
  for (int index = 0; index < 2; index++) {
    cancelling[index].client = client;
    CHECK(pthread_create(&threads[index], NULL, make_and_cancel, &cancelling[index]) == 0);
  }
  for (int index = 0; index < 2; index++) {
    CHECK(pthread_join(threads[index], NULL) == 0);
  }
  for (int index = 0; index < 2 * CALLS_EACH; index++) {
    struct pending *pending = &cancelling[index / CALLS_EACH].pending[index % CALLS_EACH];
    tally_wait(&pending->done, 1);
    CHECK(pending->status == MCPL_OK || pending->status == MCPL_REQUEST_CANCELLED);
  }
  mcpl_client_free(client);
  OK(mcpl_server_close(server));
  close_desk(&desk);
  CHECK(pthread_join(completer, NULL) == 0);
  mcpl_server_free(server);
}

static void *call_until_closed(void *user) {
  struct cancelling *calling = user;
  for (int index = 0; index < CALLS_EACH; index++) {
    char *result = NULL;
    const mcpl_status status = mcpl_client_call_tool(calling->client, "desk", NULL, 0, NULL, &result, NULL);
    CHECK((status == MCPL_OK) == (result != NULL));
    mcpl_string_free(result);
  }
  return NULL;
}

static void a_server_is_closed_while_it_is_called(void) {
  struct desk desk = DESK;
  struct cancelling calling;
  pthread_t threads[CALLERS];
  pthread_t completer;
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "desk", "Waits at a desk", NULL, hand_in, &desk, NULL));
  calling.client = joined(server);
  OK(mcpl_client_open(calling.client));
  CHECK(pthread_create(&completer, NULL, complete_calls, &desk) == 0);
  for (int index = 0; index < CALLERS; index++) {
    CHECK(pthread_create(&threads[index], NULL, call_until_closed, &calling) == 0);
  }
  CALLS(calling.client, "desk", NULL, "completed");
  OK(mcpl_server_close(server));
  OK(mcpl_client_close(calling.client));
  for (int index = 0; index < CALLERS; index++) {
    CHECK(pthread_join(threads[index], NULL) == 0);
  }
  mcpl_client_free(calling.client);
  mcpl_server_free(server);
  close_desk(&desk);
  CHECK(pthread_join(completer, NULL) == 0);
}

static void *add_and_remove(void *user) {
  mcpl_server *server = user;
  struct tally finalizer = TALLY;
  for (int index = 0; index < CALLS_EACH; index++) {
    OK(mcpl_server_add_resource(server, "a://b", "b", NULL, hand_in, &finalizer, finalized));
    OK(mcpl_server_remove_resource(server, "a://b"));
    tally_wait(&finalizer, index + 1);
  }
  return NULL;
}

static void features_change_while_they_are_listed(void) {
  pthread_t thread;
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_resource(server, "a://always", "always", NULL, hand_in, NULL, NULL));
  mcpl_client *client = joined(server);
  OK(mcpl_client_open(client));
  CHECK(pthread_create(&thread, NULL, add_and_remove, server) == 0);
  for (int index = 0; index < CALLS_EACH; index++) {
    char *result = NULL;
    OK(mcpl_client_list_resources(client, NULL, &result, NULL));
    CONTAINS(result, "a://always");
    mcpl_string_free(result);
  }
  CHECK(pthread_join(thread, NULL) == 0);
  mcpl_client_free(client);
  mcpl_server_free(server);
}

/* Waits while another worker replaces it. */
static void wait_twice(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length;
  OK(mcpl_client_ping(user, NULL));
  usleep(2000);
  OK(mcpl_client_ping(user, NULL));
  OK(mcpl_call_reply_text(call, "waited", MCPL_AUTO_LENGTH));
}

static void surplus_workers_end_when_waiting_ones_return(void) {
  enum { CALLS_AT_ONCE = 64 };
  static struct pending pending[CALLS_AT_ONCE];
  mcpl_server *server = mcpl_server_new("server", "1");
  mcpl_client *behind = joined(server);
  OK(mcpl_server_add_tool(server, "wait", "Waits twice", NULL, wait_twice, behind, NULL));
  OK(mcpl_client_open(behind));
  mcpl_client *client = joined(server);
  OK(mcpl_client_open(client));
  for (int round = 0; round < ROUNDS; round++) {
    for (int index = 0; index < CALLS_AT_ONCE; index++) {
      pending[index] = (struct pending)PENDING;
      OK(mcpl_client_call_tool_async(client, "wait", NULL, 0, NULL, completed, &pending[index], NULL));
    }
    for (int index = 0; index < CALLS_AT_ONCE; index++) {
      tally_wait(&pending[index].done, 1);
      CHECK(pending[index].status == MCPL_OK);
    }
    /* Some workers end meanwhile. */
    usleep(5000);
  }
  mcpl_client_free(client);
  mcpl_client_free(behind);
  mcpl_server_free(server);
}

/* A server, the results of starting it, and what a test waits for. */
struct starting {
  mcpl_server *server;
  struct tally ended;
  mcpl_status status;
  uint16_t port;
};

static void start_again(mcpl_server *server, const mcpl_error *error, void *user) {
  struct starting *starting = user;
  CHECK(error == NULL);
  starting->status = mcpl_server_start_http(server, "127.0.0.1", 0, NULL, &starting->port);
  tally_add(&starting->ended);
}

/* The callback runs while `mcpl_server_close` waits for it: after the last transport has ended. */
static void a_closing_server_is_not_started_again(void) {
  struct starting starting = {.ended = TALLY};
  uint16_t port = 0;
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_on_end(server, start_again, &starting, NULL));
  OK(mcpl_server_start_http(server, "127.0.0.1", 0, NULL, &port));
  OK(mcpl_server_stop(server));
  OK(mcpl_server_wait(server, -1));
  tally_wait(&starting.ended, 1);
  /* It was only stopped, so it is served again. */
  EXPECT(MCPL_OK, starting.status);
  CHECK(starting.port != 0);
  OK(mcpl_server_close(server));
  CHECK(tally_count(&starting.ended) == 2);
  EXPECT(MCPL_CLOSED, starting.status);
  CHECK(starting.port == 0);
  OK(mcpl_server_wait(server, 0));
  mcpl_server_free(server);
}

static void *start(void *user) {
  struct starting *starting = user;
  starting->status = mcpl_server_start_http(starting->server, "127.0.0.1", 0, NULL, &starting->port);
  return NULL;
}

static void a_server_is_closed_while_it_starts(void) {
  for (int round = 0; round < ROUNDS; round++) {
    struct starting starting = {.server = mcpl_server_new("server", "1"), .ended = TALLY};
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, start, &starting) == 0);
    OK(mcpl_server_close(starting.server));
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(starting.status == MCPL_OK || starting.status == MCPL_CLOSED);
    /* Nothing is served any more, whichever was first. */
    OK(mcpl_server_wait(starting.server, 0));
    mcpl_server_free(starting.server);
  }
}

/* Waits until two calls are here, so each needs a thread of its own. */
static void meet(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length;
  tally_add(user);
  tally_wait(user, 2);
  OK(mcpl_call_reply_text(call, "met", MCPL_AUTO_LENGTH));
}

/* Connects to a server and sends a call of 2026-07-28. */
static int send_call(uint16_t port, const char *tool) {
  char body[512];
  char message[1024];
  const struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
  snprintf(
      body, sizeof body,
      "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"%s\",\"arguments\":{},\"_meta\":{"
      "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{}}}}",
      tool);
  const int length =
      snprintf(message, sizeof message,
               "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, "
               "text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: %s\r\n"
               "Content-Length: %zu\r\n\r\n%s",
               tool, strlen(body), body);
  const int stream = socket(AF_INET, SOCK_STREAM, 0);
  CHECK(stream >= 0);
  CHECK(connect(stream, (const struct sockaddr *)&address, sizeof address) == 0);
  CHECK(write(stream, message, (size_t)length) == length);
  return stream;
}

/* Checks that a response contains this. */
static void receive(int stream, const char *part) {
  char seen[4096] = "";
  size_t length = 0;
  while (strstr(seen, part) == NULL) {
    const ssize_t count = read(stream, seen + length, sizeof seen - 1 - length);
    CHECK(count > 0);
    length += (size_t)count;
    seen[length] = 0;
  }
}

/* Inline handlers of both connections run at the same time, and so do handlers on the pool, whose results go back to
 * both. */
static void connections_are_served_by_several_io_threads(void) {
  struct tally inline_calls = TALLY;
  struct tally pooled_calls = TALLY;
  uint16_t port = 0;
  const mcpl_handler_options options = {.size = sizeof options, .flags = MCPL_HANDLER_INLINE};
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool_with(server, "{\"name\":\"inline\",\"inputSchema\":{\"type\":\"object\"}}", MCPL_AUTO_LENGTH,
                               &options, meet, &inline_calls, NULL));
  OK(mcpl_server_add_tool(server, "pooled", "Meets", NULL, meet, &pooled_calls, NULL));
  OK(mcpl_server_start_http(server, "127.0.0.1", 0, "{\"io_threads\": 2}", &port));
  const char *tools[] = {"inline", "pooled"};
  for (size_t index = 0; index < 2; index++) {
    const int first = send_call(port, tools[index]);
    const int second = send_call(port, tools[index]);
    receive(first, "met");
    receive(second, "met");
    CHECK(close(first) == 0 && close(second) == 0);
  }
  mcpl_server_free(server);
}

/* A server with more I/O threads than any machine has use for is refused. */
static void the_number_of_io_threads_is_limited(void) {
  uint16_t port = 0;
  mcpl_server *server = mcpl_server_new("server", "1");
  EXPECT(MCPL_USAGE_ERROR, mcpl_server_start_http(server, "127.0.0.1", 0, "{\"io_threads\": 1025}", &port));
  CONTAINS(mcpl_error_message(mcpl_last_error()), "io_threads");
  mcpl_server_free(server);
}

static const struct test tests[] = {
    TEST(calls_are_completed_by_other_threads),         TEST(calls_are_cancelled_while_they_are_completed),
    TEST(a_server_is_closed_while_it_is_called),        TEST(features_change_while_they_are_listed),
    TEST(surplus_workers_end_when_waiting_ones_return), TEST(a_closing_server_is_not_started_again),
    TEST(a_server_is_closed_while_it_starts),           TEST(connections_are_served_by_several_io_threads),
    TEST(the_number_of_io_threads_is_limited),
};

MAIN(tests)
