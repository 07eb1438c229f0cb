/* Input requests within a call: waiting for the answer, with a continuation, and on threads that must not wait. */

#include "check.h"

static const char FORM[] = "{\"message\": \"Who?\", \"requestedSchema\": {\"type\": \"object\", \"properties\": "
                           "{\"name\": {\"type\": \"string\"}}}}";
static const char SAMPLE[] =
    "{\"messages\": [{\"role\": \"user\", \"content\": {\"type\": \"text\", \"text\": \"hi\"}}], "
    "\"maxTokens\": 10}";

/* ---- the client's side */

static void answer_form(mcpl_input_request *input_request, const char *params, size_t length, void *user) {
  char *message = NULL;
  (void)user;
  OK(mcpl_json_string(params, length, "/message", &message, NULL));
  CHECK(strcmp(message, "Who?") == 0);
  mcpl_string_free(message);
  CHECK(!mcpl_input_request_is_cancelled(input_request));
  OK(mcpl_input_request_answer(input_request, "{\"action\": \"accept\", \"content\": {\"name\": \"Ada\"}}",
                               MCPL_AUTO_LENGTH));
  EXPECT(MCPL_STALE_HANDLE, mcpl_input_request_answer(input_request, "{\"action\": \"decline\"}", MCPL_AUTO_LENGTH));
  EXPECT(MCPL_STALE_HANDLE, mcpl_input_request_refuse(input_request, -1, "no", NULL, 0));
}

static void answer_sample(mcpl_input_request *input_request, const char *params, size_t length, void *user) {
  (void)params, (void)length, (void)user;
  OK(mcpl_input_request_answer(
      input_request,
      "{\"role\": \"assistant\", \"model\": \"m\", \"content\": {\"type\": \"text\", \"text\": "
      "\"hello\"}}",
      MCPL_AUTO_LENGTH));
}

static void *answer_roots_elsewhere(void *input_request) {
  /* An invalid root leaves the input request open. */
  CHECK(mcpl_input_request_answer(input_request, "{\"roots\": [{\"uri\": \"http://evil\"}]}", MCPL_AUTO_LENGTH) ==
        MCPL_USAGE_ERROR);
  CONTAINS(mcpl_error_message(mcpl_last_error()), "http://evil");
  OK(mcpl_input_request_answer(input_request, "{\"roots\": [{\"uri\": \"/x/../here\"}]}", MCPL_AUTO_LENGTH));
  return NULL;
}

static void answer_roots(mcpl_input_request *input_request, const char *params, size_t length, void *user) {
  pthread_t thread;
  (void)params, (void)length, (void)user;
  CHECK(pthread_create(&thread, NULL, answer_roots_elsewhere, input_request) == 0);
  CHECK(pthread_detach(thread) == 0);
}

static void refuse(mcpl_input_request *input_request, const char *params, size_t length, void *user) {
  (void)params, (void)length, (void)user;
  OK(mcpl_input_request_refuse(input_request, -1, "not today", "{\"why\": 1}", MCPL_AUTO_LENGTH));
}

/* ---- the server's side */

static void request_waiting(mcpl_call *call, const char *arguments, size_t length, void *user) {
  char *form = NULL;
  char *sample = NULL;
  char *roots = NULL;
  size_t form_length = 0;
  char text[1024];
  (void)arguments, (void)length, (void)user;
  OK(mcpl_call_request_input_wait(call, "form", MCPL_INPUT_REQUEST_METHOD_ELICIT, FORM, MCPL_AUTO_LENGTH, &form,
                                  &form_length));
  CHECK(strlen(form) == form_length);
  OK(mcpl_call_request_input_wait(call, "sample", MCPL_INPUT_REQUEST_METHOD_SAMPLE, SAMPLE, MCPL_AUTO_LENGTH, &sample,
                                  NULL));
  OK(mcpl_call_request_input_wait(call, "roots", MCPL_INPUT_REQUEST_METHOD_LIST_ROOTS, NULL, 0, &roots, NULL));
  snprintf(text, sizeof text, "%s %s %s", form, sample, roots);
  OK(mcpl_call_reply_text(call, text, MCPL_AUTO_LENGTH));
  mcpl_string_free(form);
  mcpl_string_free(sample);
  mcpl_string_free(roots);
}

static void then_reply(mcpl_call *call, const mcpl_error *error, const char *result, size_t length, void *user) {
  (void)user;
  CHECK(error == NULL);
  OK(mcpl_call_reply_text(call, result, length));
}

static void then_request_roots(mcpl_call *call, const mcpl_error *error, const char *result, size_t length,
                               void *user) {
  CHECK(error == NULL);
  CHECK(strlen(result) == length);
  CONTAINS(result, "Ada");
  OK(mcpl_call_request_input(call, NULL, MCPL_INPUT_REQUEST_METHOD_LIST_ROOTS, NULL, 0, then_reply, user, finalized));
}

static void request_continuing(mcpl_call *call, const char *arguments, size_t length, void *user) {
  char *result = NULL;
  (void)arguments, (void)length;
  /* This handler runs on a thread that must not wait. */
  EXPECT(MCPL_WOULD_DEADLOCK, mcpl_call_request_input_wait(call, NULL, MCPL_INPUT_REQUEST_METHOD_ELICIT, FORM,
                                                           MCPL_AUTO_LENGTH, &result, NULL));
  CHECK(result == NULL);
  OK(mcpl_call_request_input(call, NULL, MCPL_INPUT_REQUEST_METHOD_ELICIT, FORM, MCPL_AUTO_LENGTH, then_request_roots,
                             user, finalized));
}

static void request_and_pass_on(mcpl_call *call, const char *arguments, size_t length, void *user) {
  char *result = NULL;
  (void)arguments, (void)length;
  const mcpl_status status =
      mcpl_call_request_input_wait(call, NULL, MCPL_INPUT_REQUEST_METHOD_ELICIT, FORM, MCPL_AUTO_LENGTH, &result, NULL);
  EXPECT(*(mcpl_status *)user, status);
  /* A call that the client has cancelled may have ended. */
  const mcpl_status failed = mcpl_call_fail_with(call, mcpl_last_error());
  CHECK(failed == MCPL_OK || (status == MCPL_REQUEST_CANCELLED && failed == MCPL_STALE_HANDLE));
}

static mcpl_server *requesting_server(struct tally *requests) {
  mcpl_server *server = mcpl_server_new("server", "1");
  mcpl_handler_options options = {.size = sizeof options, .flags = MCPL_HANDLER_INLINE};
  OK(mcpl_server_add_tool(server, "wait", "Waits", NULL, request_waiting, NULL, NULL));
  OK(mcpl_server_add_tool_with(server, "{\"name\": \"continue\", \"inputSchema\": {\"type\": \"object\"}}",
                               MCPL_AUTO_LENGTH, &options, request_continuing, requests, NULL));
  return server;
}

static mcpl_client *answering_client(mcpl_server *server, const char *options) {
  mcpl_client *client = joined(server);
  if (options != NULL) {
    OK(mcpl_client_set_options(client, options, MCPL_AUTO_LENGTH));
  }
  OK(mcpl_client_on_elicit(client, answer_form, NULL, NULL));
  OK(mcpl_client_on_sample(client, answer_sample, NULL, NULL));
  OK(mcpl_client_on_list_roots(client, answer_roots, NULL, NULL));
  OK(mcpl_client_open(client));
  return client;
}

static void a_handler_waits_for_answers(void) {
  struct tally requests = TALLY;
  mcpl_server *server = requesting_server(&requests);
  mcpl_client *client = answering_client(server, NULL);
  char *result = called(client, "wait", NULL);
  CONTAINS(result, "Ada");
  CONTAINS(result, "hello");
  CONTAINS(result, "file:///here");
  mcpl_string_free(result);
  mcpl_client_free(client);
  mcpl_server_free(server);
}

static void a_continuation_receives_the_answer(void) {
  struct tally requests = TALLY;
  mcpl_server *server = requesting_server(&requests);
  mcpl_client *client = answering_client(server, NULL);
  CALLS(client, "continue", NULL, "file:///here");
  CALLS(client, "continue", NULL, "file:///here");
  mcpl_client_free(client);
  mcpl_server_free(server);
  /* Two calls, each with two input requests. */
  CHECK(tally_count(&requests) == 4);
}

static void reports_a_client_that_cannot_or_will_not_answer(void) {
  const struct {
    const char *revisions;
    bool refuses;
    mcpl_status status;
  } cases[] = {
      {"{\"revisions\": [\"2025-11-25\"]}", true, MCPL_INPUT_REQUEST_FAILED},
      /* On 2026-07-28 an input request cannot be refused: the client abandons the call. */
      {"{\"revisions\": [\"2026-07-28\"]}", true, MCPL_REQUEST_CANCELLED},
      {"{\"revisions\": [\"2025-11-25\"]}", false, MCPL_NOT_SUPPORTED},
      {"{\"revisions\": [\"2026-07-28\"]}", false, MCPL_NOT_SUPPORTED},
  };
  for (size_t index = 0; index < sizeof cases / sizeof *cases; index++) {
    mcpl_status expected = cases[index].status;
    char *result = NULL;
    mcpl_server *server = mcpl_server_new("server", "1");
    OK(mcpl_server_add_tool(server, "ask", "Asks", NULL, request_and_pass_on, &expected, NULL));
    mcpl_client *client = joined(server);
    OK(mcpl_client_set_options(client, cases[index].revisions, MCPL_AUTO_LENGTH));
    if (cases[index].refuses) {
      OK(mcpl_client_on_elicit(client, refuse, NULL, NULL));
    }
    OK(mcpl_client_open(client));
    const mcpl_status status = mcpl_client_call_tool(client, "ask", NULL, 0, NULL, &result, NULL);
    CHECK(status != MCPL_OK || strstr(result, "\"isError\":true") != NULL);
    mcpl_string_free(result);
    mcpl_client_free(client);
    mcpl_server_free(server);
  }
}

/* Input requests that no client could answer, and the errors that report it. */
static const struct {
  mcpl_input_request_method what;
  const char *params;
  const char *message;
} INVALID[] = {
    {MCPL_INPUT_REQUEST_METHOD_ELICIT,
     "{\"message\": \"Where?\", \"requestedSchema\": {\"type\": \"object\", \"properties\": {\"address\": "
     "{\"type\": \"object\"}}}}",
     "requestedSchema.properties.address"},
    {MCPL_INPUT_REQUEST_METHOD_ELICIT, "{\"message\": \"Go\", \"mode\": \"url\", \"url\": \"not a url\"}", "url: "},
    {MCPL_INPUT_REQUEST_METHOD_SAMPLE,
     "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"tool_result\", \"toolUseId\": \"a\", "
     "\"content\": []}]}], \"maxTokens\": 1}",
     "messages[0]: "},
};

static void request_invalid(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length, (void)user;
  for (size_t index = 0; index < sizeof INVALID / sizeof *INVALID; index++) {
    char *result = NULL;
    EXPECT(MCPL_USAGE_ERROR, mcpl_call_request_input_wait(call, NULL, INVALID[index].what, INVALID[index].params,
                                                          MCPL_AUTO_LENGTH, &result, NULL));
    CONTAINS(mcpl_error_message(mcpl_last_error()), INVALID[index].message);
    CHECK(result == NULL);
  }
  OK(mcpl_call_reply_text(call, "told", MCPL_AUTO_LENGTH));
}

static void rejects_an_input_request_that_no_client_could_answer(void) {
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "ask", "Asks", NULL, request_invalid, NULL, NULL));
  mcpl_client *client = answering_client(server, NULL);
  CALLS(client, "ask", NULL, "told");
  mcpl_client_free(client);
  mcpl_server_free(server);
}

/* ---- unanswered input requests */

struct open_question {
  struct tally requests;
  struct tally withdrawn;
  mcpl_input_request *input_request;
};

static void withdrawn(mcpl_input_request *input_request, void *user) {
  CHECK(mcpl_input_request_is_cancelled(input_request));
  tally_add(user);
}

static void keep_input_request(mcpl_input_request *input_request, const char *params, size_t length, void *user) {
  struct open_question *open = user;
  (void)params, (void)length;
  OK(mcpl_input_request_on_cancel(input_request, withdrawn, &open->withdrawn, NULL));
  open->input_request = input_request;
  tally_add(&open->requests);
}

struct failing {
  struct tally failures;
  struct tally finalized;
};

static void then_fail(mcpl_call *call, const mcpl_error *error, const char *result, size_t length, void *user) {
  (void)result, (void)length;
  CHECK(error != NULL);
  CHECK(mcpl_error_status(error) != MCPL_OK);
  (void)mcpl_call_fail_with(call, error);
  tally_add(&((struct failing *)user)->failures);
}

static void failing_finalized(void *user) { tally_add(&((struct failing *)user)->finalized); }

static void request_in_vain(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length;
  OK(mcpl_call_request_input(call, NULL, MCPL_INPUT_REQUEST_METHOD_ELICIT, FORM, MCPL_AUTO_LENGTH, then_fail, user,
                             failing_finalized));
}

/* A call with an open input request that is not answered. */
struct standstill {
  struct open_question open;
  struct failing failing;
  struct pending pending;
  mcpl_server *server;
  mcpl_client *client;
  mcpl_request *request;
};

#define STANDSTILL {{TALLY, TALLY, NULL}, {TALLY, TALLY}, PENDING, NULL, NULL, NULL}

static void stand_still(struct standstill *still) {
  still->server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(still->server, "ask", "Asks", NULL, request_in_vain, &still->failing, NULL));
  still->client = joined(still->server);
  OK(mcpl_client_on_elicit(still->client, keep_input_request, &still->open, NULL));
  OK(mcpl_client_open(still->client));
  OK(mcpl_client_call_tool_async(still->client, "ask", NULL, 0, NULL, completed, &still->pending, &still->request));
  tally_wait(&still->open.requests, 1);
  CHECK(!mcpl_input_request_is_cancelled(still->open.input_request));
}

static void ended(struct standstill *still) {
  tally_wait(&still->pending.done, 1);
  CHECK(mcpl_input_request_is_cancelled(still->open.input_request));
  EXPECT(MCPL_STALE_HANDLE,
         mcpl_input_request_answer(still->open.input_request, "{\"action\": \"decline\"}", MCPL_AUTO_LENGTH));
  mcpl_client_free(still->client);
  OK(mcpl_server_close(still->server));
  CHECK(tally_count(&still->failing.failures) == 1);
  CHECK(tally_count(&still->failing.finalized) == 1);
  mcpl_server_free(still->server);
}

static void an_input_request_ends_with_the_request_that_led_to_it(void) {
  struct standstill still = STANDSTILL;
  stand_still(&still);
  OK(mcpl_request_cancel(still.request));
  tally_wait(&still.open.withdrawn, 1);
  ended(&still);
  CHECK(still.pending.status == MCPL_REQUEST_CANCELLED);
}

static void an_input_request_ends_with_the_connection(void) {
  struct standstill still = STANDSTILL;
  stand_still(&still);
  OK(mcpl_client_close(still.client));
  ended(&still);
  CHECK(still.pending.status == MCPL_CLOSED);
}

/* ---- input requests outside of calls */

struct session {
  struct tally begun;
  struct tally changed;
};

static void requested_roots(mcpl_call *call) {
  char *roots = NULL;
  OK(mcpl_call_request_input_wait(call, NULL, MCPL_INPUT_REQUEST_METHOD_LIST_ROOTS, NULL, 0, &roots, NULL));
  CONTAINS(roots, "file:///here");
  mcpl_string_free(roots);
  OK(mcpl_call_reply_text(call, "", MCPL_AUTO_LENGTH));
}

static void session_begun(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length;
  requested_roots(call);
  tally_add(&((struct session *)user)->begun);
}

static void roots_changed(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length;
  requested_roots(call);
  tally_add(&((struct session *)user)->changed);
}

static void a_server_requests_input_outside_of_calls(void) {
  struct session session = {TALLY, TALLY};
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_on_initialized(server, session_begun, &session, NULL));
  OK(mcpl_server_on_roots_changed(server, roots_changed, &session, NULL));
  mcpl_client *client = answering_client(server, "{\"revisions\": [\"2025-11-25\"]}");
  tally_wait(&session.begun, 1);
  CHECK(tally_count(&session.changed) == 0);
  OK(mcpl_client_roots_changed(client));
  tally_wait(&session.changed, 1);
  mcpl_client_free(client);
  OK(mcpl_server_close(server));
  CHECK(tally_count(&session.begun) == 1);
  mcpl_server_free(server);
}

static void keep_event(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length;
  OK(mcpl_call_keep(call));
  tally_add(user);
}

static void a_running_event_handler_does_not_delay_closing(void) {
  struct tally begun = TALLY;
  /* A grace period longer than any test may take. */
  mcpl_server *server = mcpl_server_new_with("{\"name\": \"server\", \"version\": \"1\"}", MCPL_AUTO_LENGTH,
                                             "{\"shutdown_timeout\": 3600}", MCPL_AUTO_LENGTH);
  OK(mcpl_server_on_initialized(server, keep_event, &begun, NULL));
  mcpl_client *client = answering_client(server, "{\"revisions\": [\"2025-11-25\"]}");
  tally_wait(&begun, 1);
  OK(mcpl_server_close(server));
  mcpl_client_free(client);
  mcpl_server_free(server);
}

static const struct test tests[] = {
    TEST(a_handler_waits_for_answers),
    TEST(a_continuation_receives_the_answer),
    TEST(reports_a_client_that_cannot_or_will_not_answer),
    TEST(rejects_an_input_request_that_no_client_could_answer),
    TEST(an_input_request_ends_with_the_request_that_led_to_it),
    TEST(an_input_request_ends_with_the_connection),
    TEST(a_server_requests_input_outside_of_calls),
    TEST(a_running_event_handler_does_not_delay_closing),
};

MAIN(tests)
