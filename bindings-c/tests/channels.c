/* Transports written in C: two of them connect a server and a client, and are ended in several ways. */

#include "check.h"

/* One end of a connection; the other end receives what it sends, if it is there. */
struct end {
  struct tally opened;
  struct tally sent;
  struct tally closed;
  struct tally finalized;
  pthread_mutex_t lock;
  mcpl_channel *other;
};

#define END {TALLY, TALLY, TALLY, TALLY, PTHREAD_MUTEX_INITIALIZER, NULL}

static void open_at_once(mcpl_channel *channel, void *user) {
  tally_add(&((struct end *)user)->opened);
  OK(mcpl_channel_opened(channel, NULL));
}

static void fail_to_open(mcpl_channel *channel, void *user) {
  tally_add(&((struct end *)user)->opened);
  OK(mcpl_channel_opened(channel, "no cable"));
}

static mcpl_status send_across(mcpl_channel *channel, const char *message, size_t length, void *user) {
  struct end *end = user;
  (void)channel;
  CHECK(strlen(message) == length);
  pthread_mutex_lock(&end->lock);
  mcpl_channel *other = end->other;
  pthread_mutex_unlock(&end->lock);
  /* The other side may have closed already. */
  const mcpl_status status = mcpl_channel_receive(other, message, length);
  CHECK(status == MCPL_OK || status == MCPL_STALE_HANDLE || status == MCPL_CLOSED);
  tally_add(&end->sent);
  return MCPL_OK;
}

static void closed(mcpl_channel *channel, void *user) {
  (void)channel;
  tally_add(&((struct end *)user)->closed);
}

static void end_finalized(void *user) { tally_add(&((struct end *)user)->finalized); }

/* A client's channel is known once `open` is called. */
struct client_end {
  struct end end;
  struct end *server;
};

static void open_client(mcpl_channel *channel, void *user) {
  struct client_end *client = user;
  pthread_mutex_lock(&client->server->lock);
  client->server->other = channel;
  pthread_mutex_unlock(&client->server->lock);
  open_at_once(channel, user);
}

static void reply(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length, (void)user;
  OK(mcpl_call_reply_text(call, "across", MCPL_AUTO_LENGTH));
}

static void a_server_and_a_client_talk_over_channels(void) {
  struct end server_end = END;
  struct client_end client_end = {END, &server_end};
  mcpl_channel_functions serving = MCPL_CHANNEL_FUNCTIONS_INIT;
  serving.send = send_across;
  serving.close = closed;
  const mcpl_channel_functions asking = {
      .size = sizeof asking, .open = open_client, .send = send_across, .close = closed};
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "reply", "Replies", NULL, reply, NULL, NULL));
  mcpl_channel *served = mcpl_server_serve_channel(server, &serving, NULL, 0, &server_end, end_finalized);
  CHECK(served != NULL);
  client_end.end.other = served;
  mcpl_client *client = mcpl_client_new("client", "1");
  OK(mcpl_client_set_channel(client, &asking, &client_end, end_finalized));
  OK(mcpl_client_open(client));
  CALLS(client, "reply", NULL, "across");
  OK(mcpl_client_close(client));
  CHECK(tally_count(&client_end.end.closed) == 1);
  OK(mcpl_channel_hang_up(served, NULL));
  OK(mcpl_server_close(server));
  CHECK(tally_count(&server_end.closed) == 1);
  EXPECT(MCPL_STALE_HANDLE, mcpl_channel_receive(served, "{}", 2));
  EXPECT(MCPL_STALE_HANDLE, mcpl_channel_hang_up(served, NULL));
  mcpl_client_free(client);
  mcpl_server_free(server);
  CHECK(tally_count(&client_end.end.finalized) == 1 && tally_count(&server_end.finalized) == 1);
  CHECK(tally_count(&client_end.end.opened) == 1 && tally_count(&client_end.end.sent) > 0);
}

static void a_channel_that_fails_to_open_fails_the_client(void) {
  struct end end = END;
  const mcpl_channel_functions functions = {
      .size = sizeof functions, .open = fail_to_open, .send = send_across, .close = closed};
  mcpl_client *client = mcpl_client_new("client", "1");
  OK(mcpl_client_set_channel(client, &functions, &end, end_finalized));
  CHECK(mcpl_client_open(client) != MCPL_OK);
  CONTAINS(mcpl_error_message(mcpl_last_error()), "no cable");
  mcpl_client_free(client);
  CHECK(tally_count(&end.finalized) == 1);
  CHECK(tally_count(&end.sent) == 0);
}

static mcpl_status swallow(mcpl_channel *channel, const char *message, size_t length, void *user) {
  (void)message, (void)length;
  pthread_mutex_lock(&((struct end *)user)->lock);
  ((struct end *)user)->other = channel;
  pthread_mutex_unlock(&((struct end *)user)->lock);
  tally_add(&((struct end *)user)->sent);
  return MCPL_OK;
}

static void a_hang_up_fails_requests_in_flight(void) {
  struct end end = END;
  struct pending pending = PENDING;
  const mcpl_channel_functions functions = {
      .size = sizeof functions, .open = open_at_once, .send = swallow, .close = closed};
  mcpl_client *client = mcpl_client_new("client", "1");
  /* One revision, so that the client does not try another in a second session, which is not answered either. */
  OK(mcpl_client_set_options(client, "{\"revisions\": [\"2025-11-25\"], \"reconnect_attempts\": 0}", MCPL_AUTO_LENGTH));
  OK(mcpl_client_set_channel(client, &functions, &end, end_finalized));
  OK(mcpl_client_open_async(client, completed, &pending, NULL));
  tally_wait(&end.sent, 1);
  pthread_mutex_lock(&end.lock);
  mcpl_channel *channel = end.other;
  pthread_mutex_unlock(&end.lock);
  OK(mcpl_channel_hang_up(channel, "the cable broke"));
  tally_wait(&pending.done, 1);
  CHECK(pending.status != MCPL_OK);
  mcpl_client_free(client);
  CHECK(tally_count(&end.opened) == 1 && tally_count(&end.closed) == 1 && tally_count(&end.finalized) == 1);
}

static void a_client_that_hangs_up_is_gone_from_the_server(void) {
  struct end end = END;
  const mcpl_channel_functions functions = {.size = sizeof functions, .send = swallow, .close = closed};
  mcpl_server *server = mcpl_server_new("server", "1");
  mcpl_channel *channel = mcpl_server_serve_channel(server, &functions, NULL, 0, &end, end_finalized);
  CHECK(channel != NULL);
  const char *ping = "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"ping\"}";
  OK(mcpl_channel_receive(channel, ping, strlen(ping)));
  tally_wait(&end.sent, 1);
  EXPECT(MCPL_USAGE_ERROR, mcpl_channel_receive(channel, NULL, 3));
  OK(mcpl_channel_hang_up(channel, "gone"));
  (void)mcpl_server_wait(server, -1);
  tally_wait(&end.closed, 1);
  tally_wait(&end.finalized, 1);
  mcpl_server_free(server);
}

static void who(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length, (void)user;
  char *info = NULL;
  size_t info_length = 0;
  OK(mcpl_call_info(call, &info, &info_length));
  OK(mcpl_call_reply_text(call, info, info_length));
  mcpl_string_free(info);
}

/* Checks the result of the tool `who` for this principal, and whether it may call `save`, which requires `write`. */
static mcpl_status as_principal(const char *principal, const char *expected) {
  struct end server_end = END;
  struct client_end client_end = {END, &server_end};
  const mcpl_channel_functions serving = {.size = sizeof serving, .send = send_across, .close = closed};
  const mcpl_channel_functions asking = {
      .size = sizeof asking, .open = open_client, .send = send_across, .close = closed};
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "who", "Says who calls", NULL, who, NULL, NULL));
  const char *save = "{\"name\": \"save\", \"inputSchema\": {\"type\": \"object\"}}";
  const mcpl_handler_options wants = {.size = sizeof wants, .scopes = "write"};
  OK(mcpl_server_add_tool_with(server, save, strlen(save), &wants, reply, NULL, NULL));
  mcpl_channel *served = mcpl_server_serve_channel(server, &serving, principal, MCPL_AUTO_LENGTH, &server_end, NULL);
  CHECK(served != NULL);
  client_end.end.other = served;
  mcpl_client *client = mcpl_client_new("client", "1");
  OK(mcpl_client_set_channel(client, &asking, &client_end, NULL));
  OK(mcpl_client_open(client));
  char *result = NULL;
  size_t length = 0;
  OK(mcpl_client_call_tool(client, "who", NULL, 0, NULL, &result, &length));
  CONTAINS(result, expected);
  mcpl_string_free(result);
  result = NULL;
  const mcpl_status saved = mcpl_client_call_tool(client, "save", NULL, 0, NULL, &result, &length);
  mcpl_string_free(result);
  if (saved != MCPL_OK) {
    CHECK(mcpl_error_rpc_code(mcpl_last_error()) == -31001);
  }
  mcpl_client_free(client);
  mcpl_server_free(server);
  return saved;
}

static void a_principal_has_the_scopes_that_its_transport_names(void) {
  CHECK(as_principal(NULL, "requestId") == MCPL_OK);
  CHECK(as_principal("{\"subject\": \"alice\"}", "alice") == MCPL_RPC_ERROR);
  CHECK(as_principal("{\"subject\": \"alice\", \"scopes\": [\"write\"]}", "alice") == MCPL_OK);
}

/* An end that takes long to send a message. */
struct slow_end {
  struct end end;
  struct tally begun;
  struct tally go;
  bool is_sending;
};

static void begin(struct slow_end *slow) {
  pthread_mutex_lock(&slow->end.lock);
  CHECK(!slow->is_sending);
  slow->is_sending = true;
  pthread_mutex_unlock(&slow->end.lock);
  tally_add(&slow->begun);
}

static mcpl_status send_slowly(mcpl_channel *channel, const char *message, size_t length, void *user) {
  struct slow_end *slow = user;
  (void)channel, (void)length;
  begin(slow);
  if (strstr(message, "late") != NULL) {
    tally_wait(&slow->go, 1);
  }
  pthread_mutex_lock(&slow->end.lock);
  slow->is_sending = false;
  pthread_mutex_unlock(&slow->end.lock);
  return MCPL_OK;
}

static void closed_alone(mcpl_channel *channel, void *user) {
  begin(user);
  closed(channel, user);
}

/* Calls that stay open, and the last of them. */
struct kept {
  struct tally calls;
  mcpl_call *last;
};

static void keep(mcpl_call *call, const char *arguments, size_t length, void *user) {
  struct kept *kept = user;
  (void)arguments, (void)length;
  pthread_mutex_lock(&kept->calls.lock);
  OK(mcpl_call_keep(call));
  kept->last = call;
  pthread_mutex_unlock(&kept->calls.lock);
  tally_add(&kept->calls);
}

static void functions_run_one_at_a_time_though_the_server_stops(void) {
  struct slow_end slow = {END, TALLY, TALLY, false};
  struct kept kept = {TALLY, NULL};
  const mcpl_channel_functions functions = {.size = sizeof functions, .send = send_slowly, .close = closed_alone};
  const char *info = "{\"name\": \"server\", \"version\": \"1\"}";
  mcpl_server *server = mcpl_server_new_with(info, MCPL_AUTO_LENGTH, "{\"shutdown_timeout\": 0.2}", MCPL_AUTO_LENGTH);
  CHECK(server != NULL);
  OK(mcpl_server_add_tool(server, "keep", "Keeps its calls", NULL, keep, &kept, NULL));
  mcpl_channel *channel = mcpl_server_serve_channel(server, &functions, NULL, 0, &slow, end_finalized);
  CHECK(channel != NULL);
  const char *messages[] = {
      "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"initialize\", \"params\": {\"protocolVersion\": \"2025-11-25\", "
      "\"capabilities\": {}, \"clientInfo\": {\"name\": \"test\", \"version\": \"1\"}}}",
      "{\"jsonrpc\": \"2.0\", \"method\": \"notifications/initialized\"}",
      "{\"jsonrpc\": \"2.0\", \"id\": 2, \"method\": \"tools/call\", \"params\": {\"name\": \"keep\"}}",
      "{\"jsonrpc\": \"2.0\", \"id\": 3, \"method\": \"tools/call\", \"params\": {\"name\": \"keep\"}}"};
  for (size_t index = 0; index < 4; index++) {
    OK(mcpl_channel_receive(channel, messages[index], strlen(messages[index])));
  }
  tally_wait(&slow.begun, 1);
  tally_wait(&kept.calls, 2);
  OK(mcpl_server_stop(server));
  const mcpl_status replied = mcpl_call_reply_text(kept.last, "late", MCPL_AUTO_LENGTH);
  CHECK(replied == MCPL_OK || replied == MCPL_STALE_HANDLE);
  /* The grace period is over by then: the answer to the other call must still wait, and so must the end. */
  const struct timespec past_the_grace = {1, 200000000};
  nanosleep(&past_the_grace, NULL);
  tally_add(&slow.go);
  OK(mcpl_server_wait(server, -1));
  mcpl_server_free(server);
  CHECK(tally_count(&slow.end.closed) == 1 && tally_count(&slow.end.finalized) == 1);
}

/* ---- backpressure */

/* An end whose transport is busy at times. */
struct busy_end {
  struct end end;
  struct tally refused;
  struct tally ready;
  pthread_mutex_t lock;
  bool is_busy;
  char *waiting;
};

#define BUSY_END {END, TALLY, TALLY, PTHREAD_MUTEX_INITIALIZER, true, NULL}

/* Refuses each message once. Half of the messages may be passed again before this function returns. */
static mcpl_status refuse_once(mcpl_channel *channel, const char *message, size_t length, void *user) {
  struct busy_end *busy = user;
  CHECK(strlen(message) == length);
  if (busy->waiting != NULL) {
    /* The same message again, and no other meanwhile. */
    CHECK(strcmp(busy->waiting, message) == 0);
    free(busy->waiting);
    busy->waiting = NULL;
    tally_add(&busy->end.sent);
    return MCPL_OK;
  }
  busy->waiting = strdup(message);
  if (tally_count(&busy->end.sent) % 2 == 1) {
    OK(mcpl_channel_writable(channel));
  }
  tally_add(&busy->refused);
  return MCPL_BUSY;
}

static const char PING[] = "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"ping\"}";

static void a_busy_transport_gets_each_message_again(void) {
  struct busy_end busy = BUSY_END;
  const mcpl_channel_functions functions = {.size = sizeof functions, .send = refuse_once, .close = closed};
  mcpl_server *server = mcpl_server_new("server", "1");
  mcpl_channel *channel = mcpl_server_serve_channel(server, &functions, NULL, 0, &busy, end_finalized);
  CHECK(channel != NULL);
  for (int count = 1; count <= 10; count++) {
    OK(mcpl_channel_receive(channel, PING, MCPL_AUTO_LENGTH));
    tally_wait(&busy.refused, count);
    if (count % 2 == 1) {
      CHECK(tally_count(&busy.end.sent) == count - 1);
      OK(mcpl_channel_writable(channel));
    }
    tally_wait(&busy.end.sent, count);
  }
  OK(mcpl_server_close(server));
  EXPECT(MCPL_STALE_HANDLE, mcpl_channel_writable(channel));
  mcpl_server_free(server);
  CHECK(busy.waiting == NULL && tally_count(&busy.end.finalized) == 1);
}

/* Takes nothing while the transport is busy. */
static mcpl_status refuse_while_busy(mcpl_channel *channel, const char *message, size_t length, void *user) {
  struct busy_end *busy = user;
  (void)channel, (void)message, (void)length;
  pthread_mutex_lock(&busy->lock);
  const bool is_busy = busy->is_busy;
  pthread_mutex_unlock(&busy->lock);
  tally_add(is_busy ? &busy->refused : &busy->end.sent);
  return is_busy ? MCPL_BUSY : MCPL_OK;
}

static void is_ready(mcpl_channel *channel, void *user) {
  (void)channel;
  tally_add(&((struct busy_end *)user)->ready);
}

enum { LARGE = 4 * 1024 * 1024 };

/* Returns a message or text of a large size, with this before and after the `x`s. */
static char *large(const char *before, const char *after) {
  char *text = malloc(strlen(before) + LARGE + strlen(after) + 1);
  CHECK(text != NULL);
  char *end = text + sprintf(text, "%s", before);
  memset(end, 'x', LARGE);
  sprintf(end + LARGE, "%s", after);
  return text;
}

static void reply_large(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length;
  char *result = large("{\"content\": [{\"type\": \"text\", \"text\": \"", "\"}]}");
  OK(mcpl_call_reply_result(call, result, MCPL_AUTO_LENGTH));
  free(result);
  tally_add(user);
}

static void a_peer_that_reads_slowly_is_not_read_until_it_has_caught_up(void) {
  struct busy_end busy = BUSY_END;
  struct tally replied = TALLY;
  const mcpl_channel_functions functions = {
      .size = sizeof functions, .send = refuse_while_busy, .ready = is_ready, .close = closed};
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "large", "Replies at length", NULL, reply_large, &replied, NULL));
  mcpl_channel *channel = mcpl_server_serve_channel(server, &functions, NULL, 0, &busy, end_finalized);
  CHECK(channel != NULL);
  const char *initialize =
      "{\"jsonrpc\": \"2.0\", \"id\": 0, \"method\": \"initialize\", \"params\": {\"protocolVersion\": \"2025-11-25\", "
      "\"capabilities\": {}, \"clientInfo\": {\"name\": \"test\", \"version\": \"1\"}}}";
  OK(mcpl_channel_receive(channel, initialize, MCPL_AUTO_LENGTH));
  OK(mcpl_channel_receive(channel, "{\"jsonrpc\": \"2.0\", \"method\": \"notifications/initialized\"}",
                          MCPL_AUTO_LENGTH));
  /* More than waits in the channel and in the server together. */
  enum { CALLS = 20 };
  for (int call = 1; call <= CALLS; call++) {
    char message[128];
    snprintf(message, sizeof message,
             "{\"jsonrpc\": \"2.0\", \"id\": %d, \"method\": \"tools/call\", \"params\": {\"name\": \"large\"}}", call);
    OK(mcpl_channel_receive(channel, message, MCPL_AUTO_LENGTH));
  }
  tally_wait(&replied, CALLS);
  /* What the server no longer reads waits in the channel, up to its limit. */
  char *notification =
      large("{\"jsonrpc\": \"2.0\", \"method\": \"notifications/acme\", \"params\": {\"text\": \"", "\"}}");
  mcpl_status status = MCPL_OK;
  while (status == MCPL_OK) {
    status = mcpl_channel_receive(channel, notification, MCPL_AUTO_LENGTH);
  }
  EXPECT(MCPL_BUSY, status);
  EXPECT(MCPL_BUSY, mcpl_channel_receive(channel, notification, MCPL_AUTO_LENGTH));
  CHECK(tally_count(&busy.ready) == 0 && tally_count(&busy.refused) == 1 && tally_count(&busy.end.sent) == 0);
  pthread_mutex_lock(&busy.lock);
  busy.is_busy = false;
  pthread_mutex_unlock(&busy.lock);
  OK(mcpl_channel_writable(channel));
  tally_wait(&busy.ready, 1);
  OK(mcpl_channel_receive(channel, notification, MCPL_AUTO_LENGTH));
  tally_wait(&busy.end.sent, 1 + CALLS);
  free(notification);
  OK(mcpl_server_close(server));
  mcpl_server_free(server);
  CHECK(tally_count(&busy.ready) == 1 && tally_count(&busy.end.closed) == 1);
}

/* Receives more than waits in a channel, before it is open. */
static void open_full(mcpl_channel *channel, void *user) {
  char *invalid = large("", "");
  mcpl_status status = MCPL_OK;
  for (int message = 0; message < 9; message++) {
    EXPECT(MCPL_OK, status);
    status = mcpl_channel_receive(channel, invalid, MCPL_AUTO_LENGTH);
  }
  EXPECT(MCPL_BUSY, mcpl_channel_receive(channel, invalid, MCPL_AUTO_LENGTH));
  free(invalid);
  CHECK(tally_count(&((struct busy_end *)user)->ready) == 0);
  open_at_once(channel, user);
}

static void fail_after_ready(mcpl_channel *channel, void *user) {
  is_ready(channel, user);
  OK(mcpl_channel_receive(channel, "{}", MCPL_AUTO_LENGTH));
  OK(mcpl_channel_hang_up(channel, "the cable broke"));
}

static void a_client_says_when_it_can_receive_again(void) {
  struct busy_end busy = BUSY_END;
  const mcpl_channel_functions functions = {.size = sizeof functions,
                                            .open = open_full,
                                            .send = refuse_while_busy,
                                            .ready = fail_after_ready,
                                            .close = closed};
  mcpl_client *client = mcpl_client_new("client", "1");
  OK(mcpl_client_set_options(client, "{\"revisions\": [\"2025-11-25\"], \"reconnect_attempts\": 0}", MCPL_AUTO_LENGTH));
  OK(mcpl_client_set_channel(client, &functions, &busy, end_finalized));
  CHECK(mcpl_client_open(client) != MCPL_OK);
  CONTAINS(mcpl_error_message(mcpl_last_error()), "the cable broke");
  mcpl_client_free(client);
  CHECK(tally_count(&busy.ready) == 1 && tally_count(&busy.end.closed) == 1);
}

static mcpl_status fail_to_send(mcpl_channel *channel, const char *message, size_t length, void *user) {
  (void)channel, (void)message, (void)length;
  tally_add(&((struct end *)user)->sent);
  return MCPL_TRANSPORT_ERROR;
}

static void a_transport_that_fails_to_send_ends_its_channel(void) {
  struct end end = END;
  const mcpl_channel_functions functions = {
      .size = sizeof functions, .open = open_at_once, .send = fail_to_send, .close = closed};
  mcpl_client *client = mcpl_client_new("client", "1");
  OK(mcpl_client_set_options(client, "{\"revisions\": [\"2025-11-25\"], \"reconnect_attempts\": 0}", MCPL_AUTO_LENGTH));
  OK(mcpl_client_set_channel(client, &functions, &end, end_finalized));
  CHECK(mcpl_client_open(client) != MCPL_OK);
  CONTAINS(mcpl_error_message(mcpl_last_error()), "MCPL_TRANSPORT_ERROR");
  mcpl_client_free(client);
  CHECK(tally_count(&end.sent) == 1 && tally_count(&end.closed) == 1);
}

static void a_channel_ends_though_its_transport_stays_busy(void) {
  for (int hangs_up = 0; hangs_up < 2; hangs_up++) {
    struct busy_end busy = BUSY_END;
    const mcpl_channel_functions functions = {.size = sizeof functions, .send = refuse_while_busy, .close = closed};
    mcpl_server *server = mcpl_server_new("server", "1");
    mcpl_channel *channel = mcpl_server_serve_channel(server, &functions, NULL, 0, &busy, end_finalized);
    CHECK(channel != NULL);
    OK(mcpl_channel_receive(channel, PING, MCPL_AUTO_LENGTH));
    tally_wait(&busy.refused, 1);
    if (hangs_up == 1) {
      OK(mcpl_channel_hang_up(channel, "the cable broke"));
      tally_wait(&busy.end.closed, 1);
    }
    OK(mcpl_server_close(server));
    mcpl_server_free(server);
    CHECK(tally_count(&busy.end.closed) == 1 && tally_count(&busy.end.sent) == 0);
  }
}

static const struct test tests[] = {
    TEST(a_busy_transport_gets_each_message_again),
    TEST(a_peer_that_reads_slowly_is_not_read_until_it_has_caught_up),
    TEST(a_client_says_when_it_can_receive_again),
    TEST(a_transport_that_fails_to_send_ends_its_channel),
    TEST(a_channel_ends_though_its_transport_stays_busy),
    TEST(functions_run_one_at_a_time_though_the_server_stops),
    TEST(a_principal_has_the_scopes_that_its_transport_names),
    TEST(a_server_and_a_client_talk_over_channels),
    TEST(a_channel_that_fails_to_open_fails_the_client),
    TEST(a_hang_up_fails_requests_in_flight),
    TEST(a_client_that_hangs_up_is_gone_from_the_server),
};

MAIN(tests)
