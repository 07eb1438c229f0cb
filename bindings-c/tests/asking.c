/* Asking the client from within a call: waiting for the answer, with a continuation, and where nobody may wait. */

#include "check.h"

static const char FORM[] = "{\"message\": \"Who?\", \"requestedSchema\": {\"type\": \"object\", \"properties\": "
                           "{\"name\": {\"type\": \"string\"}}}}";
static const char SAMPLE[] =
    "{\"messages\": [{\"role\": \"user\", \"content\": {\"type\": \"text\", \"text\": \"hi\"}}], "
    "\"maxTokens\": 10}";

/* ---- the client's side */

static void answer_form(mcpl_input_request *question, const char *params, size_t length, void *user) {
  char *message = NULL;
  (void)user;
  OK(mcpl_json_string(params, length, "/message", &message, NULL));
  CHECK(strcmp(message, "Who?") == 0);
  mcpl_string_free(message);
  CHECK(!mcpl_input_request_is_cancelled(question));
  OK(mcpl_input_request_answer(question, "{\"action\": \"accept\", \"content\": {\"name\": \"Ada\"}}",
                               MCPL_AUTO_LENGTH));
  EXPECT(MCPL_STALE_HANDLE, mcpl_input_request_answer(question, "{\"action\": \"decline\"}", MCPL_AUTO_LENGTH));
  EXPECT(MCPL_STALE_HANDLE, mcpl_input_request_refuse(question, -1, "no", NULL, 0));
}

static void answer_sample(mcpl_input_request *question, const char *params, size_t length, void *user) {
  (void)params, (void)length, (void)user;
  OK(mcpl_input_request_answer(
      question,
      "{\"role\": \"assistant\", \"model\": \"m\", \"content\": {\"type\": \"text\", \"text\": "
      "\"hello\"}}",
      MCPL_AUTO_LENGTH));
}

static void *answer_roots_elsewhere(void *question) {
  /* What is no root leaves the question open. */
  CHECK(mcpl_input_request_answer(question, "{\"roots\": [{\"uri\": \"http://evil\"}]}", MCPL_AUTO_LENGTH) ==
        MCPL_USAGE_ERROR);
  CONTAINS(mcpl_error_message(mcpl_last_error()), "http://evil");
  OK(mcpl_input_request_answer(question, "{\"roots\": [{\"uri\": \"/x/../here\"}]}", MCPL_AUTO_LENGTH));
  return NULL;
}

static void answer_roots(mcpl_input_request *question, const char *params, size_t length, void *user) {
  pthread_t thread;
  (void)params, (void)length, (void)user;
  CHECK(pthread_create(&thread, NULL, answer_roots_elsewhere, question) == 0);
  CHECK(pthread_detach(thread) == 0);
}

static void refuse(mcpl_input_request *question, const char *params, size_t length, void *user) {
  (void)params, (void)length, (void)user;
  OK(mcpl_input_request_refuse(question, -1, "not today", "{\"why\": 1}", MCPL_AUTO_LENGTH));
}

/* ---- the server's side */

static void ask_waiting(mcpl_call *call, const char *arguments, size_t length, void *user) {
  char *form = NULL;
  char *sample = NULL;
  char *roots = NULL;
  size_t form_length = 0;
  char text[1024];
  (void)arguments, (void)length, (void)user;
  OK(mcpl_call_ask_wait(call, "form", MCPL_ASK_ELICIT, FORM, MCPL_AUTO_LENGTH, &form, &form_length));
  CHECK(strlen(form) == form_length);
  OK(mcpl_call_ask_wait(call, "sample", MCPL_ASK_SAMPLE, SAMPLE, MCPL_AUTO_LENGTH, &sample, NULL));
  OK(mcpl_call_ask_wait(call, "roots", MCPL_ASK_LIST_ROOTS, NULL, 0, &roots, NULL));
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

static void then_ask_roots(mcpl_call *call, const mcpl_error *error, const char *result, size_t length, void *user) {
  CHECK(error == NULL);
  CHECK(strlen(result) == length);
  CONTAINS(result, "Ada");
  OK(mcpl_call_ask(call, NULL, MCPL_ASK_LIST_ROOTS, NULL, 0, then_reply, user, finalized));
}

static void ask_continuing(mcpl_call *call, const char *arguments, size_t length, void *user) {
  char *result = NULL;
  (void)arguments, (void)length;
  /* This handler runs where nobody may wait. */
  EXPECT(MCPL_WOULD_DEADLOCK, mcpl_call_ask_wait(call, NULL, MCPL_ASK_ELICIT, FORM, MCPL_AUTO_LENGTH, &result, NULL));
  CHECK(result == NULL);
  OK(mcpl_call_ask(call, NULL, MCPL_ASK_ELICIT, FORM, MCPL_AUTO_LENGTH, then_ask_roots, user, finalized));
}

static void ask_and_pass_on(mcpl_call *call, const char *arguments, size_t length, void *user) {
  char *result = NULL;
  (void)arguments, (void)length;
  const mcpl_status status = mcpl_call_ask_wait(call, NULL, MCPL_ASK_ELICIT, FORM, MCPL_AUTO_LENGTH, &result, NULL);
  EXPECT(*(mcpl_status *)user, status);
  /* A call that the client has given up may have ended. */
  const mcpl_status told = mcpl_call_fail_with(call, mcpl_last_error());
  CHECK(told == MCPL_OK || (status == MCPL_REQUEST_CANCELLED && told == MCPL_STALE_HANDLE));
}

static mcpl_server *asking_server(struct tally *asked) {
  mcpl_server *server = mcpl_server_new("server", "1");
  mcpl_handler_options options = {.size = sizeof options, .flags = MCPL_HANDLER_INLINE};
  OK(mcpl_server_add_tool(server, "wait", "Waits", NULL, ask_waiting, NULL, NULL));
  OK(mcpl_server_add_tool_with(server, "{\"name\": \"continue\", \"inputSchema\": {\"type\": \"object\"}}",
                               MCPL_AUTO_LENGTH, &options, ask_continuing, asked, NULL));
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
  struct tally asked = TALLY;
  mcpl_server *server = asking_server(&asked);
  mcpl_client *client = answering_client(server, NULL);
  char *result = called(client, "wait", NULL);
  CONTAINS(result, "Ada");
  CONTAINS(result, "hello");
  CONTAINS(result, "file:///here");
  mcpl_string_free(result);
  mcpl_client_free(client);
  mcpl_server_free(server);
}

static void a_continuation_goes_on_with_the_answer(void) {
  struct tally asked = TALLY;
  mcpl_server *server = asking_server(&asked);
  mcpl_client *client = answering_client(server, NULL);
  CALLS(client, "continue", NULL, "file:///here");
  CALLS(client, "continue", NULL, "file:///here");
  mcpl_client_free(client);
  mcpl_server_free(server);
  /* Two calls, each with two questions. */
  CHECK(tally_count(&asked) == 4);
}

static void a_client_that_cannot_or_will_not_answer_is_told(void) {
  const struct {
    const char *revisions;
    bool refuses;
    mcpl_status status;
  } cases[] = {
      {"{\"revisions\": [\"2025-11-25\"]}", true, MCPL_INPUT_REQUEST_FAILED},
      /* On 2026-07-28 a question can't be refused: the client gives the call up. */
      {"{\"revisions\": [\"2026-07-28\"]}", true, MCPL_REQUEST_CANCELLED},
      {"{\"revisions\": [\"2025-11-25\"]}", false, MCPL_NOT_SUPPORTED},
      {"{\"revisions\": [\"2026-07-28\"]}", false, MCPL_NOT_SUPPORTED},
  };
  for (size_t index = 0; index < sizeof cases / sizeof *cases; index++) {
    mcpl_status expected = cases[index].status;
    char *result = NULL;
    mcpl_server *server = mcpl_server_new("server", "1");
    OK(mcpl_server_add_tool(server, "ask", "Asks", NULL, ask_and_pass_on, &expected, NULL));
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

/* What no client could answer, and what the error tells of it. */
static const struct {
  mcpl_ask what;
  const char *params;
  const char *told;
} INVALID[] = {
    {MCPL_ASK_ELICIT,
     "{\"message\": \"Where?\", \"requestedSchema\": {\"type\": \"object\", \"properties\": {\"address\": "
     "{\"type\": \"object\"}}}}",
     "requestedSchema.properties.address"},
    {MCPL_ASK_ELICIT, "{\"message\": \"Go\", \"mode\": \"url\", \"url\": \"not a url\"}", "url: "},
    {MCPL_ASK_SAMPLE,
     "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"tool_result\", \"toolUseId\": \"a\", "
     "\"content\": []}]}], \"maxTokens\": 1}",
     "messages[0]: "},
};

static void ask_invalid(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length, (void)user;
  for (size_t index = 0; index < sizeof INVALID / sizeof *INVALID; index++) {
    char *result = NULL;
    EXPECT(MCPL_USAGE_ERROR,
           mcpl_call_ask_wait(call, NULL, INVALID[index].what, INVALID[index].params, MCPL_AUTO_LENGTH, &result, NULL));
    CONTAINS(mcpl_error_message(mcpl_last_error()), INVALID[index].told);
    CHECK(result == NULL);
  }
  OK(mcpl_call_reply_text(call, "told", MCPL_AUTO_LENGTH));
}

static void a_question_that_no_client_could_answer_is_refused_where_it_is_asked(void) {
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "ask", "Asks", NULL, ask_invalid, NULL, NULL));
  mcpl_client *client = answering_client(server, NULL);
  CALLS(client, "ask", NULL, "told");
  mcpl_client_free(client);
  mcpl_server_free(server);
}

/* ---- questions that nobody answers */

struct open_question {
  struct tally asked;
  struct tally withdrawn;
  mcpl_input_request *question;
};

static void withdrawn(mcpl_input_request *question, void *user) {
  CHECK(mcpl_input_request_is_cancelled(question));
  tally_add(user);
}

static void keep_question(mcpl_input_request *question, const char *params, size_t length, void *user) {
  struct open_question *open = user;
  (void)params, (void)length;
  OK(mcpl_input_request_on_cancel(question, withdrawn, &open->withdrawn, NULL));
  open->question = question;
  tally_add(&open->asked);
}

struct failing {
  struct tally told;
  struct tally finalized;
};

static void then_fail(mcpl_call *call, const mcpl_error *error, const char *result, size_t length, void *user) {
  (void)result, (void)length;
  CHECK(error != NULL);
  CHECK(mcpl_error_status(error) != MCPL_OK);
  (void)mcpl_call_fail_with(call, error);
  tally_add(&((struct failing *)user)->told);
}

static void failing_finalized(void *user) { tally_add(&((struct failing *)user)->finalized); }

static void ask_in_vain(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length;
  OK(mcpl_call_ask(call, NULL, MCPL_ASK_ELICIT, FORM, MCPL_AUTO_LENGTH, then_fail, user, failing_finalized));
}

/* What is under way when a question is open, and nobody answers it. */
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
  OK(mcpl_server_add_tool(still->server, "ask", "Asks", NULL, ask_in_vain, &still->failing, NULL));
  still->client = joined(still->server);
  OK(mcpl_client_on_elicit(still->client, keep_question, &still->open, NULL));
  OK(mcpl_client_open(still->client));
  OK(mcpl_client_call_tool_async(still->client, "ask", NULL, 0, NULL, completed, &still->pending, &still->request));
  tally_wait(&still->open.asked, 1);
  CHECK(!mcpl_input_request_is_cancelled(still->open.question));
}

static void ended(struct standstill *still) {
  tally_wait(&still->pending.done, 1);
  CHECK(mcpl_input_request_is_cancelled(still->open.question));
  EXPECT(MCPL_STALE_HANDLE,
         mcpl_input_request_answer(still->open.question, "{\"action\": \"decline\"}", MCPL_AUTO_LENGTH));
  mcpl_client_free(still->client);
  OK(mcpl_server_close(still->server));
  CHECK(tally_count(&still->failing.told) == 1);
  CHECK(tally_count(&still->failing.finalized) == 1);
  mcpl_server_free(still->server);
}

static void a_question_ends_with_the_request_that_led_to_it(void) {
  struct standstill still = STANDSTILL;
  stand_still(&still);
  OK(mcpl_request_cancel(still.request));
  tally_wait(&still.open.withdrawn, 1);
  ended(&still);
  CHECK(still.pending.status == MCPL_REQUEST_CANCELLED);
}

static void a_question_ends_with_the_connection(void) {
  struct standstill still = STANDSTILL;
  stand_still(&still);
  OK(mcpl_client_close(still.client));
  ended(&still);
  CHECK(still.pending.status == MCPL_CLOSED);
}

/* ---- what happens outside of calls */

struct session {
  struct tally begun;
  struct tally changed;
};

static void asked_for_roots(mcpl_call *call) {
  char *roots = NULL;
  OK(mcpl_call_ask_wait(call, NULL, MCPL_ASK_LIST_ROOTS, NULL, 0, &roots, NULL));
  CONTAINS(roots, "file:///here");
  mcpl_string_free(roots);
  OK(mcpl_call_reply_text(call, "", MCPL_AUTO_LENGTH));
}

static void session_begun(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length;
  asked_for_roots(call);
  tally_add(&((struct session *)user)->begun);
}

static void roots_changed(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length;
  asked_for_roots(call);
  tally_add(&((struct session *)user)->changed);
}

static void a_server_asks_outside_of_calls(void) {
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
  (void)call, (void)arguments, (void)length;
  tally_add(user);
}

static void an_event_that_goes_on_does_not_hold_up_the_end(void) {
  struct tally begun = TALLY;
  /* A grace period that is longer than any test may take. */
  mcpl_server *server = mcpl_server_new_with("{\"name\": \"server\", \"version\": \"1\"}", MCPL_AUTO_LENGTH,
                                             "{\"shutdown_grace\": 3600}", MCPL_AUTO_LENGTH);
  OK(mcpl_server_on_initialized(server, keep_event, &begun, NULL));
  mcpl_client *client = answering_client(server, "{\"revisions\": [\"2025-11-25\"]}");
  tally_wait(&begun, 1);
  OK(mcpl_server_close(server));
  mcpl_client_free(client);
  mcpl_server_free(server);
}

static const struct test tests[] = {
    TEST(a_handler_waits_for_answers),
    TEST(a_continuation_goes_on_with_the_answer),
    TEST(a_client_that_cannot_or_will_not_answer_is_told),
    TEST(a_question_that_no_client_could_answer_is_refused_where_it_is_asked),
    TEST(a_question_ends_with_the_request_that_led_to_it),
    TEST(a_question_ends_with_the_connection),
    TEST(a_server_asks_outside_of_calls),
    TEST(an_event_that_goes_on_does_not_hold_up_the_end),
};

MAIN(tests)
