/* Every function returns a status, and never crashes, for NULL (allowed only for unwanted results), stale handles, text
 * that is not UTF-8 and invalid JSON. With `--covered` it prints the names of the
 * functions that it calls, which the runner compares with all that the library exports. */

#include "check.h"

#include <math.h>

#define BAD_TEXT "\xff\xfe"
#define BAD_JSON "{\"a\":"
#define JSON(text) (text), MCPL_AUTO_LENGTH

static const char *covered[256];
static size_t covered_count;

static void cover(const char *name) {
  for (size_t index = 0; index < covered_count; index++) {
    if (strcmp(covered[index], name) == 0) {
      return;
    }
  }
  CHECK(covered_count < sizeof covered / sizeof *covered);
  covered[covered_count++] = name;
}

/* Calls a function and expects a status of it, with a message where it has failed. */
#define SAYS(expected, function, ...)                                                                                  \
  do {                                                                                                                 \
    cover(#function);                                                                                                  \
    check_status(__FILE__, __LINE__, #function "(" #__VA_ARGS__ ")", (expected), function(__VA_ARGS__));               \
    CHECK((expected) == MCPL_OK || mcpl_error_status(mcpl_last_error()) == (expected));                                \
    CHECK((expected) == MCPL_OK || mcpl_error_message(mcpl_last_error())[0] != '\0');                                  \
  } while (0)

#define REFUSES(function, ...) SAYS(MCPL_USAGE_ERROR, function, __VA_ARGS__)

/* Expects a constructor to return NULL and set an error. */
#define GIVES_NULL(function, ...)                                                                                      \
  do {                                                                                                                 \
    cover(#function);                                                                                                  \
    CHECK(function(__VA_ARGS__) == NULL);                                                                              \
    CHECK(mcpl_error_status(mcpl_last_error()) == MCPL_USAGE_ERROR);                                                   \
  } while (0)

/* NULL and an ended handle, with the same further arguments. */
#define HANDLE(function, ended, ...)                                                                                   \
  do {                                                                                                                 \
    REFUSES(function, NULL, __VA_ARGS__);                                                                              \
    SAYS(MCPL_STALE_HANDLE, function, ended, __VA_ARGS__);                                                             \
  } while (0)

#define HANDLE_ALONE(function, ended)                                                                                  \
  do {                                                                                                                 \
    REFUSES(function, NULL);                                                                                           \
    SAYS(MCPL_STALE_HANDLE, function, ended);                                                                          \
  } while (0)

static void handler(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length, (void)user;
  (void)mcpl_call_reply_text(call, JSON("ok"));
}

/* ---- arguments: live handles, and ended ones */

struct kept {
  struct tally arrived;
  mcpl_call *call;
  mcpl_input_request *input_request;
};

static void keep_call(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length;
  OK(mcpl_call_keep(call));
  ((struct kept *)user)->call = call;
  tally_add(&((struct kept *)user)->arrived);
}

static void keep_input_request(mcpl_input_request *input_request, const char *params, size_t length, void *user) {
  (void)params, (void)length;
  ((struct kept *)user)->input_request = input_request;
  tally_add(&((struct kept *)user)->arrived);
}

static void on_call(mcpl_call *call, void *user) { (void)call, (void)user; }
static void on_input_request(mcpl_input_request *input_request, void *user) { (void)input_request, (void)user; }
static void on_end(mcpl_server *server, const mcpl_error *error, void *user) { (void)server, (void)error, (void)user; }
static void on_answer(mcpl_call *call, const mcpl_error *error, const char *result, size_t length, void *user) {
  (void)call, (void)error, (void)result, (void)length, (void)user;
}
static void on_done(mcpl_request *request, const mcpl_error *error, const char *result, size_t length, void *user) {
  (void)request, (void)error, (void)result, (void)length;
  if (user != NULL) {
    tally_add(user);
  }
}
static void on_notification(mcpl_client *client, const char *method, const char *params, size_t length, void *user) {
  (void)client, (void)method, (void)params, (void)length, (void)user;
}
static void on_log(mcpl_client *client, mcpl_log_level level, const char *logger, const char *data, size_t length,
                   void *user) {
  (void)client, (void)level, (void)logger, (void)data, (void)length, (void)user;
}
static void on_connection(mcpl_client *client, mcpl_connection_event event, const mcpl_error *error, void *user) {
  (void)client, (void)event, (void)error, (void)user;
}
static void on_line(mcpl_client *client, const char *line, size_t length, void *user) {
  (void)client, (void)line, (void)length, (void)user;
}
static mcpl_status on_send(mcpl_channel *channel, const char *message, size_t length, void *user) {
  (void)channel, (void)message, (void)length, (void)user;
  return MCPL_OK;
}

static void on_save(mcpl_call *call, const char *id, const void *session, size_t session_length, const void *replaces,
                    size_t replaces_length, int64_t lifetime_ms, void *user) {
  (void)call, (void)id, (void)session, (void)session_length, (void)replaces, (void)replaces_length;
  (void)lifetime_ms, (void)user;
}
static void on_session(mcpl_call *call, const char *id, void *user) { (void)call, (void)id, (void)user; }
static void on_append(mcpl_call *call, const char *stream, uint64_t number, const mcpl_bytes *events, size_t count,
                      void *user) {
  (void)call, (void)stream, (void)number, (void)events, (void)count, (void)user;
}
static void on_stream(mcpl_call *call, const char *stream, uint64_t number, void *user) {
  (void)call, (void)stream, (void)number, (void)user;
}
static void on_publish(mcpl_call *call, const void *message, size_t length, void *user) {
  (void)call, (void)message, (void)length, (void)user;
}
static void on_subscription(mcpl_call *call, mcpl_bus_receiver *receiver, void *user) {
  (void)call, (void)receiver, (void)user;
}
static const mcpl_sharing SHARING = {sizeof SHARING, 0,         on_save,    on_session,      on_session,     on_append,
                                     on_stream,      on_stream, on_publish, on_subscription, on_subscription};

static mcpl_server *ended_server(void) {
  mcpl_server *server = mcpl_server_new("server", "1");
  mcpl_server_free(server);
  return server;
}

static mcpl_client *ended_client(void) {
  mcpl_client *client = mcpl_client_new("client", "1");
  mcpl_client_free(client);
  return client;
}

/* ---- the library */

static void the_library_refuses(void) {
  cover("mcpl_version");
  cover("mcpl_status_name");
  cover("mcpl_last_error");
  cover("mcpl_error_status");
  cover("mcpl_error_message");
  cover("mcpl_error_rpc_code");
  cover("mcpl_error_is_retry_safe");
  cover("mcpl_error_is_outcome_unknown");
  cover("mcpl_error_operation");
  cover("mcpl_error_details");
  cover("mcpl_string_free");
  CHECK(mcpl_version()[0] >= '0' && mcpl_version()[0] <= '9');
  for (mcpl_status status = MCPL_OK; status <= MCPL_INTERNAL_ERROR; status++) {
    CHECK(strncmp(mcpl_status_name(status), "MCPL_", 5) == 0);
  }
  CHECK(mcpl_status_name(-1) != NULL && mcpl_status_name(4711) != NULL);
  CHECK(mcpl_error_message(NULL) != NULL && mcpl_error_details(NULL) != NULL);
  CHECK(mcpl_error_status(NULL) == MCPL_USAGE_ERROR || mcpl_error_status(NULL) == MCPL_OK);
  CHECK(mcpl_error_rpc_code(NULL) == 0);
  CHECK(!mcpl_error_is_retry_safe(NULL) && !mcpl_error_is_outcome_unknown(NULL));
  CHECK(strcmp(mcpl_error_operation(NULL), "") == 0);
  mcpl_string_free(NULL);
  SAYS(MCPL_OK, mcpl_set_worker_threads, 0);
  SAYS(MCPL_USAGE_ERROR, mcpl_set_worker_stack_size, 1);
  REFUSES(mcpl_set_diagnostics, (mcpl_log_level)99, NULL, NULL, NULL);
  /* Without the feature `otlp`, any options. */
  REFUSES(mcpl_export_spans, "{");
  REFUSES(mcpl_export_spans, "{\"endpoint\": \"localhost:4318\"}");
  REFUSES(mcpl_export_spans, "{\"endpiont\": \"http://localhost:4318\"}");
  cover("mcpl_stop_exporting_spans");
  CHECK(mcpl_stop_exporting_spans() == MCPL_OK);
}

/* ---- JSON */

static void json_refuses(void) {
  const char *value = NULL;
  char *text = NULL;
  size_t length = 0;
  int64_t integer = 0;
  double number = 0;
  bool truth = false;
  mcpl_json_kind kind = MCPL_JSON_NULL;
  REFUSES(mcpl_json_find, NULL, 0, "", &value, &length);
  REFUSES(mcpl_json_find, JSON("{}"), NULL, &value, &length);
  REFUSES(mcpl_json_find, JSON(BAD_JSON), "/a", &value, &length);
  REFUSES(mcpl_json_find, JSON("\"" BAD_TEXT "\""), "", &value, &length);
  REFUSES(mcpl_json_find, JSON("{}"), "no slash", &value, &length);
  CHECK(value == NULL && length == 0);
  SAYS(MCPL_NOT_FOUND, mcpl_json_find, JSON("{\"a\": [1]}"), "/a/1", &value, &length);
  REFUSES(mcpl_json_kind_of, NULL, 0, &kind);
  REFUSES(mcpl_json_kind_of, JSON(BAD_JSON), &kind);
  SAYS(MCPL_OK, mcpl_json_kind_of, JSON("{}"), NULL);
  REFUSES(mcpl_json_int64, JSON("{\"a\": \"1\"}"), "/a", &integer);
  REFUSES(mcpl_json_int64, JSON("1.5"), "", &integer);
  REFUSES(mcpl_json_int64, JSON("9223372036854775808"), "", &integer);
  SAYS(MCPL_OK, mcpl_json_int64, JSON("1"), "", NULL);
  SAYS(MCPL_NOT_FOUND, mcpl_json_int64, JSON("{}"), "/a", &integer);
  REFUSES(mcpl_json_double, JSON("true"), "", &number);
  REFUSES(mcpl_json_double, NULL, 0, "", &number);
  REFUSES(mcpl_json_bool, JSON("1"), "", &truth);
  SAYS(MCPL_OK, mcpl_json_bool, JSON("true"), "", NULL);
  REFUSES(mcpl_json_string, JSON("1"), "", &text, &length);
  SAYS(MCPL_OK, mcpl_json_string, JSON("\"a\""), "", NULL, &length);
  REFUSES(mcpl_json_string, NULL, 0, "", &text, &length);
  CHECK(text == NULL && length == 0);
  REFUSES(mcpl_json_count, JSON("1"), "", &length);
  SAYS(MCPL_OK, mcpl_json_count, JSON("[]"), "", NULL);
  REFUSES(mcpl_json_item, JSON("1"), 0, &text, &value, &length);
  REFUSES(mcpl_json_item, NULL, 0, 0, &text, &value, &length);
  SAYS(MCPL_NOT_FOUND, mcpl_json_item, JSON("[1]"), 1, &text, &value, &length);
}

static void the_writer_refuses(void) {
  const char *text = NULL;
  size_t length = 0;
  mcpl_json *json = mcpl_json_new();
  cover("mcpl_json_new");
  cover("mcpl_json_begin_object");
  cover("mcpl_json_end_object");
  cover("mcpl_json_begin_array");
  cover("mcpl_json_end_array");
  cover("mcpl_json_name");
  cover("mcpl_json_put_string");
  cover("mcpl_json_put_int64");
  cover("mcpl_json_put_double");
  cover("mcpl_json_put_bool");
  cover("mcpl_json_put_null");
  cover("mcpl_json_put_json");
  cover("mcpl_json_put_base64");
  cover("mcpl_json_clear");
  cover("mcpl_json_free");
  mcpl_json_begin_object(NULL);
  mcpl_json_end_object(NULL);
  mcpl_json_begin_array(NULL);
  mcpl_json_end_array(NULL);
  mcpl_json_name(NULL, "a");
  mcpl_json_put_string(NULL, "a", 1);
  mcpl_json_put_int64(NULL, 1);
  mcpl_json_put_double(NULL, 1);
  mcpl_json_put_bool(NULL, true);
  mcpl_json_put_null(NULL);
  mcpl_json_put_json(NULL, JSON("1"));
  mcpl_json_put_base64(NULL, "a", 1);
  mcpl_json_clear(NULL);
  mcpl_json_free(NULL);
  REFUSES(mcpl_json_text, NULL, &text, &length);
  REFUSES(mcpl_json_text, json, &text, &length);
  mcpl_json_begin_object(json);
  REFUSES(mcpl_json_text, json, &text, &length);
  mcpl_json_clear(json);
  mcpl_json_end_array(json);
  REFUSES(mcpl_json_text, json, &text, &length);
  mcpl_json_clear(json);
  mcpl_json_put_string(json, JSON(BAD_TEXT));
  mcpl_json_put_null(json);
  REFUSES(mcpl_json_text, json, &text, &length);
  mcpl_json_clear(json);
  mcpl_json_put_string(json, NULL, 3);
  REFUSES(mcpl_json_text, json, &text, &length);
  mcpl_json_clear(json);
  mcpl_json_put_double(json, INFINITY);
  REFUSES(mcpl_json_text, json, &text, &length);
  mcpl_json_clear(json);
  mcpl_json_put_json(json, JSON(BAD_JSON));
  REFUSES(mcpl_json_text, json, &text, &length);
  mcpl_json_clear(json);
  mcpl_json_put_base64(json, NULL, 3);
  REFUSES(mcpl_json_text, json, &text, &length);
  mcpl_json_clear(json);
  mcpl_json_begin_object(json);
  mcpl_json_name(json, NULL);
  REFUSES(mcpl_json_text, json, &text, &length);
  mcpl_json_clear(json);
  mcpl_json_begin_object(json);
  mcpl_json_put_null(json);
  REFUSES(mcpl_json_text, json, &text, &length);
  CHECK(text == NULL && length == 0);
  mcpl_json_clear(json);
  mcpl_json_put_null(json);
  SAYS(MCPL_OK, mcpl_json_text, json, &text, &length);
  SAYS(MCPL_OK, mcpl_json_text, json, NULL, &length);
  mcpl_json_free(json);
}

/* ---- loops */

static void loops_refuse(void) {
  uint32_t count = 0;
  mcpl_loop *loop = mcpl_loop_new();
  cover("mcpl_loop_new");
  cover("mcpl_loop_fd");
  cover("mcpl_loop_free");
  CHECK(mcpl_loop_fd(NULL) == -1);
  mcpl_loop_free(NULL);
  mcpl_loop_free(loop);
  mcpl_loop_free(loop);
  CHECK(mcpl_loop_fd(loop) == -1);
  HANDLE(mcpl_loop_dispatch, loop, 0, &count);
  HANDLE(mcpl_loop_wait, loop, 0);
  mcpl_server *server = mcpl_server_new("server", "1");
  mcpl_client *client = mcpl_client_new("client", "1");
  REFUSES(mcpl_server_use_loop, server, NULL);
  SAYS(MCPL_STALE_HANDLE, mcpl_server_use_loop, server, loop);
  REFUSES(mcpl_client_use_loop, client, NULL);
  SAYS(MCPL_STALE_HANDLE, mcpl_client_use_loop, client, loop);
  mcpl_client_free(client);
  mcpl_server_free(server);
}

/* ---- servers */

static void servers_refuse_handles(void) {
  char *text = NULL;
  size_t length = 0;
  const char *candidates[] = {"a"};
  uint16_t port = 0;
  mcpl_server *ended = ended_server();
  mcpl_loop *loop = mcpl_loop_new();
  const mcpl_channel_functions functions = {.size = sizeof functions, .send = on_send};
  HANDLE(mcpl_server_use_loop, ended, loop);
  HANDLE(mcpl_server_on_verify, ended, keep_input_request, NULL, NULL);
  HANDLE(mcpl_server_add_tool, ended, "a", "b", NULL, handler, NULL, NULL);
  HANDLE(mcpl_server_add_tool_with, ended, JSON("{\"name\": \"a\", \"inputSchema\": {\"type\": \"object\"}}"), NULL,
         handler, NULL, NULL);
  HANDLE(mcpl_server_add_resource, ended, "a://b", "b", NULL, handler, NULL, NULL);
  HANDLE(mcpl_server_add_resource_with, ended, JSON("{\"name\": \"a\", \"uri\": \"a://b\"}"), NULL, handler, NULL,
         NULL);
  HANDLE(mcpl_server_add_resource_template, ended, "a://{b}", "b", NULL, handler, NULL, NULL);
  HANDLE(mcpl_server_add_resource_template_with, ended, JSON("{\"name\": \"a\", \"uriTemplate\": \"a://{b}\"}"), NULL,
         handler, NULL, NULL);
  HANDLE(mcpl_server_set_resource_template_list, ended, "a://{b}", handler, NULL, NULL);
  HANDLE(mcpl_server_add_prompt, ended, "a", "b", NULL, handler, NULL, NULL);
  HANDLE(mcpl_server_add_prompt_with, ended, JSON("{\"name\": \"a\"}"), NULL, handler, NULL, NULL);
  HANDLE(mcpl_server_add_candidates, ended, "a", "b", candidates, 1);
  HANDLE(mcpl_server_add_completion, ended, "a", "b", handler, NULL, NULL);
  HANDLE(mcpl_server_set_completion, ended, handler, NULL, NULL);
  HANDLE(mcpl_server_on_initialized, ended, handler, NULL, NULL);
  HANDLE(mcpl_server_on_roots_changed, ended, handler, NULL, NULL);
  HANDLE(mcpl_server_on_request, ended, "acme/a", NULL, NULL, handler, NULL, NULL);
  HANDLE(mcpl_server_on_notification, ended, "acme/a", NULL, NULL, handler, NULL, NULL);
  HANDLE(mcpl_server_add_built_in_middleware, ended, JSON("{\"response_size_limit\": {\"max_bytes\": 1000}}"), NULL, 0);
  HANDLE(mcpl_server_add_middleware, ended, NULL, 0, NULL, handler, NULL, NULL);
  HANDLE(mcpl_server_remove_tool, ended, "a");
  HANDLE(mcpl_server_remove_resource, ended, "a");
  HANDLE(mcpl_server_remove_prompt, ended, "a");
  HANDLE(mcpl_server_remove_request_handler, ended, "acme/a");
  HANDLE(mcpl_server_remove_notification_handler, ended, "acme/a");
  HANDLE(mcpl_server_notify_resource_updated, ended, "a://b");
  HANDLE_ALONE(mcpl_server_notify_resource_list_changed, ended);
  HANDLE(mcpl_server_notify_elicitation_complete, ended, "a");
  HANDLE_ALONE(mcpl_server_run_stdio, ended);
  HANDLE(mcpl_server_run_http, ended, "127.0.0.1", 0, NULL);
  HANDLE_ALONE(mcpl_server_start_stdio, ended);
  HANDLE(mcpl_server_start_http, ended, "127.0.0.1", 0, NULL, &port);
  HANDLE(mcpl_server_run_unix, ended, "/nowhere", NULL);
  HANDLE(mcpl_server_start_unix, ended, "/nowhere", NULL);
  HANDLE_ALONE(mcpl_server_stop_on_signals, ended);
  HANDLE_ALONE(mcpl_server_stop, ended);
  HANDLE(mcpl_server_wait, ended, 0);
  HANDLE(mcpl_server_on_end, ended, on_end, NULL, NULL);
  HANDLE(mcpl_server_stats, ended, &text, &length);
  HANDLE(mcpl_server_set_title, ended, "title");
  HANDLE(mcpl_server_set_instructions, ended, "text");
  HANDLE(mcpl_server_set_shutdown_timeout_ms, ended, 1);
  HANDLE(mcpl_server_set_max_calls, ended, 1);
  HANDLE(mcpl_server_set_tool_rate, ended, 1, 1);
  HANDLE(mcpl_server_set_http_path, ended, "/mcp");
  HANDLE(mcpl_server_add_allowed_host, ended, "example.com");
  HANDLE(mcpl_server_add_allowed_origin, ended, "https://example.com");
  HANDLE(mcpl_server_set_sharing, ended, &SHARING, NULL, NULL);
  HANDLE(mcpl_server_check_sharing, ended, NULL, NULL, NULL);
  HANDLE(mcpl_server_metrics, ended, &text, &length);
  HANDLE_ALONE(mcpl_server_close, ended);
  cover("mcpl_server_free");
  mcpl_server_free(NULL);
  mcpl_server_free(ended);
  GIVES_NULL(mcpl_server_serve_channel, NULL, &functions, NULL, 0, NULL, NULL);
  CHECK(mcpl_server_serve_channel(ended, &functions, NULL, 0, NULL, NULL) == NULL);
  CHECK(mcpl_error_status(mcpl_last_error()) == MCPL_STALE_HANDLE);
  mcpl_loop_free(loop);
}

static void servers_refuse_arguments(void) {
  const char *candidates[] = {"a", NULL};
  const char *bad_candidates[] = {BAD_TEXT};
  const mcpl_handler_options no_size = {.size = 0};
  const mcpl_handler_options unknown = {.size = sizeof unknown, .flags = 0x80000000U};
  const mcpl_channel_functions no_send = {.size = sizeof no_send};
  const char *tool = "{\"name\": \"a\", \"inputSchema\": {\"type\": \"object\"}}";
  GIVES_NULL(mcpl_server_new, NULL, "1");
  GIVES_NULL(mcpl_server_new, "a", NULL);
  GIVES_NULL(mcpl_server_new, BAD_TEXT, "1");
  GIVES_NULL(mcpl_server_new_with, NULL, 0, NULL, 0);
  GIVES_NULL(mcpl_server_new_with, JSON("{\"name\": \"a\", \"version\": \"1\"}"), JSON("{\"instructions\": 1}"));
  mcpl_server *unused = mcpl_server_new("unused", "1");
  REFUSES(mcpl_server_set_title, unused, BAD_TEXT);
  REFUSES(mcpl_server_set_instructions, unused, BAD_TEXT);
  const mcpl_sharing small = {.size = sizeof small - 1};
  mcpl_sharing no_subscription = SHARING;
  no_subscription.unsubscribe = NULL;
  REFUSES(mcpl_server_set_sharing, unused, NULL, NULL, NULL);
  REFUSES(mcpl_server_set_sharing, unused, &small, NULL, NULL);
  REFUSES(mcpl_server_set_sharing, unused, &no_subscription, NULL, NULL);
  REFUSES(mcpl_server_check_sharing, unused, NULL, NULL, NULL);
  OK(mcpl_server_set_sharing(unused, &SHARING, NULL, NULL));
  REFUSES(mcpl_server_check_sharing, unused, &small, NULL, NULL);
  REFUSES(mcpl_server_check_sharing, unused, &no_subscription, NULL, NULL);
  mcpl_server_free(unused);
  GIVES_NULL(mcpl_server_new_with, JSON(BAD_JSON), NULL, 0);
  GIVES_NULL(mcpl_server_new_with, JSON("{}"), NULL, 0);
  GIVES_NULL(mcpl_server_new_with, JSON("{\"name\": \"a\", \"version\": \"1\"}"), JSON("[]"));
  GIVES_NULL(mcpl_server_new_with, JSON("{\"name\": \"a\", \"version\": \"1\"}"), JSON("{\"nonsense\": 1}"));
  mcpl_server *server = mcpl_server_new("server", "1");
  REFUSES(mcpl_server_on_verify, server, NULL, NULL, NULL);
  REFUSES(mcpl_server_add_tool, server, BAD_TEXT, "b", NULL, handler, NULL, NULL);
  REFUSES(mcpl_server_add_tool, server, "a", BAD_TEXT, NULL, handler, NULL, NULL);
  REFUSES(mcpl_server_add_tool, server, "a", "b", BAD_JSON, handler, NULL, NULL);
  REFUSES(mcpl_server_add_tool, server, "a", "b", "[]", handler, NULL, NULL);
  REFUSES(mcpl_server_add_tool, server, "a", "b", NULL, NULL, NULL, NULL);
  REFUSES(mcpl_server_add_tool_with, server, NULL, 0, NULL, handler, NULL, NULL);
  REFUSES(mcpl_server_add_tool_with, server, JSON("{}"), NULL, handler, NULL, NULL);
  REFUSES(mcpl_server_add_tool_with, server, JSON(tool), &no_size, handler, NULL, NULL);
  REFUSES(mcpl_server_add_tool_with, server, JSON(tool), &unknown, handler, NULL, NULL);
  REFUSES(mcpl_server_add_tool_with, server, JSON(tool), NULL, NULL, NULL, NULL);
  REFUSES(mcpl_server_add_resource, server, NULL, "b", NULL, handler, NULL, NULL);
  REFUSES(mcpl_server_add_resource, server, "a://b", NULL, NULL, handler, NULL, NULL);
  REFUSES(mcpl_server_add_resource, server, "a://b", "b", BAD_TEXT, handler, NULL, NULL);
  REFUSES(mcpl_server_add_resource_with, server, JSON("{\"name\": 1}"), NULL, handler, NULL, NULL);
  REFUSES(mcpl_server_add_resource_template, server, "a://{", "b", NULL, handler, NULL, NULL);
  REFUSES(mcpl_server_add_resource_template, server, NULL, "b", NULL, handler, NULL, NULL);
  REFUSES(mcpl_server_add_resource_template_with, server, JSON("[]"), NULL, handler, NULL, NULL);
  REFUSES(mcpl_server_set_resource_template_list, server, NULL, handler, NULL, NULL);
  REFUSES(mcpl_server_set_resource_template_list, server, "a://{b}", NULL, NULL, NULL);
  REFUSES(mcpl_server_add_prompt, server, NULL, "b", NULL, handler, NULL, NULL);
  REFUSES(mcpl_server_add_prompt, server, "a", "b", "{}", handler, NULL, NULL);
  REFUSES(mcpl_server_add_prompt_with, server, JSON(BAD_JSON), NULL, handler, NULL, NULL);
  REFUSES(mcpl_server_add_candidates, server, NULL, "b", candidates, 1);
  REFUSES(mcpl_server_add_candidates, server, "a", "b", NULL, 1);
  REFUSES(mcpl_server_add_candidates, server, "a", "b", candidates, 2);
  REFUSES(mcpl_server_add_candidates, server, "a", "b", bad_candidates, 1);
  REFUSES(mcpl_server_add_completion, server, "a", NULL, handler, NULL, NULL);
  REFUSES(mcpl_server_add_completion, server, "a", "b", NULL, NULL, NULL);
  REFUSES(mcpl_server_set_completion, server, NULL, NULL, NULL);
  REFUSES(mcpl_server_on_initialized, server, NULL, NULL, NULL);
  REFUSES(mcpl_server_on_roots_changed, server, NULL, NULL, NULL);
  REFUSES(mcpl_server_add_built_in_middleware, server, NULL, 0, NULL, 0);
  REFUSES(mcpl_server_add_built_in_middleware, server, JSON("{}"), NULL, 0);
  REFUSES(mcpl_server_add_built_in_middleware, server, JSON("{\"rate_limit\": {\"requests\": 1}}"), JSON(BAD_JSON));
  REFUSES(mcpl_server_add_middleware, server, JSON(BAD_JSON), NULL, handler, NULL, NULL);
  REFUSES(mcpl_server_add_middleware, server, JSON("[]"), NULL, handler, NULL, NULL);
  REFUSES(mcpl_server_add_middleware, server, JSON("{\"method\": []}"), NULL, handler, NULL, NULL);
  REFUSES(mcpl_server_add_middleware, server, NULL, 0, &no_size, handler, NULL, NULL);
  REFUSES(mcpl_server_add_middleware, server, NULL, 0, NULL, NULL, NULL, NULL);
  REFUSES(mcpl_server_on_request, server, NULL, NULL, NULL, handler, NULL, NULL);
  REFUSES(mcpl_server_on_request, server, BAD_TEXT, NULL, NULL, handler, NULL, NULL);
  REFUSES(mcpl_server_on_request, server, "tools/call", NULL, NULL, handler, NULL, NULL);
  REFUSES(mcpl_server_on_request, server, "acme/a", BAD_JSON, NULL, handler, NULL, NULL);
  REFUSES(mcpl_server_on_request, server, "acme/a", "[]", NULL, handler, NULL, NULL);
  REFUSES(mcpl_server_on_request, server, "acme/a", NULL, &no_size, handler, NULL, NULL);
  REFUSES(mcpl_server_on_request, server, "acme/a", NULL, &unknown, handler, NULL, NULL);
  REFUSES(mcpl_server_on_request, server, "acme/a", NULL, NULL, NULL, NULL, NULL);
  REFUSES(mcpl_server_on_notification, server, NULL, NULL, NULL, handler, NULL, NULL);
  REFUSES(mcpl_server_on_notification, server, "notifications/message", NULL, NULL, handler, NULL, NULL);
  REFUSES(mcpl_server_on_notification, server, "acme/a", BAD_JSON, NULL, handler, NULL, NULL);
  REFUSES(mcpl_server_on_notification, server, "acme/a", NULL, NULL, NULL, NULL, NULL);
  REFUSES(mcpl_server_remove_tool, server, NULL);
  REFUSES(mcpl_server_remove_resource, server, BAD_TEXT);
  REFUSES(mcpl_server_remove_prompt, server, NULL);
  REFUSES(mcpl_server_remove_request_handler, server, NULL);
  REFUSES(mcpl_server_remove_notification_handler, server, NULL);
  REFUSES(mcpl_server_notify_resource_updated, server, NULL);
  REFUSES(mcpl_server_notify_elicitation_complete, server, BAD_TEXT);
  REFUSES(mcpl_server_set_http_path, server, NULL);
  REFUSES(mcpl_server_add_allowed_host, server, NULL);
  REFUSES(mcpl_server_add_allowed_origin, server, BAD_TEXT);
  REFUSES(mcpl_server_run_http, server, NULL, 0, NULL);
  REFUSES(mcpl_server_run_http, server, "127.0.0.1", 0, BAD_JSON);
  REFUSES(mcpl_server_start_http, server, BAD_TEXT, 0, NULL, NULL);
  REFUSES(mcpl_server_start_http, server, "127.0.0.1", 0, "{\"nonsense\": 1}", NULL);
  REFUSES(mcpl_server_run_unix, server, NULL, NULL);
  REFUSES(mcpl_server_run_unix, server, "/nowhere/server.sock", BAD_JSON);
  REFUSES(mcpl_server_start_unix, server, BAD_TEXT, NULL);
  REFUSES(mcpl_server_start_unix, server, "/nowhere/server.sock", "{\"nonsense\": 1}");
  REFUSES(mcpl_server_start_unix, server, "/nowhere/server.sock", "{\"mode\": \"rw\"}");
  SAYS(MCPL_TRANSPORT_ERROR, mcpl_server_start_unix, server, "/nowhere/server.sock", NULL);
  GIVES_NULL(mcpl_server_serve_channel, server, NULL, NULL, 0, NULL, NULL);
  GIVES_NULL(mcpl_server_serve_channel, server, &no_send, NULL, 0, NULL, NULL);
  const mcpl_channel_functions functions = {.size = sizeof functions, .send = on_send};
  GIVES_NULL(mcpl_server_serve_channel, server, &functions, "{", 1, NULL, NULL);
  GIVES_NULL(mcpl_server_serve_channel, server, &functions, "{\"user\": 1}", MCPL_AUTO_LENGTH, NULL, NULL);
  mcpl_server_free(server);
}

/* ---- calls */

static void calls_refuse(mcpl_call *live, mcpl_call *ended) {
  const char *values[] = {"a", NULL};
  const char *arguments = NULL;
  char *text = NULL;
  size_t length = 0;
  HANDLE(mcpl_call_arguments, ended, &arguments, &length);
  HANDLE(mcpl_call_name, ended, &text);
  HANDLE(mcpl_call_info, ended, &text, &length);
  HANDLE(mcpl_call_trace_context, ended, &text, &length);
  HANDLE(mcpl_call_require_scopes, ended, "read");
  HANDLE(mcpl_call_on_cancel, ended, on_call, NULL, NULL);
  HANDLE(mcpl_call_progress, ended, 1, 2, NULL);
  HANDLE(mcpl_call_log, ended, MCPL_LOG_INFO, NULL, JSON("1"));
  HANDLE(mcpl_call_log_text, ended, MCPL_LOG_INFO, NULL, JSON("a"));
  HANDLE(mcpl_call_notify, ended, "acme/a", NULL, 0);
  HANDLE_ALONE(mcpl_call_close_stream, ended);
  HANDLE_ALONE(mcpl_call_keep, ended);
  HANDLE(mcpl_call_request_input, ended, NULL, MCPL_INPUT_REQUEST_METHOD_LIST_ROOTS, NULL, 0, on_answer, NULL, NULL);
  HANDLE(mcpl_call_request_input_wait, ended, NULL, MCPL_INPUT_REQUEST_METHOD_LIST_ROOTS, NULL, 0, &text, &length);
  HANDLE(mcpl_call_next, ended, NULL, 0, on_answer, NULL, NULL);
  HANDLE(mcpl_call_next_wait, ended, NULL, 0, &text, &length);
  HANDLE(mcpl_call_send_request, ended, NULL, "acme/a", NULL, 0, on_answer, NULL, NULL);
  HANDLE(mcpl_call_send_request_wait, ended, NULL, "acme/a", NULL, 0, &text, &length);
  HANDLE(mcpl_call_reply_text, ended, JSON("a"));
  HANDLE(mcpl_call_reply_bytes, ended, "a", 1, "image/png");
  HANDLE(mcpl_call_reply_content, ended, JSON("[]"));
  HANDLE(mcpl_call_reply_structured, ended, JSON("{}"));
  HANDLE(mcpl_call_reply_result, ended, JSON("{\"content\": []}"));
  HANDLE_ALONE(mcpl_call_reply_done, ended);
  HANDLE(mcpl_call_reply_session, ended, "a", 1);
  HANDLE(mcpl_call_reply_events, ended, NULL, 0, false, false);
  REFUSES(mcpl_call_reply_done, live);
  REFUSES(mcpl_call_reply_session, live, "a", 1);
  REFUSES(mcpl_call_reply_events, live, NULL, 0, false, false);
  HANDLE(mcpl_call_reply_values, ended, values, 1);
  HANDLE(mcpl_call_reply_input_required, ended, JSON("{\"requests\": []}"));
  HANDLE(mcpl_call_fail, ended, JSON("a"));
  HANDLE(mcpl_call_fail_rpc, ended, 1, "a", NULL, 0);
  HANDLE(mcpl_call_fail_resource_not_found, ended, NULL);
  HANDLE(mcpl_call_fail_internal, ended, "a");
  HANDLE(mcpl_call_fail_with, ended, mcpl_last_error());
  HANDLE(mcpl_call_fail_url_elicitation_required, ended, JSON("[]"));
  cover("mcpl_call_is_cancelled");
  CHECK(mcpl_call_is_cancelled(NULL) && mcpl_call_is_cancelled(ended) && !mcpl_call_is_cancelled(live));
  SAYS(MCPL_OK, mcpl_call_arguments, live, NULL, &length);
  SAYS(MCPL_OK, mcpl_call_name, live, NULL);
  SAYS(MCPL_OK, mcpl_call_info, live, NULL, &length);
  SAYS(MCPL_OK, mcpl_call_trace_context, live, NULL, &length);
  REFUSES(mcpl_call_require_scopes, live, NULL);
  REFUSES(mcpl_call_require_scopes, live, BAD_TEXT);
  REFUSES(mcpl_call_require_scopes, live, "two  spaces");
  REFUSES(mcpl_call_require_scopes, live, "");
  SAYS(MCPL_OK, mcpl_call_require_scopes, live, "read write");
  REFUSES(mcpl_call_on_cancel, live, NULL, NULL, NULL);
  REFUSES(mcpl_call_progress, live, NAN, 1, NULL);
  REFUSES(mcpl_call_progress, live, 1, 2, BAD_TEXT);
  REFUSES(mcpl_call_log, live, (mcpl_log_level)99, NULL, JSON("1"));
  REFUSES(mcpl_call_log, live, MCPL_LOG_INFO, NULL, JSON(BAD_JSON));
  REFUSES(mcpl_call_log, live, MCPL_LOG_INFO, BAD_TEXT, JSON("1"));
  REFUSES(mcpl_call_log_text, live, MCPL_LOG_INFO, NULL, JSON(BAD_TEXT));
  REFUSES(mcpl_call_log_text, live, MCPL_LOG_INFO, NULL, NULL, 1);
  REFUSES(mcpl_call_notify, live, NULL, NULL, 0);
  REFUSES(mcpl_call_notify, live, BAD_TEXT, NULL, 0);
  REFUSES(mcpl_call_notify, live, "acme/a", JSON(BAD_JSON));
  REFUSES(mcpl_call_notify, live, "acme/a", JSON("[]"));
  REFUSES(mcpl_call_request_input, live, NULL, (mcpl_input_request_method)99, NULL, 0, on_answer, NULL, NULL);
  REFUSES(mcpl_call_request_input, live, NULL, MCPL_INPUT_REQUEST_METHOD_ELICIT, JSON(BAD_JSON), on_answer, NULL, NULL);
  REFUSES(mcpl_call_request_input, live, NULL, MCPL_INPUT_REQUEST_METHOD_LIST_ROOTS, NULL, 0, NULL, NULL, NULL);
  REFUSES(mcpl_call_request_input_wait, live, BAD_TEXT, MCPL_INPUT_REQUEST_METHOD_LIST_ROOTS, NULL, 0, &text, &length);
  REFUSES(mcpl_call_next, live, NULL, 0, on_answer, NULL, NULL);
  REFUSES(mcpl_call_next_wait, live, NULL, 0, &text, &length);
  REFUSES(mcpl_call_send_request, live, NULL, NULL, NULL, 0, on_answer, NULL, NULL);
  REFUSES(mcpl_call_send_request, live, NULL, "tools/call", NULL, 0, on_answer, NULL, NULL);
  REFUSES(mcpl_call_send_request, live, NULL, "acme/a", JSON(BAD_JSON), on_answer, NULL, NULL);
  REFUSES(mcpl_call_send_request, live, NULL, "acme/a", NULL, 0, NULL, NULL, NULL);
  REFUSES(mcpl_call_send_request_wait, live, BAD_TEXT, "acme/a", NULL, 0, &text, &length);
  REFUSES(mcpl_call_send_request_wait, live, NULL, "notifications/a", NULL, 0, &text, &length);
  REFUSES(mcpl_call_reply_text, live, NULL, 1);
  REFUSES(mcpl_call_reply_text, live, JSON(BAD_TEXT));
  REFUSES(mcpl_call_reply_bytes, live, NULL, 1, NULL);
  REFUSES(mcpl_call_reply_bytes, live, "a", 1, BAD_TEXT);
  REFUSES(mcpl_call_reply_content, live, JSON("{}"));
  REFUSES(mcpl_call_reply_content, live, JSON(BAD_JSON));
  REFUSES(mcpl_call_reply_structured, live, JSON(BAD_JSON));
  REFUSES(mcpl_call_reply_result, live, JSON("[]"));
  REFUSES(mcpl_call_reply_values, live, NULL, 1);
  REFUSES(mcpl_call_reply_values, live, values, 2);
  REFUSES(mcpl_call_reply_input_required, live, JSON("{\"requests\": 1}"));
  REFUSES(mcpl_call_fail, live, JSON(BAD_TEXT));
  REFUSES(mcpl_call_fail_rpc, live, 1, NULL, NULL, 0);
  REFUSES(mcpl_call_fail_rpc, live, 1, "a", JSON(BAD_JSON));
  REFUSES(mcpl_call_fail_resource_not_found, live, BAD_TEXT);
  REFUSES(mcpl_call_fail_internal, live, NULL);
  REFUSES(mcpl_call_fail_with, live, NULL);
  REFUSES(mcpl_call_fail_url_elicitation_required, live, JSON("{}"));
  CHECK(text == NULL && arguments == NULL && length == 0);
  /* None of these calls has ended it. */
  SAYS(MCPL_OK, mcpl_call_reply_text, live, JSON("ok"));
}

static void live_and_ended_calls_refuse(void) {
  struct kept kept = {TALLY, NULL, NULL};
  struct pending pending = PENDING;
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "keep", "Waits", NULL, keep_call, &kept, NULL));
  mcpl_client *client = joined(server);
  OK(mcpl_client_open(client));
  OK(mcpl_client_call_tool_async(client, "keep", NULL, 0, NULL, completed, &pending, NULL));
  tally_wait(&kept.arrived, 1);
  mcpl_call *ended = kept.call;
  OK(mcpl_call_reply_text(ended, JSON("ok")));
  tally_wait(&pending.done, 1);
  OK(mcpl_client_call_tool_async(client, "keep", NULL, 0, NULL, completed, &pending, NULL));
  tally_wait(&kept.arrived, 2);
  calls_refuse(kept.call, ended);
  tally_wait(&pending.done, 2);
  CHECK(pending.status == MCPL_OK);
  mcpl_client_free(client);
  mcpl_server_free(server);
}

/* ---- input requests and requests */

static void request_roots(mcpl_call *call, const char *arguments, size_t length, void *user) {
  char *result = NULL;
  (void)arguments, (void)length, (void)user;
  OK(mcpl_call_request_input_wait(call, NULL, MCPL_INPUT_REQUEST_METHOD_LIST_ROOTS, NULL, 0, &result, NULL));
  OK(mcpl_call_reply_text(call, JSON(result)));
  mcpl_string_free(result);
}

static void input_requests_and_requests_refuse(void) {
  struct kept kept = {TALLY, NULL, NULL};
  struct pending pending = PENDING;
  mcpl_request *request = NULL;
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "ask", "Asks", NULL, request_roots, NULL, NULL));
  mcpl_client *client = joined(server);
  OK(mcpl_client_on_list_roots(client, keep_input_request, &kept, NULL));
  OK(mcpl_client_open(client));
  OK(mcpl_client_call_tool_async(client, "ask", NULL, 0, NULL, completed, &pending, &request));
  tally_wait(&kept.arrived, 1);
  REFUSES(mcpl_input_request_answer, kept.input_request, JSON(BAD_JSON));
  REFUSES(mcpl_input_request_answer, kept.input_request, NULL, 0);
  REFUSES(mcpl_input_request_refuse, kept.input_request, 1, BAD_TEXT, NULL, 0);
  REFUSES(mcpl_input_request_refuse, kept.input_request, 1, "a", JSON(BAD_JSON));
  REFUSES(mcpl_input_request_fail, kept.input_request, MCPL_CLOSED, NULL, NULL);
  REFUSES(mcpl_input_request_fail, kept.input_request, MCPL_CLOSED, BAD_TEXT, NULL);
  REFUSES(mcpl_input_request_fail, kept.input_request, MCPL_CLOSED, "a", BAD_JSON);
  REFUSES(mcpl_input_request_on_cancel, kept.input_request, NULL, NULL, NULL);
  OK(mcpl_input_request_answer(kept.input_request, JSON("{\"roots\": []}")));
  tally_wait(&pending.done, 1);
  CHECK(pending.status == MCPL_OK);
  HANDLE(mcpl_input_request_answer, kept.input_request, JSON("{}"));
  HANDLE(mcpl_input_request_refuse, kept.input_request, 1, "a", NULL, 0);
  HANDLE(mcpl_input_request_fail, kept.input_request, MCPL_CLOSED, "a", NULL);
  HANDLE(mcpl_input_request_on_cancel, kept.input_request, on_input_request, NULL, NULL);
  cover("mcpl_input_request_is_cancelled");
  CHECK(mcpl_input_request_is_cancelled(NULL));
  (void)mcpl_input_request_is_cancelled(kept.input_request);
  HANDLE_ALONE(mcpl_request_cancel, request);
  mcpl_client_free(client);
  mcpl_server_free(server);
}

/* ---- channels */

static void channels_refuse(void) {
  const mcpl_channel_functions functions = {.size = sizeof functions, .send = on_send};
  mcpl_server *server = mcpl_server_new("server", "1");
  mcpl_channel *channel = mcpl_server_serve_channel(server, &functions, NULL, 0, NULL, NULL);
  CHECK(channel != NULL);
  REFUSES(mcpl_channel_receive, channel, NULL, 1);
  REFUSES(mcpl_channel_hang_up, channel, BAD_TEXT);
  mcpl_server_free(server);
  HANDLE(mcpl_channel_receive, channel, JSON("{}"));
  HANDLE_ALONE(mcpl_channel_writable, channel);
  HANDLE(mcpl_channel_hang_up, channel, NULL);
  HANDLE(mcpl_channel_opened, channel, NULL);
  /* Handles of another kind are as good as ended ones. */
  HANDLE(mcpl_bus_receive, (mcpl_bus_receiver *)channel, "a", 1);
}

/* ---- clients */

static void clients_refuse_handles(void) {
  char *text = NULL;
  size_t length = 0;
  mcpl_client *ended = ended_client();
  mcpl_server *server = mcpl_server_new("server", "1");
  mcpl_loop *loop = mcpl_loop_new();
  const char *argv[] = {"true"};
  const mcpl_channel_functions functions = {.size = sizeof functions, .send = on_send};
  HANDLE(mcpl_client_set_options, ended, JSON("{}"));
  HANDLE(mcpl_client_set_timeout_ms, ended, 1000, 0);
  HANDLE(mcpl_client_set_bearer, ended, "token");
  HANDLE(mcpl_client_set_header, ended, "a", "b");
  HANDLE(mcpl_client_set_env, ended, "a", "b");
  HANDLE(mcpl_client_set_cwd, ended, "/");
  HANDLE(mcpl_client_use_loop, ended, loop);
  HANDLE(mcpl_client_on_elicit, ended, keep_input_request, NULL, NULL);
  HANDLE(mcpl_client_on_request, ended, "acme/a", keep_input_request, NULL, NULL);
  HANDLE(mcpl_client_on_result_type, ended, "acme/a", keep_input_request, NULL, NULL);
  HANDLE(mcpl_client_on_sample, ended, keep_input_request, NULL, NULL);
  HANDLE(mcpl_client_on_list_roots, ended, keep_input_request, NULL, NULL);
  HANDLE(mcpl_client_on_authorize, ended, keep_input_request, NULL, NULL);
  HANDLE(mcpl_client_on_tool_call, ended, keep_input_request, NULL, NULL);
  HANDLE(mcpl_client_on_tool_outcome, ended, keep_input_request, NULL, NULL);
  HANDLE(mcpl_client_on_notification, ended, on_notification, NULL, NULL);
  HANDLE(mcpl_client_on_log, ended, on_log, NULL, NULL);
  HANDLE(mcpl_client_on_connection, ended, on_connection, NULL, NULL);
  HANDLE(mcpl_client_on_stderr, ended, on_line, NULL, NULL);
  HANDLE(mcpl_client_set_url, ended, "http://127.0.0.1:1/mcp", NULL);
  HANDLE(mcpl_client_set_command, ended, argv, 1, NULL);
  HANDLE(mcpl_client_set_socket, ended, "/nowhere");
  HANDLE(mcpl_client_set_config, ended, "/nowhere", NULL);
  HANDLE(mcpl_client_stats, ended, &text, &length);
  HANDLE(mcpl_client_metrics, ended, &text, &length);
  cover("mcpl_client_pid");
  CHECK(mcpl_client_pid(ended) == 0 && mcpl_client_pid(NULL) == 0);
  HANDLE(mcpl_client_set_server, ended, server);
  HANDLE(mcpl_client_set_channel, ended, &functions, NULL, NULL);
  HANDLE_ALONE(mcpl_client_open, ended);
  HANDLE(mcpl_client_open_async, ended, on_done, NULL, NULL);
  HANDLE(mcpl_client_connect, ended, "http://127.0.0.1:1/mcp");
  HANDLE(mcpl_client_spawn, ended, argv, 1);
  HANDLE(mcpl_client_info, ended, &text, &length);
  HANDLE(mcpl_client_request, ended, "ping", NULL, 0, NULL, &text, &length);
  HANDLE(mcpl_client_request_async, ended, "ping", NULL, 0, NULL, on_done, NULL, NULL);
  HANDLE(mcpl_client_call_tool, ended, "a", NULL, 0, NULL, &text, &length);
  HANDLE(mcpl_client_call_tool_async, ended, "a", NULL, 0, NULL, on_done, NULL, NULL);
  HANDLE(mcpl_client_list_tools, ended, NULL, &text, &length);
  HANDLE(mcpl_client_list_tools_async, ended, NULL, on_done, NULL, NULL);
  HANDLE(mcpl_client_list_resources, ended, NULL, &text, &length);
  HANDLE(mcpl_client_list_resources_async, ended, NULL, on_done, NULL, NULL);
  HANDLE(mcpl_client_list_resource_templates, ended, NULL, &text, &length);
  HANDLE(mcpl_client_list_resource_templates_async, ended, NULL, on_done, NULL, NULL);
  HANDLE(mcpl_client_list_prompts, ended, NULL, &text, &length);
  HANDLE(mcpl_client_list_prompts_async, ended, NULL, on_done, NULL, NULL);
  HANDLE(mcpl_client_read_resource, ended, "a://b", NULL, &text, &length);
  HANDLE(mcpl_client_read_resource_async, ended, "a://b", NULL, on_done, NULL, NULL);
  HANDLE(mcpl_client_get_prompt, ended, "a", NULL, 0, NULL, &text, &length);
  HANDLE(mcpl_client_get_prompt_async, ended, "a", NULL, 0, NULL, on_done, NULL, NULL);
  HANDLE(mcpl_client_complete, ended, JSON("{}"), NULL, &text, &length);
  HANDLE(mcpl_client_complete_async, ended, JSON("{}"), NULL, on_done, NULL, NULL);
  HANDLE(mcpl_client_ping, ended, NULL);
  HANDLE(mcpl_client_ping_async, ended, NULL, on_done, NULL, NULL);
  HANDLE(mcpl_client_set_log_level, ended, MCPL_LOG_INFO, NULL);
  HANDLE(mcpl_client_set_log_level_async, ended, MCPL_LOG_INFO, NULL, on_done, NULL, NULL);
  HANDLE(mcpl_client_subscribe, ended, "a://b", NULL);
  HANDLE(mcpl_client_subscribe_async, ended, "a://b", NULL, on_done, NULL, NULL);
  HANDLE(mcpl_client_unsubscribe, ended, "a://b", NULL);
  HANDLE(mcpl_client_unsubscribe_async, ended, "a://b", NULL, on_done, NULL, NULL);
  HANDLE_ALONE(mcpl_client_roots_changed, ended);
  HANDLE(mcpl_client_roots_changed_async, ended, on_done, NULL, NULL);
  HANDLE(mcpl_client_notify, ended, "notifications/x", NULL, 0);
  HANDLE(mcpl_client_notify_async, ended, "notifications/x", NULL, 0, on_done, NULL, NULL);
  HANDLE_ALONE(mcpl_client_close, ended);
  cover("mcpl_client_free");
  mcpl_client_free(NULL);
  mcpl_client_free(ended);
  CHECK(text == NULL && length == 0);
  mcpl_server_free(server);
  mcpl_loop_free(loop);
}

static void clients_refuse_arguments(void) {
  char *text = NULL;
  size_t length = 0;
  const char *bad_argv[] = {"true", NULL};
  const char *no_text[] = {BAD_TEXT};
  const mcpl_channel_functions no_send = {.size = sizeof no_send};
  const mcpl_request_options no_size = {.size = 0};
  const mcpl_request_options bad_options = {.size = sizeof bad_options, .json = BAD_JSON};
  GIVES_NULL(mcpl_client_new, NULL, "1");
  GIVES_NULL(mcpl_client_new, "a", BAD_TEXT);
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "a", "b", NULL, handler, NULL, NULL));
  mcpl_client *client = joined(server);
  REFUSES(mcpl_client_set_options, client, JSON("{\"nonsense\": 1}"));
  REFUSES(mcpl_client_set_options, client, JSON(BAD_JSON));
  REFUSES(mcpl_client_on_elicit, client, NULL, NULL, NULL);
  REFUSES(mcpl_client_on_request, client, NULL, keep_input_request, NULL, NULL);
  REFUSES(mcpl_client_on_request, client, "tools/call", keep_input_request, NULL, NULL);
  REFUSES(mcpl_client_on_request, client, "acme/a", NULL, NULL, NULL);
  REFUSES(mcpl_client_on_result_type, client, NULL, keep_input_request, NULL, NULL);
  REFUSES(mcpl_client_on_result_type, client, "complete", keep_input_request, NULL, NULL);
  REFUSES(mcpl_client_on_result_type, client, "acme/a", NULL, NULL, NULL);
  REFUSES(mcpl_client_on_sample, client, NULL, NULL, NULL);
  REFUSES(mcpl_client_on_list_roots, client, NULL, NULL, NULL);
  REFUSES(mcpl_client_on_authorize, client, NULL, NULL, NULL);
  REFUSES(mcpl_client_on_tool_call, client, NULL, NULL, NULL);
  REFUSES(mcpl_client_on_tool_outcome, client, NULL, NULL, NULL);
  REFUSES(mcpl_client_on_notification, client, NULL, NULL, NULL);
  REFUSES(mcpl_client_on_log, client, NULL, NULL, NULL);
  REFUSES(mcpl_client_on_connection, client, NULL, NULL, NULL);
  REFUSES(mcpl_client_on_stderr, client, NULL, NULL, NULL);
  REFUSES(mcpl_client_set_bearer, client, BAD_TEXT);
  REFUSES(mcpl_client_set_header, client, NULL, "b");
  REFUSES(mcpl_client_set_header, client, "a", BAD_TEXT);
  REFUSES(mcpl_client_set_env, client, NULL, "b");
  REFUSES(mcpl_client_set_cwd, client, BAD_TEXT);
  REFUSES(mcpl_client_set_url, client, NULL, NULL);
  REFUSES(mcpl_client_set_url, client, "http://127.0.0.1:1/mcp", BAD_JSON);
  REFUSES(mcpl_client_set_command, client, NULL, 1, NULL);
  REFUSES(mcpl_client_set_command, client, bad_argv, 0, NULL);
  REFUSES(mcpl_client_set_command, client, bad_argv, 2, NULL);
  REFUSES(mcpl_client_set_command, client, bad_argv, 1, BAD_JSON);
  REFUSES(mcpl_client_spawn, client, no_text, 1);
  REFUSES(mcpl_client_set_socket, client, NULL);
  REFUSES(mcpl_client_set_server, client, NULL);
  SAYS(MCPL_STALE_HANDLE, mcpl_client_set_server, client, ended_server());
  REFUSES(mcpl_client_set_server_with, client, NULL, NULL);
  REFUSES(mcpl_client_set_server_with, client, server, BAD_JSON);
  REFUSES(mcpl_client_set_server_with, client, server, "{\"nonsense\": 1}");
  REFUSES(mcpl_client_set_config, client, NULL, NULL);
  REFUSES(mcpl_client_set_config, client, "/nowhere", NULL);
  REFUSES(mcpl_client_set_channel, client, NULL, NULL, NULL);
  REFUSES(mcpl_client_set_channel, client, &no_send, NULL, NULL);
  REFUSES(mcpl_client_connect, client, NULL);
  REFUSES(mcpl_client_open_async, client, NULL, NULL, NULL);
  OK(mcpl_client_set_server(client, server));
  OK(mcpl_client_open(client));
  SAYS(MCPL_OK, mcpl_client_info, client, NULL, &length);
  REFUSES(mcpl_client_request, client, NULL, NULL, 0, NULL, &text, &length);
  REFUSES(mcpl_client_request, client, "tools/list", JSON("[]"), NULL, &text, &length);
  REFUSES(mcpl_client_request, client, "tools/list", JSON(BAD_JSON), NULL, &text, &length);
  REFUSES(mcpl_client_request_async, client, "tools/list", NULL, 0, NULL, NULL, NULL, NULL);
  REFUSES(mcpl_client_call_tool, client, "a", JSON("[]"), NULL, &text, &length);
  REFUSES(mcpl_client_call_tool, client, "a", JSON(BAD_TEXT), NULL, &text, &length);
  REFUSES(mcpl_client_call_tool, client, NULL, NULL, 0, NULL, &text, &length);
  REFUSES(mcpl_client_call_tool, client, "a", NULL, 0, &no_size, &text, &length);
  REFUSES(mcpl_client_call_tool, client, "a", NULL, 0, &bad_options, &text, &length);
  REFUSES(mcpl_client_call_tool_async, client, BAD_TEXT, NULL, 0, NULL, on_done, NULL, NULL);
  REFUSES(mcpl_client_call_tool_async, client, "a", NULL, 0, &no_size, on_done, NULL, NULL);
  REFUSES(mcpl_client_list_tools, client, &bad_options, &text, &length);
  REFUSES(mcpl_client_read_resource, client, NULL, NULL, &text, &length);
  REFUSES(mcpl_client_read_resource_async, client, BAD_TEXT, NULL, on_done, NULL, NULL);
  REFUSES(mcpl_client_get_prompt, client, "a", JSON("1"), NULL, &text, &length);
  REFUSES(mcpl_client_complete, client, NULL, 0, NULL, &text, &length);
  REFUSES(mcpl_client_complete, client, JSON("[]"), NULL, &text, &length);
  REFUSES(mcpl_client_set_log_level, client, (mcpl_log_level)99, NULL);
  REFUSES(mcpl_client_subscribe, client, NULL, NULL);
  REFUSES(mcpl_client_unsubscribe, client, BAD_TEXT, NULL);
  REFUSES(mcpl_client_notify, client, NULL, NULL, 0);
  REFUSES(mcpl_client_notify, client, "notifications/x", JSON("[]"));
  CHECK(text == NULL && length == 0);
  /* None of these calls has changed it. */
  CALLS(client, "a", NULL, "ok");
  mcpl_client_free(client);
  mcpl_server_free(server);
}

static const struct test tests[] = {
    TEST(the_library_refuses),
    TEST(json_refuses),
    TEST(the_writer_refuses),
    TEST(loops_refuse),
    TEST(servers_refuse_handles),
    TEST(servers_refuse_arguments),
    TEST(live_and_ended_calls_refuse),
    TEST(input_requests_and_requests_refuse),
    TEST(channels_refuse),
    TEST(clients_refuse_handles),
    TEST(clients_refuse_arguments),
};

int main(int argc, char **argv) {
  const bool listing = argc == 2 && strcmp(argv[1], "--covered") == 0;
  const int status = run_tests(tests, sizeof tests / sizeof *tests, listing ? 1 : argc, argv);
  for (size_t index = 0; listing && index < covered_count; index++) {
    printf("%s\n", covered[index]);
  }
  return status;
}
