/* Requests that no revision of the protocol defines: served on every revision, in this process and over HTTP. */

#include "check.h"

static const char *const REVISIONS[] = {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"};
static const char LEGACY[] = "2025-11-25";
static const char MODERN[] = "2026-07-28";
static const char SEARCH[] = "{\"type\": \"object\", \"properties\": {\"query\": {\"type\": \"string\"}}, "
                             "\"required\": [\"query\"], \"additionalProperties\": false}";
static const char FORM[] = "{\"message\": \"Who?\", \"requestedSchema\": {\"type\": \"object\", \"properties\": "
                           "{\"name\": {\"type\": \"string\"}}}}";

/* ---- the server's side */

static void search(mcpl_call *call, const char *params, size_t length, void *user) {
  char *query = NULL;
  char *name = NULL;
  char result[256];
  (void)user;
  OK(mcpl_call_name(call, &name));
  CHECK(strcmp(name, "acme/search") == 0);
  mcpl_string_free(name);
  OK(mcpl_json_string(params, length, "/query", &query, NULL));
  OK(mcpl_call_progress(call, 1, 2, NULL));
  OK(mcpl_call_notify(call, "acme/searching", params, length));
  if (query[0] == '\0') {
    OK(mcpl_call_fail_rpc(call, -1, "empty", "{\"place\":\"query\"}", MCPL_AUTO_LENGTH));
  } else {
    snprintf(result, sizeof result, "{\"hits\":[\"%s\"]}", query);
    OK(mcpl_call_reply_result(call, result, MCPL_AUTO_LENGTH));
  }
  mcpl_string_free(query);
}

static void echo(mcpl_call *call, const char *params, size_t length, void *user) {
  (void)user;
  OK(mcpl_call_reply_result(call, params, length));
}

static void ask(mcpl_call *call, const char *params, size_t length, void *user) {
  char *answer = NULL;
  (void)params, (void)length, (void)user;
  OK(mcpl_call_request_input_wait(call, NULL, MCPL_INPUT_REQUEST_METHOD_ELICIT, FORM, MCPL_AUTO_LENGTH, &answer, NULL));
  OK(mcpl_call_reply_result(call, answer, MCPL_AUTO_LENGTH));
  mcpl_string_free(answer);
}

static void return_input_request(mcpl_call *call, const char *params, size_t length, void *user) {
  char *info = NULL;
  size_t info_length = 0;
  const char *answer = NULL;
  char input_requests[512];
  (void)params, (void)length, (void)user;
  OK(mcpl_call_info(call, &info, &info_length));
  if (mcpl_json_find(info, info_length, "/inputResponses/who", &answer, &info_length) == MCPL_OK) {
    OK(mcpl_call_reply_result(call, answer, info_length));
  } else {
    snprintf(input_requests, sizeof input_requests, "{\"requests\": [[\"who\", \"elicitation/create\", %s]]}", FORM);
    OK(mcpl_call_reply_input_required(call, input_requests, MCPL_AUTO_LENGTH));
  }
  mcpl_string_free(info);
}

/* A reply that is not an object leaves the call open. */
static void reply_with_other_things(mcpl_call *call, const char *params, size_t length, void *user) {
  const char *values[] = {"a"};
  (void)params, (void)length, (void)user;
  EXPECT(MCPL_USAGE_ERROR, mcpl_call_reply_result(call, "[1]", MCPL_AUTO_LENGTH));
  EXPECT(MCPL_USAGE_ERROR, mcpl_call_reply_text(call, "a", MCPL_AUTO_LENGTH));
  CONTAINS(mcpl_error_message(mcpl_last_error()), "a custom request");
  EXPECT(MCPL_USAGE_ERROR, mcpl_call_reply_bytes(call, "a", 1, NULL));
  EXPECT(MCPL_USAGE_ERROR, mcpl_call_reply_content(call, "[]", MCPL_AUTO_LENGTH));
  EXPECT(MCPL_USAGE_ERROR, mcpl_call_reply_structured(call, "{}", MCPL_AUTO_LENGTH));
  EXPECT(MCPL_USAGE_ERROR, mcpl_call_reply_values(call, values, 1));
  OK(mcpl_call_fail_internal(call, "a secret"));
}

static mcpl_server *acme(void) {
  const mcpl_handler_options at_once = {.size = sizeof at_once, .flags = MCPL_HANDLER_INLINE};
  mcpl_server *server = mcpl_server_new("acme", "1");
  OK(mcpl_server_on_request(server, "acme/search", SEARCH, NULL, search, NULL, NULL));
  OK(mcpl_server_on_request(server, "acme/echo", NULL, &at_once, echo, NULL, NULL));
  OK(mcpl_server_on_request(server, "acme/ask", NULL, NULL, ask, NULL, NULL));
  OK(mcpl_server_on_request(server, "acme/returned", NULL, NULL, return_input_request, NULL, NULL));
  OK(mcpl_server_on_request(server, "acme/other", NULL, NULL, reply_with_other_things, NULL, NULL));
  return server;
}

/* ---- the client's side */

static void count_searching(mcpl_client *client, const char *method, const char *params, size_t length, void *user) {
  (void)client;
  if (strcmp(method, "acme/searching") == 0) {
    CHECK(params[length] == '\0');
    if (strstr(params, "\"tea\"") != NULL) {
      tally_add(user);
    }
  }
}

static void count_progress(mcpl_request *request, double progress, double total, const char *message, void *user) {
  (void)request, (void)message;
  CHECK(progress == 1 && total == 2);
  tally_add(user);
}

static void answer_form(mcpl_input_request *input_request, const char *params, size_t length, void *user) {
  (void)params, (void)length, (void)user;
  OK(mcpl_input_request_answer(input_request, "{\"action\": \"accept\", \"content\": {\"name\": \"Ada\"}}",
                               MCPL_AUTO_LENGTH));
}

static mcpl_client *client_of(const char *revision) {
  char options[64];
  mcpl_client *client = mcpl_client_new("test", "1");
  CHECK(client != NULL);
  snprintf(options, sizeof options, "{\"revisions\":[\"%s\"]}", revision);
  OK(mcpl_client_set_options(client, options, MCPL_AUTO_LENGTH));
  return client;
}

#define REQUESTS(client, method, params, part)                                                                         \
  do {                                                                                                                 \
    char *answered = NULL;                                                                                             \
    OK(mcpl_client_request((client), (method), (params), MCPL_AUTO_LENGTH, NULL, &answered, NULL));                    \
    CONTAINS(answered, part);                                                                                          \
    mcpl_string_free(answered);                                                                                        \
  } while (0)

#define FAILS(code, client, method, params)                                                                            \
  do {                                                                                                                 \
    EXPECT(MCPL_RPC_ERROR, mcpl_client_request((client), (method), (params), MCPL_AUTO_LENGTH, NULL, NULL, NULL));     \
    CHECK(mcpl_error_rpc_code(mcpl_last_error()) == (code));                                                           \
  } while (0)

static void are_served(mcpl_client *client, struct tally *searching) {
  struct tally progressed = TALLY;
  const mcpl_request_options options = {.size = sizeof options, .progress = count_progress, .user = &progressed};
  char *found = NULL;
  OK(mcpl_client_request(client, "acme/search", "{\"query\": \"tea\"}", MCPL_AUTO_LENGTH, &options, &found, NULL));
  CONTAINS(found, "\"hits\":[\"tea\"]");
  mcpl_string_free(found);
  CHECK(tally_count(&progressed) == 1);
  tally_wait(searching, 1);
  REQUESTS(client, "acme/echo", "{\"a\":[1,2.50]}", "\"a\":[1,2.50]");
  FAILS(-1, client, "acme/search", "{\"query\": \"\"}");
  CONTAINS(mcpl_error_details(mcpl_last_error()), "\"place\":\"query\"");
  FAILS(-32602, client, "acme/search", "{\"query\": 7}");
  FAILS(-32602, client, "acme/search", "{\"query\": \"tea\", \"more\": 1}");
  FAILS(-32602, client, "acme/search", NULL);
  FAILS(-32603, client, "acme/other", NULL);
  CHECK(strstr(mcpl_error_details(mcpl_last_error()), "secret") == NULL);
  FAILS(-32601, client, "acme/none", NULL);
}

static void custom_requests_are_served_on_every_revision(void) {
  uint16_t port = 0;
  char url[64];
  mcpl_server *server = acme();
  OK(mcpl_server_start_http(server, "127.0.0.1", 0, NULL, &port));
  snprintf(url, sizeof url, "http://127.0.0.1:%u/mcp", (unsigned)port);
  for (size_t index = 0; index < 2 * sizeof REVISIONS / sizeof *REVISIONS; index++) {
    struct tally searching = TALLY;
    mcpl_client *client = client_of(REVISIONS[index / 2]);
    OK(mcpl_client_on_notification(client, count_searching, &searching, NULL));
    if (index % 2 == 0) {
      OK(mcpl_client_set_server(client, server));
      OK(mcpl_client_open(client));
    } else {
      OK(mcpl_client_connect(client, url));
    }
    are_served(client, &searching);
    mcpl_client_free(client);
  }
  mcpl_server_free(server);
}

static void handlers_of_custom_requests_send_input_requests(void) {
  const char *const both[] = {LEGACY, MODERN};
  mcpl_server *server = acme();
  for (size_t index = 0; index < 2; index++) {
    mcpl_client *client = client_of(both[index]);
    OK(mcpl_client_on_elicit(client, answer_form, NULL, NULL));
    OK(mcpl_client_set_server(client, server));
    OK(mcpl_client_open(client));
    REQUESTS(client, "acme/ask", NULL, "Ada");
    REQUESTS(client, "acme/returned", NULL, "Ada");
    mcpl_client_free(client);
  }
  mcpl_server_free(server);
}

struct kept {
  struct tally arrived;
  struct tally cancelled;
  mcpl_call *call;
};

static void cancelled(mcpl_call *call, void *user) {
  CHECK(mcpl_call_is_cancelled(call));
  tally_add(user);
}

static void keep(mcpl_call *call, const char *params, size_t length, void *user) {
  struct kept *kept = user;
  (void)params, (void)length;
  OK(mcpl_call_keep(call));
  kept->call = call;
  OK(mcpl_call_on_cancel(call, cancelled, &kept->cancelled, NULL));
  tally_add(&kept->arrived);
}

static void cancelling_a_custom_request_notifies_its_handler(void) {
  struct kept kept = {TALLY, TALLY, NULL};
  struct pending pending = PENDING;
  mcpl_request *request = NULL;
  mcpl_server *server = mcpl_server_new("acme", "1");
  OK(mcpl_server_on_request(server, "acme/keep", NULL, NULL, keep, &kept, NULL));
  mcpl_client *client = joined(server);
  OK(mcpl_client_open(client));
  OK(mcpl_client_request_async(client, "acme/keep", NULL, 0, NULL, completed, &pending, &request));
  tally_wait(&kept.arrived, 1);
  OK(mcpl_request_cancel(request));
  tally_wait(&pending.done, 1);
  CHECK(pending.status == MCPL_REQUEST_CANCELLED);
  tally_wait(&kept.cancelled, 1);
  OK(mcpl_call_notify(kept.call, "acme/late", NULL, 0));
  OK(mcpl_call_reply_result(kept.call, "{}", MCPL_AUTO_LENGTH));
  EXPECT(MCPL_STALE_HANDLE, mcpl_call_notify(kept.call, "acme/late", NULL, 0));
  mcpl_client_free(client);
  mcpl_server_free(server);
}

static void notify_badly(mcpl_call *call, const char *params, size_t length, void *user) {
  const char *const methods[] = {"", "notifications/message", "tools/call", "rpc.note", "acme/s\xc3\xbc\xc3\x9f"};
  (void)params, (void)length, (void)user;
  for (size_t index = 0; index < sizeof methods / sizeof *methods; index++) {
    EXPECT(MCPL_USAGE_ERROR, mcpl_call_notify(call, methods[index], "{}", MCPL_AUTO_LENGTH));
  }
  EXPECT(MCPL_USAGE_ERROR, mcpl_call_notify(call, "acme/note", "[1]", MCPL_AUTO_LENGTH));
  CONTAINS(mcpl_error_message(mcpl_last_error()), "object");
  OK(mcpl_call_reply_result(call, "{}", MCPL_AUTO_LENGTH));
}

static void only_custom_notifications_are_sent_by_name(void) {
  mcpl_server *server = mcpl_server_new("acme", "1");
  OK(mcpl_server_on_request(server, "acme/notify", NULL, NULL, notify_badly, NULL, NULL));
  mcpl_client *client = joined(server);
  OK(mcpl_client_open(client));
  REQUESTS(client, "acme/notify", NULL, "{");
  mcpl_client_free(client);
  mcpl_server_free(server);
}

static void handlers_cannot_serve_methods_of_the_protocol(void) {
  struct tally refused = TALLY;
  struct tally removed = TALLY;
  const mcpl_handler_options scopes = {.size = sizeof scopes, .scopes = "a\"b"};
  const struct {
    const char *method, *schema;
    const mcpl_handler_options *options;
    const char *words;
  } cases[] = {
      {"", NULL, NULL, "1 to 1024"},
      {"tools/call", NULL, NULL, "protocol defines it"},
      {"prompts/get", NULL, NULL, "protocol defines it"},
      {"sampling/createMessage", NULL, NULL, "protocol defines it"},
      {"notifications/acme", NULL, NULL, "notifications"},
      {"rpc.discover", NULL, NULL, "JSON-RPC"},
      {"acme/echo", NULL, NULL, "handler already"},
      {"acme/new", "{\"type\": 7}", NULL, "unusable params schema"},
      {"acme/new", NULL, &scopes, "scope"},
  };
  const int count = sizeof cases / sizeof *cases;
  mcpl_server *server = acme();
  for (int index = 0; index < count; index++) {
    EXPECT(MCPL_USAGE_ERROR, mcpl_server_on_request(server, cases[index].method, cases[index].schema,
                                                    cases[index].options, echo, &refused, finalized));
    CONTAINS(mcpl_error_message(mcpl_last_error()), cases[index].words);
    CHECK(tally_count(&refused) == index + 1);
  }
  OK(mcpl_server_on_request(server, "acme/new", NULL, NULL, echo, &removed, finalized));
  mcpl_client *client = joined(server);
  OK(mcpl_client_open(client));
  REQUESTS(client, "acme/new", "{\"a\":1}", "\"a\":1");
  OK(mcpl_server_remove_request_handler(server, "acme/new"));
  EXPECT(MCPL_NOT_FOUND, mcpl_server_remove_request_handler(server, "acme/new"));
  tally_wait(&removed, 1);
  FAILS(-32601, client, "acme/new", NULL);
  OK(mcpl_server_on_request(server, "acme/new", NULL, NULL, echo, &removed, finalized));
  mcpl_client_free(client);
  mcpl_server_free(server);
  CHECK(tally_count(&removed) == 2);
}

/* ---- notifications of clients */

struct notes {
  struct tally handled;
  struct tally numbers;
};

static void note(mcpl_call *call, const char *params, size_t length, void *user) {
  struct notes *notes = user;
  int64_t number = 0;
  char *name = NULL;
  OK(mcpl_call_name(call, &name));
  CHECK(strcmp(name, "acme/note") == 0);
  mcpl_string_free(name);
  OK(mcpl_json_int64(params, length, "/number", &number));
  CHECK(strstr(params, "_meta") == NULL);
  for (int64_t count = 0; count < number; count++) {
    tally_add(&notes->numbers);
  }
  EXPECT(MCPL_USAGE_ERROR, mcpl_call_reply_content(call, "[]", MCPL_AUTO_LENGTH));
  OK(mcpl_call_reply_text(call, "", 0));
  tally_add(&notes->handled);
}

static void custom_notifications_are_handled_on_every_revision(void) {
  static const char NUMBER[] = "{\"type\": \"object\", \"properties\": {\"number\": {\"type\": \"number\"}}, "
                               "\"required\": [\"number\"]}";
  uint16_t port = 0;
  char url[64];
  struct notes notes = {TALLY, TALLY};
  mcpl_server *server = acme();
  OK(mcpl_server_on_notification(server, "acme/note", NUMBER, NULL, note, &notes, NULL));
  EXPECT(MCPL_USAGE_ERROR, mcpl_server_on_notification(server, "acme/note", NULL, NULL, note, NULL, NULL));
  CONTAINS(mcpl_error_message(mcpl_last_error()), "handler already");
  OK(mcpl_server_start_http(server, "127.0.0.1", 0, NULL, &port));
  snprintf(url, sizeof url, "http://127.0.0.1:%u/mcp", (unsigned)port);
  int handled = 0;
  for (size_t index = 0; index < 2 * sizeof REVISIONS / sizeof *REVISIONS; index++) {
    mcpl_client *client = client_of(REVISIONS[index / 2]);
    if (index % 2 == 0) {
      OK(mcpl_client_set_server(client, server));
      OK(mcpl_client_open(client));
    } else {
      OK(mcpl_client_connect(client, url));
    }
    OK(mcpl_client_notify(client, "acme/note", "{\"number\": 2, \"_meta\": {\"acme.example/a\": 1}}",
                          MCPL_AUTO_LENGTH));
    tally_wait(&notes.handled, ++handled);
    OK(mcpl_client_notify(client, "acme/note", "{\"number\": \"two\"}", MCPL_AUTO_LENGTH));
    OK(mcpl_client_notify(client, "acme/none", NULL, 0));
    OK(mcpl_client_notify(client, "acme/note", "{\"number\": 1}", MCPL_AUTO_LENGTH));
    tally_wait(&notes.handled, ++handled);
    CHECK(tally_count(&notes.numbers) == 3 * (int)(index + 1));
    mcpl_client_free(client);
  }
  OK(mcpl_server_remove_notification_handler(server, "acme/note"));
  EXPECT(MCPL_NOT_FOUND, mcpl_server_remove_notification_handler(server, "acme/note"));
  mcpl_server_free(server);
}

static void forget(mcpl_call *call, const char *params, size_t length, void *user) {
  struct kept *kept = user;
  (void)params, (void)length;
  OK(mcpl_call_on_cancel(call, cancelled, &kept->cancelled, NULL));
  OK(mcpl_call_keep(call));
  kept->call = call;
  tally_add(&kept->arrived);
}

static void the_end_of_its_session_cancels_the_handler_of_a_notification(void) {
  struct kept kept = {TALLY, TALLY, NULL};
  mcpl_server *server = mcpl_server_new("acme", "1");
  OK(mcpl_server_on_notification(server, "acme/wait", NULL, NULL, forget, &kept, NULL));
  mcpl_client *client = client_of(LEGACY);
  OK(mcpl_client_set_server(client, server));
  OK(mcpl_client_open(client));
  OK(mcpl_client_notify(client, "acme/wait", NULL, 0));
  tally_wait(&kept.arrived, 1);
  mcpl_client_free(client);
  tally_wait(&kept.cancelled, 1);
  OK(mcpl_call_reply_text(kept.call, "", 0));
  mcpl_server_free(server);
}

/* ---- requests of servers */

static void picked(mcpl_call *call, const mcpl_error *error, const char *result, size_t length, void *user) {
  (void)user;
  CHECK(error == NULL);
  OK(mcpl_call_reply_result(call, result, length));
}

static void choose(mcpl_call *call, const char *params, size_t length, void *user) {
  static const char FROM[] = "{\"from\": [1, 2]}";
  char *result = NULL;
  char *method = NULL;
  (void)user;
  if (mcpl_json_string(params, length, "/method", &method, NULL) != MCPL_OK) {
    OK(mcpl_call_send_request(call, NULL, "acme/pick", FROM, MCPL_AUTO_LENGTH, picked, NULL, NULL));
    return;
  }
  if (mcpl_call_send_request_wait(call, NULL, method, FROM, MCPL_AUTO_LENGTH, &result, NULL) == MCPL_OK) {
    OK(mcpl_call_reply_result(call, result, MCPL_AUTO_LENGTH));
  } else {
    OK(mcpl_call_fail_rpc(call, -9, "no answer", NULL, 0));
  }
  mcpl_string_free(method);
  mcpl_string_free(result);
}

static void pick(mcpl_input_request *input_request, const char *params, size_t length, void *user) {
  (void)length, (void)user;
  CHECK(strcmp(params, "{\"from\": [1, 2]}") == 0 || strcmp(params, "{\"from\":[1, 2]}") == 0);
  EXPECT(MCPL_USAGE_ERROR, mcpl_input_request_answer(input_request, "[1]", MCPL_AUTO_LENGTH));
  OK(mcpl_input_request_answer(input_request, "{\"picked\": 2}", MCPL_AUTO_LENGTH));
}

static void clients_serve_custom_requests_on_every_revision(void) {
  mcpl_server *server = mcpl_server_new("acme", "1");
  OK(mcpl_server_on_request(server, "acme/choose", NULL, NULL, choose, NULL, NULL));
  for (size_t index = 0; index < sizeof REVISIONS / sizeof *REVISIONS; index++) {
    struct tally replaced = TALLY;
    mcpl_client *client = client_of(REVISIONS[index]);
    OK(mcpl_client_on_request(client, "acme/pick", answer_form, &replaced, finalized));
    OK(mcpl_client_on_request(client, "acme/pick", pick, NULL, NULL));
    tally_wait(&replaced, 1);
    OK(mcpl_client_set_server(client, server));
    OK(mcpl_client_open(client));
    REQUESTS(client, "acme/choose", NULL, "\"picked\":");
    REQUESTS(client, "acme/choose", "{\"method\": \"acme/pick\"}", "\"picked\":");
    CHECK(mcpl_client_request(client, "acme/choose", "{\"method\": \"acme/none\"}", MCPL_AUTO_LENGTH, NULL, NULL,
                              NULL) != MCPL_OK);
    mcpl_client_free(client);
  }
  mcpl_server_free(server);
}

static void clients_do_not_serve_the_librarys_own_methods(void) {
  const char *const methods[] = {"auth/", "auth/consent", "host/tool_call"};
  struct tally refused = TALLY;
  mcpl_client *client = client_of(MODERN);
  for (int index = 0; index < 3; index++) {
    EXPECT(MCPL_USAGE_ERROR, mcpl_client_on_request(client, methods[index], pick, &refused, finalized));
    CONTAINS(mcpl_error_message(mcpl_last_error()), "library's own");
    CHECK(tally_count(&refused) == index + 1);
  }
  OK(mcpl_client_on_request(client, "authors/pick", pick, NULL, NULL));
  mcpl_client_free(client);
}

/* ---- extensions */

static const char STAMPS[] = "{\"extensions\": {\"com.example/stamps\": {\"colors\": 3}}}";
static const char OFFERED[] = "{\"extensions\": {\"com.example/stamps\": {\"colors\": 3}}, "
                              "\"result_types\": {\"acme/receipt\": \"com.example/stamps\"}}";

static void buy(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length, (void)user;
  OK(mcpl_call_reply_result(call, "{\"resultType\": \"acme/receipt\", \"price\": 7}", MCPL_AUTO_LENGTH));
}

static void redeem(mcpl_input_request *input_request, const char *params, size_t length, void *user) {
  char *answered = NULL;
  double price = 0;
  OK(mcpl_json_double(params, length, "/result/price", &price));
  CHECK(price == 7);
  CONTAINS(params, "\"method\":\"tools/call\"");
  OK(mcpl_client_request(*(mcpl_client **)user, "acme/echo", "{\"a\": 1}", MCPL_AUTO_LENGTH, NULL, &answered, NULL));
  mcpl_string_free(answered);
  OK(mcpl_input_request_answer(input_request, "{\"content\": [{\"type\": \"text\", \"text\": \"bought\"}]}",
                               MCPL_AUTO_LENGTH));
}

static void refuse(mcpl_input_request *input_request, const char *params, size_t length, void *user) {
  (void)params, (void)length, (void)user;
  OK(mcpl_input_request_refuse(input_request, -7, "sold out", NULL, 0));
}

/* Passes the error of its own request on. */
static void redeem_nothing(mcpl_input_request *input_request, const char *params, size_t length, void *user) {
  (void)params, (void)length;
  EXPECT(MCPL_USAGE_ERROR, mcpl_input_request_fail(input_request, MCPL_RPC_ERROR, NULL, NULL));
  FAILS(-32601, *(mcpl_client **)user, "acme/nothing", "{}");
  const mcpl_error *error = mcpl_last_error();
  OK(mcpl_input_request_fail(input_request, mcpl_error_status(error), mcpl_error_message(error),
                             mcpl_error_details(error)));
}

static mcpl_server *stamping(void) {
  const mcpl_handler_options own = {.size = sizeof own, .extension = "com.example/stamps"};
  static const char info[] = "{\"name\": \"shop\", \"version\": \"1\"}";
  mcpl_server *server = mcpl_server_new_with(info, MCPL_AUTO_LENGTH, OFFERED, MCPL_AUTO_LENGTH);
  OK(mcpl_server_on_request(server, "acme/echo", NULL, &own, echo, NULL, NULL));
  OK(mcpl_server_add_tool(server, "buy", "Buys", NULL, buy, NULL, NULL));
  return server;
}

static mcpl_client *declaring(const char *revision, const char *capabilities) {
  char options[256];
  mcpl_client *client = mcpl_client_new("test", "1");
  snprintf(options, sizeof options, "{\"revisions\":[\"%s\"],\"capabilities\":%s}", revision, capabilities);
  OK(mcpl_client_set_options(client, options, MCPL_AUTO_LENGTH));
  return client;
}

static void methods_of_an_extension_are_for_clients_that_declare_it(void) {
  mcpl_server *server = stamping();
  for (size_t index = 0; index < sizeof REVISIONS / sizeof *REVISIONS; index++) {
    mcpl_client *with = declaring(REVISIONS[index], STAMPS);
    mcpl_client *without = client_of(REVISIONS[index]);
    OK(mcpl_client_set_server(with, server));
    OK(mcpl_client_set_server(without, server));
    OK(mcpl_client_open(with));
    OK(mcpl_client_open(without));
    REQUESTS(with, "acme/echo", "{\"a\": 1}", "\"a\":");
    FAILS(-32021, without, "acme/echo", "{\"a\": 1}");
    CONTAINS(mcpl_error_details(mcpl_last_error()), "com.example/stamps");
    mcpl_client_free(without);
    mcpl_client_free(with);
  }
  mcpl_server_free(server);
}

static void a_method_belongs_to_an_extension_that_its_server_declares(void) {
  const mcpl_handler_options own = {.size = sizeof own, .extension = "com.example/other"};
  struct tally released = TALLY;
  mcpl_server *server = stamping();
  EXPECT(MCPL_USAGE_ERROR, mcpl_server_on_request(server, "acme/a", NULL, &own, echo, &released, finalized));
  CONTAINS(mcpl_error_message(mcpl_last_error()), "com.example/other");
  CHECK(tally_count(&released) == 1);
  /* Tools are listed whatever a client declares. */
  EXPECT(MCPL_USAGE_ERROR,
         mcpl_server_add_tool_with(server, "{\"name\": \"a\", \"inputSchema\": {\"type\": \"object\"}}",
                                   MCPL_AUTO_LENGTH, &own, buy, &released, finalized));
  CONTAINS(mcpl_error_message(mcpl_last_error()), "custom methods");
  CHECK(tally_count(&released) == 2);
  mcpl_server_free(server);
}

static void a_result_of_a_type_of_an_extension_is_resolved(void) {
  mcpl_server *server = stamping();
  mcpl_client *client = declaring(MODERN, STAMPS);
  mcpl_client *refusing = declaring(MODERN, STAMPS);
  mcpl_client *failing = declaring(MODERN, STAMPS);
  mcpl_client *without = client_of(MODERN);
  OK(mcpl_client_on_result_type(client, "acme/receipt", redeem, &client, NULL));
  OK(mcpl_client_on_result_type(failing, "acme/receipt", redeem_nothing, &failing, NULL));
  OK(mcpl_client_on_result_type(refusing, "acme/receipt", refuse, NULL, NULL));
  OK(mcpl_client_set_server(client, server));
  OK(mcpl_client_set_server(refusing, server));
  OK(mcpl_client_set_server(failing, server));
  OK(mcpl_client_set_server(without, server));
  OK(mcpl_client_open(client));
  OK(mcpl_client_open(refusing));
  OK(mcpl_client_open(failing));
  OK(mcpl_client_open(without));
  REQUESTS(client, "tools/call", "{\"name\": \"buy\"}", "bought");
  FAILS(-7, refusing, "tools/call", "{\"name\": \"buy\"}");
  CONTAINS(mcpl_error_message(mcpl_last_error()), "sold out");
  FAILS(-32601, failing, "tools/call", "{\"name\": \"buy\"}");
  CHECK(!mcpl_error_is_retry_safe(mcpl_last_error()));
  FAILS(-32021, without, "tools/call", "{\"name\": \"buy\"}");
  mcpl_client_free(without);
  mcpl_client_free(failing);
  mcpl_client_free(refusing);
  mcpl_client_free(client);
  mcpl_server_free(server);
}

static const struct test tests[] = {
    TEST(custom_requests_are_served_on_every_revision),
    TEST(handlers_of_custom_requests_send_input_requests),
    TEST(cancelling_a_custom_request_notifies_its_handler),
    TEST(only_custom_notifications_are_sent_by_name),
    TEST(handlers_cannot_serve_methods_of_the_protocol),
    TEST(custom_notifications_are_handled_on_every_revision),
    TEST(the_end_of_its_session_cancels_the_handler_of_a_notification),
    TEST(clients_serve_custom_requests_on_every_revision),
    TEST(clients_do_not_serve_the_librarys_own_methods),
    TEST(methods_of_an_extension_are_for_clients_that_declare_it),
    TEST(a_method_belongs_to_an_extension_that_its_server_declares),
    TEST(a_result_of_a_type_of_an_extension_is_resolved),
};

MAIN(tests)
