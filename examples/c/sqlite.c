/* A SQLite database as a server: its tables are resources, and a tool runs read-only queries.
 *
 *     sqlite DATABASE                 serves it over stdio
 *     sqlite --create DATABASE SQL    makes one from a file of SQL
 */

#include <mcpline.h>
#include <sqlite3.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Enough for a model to read; more rows cost tokens and help little. */
enum { MOST_ROWS = 200 };

/* Callbacks run in parallel, so the connection needs a lock. */
struct database {
  sqlite3 *connection;
  pthread_mutex_t lock;
};

/* A resource's user data; freed by its finalizer. */
struct table {
  struct database *database;
  char name[];
};

/* Allows reading only, whatever the statement looks like. */
static int reads_only(void *user, int action, const char *a, const char *b, const char *c, const char *d) {
  (void)user, (void)a, (void)b, (void)c, (void)d;
  switch (action) {
  case SQLITE_SELECT:
  case SQLITE_READ:
  case SQLITE_FUNCTION:
  case SQLITE_RECURSIVE: return SQLITE_OK;
  default: return SQLITE_DENY;
  }
}

/* Called by SQLite at intervals: interrupts the query if its call was cancelled. */
static int given_up(void *call) { return mcpl_call_is_cancelled(call); }

static void put_value(mcpl_json *json, sqlite3_stmt *statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
  case SQLITE_INTEGER: mcpl_json_put_int64(json, sqlite3_column_int64(statement, column)); break;
  case SQLITE_FLOAT: mcpl_json_put_double(json, sqlite3_column_double(statement, column)); break;
  case SQLITE_TEXT:
    mcpl_json_put_string(json, (const char *)sqlite3_column_text(statement, column),
                         (size_t)sqlite3_column_bytes(statement, column));
    break;
  case SQLITE_BLOB:
    mcpl_json_put_base64(json, sqlite3_column_blob(statement, column), (size_t)sqlite3_column_bytes(statement, column));
    break;
  default: mcpl_json_put_null(json);
  }
}

/* Writes {"columns", "rows", "truncated"}; returns the status of SQLite's last step. */
static int put_rows(mcpl_json *json, sqlite3_stmt *statement) {
  const int columns = sqlite3_column_count(statement);
  int step = SQLITE_DONE;
  mcpl_json_begin_object(json);
  mcpl_json_name(json, "columns");
  mcpl_json_begin_array(json);
  for (int column = 0; column < columns; column++) {
    mcpl_json_put_string(json, sqlite3_column_name(statement, column), MCPL_AUTO_LENGTH);
  }
  mcpl_json_end_array(json);
  mcpl_json_name(json, "rows");
  mcpl_json_begin_array(json);
  for (int row = 0; row <= MOST_ROWS && (step = sqlite3_step(statement)) == SQLITE_ROW; row++) {
    if (row == MOST_ROWS) {
      break;
    }
    mcpl_json_begin_array(json);
    for (int column = 0; column < columns; column++) {
      put_value(json, statement, column);
    }
    mcpl_json_end_array(json);
  }
  mcpl_json_end_array(json);
  mcpl_json_name(json, "truncated");
  mcpl_json_put_bool(json, step == SQLITE_ROW);
  mcpl_json_end_object(json);
  return step;
}

/* Runs a query and replies with its rows. */
static void reply_rows(mcpl_call *call, struct database *database, const char *sql,
                       mcpl_status (*reply)(mcpl_call *, const char *, size_t)) {
  mcpl_json *json = mcpl_json_new();
  sqlite3_stmt *statement = NULL;
  const char *text = NULL;
  size_t length = 0;
  pthread_mutex_lock(&database->lock);
  sqlite3_progress_handler(database->connection, 1000, given_up, call);
  int result = sqlite3_prepare_v2(database->connection, sql, -1, &statement, NULL);
  if (result == SQLITE_OK && statement != NULL) {
    result = put_rows(json, statement);
  }
  if (result != SQLITE_DONE && result != SQLITE_ROW) {
    mcpl_call_fail(
        call, statement == NULL && result == SQLITE_OK ? "there is no statement" : sqlite3_errmsg(database->connection),
        MCPL_AUTO_LENGTH);
  } else if (mcpl_json_text(json, &text, &length) == MCPL_OK) {
    reply(call, text, length);
  } else {
    mcpl_call_fail(call, mcpl_error_message(mcpl_last_error()), MCPL_AUTO_LENGTH);
  }
  sqlite3_finalize(statement);
  sqlite3_progress_handler(database->connection, 0, NULL, NULL);
  pthread_mutex_unlock(&database->lock);
  mcpl_json_free(json);
}

static void query(mcpl_call *call, const char *arguments, size_t length, void *user) {
  char *sql = NULL;
  if (mcpl_json_string(arguments, length, "/sql", &sql, NULL) == MCPL_OK) {
    reply_rows(call, user, sql, mcpl_call_reply_structured);
    mcpl_string_free(sql);
  }
}

static void read_table(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments;
  (void)length;
  const struct table *table = user;
  char *sql = sqlite3_mprintf("SELECT * FROM \"%w\"", table->name);
  reply_rows(call, table->database, sql, mcpl_call_reply_text);
  sqlite3_free(sql);
}

static mcpl_status add_query(mcpl_server *server, struct database *database) {
  static const char definition[] =
      "{\"name\": \"query\", \"description\": \"Runs one SQL statement that only reads (SQLite)\","
      " \"inputSchema\": {\"type\": \"object\", \"properties\": {\"sql\": {\"type\": \"string\"}}, \"required\": "
      "[\"sql\"]},"
      " \"outputSchema\": {\"type\": \"object\", \"properties\": {"
      "\"columns\": {\"type\": \"array\", \"items\": {\"type\": \"string\"}},"
      "\"rows\": {\"type\": \"array\", \"items\": {\"type\": \"array\"}},"
      "\"truncated\": {\"type\": \"boolean\"}}, \"required\": [\"columns\", \"rows\", \"truncated\"]},"
      " \"annotations\": {\"readOnlyHint\": true}}";
  return mcpl_server_add_tool_with(server, definition, MCPL_AUTO_LENGTH, NULL, query, database, NULL);
}

static mcpl_status add_tables(mcpl_server *server, struct database *database) {
  sqlite3_stmt *tables = NULL;
  mcpl_status status = MCPL_OK;
  if (sqlite3_prepare_v2(database->connection, "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')", -1,
                         &tables, NULL) != SQLITE_OK) {
    return MCPL_INTERNAL_ERROR;
  }
  while (status == MCPL_OK && sqlite3_step(tables) == SQLITE_ROW) {
    const char *name = (const char *)sqlite3_column_text(tables, 0);
    struct table *table = malloc(sizeof *table + strlen(name) + 1);
    char uri[512];
    if (table == NULL || snprintf(uri, sizeof uri, "sqlite://tables/%s", name) >= (int)sizeof uri) {
      free(table);
      status = MCPL_INTERNAL_ERROR;
      break;
    }
    table->database = database;
    strcpy(table->name, name);
    /* The library frees the table when the resource is removed. */
    status = mcpl_server_add_resource(server, uri, name, "application/json", read_table, table, free);
  }
  sqlite3_finalize(tables);
  return status;
}

static int serve(const char *path) {
  struct database database = {.lock = PTHREAD_MUTEX_INITIALIZER};
  if (sqlite3_open_v2(path, &database.connection, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK) {
    fprintf(stderr, "sqlite: %s: %s\n", path, sqlite3_errmsg(database.connection));
    sqlite3_close(database.connection);
    return EXIT_FAILURE;
  }
  sqlite3_set_authorizer(database.connection, reads_only, NULL);
  mcpl_server *server = mcpl_server_new("sqlite", "1.0.0");
  mcpl_status status = add_query(server, &database);
  if (status == MCPL_OK) {
    status = add_tables(server, &database);
  }
  if (status == MCPL_OK) {
    status = mcpl_server_stop_on_signals(server);
  }
  if (status == MCPL_OK) {
    status = mcpl_server_run_stdio(server);
  }
  if (status != MCPL_OK) {
    fprintf(stderr, "sqlite: %s: %s\n", mcpl_status_name(status), mcpl_error_message(mcpl_last_error()));
  }
  /* After this, no callback runs any more, and the connection can be closed. */
  mcpl_server_free(server);
  sqlite3_close(database.connection);
  return status == MCPL_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int create(const char *path, const char *script) {
  static char sql[65536];
  sqlite3 *connection = NULL;
  FILE *file = fopen(script, "r");
  if (file == NULL) {
    perror(script);
    return EXIT_FAILURE;
  }
  sql[fread(sql, 1, sizeof sql - 1, file)] = '\0';
  fclose(file);
  const int failed =
      sqlite3_open(path, &connection) != SQLITE_OK || sqlite3_exec(connection, sql, NULL, NULL, NULL) != SQLITE_OK;
  if (failed) {
    fprintf(stderr, "sqlite: %s: %s\n", path, sqlite3_errmsg(connection));
  }
  sqlite3_close(connection);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv) {
  if (argc == 4 && strcmp(argv[1], "--create") == 0) {
    return create(argv[2], argv[3]);
  }
  if (argc == 2) {
    return serve(argv[1]);
  }
  fprintf(stderr, "usage: sqlite DATABASE | sqlite --create DATABASE SQL\n");
  return EXIT_FAILURE;
}
