/* State that servers share, in functions of the program: two servers over one store, and stores that fail or wait. */

#include "check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_ENTRIES 16
#define MAX_EVENTS 1024
#define MAX_THREADS 256

/* ---- a store, log and bus in memory */

struct bytes {
  char *data;
  size_t length;
};

struct session {
  char id[65];
  struct bytes stored;
  bool removed;
};

struct stream {
  char name[129];
  uint64_t first;
  struct bytes events[MAX_EVENTS];
  size_t count;
  bool ended;
};

/* How the functions of a store end their calls. */
enum way {
  AT_ONCE,
  ON_ANOTHER_THREAD, /* After the function has returned. */
  FAIL,
  RETURN, /* Without ending the call, or keeping it. */
  KEEP,   /* The test ends the call. */
};

struct store {
  pthread_mutex_t lock;
  struct session sessions[MAX_ENTRIES];
  struct stream streams[MAX_ENTRIES];
  mcpl_bus_receiver *receivers[MAX_ENTRIES];
  /* How each function ends its calls, by its name. */
  const char *function;
  enum way way;
  pthread_t threads[MAX_THREADS];
  size_t thread_count;
  /* Calls that the test ends. */
  mcpl_call *kept;
  mcpl_bus_receiver *receiver;
  struct tally keeping;
  struct tally cancelled;
  struct tally subscribed;
  struct tally unsubscribed;
  struct tally finalized;
};

#define STORE                                                                                                          \
  {.lock = PTHREAD_MUTEX_INITIALIZER,                                                                                  \
   .keeping = TALLY,                                                                                                   \
   .cancelled = TALLY,                                                                                                 \
   .subscribed = TALLY,                                                                                                \
   .unsubscribed = TALLY,                                                                                              \
   .finalized = TALLY}

static struct bytes copied(const void *data, size_t length) {
  struct bytes copy = {malloc(length + 1), length};
  CHECK(copy.data != NULL);
  if (length > 0) {
    memcpy(copy.data, data, length);
  }
  return copy;
}

static bool equals(struct bytes stored, const void *data, size_t length) {
  return stored.length == length && memcmp(stored.data, data, length) == 0;
}

static struct session *find_session(struct store *store, const char *id) {
  struct session *unused = NULL;
  for (size_t index = 0; index < MAX_ENTRIES; index++) {
    struct session *session = &store->sessions[index];
    if (strcmp(session->id, id) == 0) {
      return session;
    }
    unused = unused == NULL && session->id[0] == '\0' ? session : unused;
  }
  CHECK(unused != NULL);
  snprintf(unused->id, sizeof unused->id, "%s", id);
  return unused;
}

static struct stream *find_stream(struct store *store, const char *name) {
  struct stream *unused = NULL;
  for (size_t index = 0; index < MAX_ENTRIES; index++) {
    struct stream *stream = &store->streams[index];
    if (strcmp(stream->name, name) == 0) {
      return stream;
    }
    unused = unused == NULL && stream->name[0] == '\0' ? stream : unused;
  }
  CHECK(unused != NULL);
  snprintf(unused->name, sizeof unused->name, "%s", name);
  return unused;
}

static void discard(struct stream *stream) {
  for (size_t index = 0; index < stream->count; index++) {
    free(stream->events[index].data);
  }
  stream->count = 0;
  stream->ended = false;
}

static void clear(struct store *store) {
  for (size_t index = 0; index < store->thread_count; index++) {
    CHECK(pthread_join(store->threads[index], NULL) == 0);
  }
  for (size_t index = 0; index < MAX_ENTRIES; index++) {
    free(store->sessions[index].stored.data);
    discard(&store->streams[index]);
  }
}

static void on_cancelled(mcpl_call *call, void *user) {
  CHECK(mcpl_call_is_cancelled(call));
  tally_add(&((struct store *)user)->cancelled);
}

/* A request to the store, with arguments of its call: they are valid until the call has ended. */
struct request {
  mcpl_call *call;
  struct store *store;
  void (*run)(const struct request *request);
  const char *name;
  const void *data;
  size_t length;
  const void *replaces;
  size_t replaces_length;
  uint64_t number;
};

static void *answer_later(void *user) {
  struct request *request = user;
  request->run(request);
  free(request);
  return NULL;
}

/* Runs a request in the way that is set for its function. */
static void handle(const char *function, struct request request) {
  struct store *store = request.store;
  pthread_mutex_lock(&store->lock);
  const bool is_meant = store->function != NULL && strcmp(store->function, function) == 0;
  const enum way way = is_meant || store->function == NULL ? store->way : AT_ONCE;
  pthread_mutex_unlock(&store->lock);
  if (way == AT_ONCE) {
    request.run(&request);
  } else if (way == FAIL) {
    OK(mcpl_call_fail(request.call, "the disk is full", MCPL_AUTO_LENGTH));
  } else if (way == KEEP) {
    OK(mcpl_call_keep(request.call));
    OK(mcpl_call_on_cancel(request.call, on_cancelled, store, NULL));
    pthread_mutex_lock(&store->lock);
    store->kept = request.call;
    pthread_mutex_unlock(&store->lock);
    tally_add(&store->keeping);
  } else if (way == ON_ANOTHER_THREAD) {
    struct request *copy = malloc(sizeof *copy);
    CHECK(copy != NULL);
    *copy = request;
    OK(mcpl_call_keep(request.call));
    pthread_mutex_lock(&store->lock);
    CHECK(store->thread_count < MAX_THREADS);
    CHECK(pthread_create(&store->threads[store->thread_count++], NULL, answer_later, copy) == 0);
    pthread_mutex_unlock(&store->lock);
  }
}

static void set_way(struct store *store, const char *function, enum way way) {
  pthread_mutex_lock(&store->lock);
  store->function = function;
  store->way = way;
  pthread_mutex_unlock(&store->lock);
}

static mcpl_call *kept(struct store *store) {
  pthread_mutex_lock(&store->lock);
  mcpl_call *call = store->kept;
  pthread_mutex_unlock(&store->lock);
  return call;
}

static void run_save(const struct request *request) {
  struct store *store = request->store;
  pthread_mutex_lock(&store->lock);
  struct session *session = find_session(store, request->name);
  const bool is_known = session->stored.data != NULL && !session->removed;
  const bool fits = equals(session->stored, request->replaces, request->replaces_length) ||
                    equals(session->stored, request->data, request->length);
  if (is_known && !fits) {
    const struct bytes stored = copied(session->stored.data, session->stored.length);
    pthread_mutex_unlock(&store->lock);
    OK(mcpl_call_reply_session(request->call, stored.data, stored.length));
    free(stored.data);
    return;
  }
  if (!session->removed) {
    free(session->stored.data);
    session->stored = copied(request->data, request->length);
  }
  pthread_mutex_unlock(&store->lock);
  OK(mcpl_call_reply_done(request->call));
}

static void save(mcpl_call *call, const char *id, const void *session, size_t session_length, const void *replaces,
                 size_t replaces_length, int64_t lifetime_ms, void *user) {
  /* The check has one session without an end. */
  CHECK(strlen(id) <= 64 && lifetime_ms != 0);
  handle("save", (struct request){.call = call,
                                  .store = user,
                                  .run = run_save,
                                  .name = id,
                                  .data = session,
                                  .length = session_length,
                                  .replaces = replaces,
                                  .replaces_length = replaces_length});
}

static void run_load(const struct request *request) {
  struct store *store = request->store;
  EXPECT(MCPL_USAGE_ERROR, mcpl_call_reply_events(request->call, NULL, 0, false, false));
  EXPECT(MCPL_USAGE_ERROR, mcpl_call_reply_text(request->call, "text", MCPL_AUTO_LENGTH));
  EXPECT(MCPL_USAGE_ERROR, mcpl_call_reply_session(request->call, "text", MCPL_AUTO_LENGTH));
  pthread_mutex_lock(&store->lock);
  const struct session *session = find_session(store, request->name);
  const bool is_known = session->stored.data != NULL && !session->removed;
  const struct bytes stored = is_known ? copied(session->stored.data, session->stored.length) : (struct bytes){NULL, 0};
  pthread_mutex_unlock(&store->lock);
  if (is_known) {
    OK(mcpl_call_reply_session(request->call, stored.data, stored.length));
    free(stored.data);
  } else {
    OK(mcpl_call_reply_done(request->call));
  }
  EXPECT(MCPL_STALE_HANDLE, mcpl_call_reply_done(request->call));
}

static void load(mcpl_call *call, const char *id, void *user) {
  handle("load", (struct request){.call = call, .store = user, .run = run_load, .name = id});
}

static void run_remove(const struct request *request) {
  struct store *store = request->store;
  EXPECT(MCPL_USAGE_ERROR, mcpl_call_reply_session(request->call, "", 0));
  pthread_mutex_lock(&store->lock);
  find_session(store, request->name)->removed = true;
  pthread_mutex_unlock(&store->lock);
  OK(mcpl_call_reply_done(request->call));
}

static void remove_session(mcpl_call *call, const char *id, void *user) {
  handle("remove", (struct request){.call = call, .store = user, .run = run_remove, .name = id});
}

static void run_append(const struct request *request) {
  struct store *store = request->store;
  const mcpl_bytes *events = request->data;
  pthread_mutex_lock(&store->lock);
  struct stream *stream = find_stream(store, request->name);
  if (stream->first + stream->count != request->number) {
    discard(stream);
    stream->first = request->number;
  }
  for (size_t index = 0; index < request->length; index++) {
    CHECK(stream->count < MAX_EVENTS);
    stream->events[stream->count++] = copied(events[index].data, events[index].length);
  }
  pthread_mutex_unlock(&store->lock);
  OK(mcpl_call_reply_done(request->call));
}

static void append(mcpl_call *call, const char *stream, uint64_t number, const mcpl_bytes *events, size_t count,
                   void *user) {
  CHECK(strlen(stream) <= 128 && strchr(stream, '/') != NULL && count >= 1 && count <= 256);
  handle("append", (struct request){.call = call,
                                    .store = user,
                                    .run = run_append,
                                    .name = stream,
                                    .number = number,
                                    .data = events,
                                    .length = count});
}

static void run_end(const struct request *request) {
  struct store *store = request->store;
  pthread_mutex_lock(&store->lock);
  struct stream *stream = find_stream(store, request->name);
  if (stream->count > 0 && stream->first + stream->count - 1 == request->number) {
    stream->ended = true;
  } else {
    discard(stream);
  }
  pthread_mutex_unlock(&store->lock);
  OK(mcpl_call_reply_done(request->call));
}

static void end(mcpl_call *call, const char *stream, uint64_t last, void *user) {
  handle("end", (struct request){.call = call, .store = user, .run = run_end, .name = stream, .number = last});
}

/* One event at a time. */
static void run_read(const struct request *request) {
  struct store *store = request->store;
  EXPECT(MCPL_USAGE_ERROR, mcpl_call_reply_events(request->call, NULL, 1, false, false));
  EXPECT(MCPL_USAGE_ERROR, mcpl_call_reply_events(request->call, NULL, 0, false, true));
  EXPECT(MCPL_USAGE_ERROR, mcpl_call_reply_session(request->call, "", 0));
  pthread_mutex_lock(&store->lock);
  const struct stream *stream = find_stream(store, request->name);
  const uint64_t next = request->number + 1;
  const size_t skipped = (size_t)(next - stream->first);
  const bool is_known = stream->count > 0 && next >= stream->first && skipped <= stream->count;
  const bool has_event = is_known && skipped < stream->count;
  const bool has_more = has_event && skipped + 1 < stream->count;
  const bool has_ended = stream->ended && !has_more;
  struct bytes copy = {NULL, 0};
  if (has_event) {
    copy = copied(stream->events[skipped].data, stream->events[skipped].length);
  }
  pthread_mutex_unlock(&store->lock);
  if (is_known) {
    const mcpl_bytes event = {copy.data, copy.length};
    OK(mcpl_call_reply_events(request->call, &event, has_event ? 1 : 0, has_ended, has_more));
  } else {
    OK(mcpl_call_reply_done(request->call));
  }
  free(copy.data);
}

static void read_events(mcpl_call *call, const char *stream, uint64_t after, void *user) {
  handle("read", (struct request){.call = call, .store = user, .run = run_read, .name = stream, .number = after});
}

static void run_publish(const struct request *request) {
  struct store *store = request->store;
  pthread_mutex_lock(&store->lock);
  for (size_t index = 0; index < MAX_ENTRIES; index++) {
    if (store->receivers[index] != NULL) {
      OK(mcpl_bus_receive(store->receivers[index], request->data, request->length));
    }
  }
  pthread_mutex_unlock(&store->lock);
  OK(mcpl_call_reply_done(request->call));
}

static void publish(mcpl_call *call, const void *message, size_t length, void *user) {
  handle("publish",
         (struct request){.call = call, .store = user, .run = run_publish, .data = message, .length = length});
}

static void run_subscribe(const struct request *request) {
  struct store *store = request->store;
  pthread_mutex_lock(&store->lock);
  size_t index = 0;
  while (store->receivers[index] != NULL) {
    index++;
  }
  CHECK(index < MAX_ENTRIES);
  store->receivers[index] = (mcpl_bus_receiver *)(uintptr_t)request->data;
  pthread_mutex_unlock(&store->lock);
  OK(mcpl_call_reply_done(request->call));
  tally_add(&store->subscribed);
}

static void subscribe(mcpl_call *call, mcpl_bus_receiver *receiver, void *user) {
  struct store *store = user;
  pthread_mutex_lock(&store->lock);
  store->receiver = receiver;
  pthread_mutex_unlock(&store->lock);
  handle("subscribe", (struct request){.call = call, .store = user, .run = run_subscribe, .data = receiver});
}

static void run_unsubscribe(const struct request *request) {
  struct store *store = request->store;
  pthread_mutex_lock(&store->lock);
  for (size_t index = 0; index < MAX_ENTRIES; index++) {
    if (store->receivers[index] == request->data) {
      store->receivers[index] = NULL;
    }
  }
  pthread_mutex_unlock(&store->lock);
  OK(mcpl_call_reply_done(request->call));
  tally_add(&store->unsubscribed);
}

static void unsubscribe(mcpl_call *call, mcpl_bus_receiver *receiver, void *user) {
  /* Messages that come late are refused, and the bus may see that. */
  EXPECT(MCPL_STALE_HANDLE, mcpl_bus_receive(receiver, "late", 4));
  struct store *store = user;
  pthread_mutex_lock(&store->lock);
  for (size_t index = 0; index < MAX_ENTRIES; index++) {
    if (store->receivers[index] == receiver) {
      store->receivers[index] = NULL;
    }
  }
  pthread_mutex_unlock(&store->lock);
  handle("unsubscribe", (struct request){.call = call, .store = user, .run = run_unsubscribe, .data = receiver});
}

static void store_finalized(void *user) { tally_add(&((struct store *)user)->finalized); }

static const mcpl_sharing FUNCTIONS = {.size = sizeof(mcpl_sharing),
                                       .save = save,
                                       .load = load,
                                       .remove = remove_session,
                                       .append = append,
                                       .end = end,
                                       .read = read_events,
                                       .publish = publish,
                                       .subscribe = subscribe,
                                       .unsubscribe = unsubscribe};

/* ---- servers over it */

struct replica {
  mcpl_server *server;
  uint16_t port;
  struct tally called;
  pthread_mutex_t lock;
  mcpl_call *call;
};

#define REPLICA {.called = TALLY, .lock = PTHREAD_MUTEX_INITIALIZER}

static void answer_plain(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length, (void)user;
  EXPECT(MCPL_USAGE_ERROR, mcpl_call_reply_done(call));
  EXPECT(MCPL_USAGE_ERROR, mcpl_call_reply_session(call, "", 0));
  EXPECT(MCPL_USAGE_ERROR, mcpl_call_reply_events(call, NULL, 0, false, false));
  OK(mcpl_call_reply_text(call, "done", MCPL_AUTO_LENGTH));
}

/* Reports progress; the test ends the call. */
static void answer_streaming(mcpl_call *call, const char *arguments, size_t length, void *user) {
  struct replica *replica = user;
  (void)arguments, (void)length;
  OK(mcpl_call_progress(call, 1, 2, NULL));
  OK(mcpl_call_keep(call));
  pthread_mutex_lock(&replica->lock);
  replica->call = call;
  pthread_mutex_unlock(&replica->lock);
  tally_add(&replica->called);
}

static void answer_note(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length, (void)user;
  OK(mcpl_call_reply_text(call, "a", MCPL_AUTO_LENGTH));
}

static void configure(struct replica *replica, struct store *store, uint64_t timeout_ms) {
  mcpl_sharing functions = FUNCTIONS;
  functions.timeout_ms = timeout_ms;
  replica->server = mcpl_server_new("replica", "1");
  OK(mcpl_server_set_shutdown_timeout_ms(replica->server, 100));
  OK(mcpl_server_set_sharing(replica->server, &functions, store, store_finalized));
}

static void start(struct replica *replica) {
  OK(mcpl_server_add_tool(replica->server, "plain", "Answers", NULL, answer_plain, NULL, NULL));
  OK(mcpl_server_add_tool(replica->server, "streaming", "Waits", NULL, answer_streaming, replica, NULL));
  OK(mcpl_server_add_resource(replica->server, "note://a", "a", NULL, answer_note, NULL, NULL));
  OK(mcpl_server_start_http(replica->server, "127.0.0.1", 0, NULL, &replica->port));
}

static void serve(struct replica *replica, struct store *store, uint64_t timeout_ms) {
  configure(replica, store, timeout_ms);
  start(replica);
}

static void finish(struct replica *replica) {
  OK(mcpl_server_close(replica->server));
  mcpl_server_free(replica->server);
}

/* ---- a client that chooses the server for each request */

struct response {
  int connection;
  int status;
  char head[2048];
  char body[16384];
  size_t length;
  size_t taken;
  bool has_ended;
};

static void receive_more(struct response *response) {
  CHECK(response->length + 1 < sizeof response->body);
  const ssize_t count =
      recv(response->connection, response->body + response->length, sizeof response->body - response->length - 1, 0);
  CHECK(count >= 0);
  response->length += (size_t)count;
  response->body[response->length] = '\0';
  response->has_ended = count == 0;
}

/* Sends a request. `session` and `last` may be NULL. */
static void ask(struct response *response, uint16_t port, const char *verb, const char *session, const char *last,
                const char *body) {
  char request[4096];
  const struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  memset(response, 0, sizeof *response);
  response->connection = socket(AF_INET, SOCK_STREAM, 0);
  CHECK(connect(response->connection, (const struct sockaddr *)&address, sizeof address) == 0);
  const int length = snprintf(
      request, sizeof request,
      "%s /mcp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\nContent-Type: application/json\r\n"
      "Accept: application/json, text/event-stream\r\n%s%s%s%s%s%sContent-Length: %zu\r\n\r\n%s",
      verb, port,
      session == NULL ? "" : "MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: ", session == NULL ? "" : session,
      session == NULL ? "" : "\r\n", last == NULL ? "" : "Last-Event-ID: ", last == NULL ? "" : last,
      last == NULL ? "" : "\r\n", strlen(body), body);
  CHECK(length > 0 && (size_t)length < sizeof request);
  CHECK(send(response->connection, request, (size_t)length, 0) == length);
}

/* Sends a request, and reads the head of the response. */
static void begin(struct response *response, uint16_t port, const char *verb, const char *session, const char *last,
                  const char *body) {
  ask(response, port, verb, session, last, body);
  char *head_end = NULL;
  while (head_end == NULL) {
    receive_more(response);
    CHECK(!response->has_ended);
    head_end = strstr(response->body, "\r\n\r\n");
  }
  const size_t head_length = (size_t)(head_end - response->body) + 4;
  CHECK(head_length < sizeof response->head);
  memcpy(response->head, response->body, head_length);
  response->taken = head_length;
  CHECK(sscanf(response->head, "HTTP/1.1 %d", &response->status) == 1);
}

static void hang_up(struct response *response) { CHECK(close(response->connection) == 0); }

/* Waits until the rest of the body contains a text. What follows it is the rest from then on. */
static void wait_for(struct response *response, const char *text) {
  char *found = NULL;
  while ((found = strstr(response->body + response->taken, text)) == NULL) {
    if (response->has_ended) {
      CONTAINS(response->body + response->taken, text);
    }
    receive_more(response);
  }
  response->taken = (size_t)(found - response->body) + strlen(text);
}

/* Sends a request, reads the whole response, and returns its status. */
static int send_request(struct response *response, uint16_t port, const char *verb, const char *session,
                        const char *body) {
  begin(response, port, verb, session, NULL, body);
  while (!response->has_ended) {
    receive_more(response);
  }
  hang_up(response);
  return response->status;
}

#define INITIALIZE                                                                                                     \
  "{\"jsonrpc\": \"2.0\", \"id\": 0, \"method\": \"initialize\", \"params\": {\"protocolVersion\": \"2025-11-25\", "   \
  "\"capabilities\": {}, \"clientInfo\": {\"name\": \"test\", \"version\": \"1\"}}}"
#define INITIALIZED "{\"jsonrpc\": \"2.0\", \"method\": \"notifications/initialized\"}"
#define CALL(tool)                                                                                                     \
  "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"tools/call\", \"params\": {\"name\": \"" tool "\", "                \
  "\"arguments\": {}, \"_meta\": {\"progressToken\": 1}}}"
#define SUBSCRIBE                                                                                                      \
  "{\"jsonrpc\": \"2.0\", \"id\": 2, \"method\": \"resources/subscribe\", \"params\": {\"uri\": \"note://a\"}}"

/* Opens a session. */
static void open_session(uint16_t port, char *session, size_t size) {
  struct response response;
  CHECK(send_request(&response, port, "POST", NULL, INITIALIZE) == 200);
  for (char *at = response.head; *at != '\0'; at++) {
    if (strncasecmp(at, "mcp-session-id: ", 16) == 0) {
      snprintf(session, size, "%.*s", (int)strcspn(at + 16, "\r"), at + 16);
    }
  }
  CHECK(session[0] != '\0');
  CHECK(send_request(&response, port, "POST", session, INITIALIZED) == 202);
}

static int call_plain(uint16_t port, const char *session) {
  struct response response;
  const int status = send_request(&response, port, "POST", session, CALL("plain"));
  if (status == 200) {
    CONTAINS(response.body, "done");
  }
  return status;
}

/* The warnings of the library. */
static pthread_mutex_t warnings_lock = PTHREAD_MUTEX_INITIALIZER;
static char warnings[65536];
static struct tally warned = TALLY;

static void warn(mcpl_log_level level, const char *target, const char *message, void *user) {
  (void)level, (void)target, (void)user;
  pthread_mutex_lock(&warnings_lock);
  const size_t length = strlen(warnings);
  snprintf(warnings + length, sizeof warnings - length, "%s\n", message);
  pthread_mutex_unlock(&warnings_lock);
  tally_add(&warned);
}

/* Waits until a warning contains a text. */
static void wait_for_warning(const char *text) {
  for (int seen = 0;; seen++) {
    pthread_mutex_lock(&warnings_lock);
    const bool is_there = strstr(warnings, text) != NULL;
    pthread_mutex_unlock(&warnings_lock);
    if (is_there) {
      return;
    }
    tally_wait(&warned, seen + 1);
  }
}

/* ---- tests */

static void continue_at_another_server(enum way way) {
  struct store store = STORE;
  struct replica a = REPLICA, b = REPLICA;
  struct response response;
  char session[128] = "";
  store.way = way;
  serve(&a, &store, 0);
  serve(&b, &store, 0);
  open_session(a.port, session, sizeof session);
  CHECK(call_plain(b.port, session) == 200);
  CHECK(call_plain(a.port, session) == 200);
  const int status = send_request(&response, b.port, "DELETE", session, "");
  CHECK(status == 200 || status == 204);
  /* The other server gets it over the bus, perhaps during a call. */
  while (send_request(&response, a.port, "POST", session, CALL("plain")) != 404) {
    usleep(1000);
  }
  finish(&a);
  CHECK(tally_count(&store.finalized) == 1);
  finish(&b);
  CHECK(tally_count(&store.subscribed) == 2 && tally_count(&store.unsubscribed) == 2);
  CHECK(tally_count(&store.finalized) == 2);
  clear(&store);
}

static void a_session_of_one_server_continues_at_another(void) { continue_at_another_server(AT_ONCE); }

static void functions_may_answer_later_from_any_thread(void) { continue_at_another_server(ON_ANOTHER_THREAD); }

static void resume_at_another_server(enum way way) {
  struct store store = STORE;
  struct replica a = REPLICA, b = REPLICA;
  struct response first, resumed, again;
  char session[128] = "", last[128] = "", beginning[128];
  store.way = way;
  serve(&a, &store, 0);
  serve(&b, &store, 0);
  open_session(a.port, session, sizeof session);
  begin(&first, a.port, "POST", session, NULL, CALL("streaming"));
  CHECK(first.status == 200);
  wait_for(&first, "\"progress\":1");
  /* The id of the event with the progress is the latest one. */
  for (const char *at = first.body; (at = strstr(at, "id: ")) != NULL && at < first.body + first.taken; at += 4) {
    snprintf(last, sizeof last, "%.*s", (int)strcspn(at + 4, "\r\n"), at + 4);
  }
  CHECK(last[0] != '\0');
  hang_up(&first);
  begin(&resumed, b.port, "GET", session, last, "");
  CHECK(resumed.status == 200);
  tally_wait(&a.called, 1);
  pthread_mutex_lock(&a.lock);
  OK(mcpl_call_progress(a.call, 2, 2, NULL));
  OK(mcpl_call_reply_text(a.call, "done", MCPL_AUTO_LENGTH));
  pthread_mutex_unlock(&a.lock);
  wait_for(&resumed, "\"progress\":2");
  wait_for(&resumed, "done");
  hang_up(&resumed);
  /* From the beginning, after the stream has ended. */
  snprintf(beginning, sizeof beginning, "%.*s-0", (int)strcspn(last, "-"), last);
  begin(&again, b.port, "GET", session, beginning, "");
  CHECK(again.status == 200);
  wait_for(&again, "\"progress\":1");
  wait_for(&again, "\"progress\":2");
  wait_for(&again, "done");
  hang_up(&again);
  finish(&a);
  finish(&b);
  clear(&store);
}

static void a_stream_is_resumed_at_another_server(void) { resume_at_another_server(AT_ONCE); }

static void a_stream_is_resumed_with_answers_from_other_threads(void) { resume_at_another_server(ON_ANOTHER_THREAD); }

static void notifications_reach_clients_of_another_server(void) {
  struct store store = STORE;
  struct replica a = REPLICA, b = REPLICA;
  struct response response, listening;
  char session[128] = "";
  serve(&a, &store, 0);
  serve(&b, &store, 0);
  open_session(a.port, session, sizeof session);
  CHECK(send_request(&response, b.port, "POST", session, SUBSCRIBE) == 200);
  begin(&listening, b.port, "GET", session, NULL, "");
  CHECK(listening.status == 200);
  OK(mcpl_server_notify_resource_updated(a.server, "note://a"));
  wait_for(&listening, "notifications/resources/updated");
  hang_up(&listening);
  finish(&a);
  finish(&b);
  clear(&store);
}

static void a_store_that_fails_costs_only_other_sessions(void) {
  struct store store = STORE;
  struct replica a = REPLICA, b = REPLICA;
  char session[128] = "";
  serve(&a, &store, 0);
  serve(&b, &store, 0);
  open_session(a.port, session, sizeof session);
  set_way(&store, "load", FAIL);
  CHECK(call_plain(a.port, session) == 200);
  CHECK(call_plain(b.port, session) == 503);
  wait_for_warning("sessions.load: the disk is full");
  set_way(&store, "load", RETURN);
  CHECK(call_plain(b.port, session) == 503);
  set_way(&store, NULL, AT_ONCE);
  CHECK(call_plain(b.port, session) == 200);
  finish(&a);
  finish(&b);
  clear(&store);
}

static void a_store_that_does_not_answer_fails_after_the_timeout(void) {
  struct store store = STORE;
  struct replica a = REPLICA, b = REPLICA;
  char session[128] = "";
  serve(&a, &store, 0);
  serve(&b, &store, 50);
  open_session(a.port, session, sizeof session);
  set_way(&store, "load", KEEP);
  CHECK(call_plain(b.port, session) == 503);
  wait_for_warning("sessions.load: no answer within 0.05 s");
  tally_wait(&store.cancelled, 1);
  CHECK(mcpl_call_is_cancelled(kept(&store)));
  set_way(&store, NULL, AT_ONCE);
  /* Its answer comes too late, and is accepted. */
  OK(mcpl_call_reply_done(kept(&store)));
  EXPECT(MCPL_STALE_HANDLE, mcpl_call_reply_done(kept(&store)));
  CHECK(call_plain(b.port, session) == 200);
  finish(&a);
  finish(&b);
  clear(&store);
}

static void a_server_is_closed_while_a_call_is_open(void) {
  struct store store = STORE;
  struct replica a = REPLICA;
  struct response response;
  serve(&a, &store, 60000);
  tally_wait(&store.subscribed, 1);
  set_way(&store, "load", KEEP);
  ask(&response, a.port, "POST", "unknown", NULL, CALL("plain"));
  tally_wait(&store.keeping, 1);
  OK(mcpl_server_close(a.server));
  EXPECT(MCPL_STALE_HANDLE, mcpl_call_reply_done(kept(&store)));
  CHECK(tally_count(&store.unsubscribed) == 1 && tally_count(&store.finalized) == 1);
  hang_up(&response);
  mcpl_server_free(a.server);
  clear(&store);
}

static void a_subscription_that_has_not_begun_is_ended(void) {
  struct store store = STORE;
  struct replica a = REPLICA;
  set_way(&store, "subscribe", KEEP);
  serve(&a, &store, 50);
  tally_wait(&store.keeping, 1);
  EXPECT(MCPL_USAGE_ERROR, mcpl_bus_receive(store.receiver, NULL, 1));
  EXPECT(MCPL_USAGE_ERROR, mcpl_bus_receive(store.receiver, "message", MCPL_AUTO_LENGTH));
  OK(mcpl_bus_receive(store.receiver, "not from mcpline", 16));
  OK(mcpl_server_stop(a.server));
  /* The call of `subscribe` is still open. */
  tally_wait(&store.unsubscribed, 1);
  CHECK(tally_count(&store.subscribed) == 0);
  OK(mcpl_call_reply_done(kept(&store)));
  EXPECT(MCPL_STALE_HANDLE, mcpl_bus_receive(store.receiver, "late", 4));
  finish(&a);
  CHECK(tally_count(&store.unsubscribed) == 1);
  clear(&store);
}

static void a_subscription_that_fails_is_tried_again(void) {
  struct store store = STORE;
  struct replica a = REPLICA;
  set_way(&store, "subscribe", FAIL);
  serve(&a, &store, 0);
  wait_for_warning("bus.subscribe: the disk is full");
  set_way(&store, NULL, AT_ONCE);
  tally_wait(&store.subscribed, 1);
  finish(&a);
  CHECK(tally_count(&store.unsubscribed) == 1);
  clear(&store);
}

static void a_server_can_be_served_again(void) {
  struct store store = STORE;
  struct replica a = REPLICA;
  char session[128] = "";
  serve(&a, &store, 0);
  tally_wait(&store.subscribed, 1);
  OK(mcpl_server_stop(a.server));
  OK(mcpl_server_wait(a.server, -1));
  CHECK(tally_count(&store.unsubscribed) == 1);
  OK(mcpl_server_start_http(a.server, "127.0.0.1", 0, NULL, &a.port));
  tally_wait(&store.subscribed, 2);
  open_session(a.port, session, sizeof session);
  CHECK(call_plain(a.port, session) == 200);
  finish(&a);
  CHECK(tally_count(&store.unsubscribed) == 2 && tally_count(&store.finalized) == 1);
  clear(&store);
}

/* A client at a server whose loop this thread dispatches. */
struct visit {
  uint16_t port;
  int status;
  struct tally done;
};

static void *visit(void *user) {
  struct visit *visit = user;
  char session[128] = "";
  open_session(visit->port, session, sizeof session);
  visit->status = call_plain(visit->port, session);
  tally_add(&visit->done);
  return NULL;
}

static pthread_t loaded_on;

static void load_on_the_loop(mcpl_call *call, const char *id, void *user) {
  CHECK(pthread_equal(pthread_self(), loaded_on));
  load(call, id, user);
}

static void save_on_the_loop(mcpl_call *call, const char *id, const void *session, size_t session_length,
                             const void *replaces, size_t replaces_length, int64_t lifetime_ms, void *user) {
  CHECK(pthread_equal(pthread_self(), loaded_on));
  save(call, id, session, session_length, replaces, replaces_length, lifetime_ms, user);
}

static void functions_run_on_the_loop_of_the_server(void) {
  struct store store = STORE;
  struct replica a = REPLICA;
  struct visit visiting = {.done = TALLY};
  pthread_t thread;
  mcpl_sharing functions = FUNCTIONS;
  functions.load = load_on_the_loop;
  functions.save = save_on_the_loop;
  loaded_on = pthread_self();
  mcpl_loop *loop = mcpl_loop_new();
  a.server = mcpl_server_new("replica", "1");
  OK(mcpl_server_set_sharing(a.server, &functions, &store, NULL));
  OK(mcpl_server_use_loop(a.server, loop));
  start(&a);
  visiting.port = a.port;
  CHECK(pthread_create(&thread, NULL, visit, &visiting) == 0);
  while (tally_count(&visiting.done) == 0) {
    const mcpl_status status = mcpl_loop_wait(loop, 10);
    CHECK(status == MCPL_OK || status == MCPL_WAIT_TIMED_OUT);
    OK(mcpl_loop_dispatch(loop, 0, NULL));
  }
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(visiting.status == 200);
  finish(&a);
  CHECK(tally_count(&store.unsubscribed) == 1);
  mcpl_loop_free(loop);
  clear(&store);
}

static void functions_are_set_before_the_server_is_used(void) {
  struct store first = STORE, second = STORE;
  struct replica a = REPLICA;
  configure(&a, &first, 0);
  /* The last ones count. */
  OK(mcpl_server_set_sharing(a.server, &FUNCTIONS, &second, store_finalized));
  CHECK(tally_count(&first.finalized) == 1);
  start(&a);
  EXPECT(MCPL_USAGE_ERROR, mcpl_server_set_sharing(a.server, &FUNCTIONS, &first, store_finalized));
  CHECK(tally_count(&first.finalized) == 2 && tally_count(&second.finalized) == 0);
  tally_wait(&second.subscribed, 1);
  finish(&a);
  CHECK(tally_count(&second.finalized) == 1 && tally_count(&first.subscribed) == 0);
  clear(&first);
  clear(&second);
}

/* ---- the check of a program's own functions */

/* Whether a check has failed with this function and a message that begins so. */
static void check_fails(mcpl_server *server, const mcpl_sharing *other, struct store *store, const char *function,
                        const char *message) {
  EXPECT(MCPL_USAGE_ERROR, mcpl_server_check_sharing(server, other, store, NULL));
  const mcpl_error *error = mcpl_last_error();
  CHECK(strncmp(mcpl_error_message(error), message, strlen(message)) == 0);
  CHECK(strcmp(mcpl_error_operation(error), function) == 0);
}

static void the_check_accepts_a_store(void) {
  struct store store = STORE;
  struct replica a = REPLICA, b = REPLICA;
  configure(&a, &store, 0);
  OK(mcpl_server_check_sharing(a.server, NULL, NULL, NULL));
  CHECK(tally_count(&store.subscribed) == 1 && tally_count(&store.unsubscribed) == 1);
  EXPECT(MCPL_USAGE_ERROR, mcpl_server_check_sharing(a.server, NULL, NULL, NULL));
  finish(&a);
  CHECK(tally_count(&store.finalized) == 1);
  configure(&b, &store, 0);
  OK(mcpl_server_check_sharing(b.server, &FUNCTIONS, &store, store_finalized));
  finish(&b);
  CHECK(tally_count(&store.finalized) == 3 && tally_count(&store.subscribed) == 2);
  clear(&store);
}

static void the_check_waits_for_answers_of_other_threads(void) {
  struct store store = STORE;
  struct replica a = REPLICA;
  configure(&a, &store, 0);
  set_way(&store, "publish", ON_ANOTHER_THREAD);
  OK(mcpl_server_check_sharing(a.server, NULL, NULL, NULL));
  finish(&a);
  clear(&store);
}

static void the_check_says_which_function_is_wrong(void) {
  struct store store = STORE, other = STORE;
  struct replica failing = REPLICA, apart = REPLICA;
  configure(&failing, &store, 0);
  set_way(&store, "save", FAIL);
  check_fails(failing.server, NULL, NULL, "sessions.save", "sessions.save: the disk is full");
  finish(&failing);
  set_way(&store, NULL, AT_ONCE);
  configure(&apart, &store, 0);
  check_fails(apart.server, &FUNCTIONS, &other, "sessions.load",
              "sessions.load: what the other process has saved: expected \"{");
  finish(&apart);
  clear(&store);
  clear(&other);
}

static void the_check_finds_a_function_that_does_not_answer(void) {
  struct store store = STORE;
  struct replica a = REPLICA;
  configure(&a, &store, 100);
  set_way(&store, "load", KEEP);
  check_fails(a.server, NULL, NULL, "sessions.load", "sessions.load: no answer within 0.1 s (`timeout`)");
  tally_wait(&store.cancelled, 1);
  OK(mcpl_call_reply_done(kept(&store)));
  finish(&a);
  clear(&store);
}

static void the_check_needs_functions(void) {
  mcpl_server *server = mcpl_server_new("replica", "1");
  EXPECT(MCPL_USAGE_ERROR, mcpl_server_check_sharing(server, NULL, NULL, NULL));
  mcpl_server_free(server);
}

int main(int argc, char **argv) {
  static const struct test tests[] = {
      TEST(a_session_of_one_server_continues_at_another),
      TEST(functions_may_answer_later_from_any_thread),
      TEST(a_stream_is_resumed_at_another_server),
      TEST(a_stream_is_resumed_with_answers_from_other_threads),
      TEST(notifications_reach_clients_of_another_server),
      TEST(a_store_that_fails_costs_only_other_sessions),
      TEST(a_store_that_does_not_answer_fails_after_the_timeout),
      TEST(a_server_is_closed_while_a_call_is_open),
      TEST(a_subscription_that_has_not_begun_is_ended),
      TEST(a_subscription_that_fails_is_tried_again),
      TEST(a_server_can_be_served_again),
      TEST(functions_run_on_the_loop_of_the_server),
      TEST(functions_are_set_before_the_server_is_used),
      TEST(the_check_accepts_a_store),
      TEST(the_check_waits_for_answers_of_other_threads),
      TEST(the_check_says_which_function_is_wrong),
      TEST(the_check_finds_a_function_that_does_not_answer),
      TEST(the_check_needs_functions),
  };
  OK(mcpl_set_diagnostics(MCPL_LOG_WARNING, warn, NULL, NULL));
  return run_tests(tests, sizeof tests / sizeof *tests, argc, argv);
}
