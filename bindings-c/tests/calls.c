/* Calls of a server by a client in the same process: every way to end them, on any thread and at any time;
 * cancellation; and when user data is released. */

#include "check.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static const char ANY[] = "{\"type\": \"object\"}";

/* ---- every way to reply */

static void reply(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)user;
  char *how = NULL;
  OK(mcpl_json_string(arguments, length, "/how", &how, NULL));
  if (strcmp(how, "text") == 0) {
    OK(mcpl_call_reply_text(call, "a text and more", 6));
  } else if (strcmp(how, "bytes") == 0) {
    OK(mcpl_call_reply_bytes(call, "\0\1\2", 3, "image/png"));
  } else if (strcmp(how, "content") == 0) {
    OK(mcpl_call_reply_content(
        call, "[{\"type\": \"text\", \"text\": \"one\"}, {\"type\": \"text\", \"text\": \"two\"}]", MCPL_AUTO_LENGTH));
  } else if (strcmp(how, "structured") == 0) {
    OK(mcpl_call_reply_structured(call, "{\"answer\": 42}", MCPL_AUTO_LENGTH));
  } else if (strcmp(how, "result") == 0) {
    OK(mcpl_call_reply_result(call, "{\"content\": [], \"_meta\": {\"x/y\": 1}}", MCPL_AUTO_LENGTH));
  } else if (strcmp(how, "fail") == 0) {
    OK(mcpl_call_fail(call, "no such luck", MCPL_AUTO_LENGTH));
  } else if (strcmp(how, "rpc") == 0) {
    OK(mcpl_call_fail_rpc(call, -32123, "refused", "[1]", 3));
  } else {
    OK(mcpl_call_fail_internal(call, "a secret"));
  }
  mcpl_string_free(how);
}

static void a_call_is_ended_in_every_way(void) {
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "reply", "Replies", ANY, reply, NULL, NULL));
  mcpl_client *client = joined(server);
  OK(mcpl_client_open(client));
  CALLS(client, "reply", "{\"how\": \"text\"}", "\"a text\"");
  CALLS(client, "reply", "{\"how\": \"bytes\"}", "\"data\":\"AAEC\"");
  CALLS(client, "reply", "{\"how\": \"bytes\"}", "image/png");
  CALLS(client, "reply", "{\"how\": \"content\"}", "two");
  CALLS(client, "reply", "{\"how\": \"structured\"}", "structuredContent");
  CALLS(client, "reply", "{\"how\": \"result\"}", "x/y");
  CALLS(client, "reply", "{\"how\": \"fail\"}", "no such luck");
  CALLS(client, "reply", "{\"how\": \"fail\"}", "\"isError\":true");
  char *result = NULL;
  EXPECT(MCPL_RPC_ERROR,
         mcpl_client_call_tool(client, "reply", "{\"how\": \"rpc\"}", MCPL_AUTO_LENGTH, NULL, &result, NULL));
  CHECK(result == NULL);
  CHECK(mcpl_error_rpc_code(mcpl_last_error()) == -32123);
  CONTAINS(mcpl_error_message(mcpl_last_error()), "refused");
  CONTAINS(mcpl_error_details(mcpl_last_error()), "\"data\":[1]");
  /* The client learns nothing else about an internal failure. */
  mcpl_status status =
      mcpl_client_call_tool(client, "reply", "{\"how\": \"internal\"}", MCPL_AUTO_LENGTH, NULL, &result, NULL);
  CHECK(status == MCPL_RPC_ERROR || (status == MCPL_OK && strstr(result, "\"isError\":true") != NULL));
  CHECK(strstr(status == MCPL_OK ? result : mcpl_error_details(mcpl_last_error()), "secret") == NULL);
  mcpl_string_free(result);
  mcpl_client_free(client);
  mcpl_server_free(server);
}

/* ---- resources, templates, prompts, completion */

static void name_it(mcpl_call *call, const char *arguments, size_t length, void *user) {
  char *name = NULL;
  char text[256];
  (void)user;
  OK(mcpl_call_name(call, &name));
  snprintf(text, sizeof text, "%s with %.*s", name, (int)length, arguments);
  mcpl_string_free(name);
  OK(mcpl_call_reply_text(call, text, MCPL_AUTO_LENGTH));
}

static void miss(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length;
  OK(mcpl_call_fail_resource_not_found(call, user));
}

static void complete(mcpl_call *call, const char *arguments, size_t length, void *user) {
  const char *values[] = {"Bergen", "Bodø"};
  (void)user;
  char *typed = NULL;
  OK(mcpl_json_string(arguments, length, "/argument/value", &typed, NULL));
  CHECK(strcmp(typed, "B") == 0);
  mcpl_string_free(typed);
  OK(mcpl_call_reply_values(call, values, 2));
}

static void list_cities(mcpl_call *call, const char *arguments, size_t length, void *user) {
  int *times = user;
  char *name = NULL;
  const char *uris[] = {"city://Oslo", "city://Bergen", "other://Oslo"};
  CHECK(length == 2 && strcmp(arguments, "{}") == 0);
  OK(mcpl_call_name(call, &name));
  CHECK(strcmp(name, "city://{name}") == 0);
  mcpl_string_free(name);
  EXPECT(MCPL_USAGE_ERROR, mcpl_call_reply_text(call, "text", MCPL_AUTO_LENGTH));
  switch ((*times)++) {
  case 0: OK(mcpl_call_reply_values(call, uris, 3)); break;
  case 1:
    OK(mcpl_call_reply_content(call, "[{\"uri\":\"city://Oslo\",\"name\":\"oslo\",\"title\":\"Oslo\"}]",
                               MCPL_AUTO_LENGTH));
    break;
  case 2: OK(mcpl_call_reply_result(call, "{\"resources\":[\"city://Voss\"]}", MCPL_AUTO_LENGTH)); break;
  default: OK(mcpl_call_fail_rpc(call, -31000, "later", NULL, 0));
  }
}

static void templates_list_resources(void) {
  mcpl_server *server = mcpl_server_new("server", "1");
  int times = 0;
  OK(mcpl_server_add_resource(server, "config://units", "units", "text/plain", name_it, NULL, NULL));
  OK(mcpl_server_add_resource_template(server, "city://{name}", "city", NULL, name_it, NULL, NULL));
  EXPECT(MCPL_USAGE_ERROR, mcpl_server_set_resource_template_list(server, "other://{name}", list_cities, NULL, NULL));
  OK(mcpl_server_set_resource_template_list(server, "city://{name}", list_cities, &times, NULL));
  mcpl_client *client = joined(server);
  OK(mcpl_client_open(client));
  char *result = NULL;
  OK(mcpl_client_list_resources(client, NULL, &result, NULL));
  CONTAINS(result, "config://units");
  CONTAINS(result, "city://Bergen");
  CHECK(strstr(result, "other://Oslo") == NULL);
  mcpl_string_free(result);
  OK(mcpl_client_list_resources(client, NULL, &result, NULL));
  CONTAINS(result, "\"title\":\"Oslo\"");
  mcpl_string_free(result);
  OK(mcpl_client_list_resources(client, NULL, &result, NULL));
  CONTAINS(result, "city://Voss");
  mcpl_string_free(result);
  EXPECT(MCPL_RPC_ERROR, mcpl_client_list_resources(client, NULL, &result, NULL));
  OK(mcpl_server_notify_resource_list_changed(server));
  CHECK(times == 4);
  OK(mcpl_server_remove_resource(server, "city://{name}"));
  OK(mcpl_client_list_resources(client, NULL, &result, NULL));
  CHECK(strstr(result, "city://") == NULL);
  mcpl_string_free(result);
  mcpl_client_free(client);
  mcpl_server_free(server);
}

static void resources_prompts_and_completion_are_served(void) {
  mcpl_server *server = mcpl_server_new("server", "1");
  const char *styles[] = {"quiet", "loud"};
  OK(mcpl_server_add_resource(server, "config://units", "units", "text/plain", name_it, NULL, NULL));
  OK(mcpl_server_add_resource_template(server, "city://{name}", "city", NULL, name_it, NULL, NULL));
  OK(mcpl_server_add_prompt(server, "plan", "Plans", "[{\"name\": \"style\"}]", name_it, NULL, NULL));
  OK(mcpl_server_add_candidates(server, "plan", "style", styles, 2));
  OK(mcpl_server_add_completion(server, "city://{name}", "name", complete, NULL, NULL));
  mcpl_client *client = joined(server);
  OK(mcpl_client_open(client));
  char *result = NULL;
  size_t length = 0;
  OK(mcpl_client_read_resource(client, "config://units", NULL, &result, &length));
  CHECK(strlen(result) == length);
  CONTAINS(result, "config://units with {}");
  mcpl_string_free(result);
  OK(mcpl_client_read_resource(client, "city://Oslo", NULL, &result, NULL));
  CONTAINS(result, "city://Oslo with {\\\"name\\\":\\\"Oslo\\\"}");
  mcpl_string_free(result);
  OK(mcpl_client_get_prompt(client, "plan", "{\"style\": \"loud\"}", MCPL_AUTO_LENGTH, NULL, &result, NULL));
  CONTAINS(result, "loud");
  mcpl_string_free(result);
  OK(mcpl_client_complete(client,
                          "{\"ref\": {\"type\": \"ref/prompt\", \"name\": \"plan\"}, \"argument\": {\"name\": "
                          "\"style\", \"value\": \"l\"}}",
                          MCPL_AUTO_LENGTH, NULL, &result, NULL));
  CONTAINS(result, "loud");
  mcpl_string_free(result);
  OK(mcpl_client_complete(
      client,
      "{\"ref\": {\"type\": \"ref/resource\", \"uri\": \"city://{name}\"}, \"argument\": {\"name\": "
      "\"name\", \"value\": \"B\"}}",
      MCPL_AUTO_LENGTH, NULL, &result, NULL));
  CONTAINS(result, "Bergen");
  mcpl_string_free(result);
  OK(mcpl_client_list_resource_templates(client, NULL, &result, NULL));
  CONTAINS(result, "city://{name}");
  mcpl_string_free(result);
  OK(mcpl_client_ping(client, NULL));
  OK(mcpl_server_remove_prompt(server, "plan"));
  EXPECT(MCPL_NOT_FOUND, mcpl_server_remove_prompt(server, "plan"));
  OK(mcpl_server_remove_resource(server, "city://{name}"));
  OK(mcpl_server_remove_resource(server, "config://units"));
  EXPECT(MCPL_NOT_FOUND, mcpl_server_remove_resource(server, "config://units"));
  mcpl_client_free(client);
  mcpl_server_free(server);
}

static void resources_that_handlers_do_not_find_are_named(void) {
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_resource_template(server, "city://{name}", "city", NULL, miss, NULL, NULL));
  OK(mcpl_server_add_resource(server, "config://city", "other", NULL, miss, "city://Oslo", NULL));
  mcpl_client *client = joined(server);
  OK(mcpl_client_open(client));
  char *result = NULL;
  EXPECT(MCPL_RPC_ERROR, mcpl_client_read_resource(client, "city://Bergen", NULL, &result, NULL));
  CHECK(mcpl_error_rpc_code(mcpl_last_error()) == -32602);
  CONTAINS(mcpl_error_details(mcpl_last_error()), "\"data\":{\"uri\":\"city://Bergen\"}");
  EXPECT(MCPL_RPC_ERROR, mcpl_client_read_resource(client, "config://city", NULL, &result, NULL));
  CONTAINS(mcpl_error_details(mcpl_last_error()), "\"data\":{\"uri\":\"city://Oslo\"}");
  CHECK(result == NULL);
  mcpl_client_free(client);
  mcpl_server_free(server);
}

/* ---- later, from other threads */

static void *reply_elsewhere(void *call) {
  OK(mcpl_call_progress(call, 1, 2, "half"));
  OK(mcpl_call_reply_text(call, "from elsewhere", MCPL_AUTO_LENGTH));
  return NULL;
}

static void later(mcpl_call *call, const char *arguments, size_t length, void *user) {
  pthread_t thread;
  (void)arguments, (void)length, (void)user;
  OK(mcpl_call_keep(call));
  CHECK(pthread_create(&thread, NULL, reply_elsewhere, call) == 0);
  CHECK(pthread_detach(thread) == 0);
}

static void on_progress(mcpl_request *request, double progress, double total, const char *message, void *user) {
  (void)request;
  CHECK(progress == 1 && total == 2);
  CHECK(strcmp(message, "half") == 0);
  tally_add(user);
}

static void a_call_is_completed_later_from_another_thread(void) {
  struct tally progressed = TALLY;
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "later", "Replies later", NULL, later, NULL, NULL));
  mcpl_client *client = joined(server);
  OK(mcpl_client_open(client));
  mcpl_request_options options = MCPL_REQUEST_OPTIONS_INIT;
  options.progress = on_progress;
  options.user = &progressed;
  char *result = NULL;
  OK(mcpl_client_call_tool(client, "later", NULL, 0, &options, &result, NULL));
  CONTAINS(result, "from elsewhere");
  CHECK(tally_count(&progressed) == 1);
  mcpl_string_free(result);
  mcpl_client_free(client);
  mcpl_server_free(server);
}

/* ---- many reports at listeners that block */

enum { REPORTS = 3000 };

static void report_often(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length;
  for (int step = 1; step <= REPORTS; step++) {
    OK(mcpl_call_progress(call, step, REPORTS, NULL));
  }
  tally_add(user);
  OK(mcpl_call_reply_text(call, "done", MCPL_AUTO_LENGTH));
}

struct blocking {
  struct tally leave;
  struct tally delivered;
};

static void listen_late(mcpl_request *request, double progress, double total, const char *message, void *user) {
  struct blocking *blocking = user;
  (void)request, (void)progress, (void)total, (void)message;
  tally_wait(&blocking->leave, 1);
  tally_add(&blocking->delivered);
}

static void slow_listeners_to_progress_share_the_room_of_one_client(void) {
  struct blocking blocking = {TALLY, TALLY};
  struct tally sent = TALLY;
  struct pending pending[2] = {PENDING, PENDING};
  mcpl_server *server = mcpl_server_new_with("{\"name\": \"server\", \"version\": \"1\"}", MCPL_AUTO_LENGTH,
                                             "{\"progress_rate\": [1000000, 1000000]}", MCPL_AUTO_LENGTH);
  OK(mcpl_server_add_tool(server, "report", "Reports often", NULL, report_often, &sent, NULL));
  mcpl_client *client = joined(server);
  OK(mcpl_client_open(client));
  mcpl_request_options options = {.size = sizeof options, .progress = listen_late, .user = &blocking};
  /* Neither exceeds the share of one client, but both together do. */
  for (int call = 0; call < 2; call++) {
    OK(mcpl_client_call_tool_async(client, "report", NULL, 0, &options, completed, &pending[call], NULL));
  }
  tally_wait(&sent, 2);
  OK(mcpl_client_ping(client, NULL));
  OK(mcpl_client_ping(client, NULL));
  tally_add(&blocking.leave);
  for (int call = 0; call < 2; call++) {
    tally_wait(&pending[call].done, 1);
    CHECK(pending[call].status == MCPL_OK);
  }
  /* One report of each call is being handled by its listener and does not wait. */
  CHECK(tally_count(&blocking.delivered) > REPORTS);
  CHECK(tally_count(&blocking.delivered) <= 4096 + 2);
  mcpl_client_free(client);
  mcpl_server_free(server);
}

/* ---- twice */

static void twice(mcpl_call *call, const char *arguments, size_t length, void *user) {
  const char *given = NULL;
  char *name = NULL;
  (void)arguments, (void)length;
  OK(mcpl_call_reply_text(call, "once", MCPL_AUTO_LENGTH));
  EXPECT(MCPL_STALE_HANDLE, mcpl_call_reply_text(call, "again", MCPL_AUTO_LENGTH));
  EXPECT(MCPL_STALE_HANDLE, mcpl_call_fail(call, "again", MCPL_AUTO_LENGTH));
  EXPECT(MCPL_STALE_HANDLE, mcpl_call_name(call, &name));
  EXPECT(MCPL_STALE_HANDLE, mcpl_call_arguments(call, &given, NULL));
  EXPECT(MCPL_STALE_HANDLE, mcpl_call_progress(call, 1, 1, NULL));
  CHECK(name == NULL && given == NULL);
  CHECK(mcpl_call_is_cancelled(call));
  /* The handler's own arguments last until it returns. */
  CHECK(strcmp(arguments, "{}") == 0);
  tally_add(user);
}

static void a_second_answer_is_refused(void) {
  struct tally refused = TALLY;
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "twice", "Replies twice", NULL, twice, &refused, NULL));
  mcpl_client *client = joined(server);
  OK(mcpl_client_open(client));
  CALLS(client, "twice", "{}", "once");
  tally_wait(&refused, 1);
  mcpl_client_free(client);
  mcpl_server_free(server);
}

/* ---- never, and after close */

struct kept {
  struct tally arrived;
  struct tally cancelled;
  mcpl_call *call;
};

static void keep(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length;
  OK(mcpl_call_keep(call));
  ((struct kept *)user)->call = call;
  tally_add(&((struct kept *)user)->arrived);
}

static void forget(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)call, (void)arguments, (void)length, (void)user;
}

static void forget_answer(mcpl_call *call, const mcpl_error *error, const char *result, size_t length, void *user) {
  (void)call, (void)error, (void)result, (void)length;
  tally_add(user);
}

static void request_and_forget(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length;
  OK(mcpl_call_request_input(call, NULL, MCPL_INPUT_REQUEST_METHOD_LIST_ROOTS, NULL, 0, forget_answer, user, NULL));
}

static void report(mcpl_log_level level, const char *target, const char *message, void *user) {
  (void)target;
  if (level == MCPL_LOG_ERROR && strstr(message, "mcpl_call_keep") != NULL) {
    tally_add(user);
  }
}

static void a_handler_that_returns_without_ending_its_call_fails_it(void) {
  struct tally reported = TALLY;
  struct tally asked = TALLY;
  struct kept kept = {TALLY, TALLY, NULL};
  struct pending pending = PENDING;
  OK(mcpl_set_diagnostics(MCPL_LOG_ERROR, report, &reported, NULL));
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "forget", "Never replies", NULL, forget, NULL, NULL));
  OK(mcpl_server_add_tool(server, "ask", "Never replies", NULL, request_and_forget, &asked, NULL));
  OK(mcpl_server_add_tool(server, "keep", "Replies later", NULL, keep, &kept, NULL));
  mcpl_client *client = joined(server);
  OK(mcpl_client_open(client));
  CALLS(client, "forget", NULL, "\"isError\":true");
  CHECK(tally_count(&reported) == 1);
  CALLS(client, "ask", NULL, "\"isError\":true");
  CHECK(tally_count(&asked) == 1);
  CHECK(tally_count(&reported) == 2);
  OK(mcpl_client_call_tool_async(client, "keep", NULL, 0, NULL, completed, &pending, NULL));
  tally_wait(&kept.arrived, 1);
  CALLS(client, "forget", NULL, "\"isError\":true");
  OK(mcpl_call_reply_text(kept.call, "later", MCPL_AUTO_LENGTH));
  EXPECT(MCPL_STALE_HANDLE, mcpl_call_keep(kept.call));
  tally_wait(&pending.done, 1);
  CONTAINS(pending.text, "later");
  mcpl_client_free(client);
  mcpl_server_free(server);
  OK(mcpl_set_diagnostics(MCPL_LOG_ERROR, NULL, NULL, NULL));
}

static void an_unanswered_call_ends_when_the_server_closes(void) {
  struct kept kept = {TALLY, TALLY, NULL};
  struct pending pending = PENDING;
  mcpl_server *server = mcpl_server_new_with("{\"name\": \"server\", \"version\": \"1\"}", MCPL_AUTO_LENGTH, NULL, 0);
  OK(mcpl_server_add_tool(server, "keep", "Never replies", NULL, keep, &kept, NULL));
  mcpl_client *client = joined(server);
  OK(mcpl_client_open(client));
  OK(mcpl_client_call_tool_async(client, "keep", NULL, 0, NULL, completed, &pending, NULL));
  tally_wait(&kept.arrived, 1);
  CHECK(!mcpl_call_is_cancelled(kept.call));
  OK(mcpl_server_close(server));
  tally_wait(&pending.done, 1);
  CHECK(pending.status != MCPL_OK || strstr(pending.text, "\"isError\":true") != NULL);
  CHECK(mcpl_call_is_cancelled(kept.call));
  EXPECT(MCPL_STALE_HANDLE, mcpl_call_reply_text(kept.call, "too late", MCPL_AUTO_LENGTH));
  EXPECT(MCPL_STALE_HANDLE, mcpl_call_fail_internal(kept.call, "too late"));
  mcpl_client_free(client);
  mcpl_server_free(server);
  EXPECT(MCPL_STALE_HANDLE, mcpl_call_reply_text(kept.call, "much too late", MCPL_AUTO_LENGTH));
}

/* ---- cancellation */

static void cancelled(mcpl_call *call, void *user) {
  CHECK(mcpl_call_is_cancelled(call));
  tally_add(user);
}

static void keep_until_cancelled(mcpl_call *call, const char *arguments, size_t length, void *user) {
  struct kept *kept = user;
  OK(mcpl_call_on_cancel(call, cancelled, &kept->cancelled, NULL));
  keep(call, arguments, length, user);
}

static void cancellation_sets_a_flag_and_calls_a_callback(void) {
  struct kept kept = {TALLY, TALLY, NULL};
  struct pending pending = PENDING;
  mcpl_request *request = NULL;
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "keep", "Waits", NULL, keep_until_cancelled, &kept, NULL));
  mcpl_client *client = joined(server);
  OK(mcpl_client_open(client));
  OK(mcpl_client_call_tool_async(client, "keep", NULL, 0, NULL, completed, &pending, &request));
  tally_wait(&kept.arrived, 1);
  CHECK(!mcpl_call_is_cancelled(kept.call));
  OK(mcpl_request_cancel(request));
  tally_wait(&pending.done, 1);
  CHECK(pending.status == MCPL_REQUEST_CANCELLED);
  EXPECT(MCPL_STALE_HANDLE, mcpl_request_cancel(request));
  tally_wait(&kept.cancelled, 1);
  CHECK(mcpl_call_is_cancelled(kept.call));
  /* Answering a cancelled call is not an error. */
  OK(mcpl_call_reply_text(kept.call, "for nobody", MCPL_AUTO_LENGTH));
  EXPECT(MCPL_STALE_HANDLE, mcpl_call_reply_text(kept.call, "twice for nobody", MCPL_AUTO_LENGTH));
  mcpl_client_free(client);
  mcpl_server_free(server);
  CHECK(tally_count(&kept.cancelled) == 1);
}

/* ---- user data */

static void nothing(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length, (void)user;
  OK(mcpl_call_reply_text(call, "", 0));
}

#define OF_PROPERTY(schema)                                                                                            \
  "{\"name\": \"t\", \"inputSchema\": {\"type\": \"object\", \"properties\": {\"a\": " schema "}}}"

static void rejects_invalid_definitions_at_registration(void) {
  mcpl_server *server = mcpl_server_new("server", "1");
  mcpl_handler_options options = MCPL_HANDLER_OPTIONS_INIT;
  const char *const uris[] = {"", "notes", "my_app://x", "app://x/y z"};
  const char *const tools[] = {
      "{\"name\": \"t\", \"inputSchema\": true}",
      "{\"name\": \"t\", \"inputSchema\": {\"type\": \"string\"}}",
      "{\"name\": \"t\", \"inputSchema\": {\"type\": \"object\"}, \"_meta\": {\"dev.mcp/a\": 1}}",
      "{\"name\": \"t\", \"inputSchema\": {\"type\": \"object\"}, \"execution\": {\"taskSupport\": \"required\"}}",
      OF_PROPERTY("{\"type\": \"string\", \"x-mcp-header\": \"\"}"),
      OF_PROPERTY("{\"type\": \"string\", \"x-mcp-header\": \"a b\"}"),
      OF_PROPERTY("{\"type\": \"number\", \"x-mcp-header\": \"A\"}"),
  };
  for (size_t index = 0; index < sizeof uris / sizeof *uris; index++) {
    EXPECT(MCPL_USAGE_ERROR, mcpl_server_add_resource(server, uris[index], "r", NULL, nothing, NULL, NULL));
  }
  CONTAINS(mcpl_error_message(mcpl_last_error()), "' ' at byte 9");
  EXPECT(MCPL_USAGE_ERROR, mcpl_server_add_resource_template(server, "notes/{id}", "t", NULL, nothing, NULL, NULL));
  for (size_t index = 0; index < sizeof tools / sizeof *tools; index++) {
    EXPECT(MCPL_USAGE_ERROR,
           mcpl_server_add_tool_with(server, tools[index], MCPL_AUTO_LENGTH, &options, nothing, NULL, NULL));
  }
  OK(mcpl_server_add_resource(server, "memo:1", "r", NULL, nothing, NULL, NULL));
  EXPECT(MCPL_USAGE_ERROR, mcpl_server_add_resource(server, "memo:1", "r", NULL, nothing, NULL, NULL));
  OK(mcpl_server_add_prompt(server, "review", "Reviews", NULL, nothing, NULL, NULL));
  EXPECT(MCPL_USAGE_ERROR, mcpl_server_add_prompt(server, "review", "Again", NULL, nothing, NULL, NULL));
  mcpl_server_free(server);
}

static void user_data_is_released_exactly_once(void) {
  struct tally tool = TALLY;
  struct tally resource = TALLY;
  struct tally prompt = TALLY;
  struct tally failed = TALLY;
  struct tally replaced = TALLY;
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "tool", "Nothing", NULL, nothing, &tool, finalized));
  OK(mcpl_server_add_resource(server, "a://b", "b", NULL, nothing, &resource, finalized));
  OK(mcpl_server_add_prompt(server, "prompt", "Nothing", NULL, nothing, &prompt, finalized));
  EXPECT(MCPL_USAGE_ERROR, mcpl_server_add_tool(server, "bad", "Nothing", "{", nothing, &failed, finalized));
  CHECK(tally_count(&failed) == 1);
  EXPECT(MCPL_USAGE_ERROR, mcpl_server_add_tool(server, NULL, "Nothing", NULL, nothing, &failed, finalized));
  CHECK(tally_count(&failed) == 2);
  EXPECT(MCPL_USAGE_ERROR, mcpl_server_add_tool(NULL, "bad", "Nothing", NULL, nothing, &failed, finalized));
  CHECK(tally_count(&failed) == 3);
  EXPECT(MCPL_USAGE_ERROR, mcpl_server_add_tool(server, "bad", "Nothing", NULL, NULL, &failed, finalized));
  CHECK(tally_count(&failed) == 4);
  OK(mcpl_server_set_completion(server, nothing, &replaced, finalized));
  mcpl_client *client = joined(server);
  OK(mcpl_client_open(client));
  CALLS(client, "tool", NULL, "content");
  OK(mcpl_server_remove_tool(server, "tool"));
  tally_wait(&tool, 1);
  EXPECT(MCPL_NOT_FOUND, mcpl_server_remove_tool(server, "tool"));
  mcpl_client_free(client);
  mcpl_server_free(server);
  tally_wait(&resource, 1);
  tally_wait(&prompt, 1);
  tally_wait(&replaced, 1);
  CHECK(tally_count(&tool) == 1 && tally_count(&resource) == 1 && tally_count(&prompt) == 1);
  CHECK(tally_count(&replaced) == 1 && tally_count(&failed) == 4);
}

/* A finalizer that uses the server of its callback. */
struct user_of_server {
  mcpl_server *server;
  struct tally finalized;
};

static void use_server(void *user) {
  struct user_of_server *uses = user;
  OK(mcpl_server_add_tool(uses->server, "left", "Nothing", NULL, nothing, NULL, NULL));
  OK(mcpl_server_remove_tool(uses->server, "left"));
  tally_add(&uses->finalized);
}

static void a_finalizer_may_use_the_server(void) {
  mcpl_server *server = mcpl_server_new("server", "1");
  struct user_of_server uses = {server, TALLY};
  mcpl_client *client = joined(server);
  OK(mcpl_client_open(client));
  /* Refused, because the name is taken: finalized at once. */
#define TAKEN(add, remove)                                                                                             \
  do {                                                                                                                 \
    const int before = tally_count(&uses.finalized);                                                                   \
    OK(add);                                                                                                           \
    EXPECT(MCPL_USAGE_ERROR, add);                                                                                     \
    tally_wait(&uses.finalized, before + 1);                                                                           \
    OK(remove);                                                                                                        \
    tally_wait(&uses.finalized, before + 2);                                                                           \
  } while (0)
  TAKEN(mcpl_server_add_tool(server, "a", "Nothing", NULL, nothing, &uses, use_server),
        mcpl_server_remove_tool(server, "a"));
  TAKEN(mcpl_server_add_resource(server, "a://b", "b", NULL, nothing, &uses, use_server),
        mcpl_server_remove_resource(server, "a://b"));
  TAKEN(mcpl_server_add_resource_template(server, "a://{b}", "b", NULL, nothing, &uses, use_server),
        mcpl_server_remove_resource(server, "a://{b}"));
  TAKEN(mcpl_server_add_prompt(server, "a", "Nothing", NULL, nothing, &uses, use_server),
        mcpl_server_remove_prompt(server, "a"));
  TAKEN(mcpl_server_on_request(server, "acme/a", NULL, NULL, nothing, &uses, use_server),
        mcpl_server_remove_request_handler(server, "acme/a"));
  TAKEN(mcpl_server_on_notification(server, "acme/a", NULL, NULL, nothing, &uses, use_server),
        mcpl_server_remove_notification_handler(server, "acme/a"));
#undef TAKEN
  const int before = tally_count(&uses.finalized);
  OK(mcpl_server_set_completion(server, nothing, &uses, use_server));
  OK(mcpl_server_set_completion(server, nothing, NULL, NULL));
  tally_wait(&uses.finalized, before + 1);
  mcpl_client_free(client);
  mcpl_server_free(server);
  CHECK(tally_count(&uses.finalized) == before + 1);
}

static void end_server(void *user) {
  struct user_of_server *ends = user;
  EXPECT(MCPL_WOULD_DEADLOCK, mcpl_server_close(ends->server));
  mcpl_server_free(ends->server);
  EXPECT(MCPL_STALE_HANDLE, mcpl_server_close(ends->server));
  tally_add(&ends->finalized);
}

static void a_finalizer_cannot_close_its_server_but_free_it(void) {
  struct user_of_server closed = {mcpl_server_new("server", "1"), TALLY};
  OK(mcpl_server_add_tool(closed.server, "a", "Nothing", NULL, nothing, &closed, end_server));
  OK(mcpl_server_close(closed.server));
  CHECK(tally_count(&closed.finalized) == 1);
  struct user_of_server used = {mcpl_server_new("server", "1"), TALLY};
  OK(mcpl_server_set_completion(used.server, nothing, &used, end_server));
  OK(mcpl_server_set_completion(used.server, nothing, NULL, NULL));
  tally_wait(&used.finalized, 1);
}

struct slow {
  struct tally entered;
  struct tally leave;
  struct tally finalized;
};

static void slowly(mcpl_call *call, const char *arguments, size_t length, void *user) {
  struct slow *slow = user;
  (void)arguments, (void)length;
  tally_add(&slow->entered);
  tally_wait(&slow->leave, 1);
  CHECK(tally_count(&slow->finalized) == 0);
  OK(mcpl_call_reply_text(call, "done", MCPL_AUTO_LENGTH));
}

static void slow_finalized(void *user) { tally_add(&((struct slow *)user)->finalized); }

static void user_data_lasts_for_as_long_as_a_callback_runs(void) {
  struct slow slow = {TALLY, TALLY, TALLY};
  struct pending pending = PENDING;
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "slow", "Slow", NULL, slowly, &slow, slow_finalized));
  mcpl_client *client = joined(server);
  OK(mcpl_client_open(client));
  OK(mcpl_client_call_tool_async(client, "slow", NULL, 0, NULL, completed, &pending, NULL));
  tally_wait(&slow.entered, 1);
  OK(mcpl_server_remove_tool(server, "slow"));
  CHECK(tally_count(&slow.finalized) == 0);
  tally_add(&slow.leave);
  tally_wait(&pending.done, 1);
  CHECK(pending.status == MCPL_OK);
  tally_wait(&slow.finalized, 1);
  mcpl_client_free(client);
  mcpl_server_free(server);
  CHECK(tally_count(&slow.finalized) == 1);
}

/* ---- settings of servers */

static void reply_done(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length, (void)user;
  OK(mcpl_call_reply_text(call, "done", MCPL_AUTO_LENGTH));
}

static void settings_are_set_until_the_server_is_used(void) {
  char *info = NULL;
  const char *options = "{\"instructions\": \"Old.\", \"tool_rate\": [5, 5]}";
  mcpl_server *server =
      mcpl_server_new_with("{\"name\": \"server\", \"version\": \"1\"}", MCPL_AUTO_LENGTH, options, MCPL_AUTO_LENGTH);
  OK(mcpl_server_set_title(server, "A server"));
  OK(mcpl_server_set_instructions(server, "Call it once."));
  OK(mcpl_server_set_tool_rate(server, 1, 0));
  OK(mcpl_server_set_max_calls(server, 100));
  OK(mcpl_server_set_shutdown_timeout_ms(server, 0));
  OK(mcpl_server_set_shutdown_timeout_ms(server, -1));
  /* What is refused changes nothing. */
  EXPECT(MCPL_USAGE_ERROR, mcpl_server_set_instructions(server, "\xff"));
  OK(mcpl_server_add_tool(server, "work", "Works", NULL, reply_done, NULL, NULL));
  EXPECT(MCPL_USAGE_ERROR, mcpl_server_set_title(server, "Another"));
  CONTAINS(mcpl_error_message(mcpl_last_error()), "in use");
  EXPECT(MCPL_USAGE_ERROR, mcpl_server_set_max_calls(server, 1));
  mcpl_client *client = joined(server);
  OK(mcpl_client_open(client));
  OK(mcpl_client_info(client, &info, NULL));
  CONTAINS(info, "A server");
  CONTAINS(info, "Call it once.");
  mcpl_string_free(info);
  CALLS(client, "work", "{}", "done");
  char *result = NULL;
  size_t length = 0;
  const mcpl_status again = mcpl_client_call_tool(client, "work", "{}", 2, NULL, &result, &length);
  CHECK(again == MCPL_RPC_ERROR && mcpl_error_rpc_code(mcpl_last_error()) == -31000);
  mcpl_client_free(client);
  mcpl_server_free(server);
}

/* Returns whether an HTTP server accepts a request with this header. */
static bool is_accepted(uint16_t port, const char *header) {
  char text[512];
  const struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  const int connection = socket(AF_INET, SOCK_STREAM, 0);
  CHECK(connect(connection, (const struct sockaddr *)&address, sizeof address) == 0);
  const int length = snprintf(text, sizeof text,
                              "POST /tools HTTP/1.1\r\n%s\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", header);
  CHECK(write(connection, text, (size_t)length) == length);
  ssize_t end = 0;
  for (ssize_t got = 1; got > 0 && end < (ssize_t)sizeof text - 1; end += got) {
    got = read(connection, text + end, sizeof text - 1 - (size_t)end);
    CHECK(got >= 0);
  }
  text[end] = '\0';
  CHECK(close(connection) == 0);
  CHECK(strncmp(text, "HTTP/1.1 4", 10) == 0);
  return strncmp(text, "HTTP/1.1 403", 12) != 0;
}

static void settings_of_http_servers_are_set(void) {
  uint16_t port = 0;
  char url[64];
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "work", "Works", NULL, reply_done, NULL, NULL));
  OK(mcpl_server_set_http_path(server, "/tools"));
  OK(mcpl_server_add_allowed_host(server, "one.example"));
  OK(mcpl_server_add_allowed_host(server, "*.two.example"));
  OK(mcpl_server_add_allowed_origin(server, "https://app.example"));
  OK(mcpl_server_start_http(server, "127.0.0.1", 0, "{\"path\": \"/mcp\", \"allowed_hosts\": [\"three.example\"]}",
                            &port));
  CHECK(is_accepted(port, "Host: one.example"));
  CHECK(is_accepted(port, "Host: a.two.example"));
  CHECK(is_accepted(port, "Host: three.example"));
  CHECK(!is_accepted(port, "Host: four.example"));
  CHECK(is_accepted(port, "Host: one.example\r\nOrigin: https://app.example"));
  CHECK(!is_accepted(port, "Host: one.example\r\nOrigin: https://other.example"));
  snprintf(url, sizeof url, "http://127.0.0.1:%u/tools", (unsigned)port);
  mcpl_client *client = mcpl_client_new("test", "1");
  OK(mcpl_client_connect(client, url));
  CALLS(client, "work", "{}", "done");
  mcpl_client_free(client);
  /* Reported where the server is started. */
  OK(mcpl_server_set_http_path(server, "no path"));
  EXPECT(MCPL_USAGE_ERROR, mcpl_server_start_http(server, "127.0.0.1", 0, NULL, &port));
  mcpl_server_free(server);
}

/* ---- closing */

static void *let_go(void *user) {
  struct slow *slow = user;
  tally_wait(&slow->entered, 1);
  tally_add(&slow->leave);
  return NULL;
}

static void closing_lets_calls_end_and_waits_for_callbacks(void) {
  struct slow slow = {TALLY, TALLY, TALLY};
  struct pending pending = PENDING;
  pthread_t thread;
  uint16_t port = 0;
  char url[64];
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "slow", "Slow", NULL, slowly, &slow, slow_finalized));
  OK(mcpl_server_start_http(server, "127.0.0.1", 0, NULL, &port));
  snprintf(url, sizeof url, "http://127.0.0.1:%u/mcp", (unsigned)port);
  mcpl_client *client = mcpl_client_new("test", "1");
  OK(mcpl_client_connect(client, url));
  OK(mcpl_client_call_tool_async(client, "slow", NULL, 0, NULL, completed, &pending, NULL));
  tally_wait(&slow.entered, 1);
  CHECK(pthread_create(&thread, NULL, let_go, &slow) == 0);
  OK(mcpl_server_close(server));
  CHECK(tally_count(&slow.leave) == 1);
  CHECK(pthread_join(thread, NULL) == 0);
  tally_wait(&pending.done, 1);
  CHECK(pending.status == MCPL_OK);
  mcpl_client_free(client);
  mcpl_server_free(server);
  CHECK(tally_count(&slow.finalized) == 1);
}

static void close_within(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length;
  EXPECT(MCPL_WOULD_DEADLOCK, mcpl_server_close(user));
  OK(mcpl_call_reply_text(call, "would block", MCPL_AUTO_LENGTH));
}

static void closing_within_an_own_callback_would_deadlock(void) {
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "close", "Closes", NULL, close_within, server, NULL));
  mcpl_client *client = joined(server);
  OK(mcpl_client_open(client));
  CALLS(client, "close", NULL, "would block");
  mcpl_client_free(client);
  mcpl_server_free(server);
  EXPECT(MCPL_STALE_HANDLE, mcpl_server_stop(server));
  EXPECT(MCPL_STALE_HANDLE, mcpl_client_ping(client, NULL));
}

/* ---- timeouts */

static void a_call_that_takes_too_long_is_cancelled_and_answered(void) {
  struct kept kept = {TALLY, TALLY, NULL};
  const char *definition = "{\"name\": \"keep\", \"inputSchema\": {\"type\": \"object\"}}";
  /* Inline, so that the handler has begun when its time is over: one that still waits for a thread then never begins.
   */
  const mcpl_handler_options options = {.size = sizeof options, .flags = MCPL_HANDLER_INLINE, .timeout_ms = 20};
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool_with(server, definition, MCPL_AUTO_LENGTH, &options, keep_until_cancelled, &kept, NULL));
  mcpl_client *client = joined(server);
  OK(mcpl_client_open(client));
  CALLS(client, "keep", "{}", "The tool keep did not finish within 0.02 seconds");
  tally_wait(&kept.cancelled, 1);
  CHECK(mcpl_call_is_cancelled(kept.call));
  /* Answering it is not an error, as after a cancellation. */
  OK(mcpl_call_reply_text(kept.call, "too late", MCPL_AUTO_LENGTH));
  EXPECT(MCPL_STALE_HANDLE, mcpl_call_reply_text(kept.call, "again", MCPL_AUTO_LENGTH));
  mcpl_client_free(client);
  mcpl_server_free(server);
  CHECK(tally_count(&kept.cancelled) == 1);
}

/* ---- the log of requests */

struct request_log {
  const char *target;
  struct tally calls;
  char last[512];
};

static void write_line(mcpl_log_level level, const char *target, const char *message, void *user) {
  struct request_log *log = user;
  if (strcmp(target, log->target) == 0 && strstr(message, "tools/call") != NULL) {
    CHECK(level == MCPL_LOG_INFO);
    snprintf(log->last, sizeof log->last, "%s", message);
    tally_add(&log->calls);
  }
}

static void requests_are_diagnostics_of_level_info(void) {
  struct request_log log = {"mcpline::requests", TALLY, ""};
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "reply", "Replies", ANY, reply, NULL, NULL));
  mcpl_client *client = joined(server);
  OK(mcpl_client_open(client));
  OK(mcpl_set_diagnostics(MCPL_LOG_INFO, write_line, &log, NULL));
  CALLS(client, "reply", "{\"how\": \"fail\"}", "no such luck");
  tally_wait(&log.calls, 1);
  CONTAINS(log.last, "name=reply outcome=tool_error duration_ms=");
  OK(mcpl_set_diagnostics(MCPL_LOG_WARNING, write_line, &log, NULL));
  CALLS(client, "reply", "{\"how\": \"text\"}", "a text");
  OK(mcpl_set_diagnostics(MCPL_LOG_DEBUG, write_line, &log, NULL));
  CALLS(client, "reply", "{\"how\": \"bytes\"}", "AAEC");
  tally_wait(&log.calls, 2);
  OK(mcpl_set_diagnostics(MCPL_LOG_ERROR, NULL, NULL, NULL));
  CHECK(tally_count(&log.calls) == 2);
  mcpl_client_free(client);
  mcpl_server_free(server);
}

static void requests_of_clients_are_diagnostics_too(void) {
  struct request_log log = {"mcpline::requests::client", TALLY, ""};
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "reply", "Replies", ANY, reply, NULL, NULL));
  mcpl_client *client = joined(server);
  OK(mcpl_client_open(client));
  OK(mcpl_set_diagnostics(MCPL_LOG_INFO, write_line, &log, NULL));
  CALLS(client, "reply", "{\"how\": \"fail\"}", "no such luck");
  tally_wait(&log.calls, 1);
  CONTAINS(log.last, "direction=sent method=tools/call name=reply outcome=tool_error duration_ms=");
  CONTAINS(log.last, "server=server");
  OK(mcpl_set_diagnostics(MCPL_LOG_ERROR, NULL, NULL, NULL));
  CHECK(tally_count(&log.calls) == 1);
  mcpl_client_free(client);
  mcpl_server_free(server);
}

/* ---- debug mode */

struct traffic {
  struct tally calls;
  struct tally warnings;
  bool has_secret;
};

static void write_traffic(mcpl_log_level level, const char *target, const char *message, void *user) {
  struct traffic *traffic = user;
  if (strstr(message, "debug mode of server \"server\" is on") != NULL) {
    CHECK(level == MCPL_LOG_WARNING);
    tally_add(&traffic->warnings);
  }
  if (strcmp(target, "mcpline::traffic") == 0 && strstr(message, " received over memory, connection ") != NULL &&
      strstr(message, "tools/call") != NULL) {
    CHECK(level == MCPL_LOG_INFO);
    CONTAINS(message, "\"[redacted]\"");
    traffic->has_secret = strstr(message, "s3cret") != NULL;
    tally_add(&traffic->calls);
  }
}

static void fail_internally(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length, (void)user;
  OK(mcpl_call_fail_internal(call, "the disk is full"));
}

static void debug_mode_shows_internal_errors_and_messages(void) {
  struct traffic traffic = {TALLY, TALLY, false};
  OK(mcpl_set_diagnostics(MCPL_LOG_INFO, write_traffic, &traffic, NULL));
  for (int debug = 0; debug < 2; debug++) {
    mcpl_server *server = mcpl_server_new_with("{\"name\": \"server\", \"version\": \"1\"}", MCPL_AUTO_LENGTH,
                                               debug ? "{\"debug\": true}" : "{\"debug\": false}", MCPL_AUTO_LENGTH);
    CHECK(server != NULL);
    OK(mcpl_server_add_tool(server, "fails", "Fails", ANY, fail_internally, NULL, NULL));
    mcpl_client *client = joined(server);
    OK(mcpl_client_open(client));
    CHECK(tally_count(&traffic.calls) == 0);
    CALLS(client, "fails", "{\"token\": \"s3cret\"}",
          debug ? "Error executing tool fails: the disk is full" : "Error executing tool fails\"");
    mcpl_client_free(client);
    mcpl_server_free(server);
  }
  OK(mcpl_set_diagnostics(MCPL_LOG_ERROR, NULL, NULL, NULL));
  CHECK(tally_count(&traffic.warnings) == 1);
  CHECK(tally_count(&traffic.calls) == 1);
  CHECK(!traffic.has_secret);
}

/* More messages than wait for a slow callback. */
#define MANY_CALLS 600

/* A callback for diagnostics that waits, once the test says so, and where it must not run. */
struct slow_log {
  struct tally io_known;
  pthread_t io;
  struct tally gate_closed;
  struct tally gate_opened;
  struct tally located;
  struct tally lines;
  struct tally notices;
  int left_out;
};

static void write_slowly(mcpl_log_level level, const char *target, const char *message, void *user) {
  struct slow_log *log = user;
  if (strcmp(target, "mcpline::traffic") != 0) {
    return;
  }
  CHECK(level == MCPL_LOG_INFO);
  if (tally_count(&log->io_known) > 0) {
    CHECK(!pthread_equal(pthread_self(), log->io));
  }
  if (tally_count(&log->gate_closed) > 0) {
    tally_wait(&log->gate_opened, 1);
  }
  if (sscanf(message, "the log is too slow: %d messages", &log->left_out) == 1) {
    tally_add(&log->notices);
    return;
  }
  tally_add(&log->lines);
  if (strstr(message, " sent over ") != NULL && strstr(message, "located") != NULL) {
    tally_add(&log->located);
  }
}

static void locate_io_thread(mcpl_call *call, const char *arguments, size_t length, void *user) {
  struct slow_log *log = user;
  (void)arguments, (void)length;
  if (tally_count(&log->io_known) == 0) {
    log->io = pthread_self();
    tally_add(&log->io_known);
  }
  OK(mcpl_call_reply_text(call, "located", MCPL_AUTO_LENGTH));
}

static void clients_do_not_wait_for_a_slow_log_of_messages(void) {
  struct slow_log log = {TALLY, 0, TALLY, TALLY, TALLY, TALLY, TALLY, 0};
  const mcpl_handler_options options = {.size = sizeof options, .flags = MCPL_HANDLER_INLINE};
  const char *definition = "{\"name\": \"locate\", \"inputSchema\": {\"type\": \"object\"}}";
  OK(mcpl_set_diagnostics(MCPL_LOG_INFO, write_slowly, &log, NULL));
  mcpl_server *server = mcpl_server_new_with("{\"name\": \"server\", \"version\": \"1\"}", MCPL_AUTO_LENGTH,
                                             "{\"debug\": true}", MCPL_AUTO_LENGTH);
  CHECK(server != NULL);
  OK(mcpl_server_add_tool_with(server, definition, MCPL_AUTO_LENGTH, &options, locate_io_thread, &log, NULL));
  mcpl_client *client = joined(server);
  OK(mcpl_client_open(client));
  CALLS(client, "locate", "{}", "located");
  tally_wait(&log.located, 1);
  const int before = tally_count(&log.lines);
  tally_add(&log.gate_closed);
  for (int call = 0; call < MANY_CALLS; call++) {
    CALLS(client, "locate", "{}", "located");
  }
  CHECK(tally_count(&log.lines) == before);
  mcpl_client_free(client);
  /* Does not wait for the callback, either: not longer than a second. */
  mcpl_server_free(server);
  CHECK(tally_count(&log.lines) == before);
  tally_add(&log.gate_opened);
  tally_wait(&log.notices, 1);
  CHECK(log.left_out > 0 && log.left_out < 2 * MANY_CALLS);
  tally_wait(&log.lines, before + 2 * MANY_CALLS - log.left_out);
  OK(mcpl_set_diagnostics(MCPL_LOG_ERROR, NULL, NULL, NULL));
  CHECK(tally_count(&log.lines) == before + 2 * MANY_CALLS - log.left_out);
  CHECK(tally_count(&log.notices) == 1);
}

/* Serves one call in debug mode, which the environment turns on, and returns what is printed to stderr; free it. */
static char *printed_in_debug_mode(void) {
  char path[] = "/tmp/mcpline-stderr-XXXXXX";
  const int file = mkstemp(path), before = dup(STDERR_FILENO);
  CHECK(file >= 0 && before >= 0);
  CHECK(unlink(path) == 0);
  CHECK(setenv("MCPLINE_DEBUG", "1", 1) == 0);
  CHECK(dup2(file, STDERR_FILENO) >= 0);
  mcpl_server *server = mcpl_server_new("server", "1");
  CHECK(unsetenv("MCPLINE_DEBUG") == 0);
  OK(mcpl_server_add_tool(server, "reply", "Replies", ANY, reply, NULL, NULL));
  mcpl_client *client = joined(server);
  OK(mcpl_client_open(client));
  CALLS(client, "reply", "{\"how\": \"text\"}", "a text");
  mcpl_client_free(client);
  mcpl_server_free(server);
  CHECK(dup2(before, STDERR_FILENO) >= 0);
  CHECK(close(before) == 0);
  const off_t length = lseek(file, 0, SEEK_END);
  CHECK(length >= 0);
  char *text = calloc((size_t)length + 1, 1);
  CHECK(text != NULL && pread(file, text, (size_t)length, 0) == length);
  CHECK(close(file) == 0);
  return text;
}

static void without_a_callback_for_them_messages_are_printed_to_stderr(void) {
  char *printed = printed_in_debug_mode();
  CHECK(strstr(printed, "debug mode of server \"server\" is on") == printed);
  CONTAINS(printed, " received over memory, connection ");
  CONTAINS(printed, "\"method\":\"tools/call\"");
  CONTAINS(printed, " sent over memory, connection ");
  free(printed);
}

static void a_callback_for_warnings_alone_gets_no_messages(void) {
  struct traffic traffic = {TALLY, TALLY, false};
  OK(mcpl_set_diagnostics(MCPL_LOG_WARNING, write_traffic, &traffic, NULL));
  char *printed = printed_in_debug_mode();
  OK(mcpl_set_diagnostics(MCPL_LOG_ERROR, NULL, NULL, NULL));
  CHECK(tally_count(&traffic.warnings) == 1);
  CHECK(tally_count(&traffic.calls) == 0);
  CHECK(strstr(printed, "debug mode of server") == NULL);
  CONTAINS(printed, "\"method\":\"tools/call\"");
  free(printed);
}

/* Returns the text of a file; free it. */
static char *text_of(const char *path) {
  FILE *file = fopen(path, "r");
  CHECK(file != NULL);
  char *text = calloc(1 << 16, 1);
  CHECK(text != NULL && fread(text, 1, (1 << 16) - 1, file) > 0);
  CHECK(fclose(file) == 0);
  return text;
}

static void messages_are_recorded_in_traffic_files(void) {
  char server_path[] = "/tmp/mcpline-server-XXXXXX", client_path[] = "/tmp/mcpline-client-XXXXXX";
  const int files[] = {mkstemp(server_path), mkstemp(client_path)};
  CHECK(files[0] >= 0 && close(files[0]) == 0 && files[1] >= 0 && close(files[1]) == 0);
  char options[128];
  CHECK(snprintf(options, sizeof options, "{\"traffic_file\": \"%s\"}", server_path) > 0);
  mcpl_server *server =
      mcpl_server_new_with("{\"name\": \"server\", \"version\": \"1\"}", MCPL_AUTO_LENGTH, options, MCPL_AUTO_LENGTH);
  OK(mcpl_server_add_tool(server, "reply", "Replies", ANY, reply, NULL, NULL));
  mcpl_client *client = joined(server);
  CHECK(snprintf(options, sizeof options, "{\"traffic_file\": \"%s\"}", client_path) > 0);
  OK(mcpl_client_set_options(client, options, MCPL_AUTO_LENGTH));
  OK(mcpl_client_open(client));
  CALLS(client, "reply", "{\"how\": \"text\", \"token\": \"s3cret\"}", "a text");
  mcpl_client_free(client);
  mcpl_server_free(server);
  const char *paths[] = {server_path, client_path};
  const char *roles[] = {"\"role\":\"server\",\"name\":\"server\"", "\"role\":\"client\",\"name\":\"test\""};
  for (size_t at = 0; at < 2; at++) {
    char *recorded = text_of(paths[at]);
    CONTAINS(recorded, roles[at]);
    CONTAINS(recorded, "\"method\":\"tools/call\"");
    CONTAINS(recorded, "a text");
    CHECK(strstr(recorded, "s3cret") == NULL);
    free(recorded);
    CHECK(unlink(paths[at]) == 0);
  }
}

/* ---- over HTTP */

static void serves_http_in_the_background(void) {
  uint16_t port = 0;
  char url[64];
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "reply", "Replies", ANY, reply, NULL, NULL));
  OK(mcpl_server_start_http(server, "127.0.0.1", 0, NULL, &port));
  snprintf(url, sizeof url, "http://127.0.0.1:%u/mcp", (unsigned)port);
  mcpl_client *client = mcpl_client_new("test", "1");
  OK(mcpl_client_connect(client, url));
  CALLS(client, "reply", "{\"how\": \"text\"}", "a text");
  OK(mcpl_client_close(client));
  mcpl_client_free(client);
  EXPECT(MCPL_WAIT_TIMED_OUT, mcpl_server_wait(server, 0));
  OK(mcpl_server_stop(server));
  OK(mcpl_server_wait(server, -1));
  mcpl_server_free(server);
}

static void serves_a_unix_socket_in_the_background(void) {
  char folder[] = "/tmp/mcpline-unix-XXXXXX";
  char path[64];
  struct stat found;
  CHECK(mkdtemp(folder) != NULL);
  snprintf(path, sizeof path, "%s/s", folder);
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "reply", "Replies", ANY, reply, NULL, NULL));
  OK(mcpl_server_start_unix(server, path, "{\"mode\": \"0660\"}"));
  CHECK(stat(path, &found) == 0 && S_ISSOCK(found.st_mode) && (found.st_mode & 0777) == 0660);
  for (int round = 0; round < 2; round++) {
    mcpl_client *client = mcpl_client_new("test", "1");
    OK(mcpl_client_set_socket(client, path));
    OK(mcpl_client_open(client));
    CALLS(client, "reply", "{\"how\": \"text\"}", "a text");
    OK(mcpl_client_close(client));
    mcpl_client_free(client);
  }
  EXPECT(MCPL_TRANSPORT_ERROR, mcpl_server_start_unix(server, path, NULL));
  CONTAINS(mcpl_error_message(mcpl_last_error()), "is in use by another server");
  EXPECT(MCPL_WAIT_TIMED_OUT, mcpl_server_wait(server, 0));
  OK(mcpl_server_stop(server));
  OK(mcpl_server_wait(server, -1));
  CHECK(stat(path, &found) != 0);
  mcpl_server_free(server);
  CHECK(rmdir(folder) == 0);
}

static void tell_who(mcpl_call *call, const char *arguments, size_t length, void *user) {
  char *info = NULL;
  size_t info_length = 0;
  (void)arguments, (void)length, (void)user;
  OK(mcpl_call_info(call, &info, &info_length));
  OK(mcpl_call_reply_text(call, info, info_length));
  mcpl_string_free(info);
}

static void a_client_in_this_process_has_a_caller_and_headers(void) {
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "who", "Tells who calls", NULL, tell_who, NULL, NULL));
  mcpl_client *client = mcpl_client_new("test", "1");
  OK(mcpl_client_set_server_with(
      client, server,
      "{\"principal\": {\"subject\": \"alice\", \"scopes\": [\"a\"]}, \"headers\": [[\"x-tenant\", \"acme\"]]}"));
  OK(mcpl_client_open(client));
  CHECK(mcpl_client_pid(client) == 0);
  CALLS(client, "who", "{}", "alice");
  CALLS(client, "who", "{}", "acme");
  CALLS(client, "who", "{}", "memory");
  mcpl_client_free(client);
  mcpl_server_free(server);
}

static void settings_of_a_client_apply_to_any_url(void) {
  uint16_t port = 0;
  char url[64];
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "who", "Tells who calls", NULL, tell_who, NULL, NULL));
  OK(mcpl_server_start_http(server, "127.0.0.1", 0, NULL, &port));
  snprintf(url, sizeof url, "http://127.0.0.1:%u/mcp", (unsigned)port);
  mcpl_client *client = mcpl_client_new("test", "1");
  OK(mcpl_client_set_header(client, "x-tenant", "first"));
  OK(mcpl_client_set_header(client, "X-Tenant", "acme"));
  OK(mcpl_client_set_header(client, "x-none", "unwanted"));
  OK(mcpl_client_set_header(client, "x-none", NULL));
  OK(mcpl_client_set_header(client, "x-given", "replaced"));
  OK(mcpl_client_set_url(client, url, "{\"headers\": [[\"x-given\", \"unwanted\"], [\"x-kept\", \"kept\"]]}"));
  OK(mcpl_client_open(client));
  char *who = called(client, "who", "{}");
  CONTAINS(who, "acme");
  CONTAINS(who, "replaced");
  CONTAINS(who, "kept");
  CHECK(strstr(who, "first") == NULL && strstr(who, "unwanted") == NULL);
  mcpl_string_free(who);
  EXPECT(MCPL_USAGE_ERROR, mcpl_client_set_timeout_ms(client, 0, 0));
  EXPECT(MCPL_USAGE_ERROR, mcpl_client_set_header(client, "x-late", "a"));
  mcpl_client_free(client);
  mcpl_server_free(server);
}

static void a_client_has_its_own_timeout(void) {
  struct kept kept = {TALLY, TALLY, NULL};
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "keep", "Never replies", NULL, keep, &kept, NULL));
  mcpl_client *client = joined(server);
  OK(mcpl_client_set_options(client, "{\"timeout\": 600}", MCPL_AUTO_LENGTH));
  OK(mcpl_client_set_timeout_ms(client, 1, 0));
  OK(mcpl_client_open(client));
  EXPECT(MCPL_REQUEST_TIMED_OUT, mcpl_client_call_tool(client, "keep", NULL, 0, NULL, NULL, NULL));
  mcpl_client_free(client);
  mcpl_server_free(server);
}

static void tell_trace(mcpl_call *call, const char *arguments, size_t length, void *user) {
  char *trace = NULL;
  size_t trace_length = 0;
  (void)arguments, (void)length, (void)user;
  OK(mcpl_call_trace_context(call, &trace, &trace_length));
  CHECK(trace != NULL || trace_length == 0);
  OK(mcpl_call_reply_text(call, trace == NULL ? "none" : trace, MCPL_AUTO_LENGTH));
  mcpl_string_free(trace);
}

static void a_handler_knows_the_trace_of_its_client(void) {
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "trace", "Tells the trace", NULL, tell_trace, NULL, NULL));
  mcpl_client *client = mcpl_client_new("test", "1");
  OK(mcpl_client_set_server(client, server));
  OK(mcpl_client_open(client));
  CALLS(client, "trace", "{}", "none");
  const mcpl_request_options options = {
      .size = sizeof options,
      .json = "{\"meta\": {\"traceparent\": \"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\", "
              "\"baggage\": \"a=b\", \"example.com/c\": 1}}"};
  char *result = NULL;
  OK(mcpl_client_call_tool(client, "trace", NULL, 0, &options, &result, NULL));
  CONTAINS(result, "\\\"traceparent\\\":\\\"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\\\"");
  CONTAINS(result, "\\\"baggage\\\":\\\"a=b\\\"");
  CHECK(strstr(result, "example.com") == NULL);
  mcpl_string_free(result);
  mcpl_client_free(client);
  mcpl_server_free(server);
}

static void a_configuration_file_names_the_server(void) {
  char path[] = "/tmp/mcpline-config-XXXXXX";
  uint16_t port = 0;
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "reply", "Replies", ANY, reply, NULL, NULL));
  OK(mcpl_server_start_http(server, "127.0.0.1", 0, NULL, &port));
  const int file = mkstemp(path);
  CHECK(file >= 0);
  CHECK(
      dprintf(file,
              "{\"mcpServers\": {\"a\": {\"command\": \"a\"}, \"b\": {\"url\": \"${NONE:-http://127.0.0.1:%u/mcp}\"}}}",
              (unsigned)port) > 0);
  CHECK(close(file) == 0);
  mcpl_client *client = mcpl_client_new("test", "1");
  EXPECT(MCPL_USAGE_ERROR, mcpl_client_set_config(client, path, NULL));
  CONTAINS(mcpl_error_message(mcpl_last_error()), "has several servers, name one of them");
  OK(mcpl_client_set_config(client, path, "b"));
  OK(mcpl_client_open(client));
  CALLS(client, "reply", "{\"how\": \"text\"}", "a text");
  mcpl_client_free(client);
  CHECK(unlink(path) == 0);
  mcpl_server_free(server);
}

/* ---- middleware */

static void pass_on_and_wait(mcpl_call *call, const char *request, size_t length, void *user) {
  struct tally *seen = user;
  char *method = NULL;
  char *name = NULL;
  char *result = NULL;
  OK(mcpl_json_string(request, length, "/method", &method, NULL));
  CHECK(strcmp(method, "tools/call") == 0);
  OK(mcpl_json_string(request, length, "/name", &name, NULL));
  CHECK(strcmp(name, "reply") == 0);
  mcpl_string_free(method);
  mcpl_string_free(name);
  tally_add(seen);
  const mcpl_status status = mcpl_call_next_wait(call, NULL, 0, &result, NULL);
  if (status != MCPL_OK) {
    CHECK(status == MCPL_RPC_ERROR);
    OK(mcpl_call_fail_with(call, mcpl_last_error()));
    return;
  }
  OK(mcpl_call_reply_result(call, result, MCPL_AUTO_LENGTH));
  mcpl_string_free(result);
}

static void middleware_passes_requests_on(void) {
  struct tally seen = TALLY;
  struct tally released = TALLY;
  struct pending pending = PENDING;
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "reply", "Replies", ANY, reply, NULL, NULL));
  OK(mcpl_server_add_middleware(server, "{\"methods\": [\"tools/call\"]}", MCPL_AUTO_LENGTH, NULL, pass_on_and_wait,
                                &seen, NULL));
  OK(mcpl_server_add_middleware(server, "{\"names\": [\"other\"]}", MCPL_AUTO_LENGTH, NULL, pass_on_and_wait, &released,
                                finalized));
  mcpl_client *client = joined(server);
  OK(mcpl_client_open(client));
  CALLS(client, "reply", "{\"how\": \"text\"}", "a text");
  CALLS(client, "reply", "{\"how\": \"fail\"}", "no such luck");
  CHECK(tally_count(&seen) == 2);
  OK(mcpl_client_call_tool_async(client, "reply", "{\"how\": \"rpc\"}", MCPL_AUTO_LENGTH, NULL, completed, &pending,
                                 NULL));
  tally_wait(&pending.done, 1);
  CHECK(pending.status == MCPL_RPC_ERROR);
  CONTAINS(pending.text, "refused");
  mcpl_client_free(client);
  mcpl_server_free(server);
  tally_wait(&released, 1);
}

static void then_reply_changed(mcpl_call *call, const mcpl_error *error, const char *result, size_t length,
                               void *user) {
  (void)user;
  CHECK(error == NULL);
  CONTAINS(result, "structured");
  CHECK(strlen(result) == length);
  OK(mcpl_call_reply_result(call, "{\"content\": [{\"type\": \"text\", \"text\": \"changed\"}]}", MCPL_AUTO_LENGTH));
}

static void change(mcpl_call *call, const char *request, size_t length, void *user) {
  char *how = NULL;
  OK(mcpl_json_string(request, length, "/params/arguments/how", &how, NULL));
  if (strcmp(how, "refuse") == 0) {
    OK(mcpl_call_fail(call, "not today", MCPL_AUTO_LENGTH));
  } else {
    EXPECT(MCPL_USAGE_ERROR, mcpl_call_next(call, "[]", 2, NULL, NULL, NULL));
    OK(mcpl_call_next(call, "{\"name\": \"reply\", \"arguments\": {\"how\": \"structured\"}}", MCPL_AUTO_LENGTH,
                      then_reply_changed, user, finalized));
  }
  mcpl_string_free(how);
}

static void middleware_changes_and_answers_requests(void) {
  struct tally released = TALLY;
  const mcpl_handler_options at_once = {.size = sizeof at_once, .flags = MCPL_HANDLER_INLINE};
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "reply", "Replies", ANY, reply, NULL, NULL));
  OK(mcpl_server_add_middleware(server, "{\"kinds\": [\"tool\"]}", MCPL_AUTO_LENGTH, &at_once, change, &released,
                                NULL));
  mcpl_client *client = joined(server);
  OK(mcpl_client_open(client));
  CALLS(client, "reply", "{\"how\": \"text\"}", "changed");
  CALLS(client, "reply", "{\"how\": \"refuse\"}", "not today");
  tally_wait(&released, 1);
  EXPECT(MCPL_USAGE_ERROR, mcpl_server_add_middleware(server, "{\"methods\": [\"ping\"]}", MCPL_AUTO_LENGTH, NULL,
                                                      change, &released, finalized));
  CONTAINS(mcpl_error_message(mcpl_last_error()), "ping");
  tally_wait(&released, 2);
  mcpl_client_free(client);
  mcpl_server_free(server);
}

static void built_in_middleware_is_configured_by_json(void) {
  struct pending pending = PENDING;
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "reply", "Replies", ANY, reply, NULL, NULL));
  OK(mcpl_server_add_built_in_middleware(server,
                                         "{\"rate_limit\": {\"requests\": 1, \"period\": 3600, \"per\": [\"client\"],"
                                         " \"shared\": \"calls\"}}",
                                         MCPL_AUTO_LENGTH, "{\"methods\": [\"tools/call\"]}", MCPL_AUTO_LENGTH));
  mcpl_client *client = joined(server);
  OK(mcpl_client_open(client));
  CALLS(client, "reply", "{\"how\": \"text\"}", "a text");
  OK(mcpl_client_call_tool_async(client, "reply", "{\"how\": \"text\"}", MCPL_AUTO_LENGTH, NULL, completed, &pending,
                                 NULL));
  tally_wait(&pending.done, 1);
  CHECK(pending.status == MCPL_RPC_ERROR);
  CONTAINS(pending.text, "too many requests");
  mcpl_client_free(client);
  mcpl_server_free(server);
}

static void a_tool_policy_denies_tools(void) {
  struct pending pending = PENDING;
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "reply", "Replies", ANY, reply, NULL, NULL));
  OK(mcpl_server_add_tool(server, "delete_all", "Deletes", ANY, reply, NULL, NULL));
  OK(mcpl_server_add_built_in_middleware(server, "{\"tool_policy\": {\"denied\": [\"delete_*\"]}}", MCPL_AUTO_LENGTH,
                                         NULL, 0));
  mcpl_client *client = joined(server);
  OK(mcpl_client_open(client));
  CALLS(client, "reply", "{\"how\": \"text\"}", "a text");
  OK(mcpl_client_call_tool_async(client, "delete_all", "{}", MCPL_AUTO_LENGTH, NULL, completed, &pending, NULL));
  tally_wait(&pending.done, 1);
  CHECK(pending.status == MCPL_RPC_ERROR);
  CONTAINS(pending.text, "Unknown tool: delete_all");
  mcpl_client_free(client);
  mcpl_server_free(server);
}

static const struct test tests[] = {
    TEST(a_call_is_ended_in_every_way),
    TEST(resources_prompts_and_completion_are_served),
    TEST(templates_list_resources),
    TEST(resources_that_handlers_do_not_find_are_named),
    TEST(a_call_is_completed_later_from_another_thread),
    TEST(slow_listeners_to_progress_share_the_room_of_one_client),
    TEST(a_second_answer_is_refused),
    TEST(a_handler_that_returns_without_ending_its_call_fails_it),
    TEST(an_unanswered_call_ends_when_the_server_closes),
    TEST(cancellation_sets_a_flag_and_calls_a_callback),
    TEST(a_call_that_takes_too_long_is_cancelled_and_answered),
    TEST(rejects_invalid_definitions_at_registration),
    TEST(user_data_is_released_exactly_once),
    TEST(a_finalizer_may_use_the_server),
    TEST(a_finalizer_cannot_close_its_server_but_free_it),
    TEST(user_data_lasts_for_as_long_as_a_callback_runs),
    TEST(settings_are_set_until_the_server_is_used),
    TEST(settings_of_http_servers_are_set),
    TEST(closing_lets_calls_end_and_waits_for_callbacks),
    TEST(closing_within_an_own_callback_would_deadlock),
    TEST(requests_are_diagnostics_of_level_info),
    TEST(requests_of_clients_are_diagnostics_too),
    TEST(debug_mode_shows_internal_errors_and_messages),
    TEST(clients_do_not_wait_for_a_slow_log_of_messages),
    TEST(without_a_callback_for_them_messages_are_printed_to_stderr),
    TEST(a_callback_for_warnings_alone_gets_no_messages),
    TEST(messages_are_recorded_in_traffic_files),
    TEST(serves_http_in_the_background),
    TEST(serves_a_unix_socket_in_the_background),
    TEST(a_client_in_this_process_has_a_caller_and_headers),
    TEST(settings_of_a_client_apply_to_any_url),
    TEST(a_client_has_its_own_timeout),
    TEST(a_handler_knows_the_trace_of_its_client),
    TEST(a_configuration_file_names_the_server),
    TEST(middleware_passes_requests_on),
    TEST(middleware_changes_and_answers_requests),
    TEST(built_in_middleware_is_configured_by_json),
    TEST(a_tool_policy_denies_tools),
};

MAIN(tests)
