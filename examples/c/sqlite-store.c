/* Sessions that several processes share, in a file of SQLite: a store, a log and a bus of your own.
 *
 *   sqlite-store sessions.sqlite 8000 &
 *   sqlite-store sessions.sqlite 8001 &
 *
 * Both processes serve the same sessions, so a load balancer may send each request to either of them. SQLite has no
 * notifications, so the bus polls for new messages. `mcpl_sharing` in mcpline.h describes the functions. */

#include <mcpline.h>

#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* In milliseconds: how often the bus polls; how long a removed session stays so; how long a session lives at most. */
#define POLLING 20
#define REMOVED 300000
#define MAX_LIFETIME (10LL * 365 * 24 * 3600 * 1000)
#define MAX_EVENTS 64
#define NOW "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"

static const char *const SCHEMA =
    "PRAGMA journal_mode = WAL;"
    "CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, session BLOB, expires INTEGER);" /* NULL: removed */
    "CREATE INDEX IF NOT EXISTS expiries ON sessions (expires);"
    "CREATE TABLE IF NOT EXISTS events (stream TEXT, number INTEGER, event BLOB, stored INTEGER,"
    " PRIMARY KEY (stream, number));"
    "CREATE TABLE IF NOT EXISTS ended (stream TEXT PRIMARY KEY, stored INTEGER);"
    "CREATE TABLE IF NOT EXISTS messages (number INTEGER PRIMARY KEY AUTOINCREMENT, message BLOB, stored INTEGER);";

/* One connection for all threads of the process: the lock is held during each transaction. */
struct store {
  pthread_mutex_t lock;
  sqlite3 *database;
  mcpl_bus_receiver *receiver;
  pthread_t polling;
  bool is_polling;
  sqlite3_int64 last_message;
};

/* A transaction. The first failure ends it: what follows does nothing. */
struct transaction {
  struct store *store;
  int status;
  sqlite3_stmt *statement;
};

static void finish_statement(struct transaction *transaction) {
  sqlite3_finalize(transaction->statement);
  transaction->statement = NULL;
}

/* Begins a statement; its parameters are bound by the functions below, from the first one. */
static void prepare(struct transaction *transaction, const char *sql) {
  finish_statement(transaction);
  if (transaction->status == SQLITE_OK) {
    transaction->status = sqlite3_prepare_v2(transaction->store->database, sql, -1, &transaction->statement, NULL);
  }
}

static void bind_text(struct transaction *transaction, int at, const char *text) {
  if (transaction->status == SQLITE_OK) {
    transaction->status = sqlite3_bind_text(transaction->statement, at, text, -1, SQLITE_STATIC);
  }
}

static void bind_bytes(struct transaction *transaction, int at, const void *data, size_t length) {
  if (transaction->status == SQLITE_OK) {
    /* Never NULL, which means that a session was removed. */
    transaction->status =
        sqlite3_bind_blob64(transaction->statement, at, length == 0 ? "" : data, length, SQLITE_STATIC);
  }
}

static void bind_number(struct transaction *transaction, int at, sqlite3_int64 number) {
  if (transaction->status == SQLITE_OK) {
    transaction->status = sqlite3_bind_int64(transaction->statement, at, number);
  }
}

/* Runs the statement. Returns whether there is a row. */
static bool step(struct transaction *transaction) {
  if (transaction->status != SQLITE_OK) {
    return false;
  }
  const int stepped = sqlite3_step(transaction->statement);
  if (stepped != SQLITE_ROW && stepped != SQLITE_DONE) {
    transaction->status = stepped;
  }
  return stepped == SQLITE_ROW;
}

static void run(struct transaction *transaction, const char *sql) {
  prepare(transaction, sql);
  step(transaction);
}

static struct transaction begin(struct store *store) {
  struct transaction transaction = {store, SQLITE_OK, NULL};
  pthread_mutex_lock(&store->lock);
  run(&transaction, "BEGIN IMMEDIATE");
  return transaction;
}

/* Ends the transaction, and the call if it has failed. Returns whether the call is still to be ended. */
static bool commit(struct transaction *transaction, mcpl_call *call) {
  run(transaction, "COMMIT");
  finish_statement(transaction);
  const bool has_failed = transaction->status != SQLITE_OK;
  if (has_failed) {
    mcpl_call_fail(call, sqlite3_errstr(transaction->status), MCPL_AUTO_LENGTH);
    sqlite3_exec(transaction->store->database, "ROLLBACK", NULL, NULL, NULL);
  }
  pthread_mutex_unlock(&transaction->store->lock);
  return !has_failed;
}

/* ---- the store */

static void save(mcpl_call *call, const char *id, const void *session, size_t session_length, const void *replaces,
                 size_t replaces_length, int64_t lifetime_ms, void *user) {
  struct transaction transaction = begin(user);
  bool is_removed = false, is_other = false;
  run(&transaction, "DELETE FROM sessions WHERE expires < " NOW);
  prepare(&transaction, "SELECT session, session NOT IN (?2, ?3) FROM sessions WHERE id = ?1");
  bind_text(&transaction, 1, id);
  bind_bytes(&transaction, 2, session, session_length);
  bind_bytes(&transaction, 3, replaces, replaces_length);
  if (step(&transaction)) {
    is_removed = sqlite3_column_type(transaction.statement, 0) == SQLITE_NULL;
    is_other = !is_removed && sqlite3_column_int(transaction.statement, 1) != 0;
    if (is_other) {
      mcpl_call_reply_session(call, sqlite3_column_blob(transaction.statement, 0),
                              (size_t)sqlite3_column_bytes(transaction.statement, 0));
    }
  }
  if (!is_removed && !is_other) {
    prepare(&transaction, "REPLACE INTO sessions VALUES (?1, ?2, " NOW " + ?3)");
    bind_text(&transaction, 1, id);
    bind_bytes(&transaction, 2, session, session_length);
    bind_number(&transaction, 3, lifetime_ms < 0 ? MAX_LIFETIME : lifetime_ms);
    step(&transaction);
  }
  /* The call of a session that another process has changed has ended. */
  if (commit(&transaction, call)) {
    mcpl_call_reply_done(call);
  }
}

static void load(mcpl_call *call, const char *id, void *user) {
  struct transaction transaction = begin(user);
  prepare(&transaction, "SELECT session FROM sessions WHERE id = ?1 AND session IS NOT NULL AND expires >= " NOW);
  bind_text(&transaction, 1, id);
  if (step(&transaction)) {
    mcpl_call_reply_session(call, sqlite3_column_blob(transaction.statement, 0),
                            (size_t)sqlite3_column_bytes(transaction.statement, 0));
  }
  /* Without effect if there is a session: its call has ended. */
  if (commit(&transaction, call)) {
    mcpl_call_reply_done(call);
  }
}

static void remove_session(mcpl_call *call, const char *id, void *user) {
  static const char *const statements[] = {"DELETE FROM events WHERE stream GLOB ?1 || '/*'",
                                           "DELETE FROM ended WHERE stream GLOB ?1 || '/*'"};
  struct transaction transaction = begin(user);
  prepare(&transaction, "REPLACE INTO sessions VALUES (?1, NULL, " NOW " + ?2)");
  bind_text(&transaction, 1, id);
  bind_number(&transaction, 2, REMOVED);
  step(&transaction);
  for (size_t index = 0; index < sizeof statements / sizeof *statements; index++) {
    prepare(&transaction, statements[index]);
    bind_text(&transaction, 1, id);
    step(&transaction);
  }
  if (commit(&transaction, call)) {
    mcpl_call_reply_done(call);
  }
}

/* ---- the log */

/* Returns the number of the last stored event of a stream, or -1. */
static sqlite3_int64 last_event(struct transaction *transaction, const char *stream) {
  prepare(transaction, "SELECT coalesce(max(number), -1) FROM events WHERE stream = ?1");
  bind_text(transaction, 1, stream);
  return step(transaction) ? sqlite3_column_int64(transaction->statement, 0) : -1;
}

static void discard(struct transaction *transaction, const char *stream) {
  prepare(transaction, "DELETE FROM events WHERE stream = ?1");
  bind_text(transaction, 1, stream);
  step(transaction);
}

static void append(mcpl_call *call, const char *stream, uint64_t number, const mcpl_bytes *events, size_t count,
                   void *user) {
  struct transaction transaction = begin(user);
  run(&transaction, "DELETE FROM events WHERE stored < " NOW " - 3600000");
  run(&transaction, "DELETE FROM ended WHERE stored < " NOW " - 3600000");
  if (last_event(&transaction, stream) != (sqlite3_int64)number - 1) {
    /* Events were lost, or the stream is new. */
    discard(&transaction, stream);
  }
  for (size_t index = 0; index < count; index++) {
    prepare(&transaction, "REPLACE INTO events VALUES (?1, ?2, ?3, " NOW ")");
    bind_text(&transaction, 1, stream);
    bind_number(&transaction, 2, (sqlite3_int64)(number + index));
    bind_bytes(&transaction, 3, events[index].data, events[index].length);
    step(&transaction);
  }
  if (commit(&transaction, call)) {
    mcpl_call_reply_done(call);
  }
}

static void end(mcpl_call *call, const char *stream, uint64_t last, void *user) {
  struct transaction transaction = begin(user);
  if (last_event(&transaction, stream) == (sqlite3_int64)last) {
    prepare(&transaction, "REPLACE INTO ended VALUES (?1, " NOW ")");
    bind_text(&transaction, 1, stream);
    step(&transaction);
  } else {
    /* The last events were lost: what is left must not be taken for the whole stream. */
    discard(&transaction, stream);
  }
  if (commit(&transaction, call)) {
    mcpl_call_reply_done(call);
  }
}

static void read_events(mcpl_call *call, const char *stream, uint64_t after, void *user) {
  struct transaction transaction = begin(user);
  mcpl_bytes events[MAX_EVENTS];
  size_t count = 0;
  const sqlite3_int64 last = last_event(&transaction, stream);
  prepare(&transaction,
          "SELECT min(number), (SELECT count(*) FROM ended WHERE stream = ?1) FROM events WHERE stream = ?1");
  bind_text(&transaction, 1, stream);
  const bool is_stored = step(&transaction) && last >= 0;
  const sqlite3_int64 first = is_stored ? sqlite3_column_int64(transaction.statement, 0) : 0;
  const bool has_ended = is_stored && sqlite3_column_int(transaction.statement, 1) != 0;
  const bool is_known = is_stored && first - 1 <= (sqlite3_int64)after && (sqlite3_int64)after <= last;
  if (is_known) {
    prepare(&transaction, "SELECT event FROM events WHERE stream = ?1 AND number > ?2 ORDER BY number");
    bind_text(&transaction, 1, stream);
    bind_number(&transaction, 2, (sqlite3_int64)after);
    /* SQLite reuses the memory of a row. */
    while (count < MAX_EVENTS && step(&transaction)) {
      const size_t length = (size_t)sqlite3_column_bytes(transaction.statement, 0);
      void *copy = malloc(length + 1);
      if (copy == NULL) {
        transaction.status = SQLITE_NOMEM;
        break;
      }
      if (length > 0) {
        memcpy(copy, sqlite3_column_blob(transaction.statement, 0), length);
      }
      events[count++] = (mcpl_bytes){copy, length};
    }
  }
  if (commit(&transaction, call)) {
    const bool has_more = is_known && (sqlite3_int64)(after + count) < last;
    if (is_known) {
      mcpl_call_reply_events(call, events, count, has_ended && !has_more, has_more);
    } else {
      mcpl_call_reply_done(call);
    }
  }
  while (count > 0) {
    free((void *)events[--count].data);
  }
}

/* ---- the bus */

static void publish(mcpl_call *call, const void *message, size_t length, void *user) {
  struct transaction transaction = begin(user);
  run(&transaction, "DELETE FROM messages WHERE stored < " NOW " - 60000");
  prepare(&transaction, "INSERT INTO messages (message, stored) VALUES (?1, " NOW ")");
  bind_bytes(&transaction, 1, message, length);
  step(&transaction);
  if (commit(&transaction, call)) {
    mcpl_call_reply_done(call);
  }
}

static void *poll_messages(void *user) {
  struct store *store = user;
  const struct timespec pause = {0, POLLING * 1000000L};
  for (bool goes_on = true; goes_on;) {
    pthread_mutex_lock(&store->lock);
    struct transaction transaction = {store, SQLITE_OK, NULL};
    prepare(&transaction, "SELECT number, message FROM messages WHERE number > ?1 ORDER BY number");
    bind_number(&transaction, 1, store->last_message);
    while (step(&transaction)) {
      store->last_message = sqlite3_column_int64(transaction.statement, 0);
      mcpl_bus_receive(store->receiver, sqlite3_column_blob(transaction.statement, 1),
                       (size_t)sqlite3_column_bytes(transaction.statement, 1));
    }
    finish_statement(&transaction);
    goes_on = store->is_polling;
    pthread_mutex_unlock(&store->lock);
    nanosleep(&pause, NULL);
  }
  return NULL;
}

static void subscribe(mcpl_call *call, mcpl_bus_receiver *receiver, void *user) {
  struct store *store = user;
  struct transaction transaction = begin(store);
  prepare(&transaction, "SELECT coalesce(max(number), 0) FROM messages");
  if (step(&transaction)) {
    store->last_message = sqlite3_column_int64(transaction.statement, 0);
  }
  store->receiver = receiver;
  if (!commit(&transaction, call)) {
    return;
  }
  pthread_mutex_lock(&store->lock);
  store->is_polling = pthread_create(&store->polling, NULL, poll_messages, store) == 0;
  const bool has_begun = store->is_polling;
  pthread_mutex_unlock(&store->lock);
  if (has_begun) {
    mcpl_call_reply_done(call);
  } else {
    mcpl_call_fail(call, "cannot start a thread", MCPL_AUTO_LENGTH);
  }
}

static void unsubscribe(mcpl_call *call, mcpl_bus_receiver *receiver, void *user) {
  struct store *store = user;
  (void)receiver;
  pthread_mutex_lock(&store->lock);
  const bool was_polling = store->is_polling;
  store->is_polling = false;
  pthread_mutex_unlock(&store->lock);
  if (was_polling) {
    pthread_join(store->polling, NULL);
  }
  mcpl_call_reply_done(call);
}

/* ---- the server */

static void greet(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length, (void)user;
  mcpl_call_reply_text(call, "Hello!", MCPL_AUTO_LENGTH);
}

int main(int argc, char **argv) {
  struct store store = {.lock = PTHREAD_MUTEX_INITIALIZER};
  uint16_t port = 0;
  if (argc != 3) {
    fprintf(stderr, "usage: %s FILE PORT\n", argv[0]);
    return EXIT_FAILURE;
  }
  if (sqlite3_open(argv[1], &store.database) != SQLITE_OK || sqlite3_busy_timeout(store.database, 1000) != SQLITE_OK ||
      sqlite3_exec(store.database, SCHEMA, NULL, NULL, NULL) != SQLITE_OK) {
    fprintf(stderr, "%s: %s\n", argv[1], sqlite3_errmsg(store.database));
    sqlite3_close(store.database);
    return EXIT_FAILURE;
  }
  mcpl_sharing sharing = MCPL_SHARING_INIT;
  sharing.save = save;
  sharing.load = load;
  sharing.remove = remove_session;
  sharing.append = append;
  sharing.end = end;
  sharing.read = read_events;
  sharing.publish = publish;
  sharing.subscribe = subscribe;
  sharing.unsubscribe = unsubscribe;
  mcpl_server *server = mcpl_server_new("greeter", "1.0.0");
  mcpl_status status = mcpl_server_set_sharing(server, &sharing, &store, NULL);
  if (status == MCPL_OK) {
    status = mcpl_server_add_tool(server, "greet", "Greets", NULL, greet, NULL, NULL);
  }
  if (status == MCPL_OK) {
    status = mcpl_server_stop_on_signals(server);
  }
  if (status == MCPL_OK) {
    status = mcpl_server_start_http(server, "127.0.0.1", (uint16_t)atoi(argv[2]), NULL, &port);
  }
  if (status == MCPL_OK) {
    printf("listening on http://127.0.0.1:%u/mcp\n", (unsigned)port);
    fflush(stdout);
    status = mcpl_server_wait(server, -1);
  }
  if (status != MCPL_OK) {
    fprintf(stderr, "%s\n", mcpl_error_message(mcpl_last_error()));
  }
  mcpl_server_free(server);
  sqlite3_close(store.database);
  return status == MCPL_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
