/* The program's own loop: callbacks run on the thread that dispatches, and nowhere else. */

#include "check.h"

#include <poll.h>

static pthread_t dispatching;

static bool here(void) { return pthread_equal(pthread_self(), dispatching) != 0; }

static void reply_here(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length, (void)user;
  CHECK(here());
  OK(mcpl_call_reply_text(call, "on the loop", MCPL_AUTO_LENGTH));
}

static void wait_here(mcpl_call *call, const char *arguments, size_t length, void *user) {
  char *result = NULL;
  (void)arguments, (void)length, (void)user;
  CHECK(here());
  EXPECT(MCPL_WOULD_DEADLOCK,
         mcpl_call_request_input_wait(call, NULL, MCPL_INPUT_REQUEST_METHOD_LIST_ROOTS, NULL, 0, &result, NULL));
  CHECK(result == NULL);
  OK(mcpl_call_reply_text(call, "would block", MCPL_AUTO_LENGTH));
}

static void done_here(mcpl_request *request, const mcpl_error *error, const char *result, size_t length, void *user) {
  CHECK(here());
  completed(request, error, result, length, user);
}

static void finalized_here(void *user) {
  CHECK(here());
  tally_add(user);
}

/* Waits like a program with its own event loop. */
static void turn(mcpl_loop *loop, struct tally *until) {
  struct pollfd watched = {.fd = mcpl_loop_fd(loop), .events = POLLIN};
  CHECK(watched.fd >= 0);
  while (tally_count(until) == 0) {
    CHECK(poll(&watched, 1, 300000) == 1);
    uint32_t count = 0;
    OK(mcpl_loop_dispatch(loop, 1, &count));
    CHECK(count <= 1);
  }
}

static void callbacks_run_where_the_loop_is_dispatched(void) {
  struct pending opened = PENDING;
  struct pending first = PENDING;
  struct pending second = PENDING;
  struct tally finalizer = TALLY;
  dispatching = pthread_self();
  mcpl_loop *loop = mcpl_loop_new();
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_use_loop(server, loop));
  OK(mcpl_server_add_tool(server, "reply", "Replies", NULL, reply_here, &finalizer, finalized_here));
  OK(mcpl_server_add_tool(server, "wait", "Waits", NULL, wait_here, NULL, NULL));
  mcpl_client *client = joined(server);
  OK(mcpl_client_use_loop(client, loop));
  OK(mcpl_client_open_async(client, done_here, &opened, NULL));
  turn(loop, &opened.done);
  CHECK(opened.status == MCPL_OK);
  OK(mcpl_client_call_tool_async(client, "reply", NULL, 0, NULL, done_here, &first, NULL));
  turn(loop, &first.done);
  CHECK(first.status == MCPL_OK);
  CONTAINS(first.text, "on the loop");
  OK(mcpl_client_call_tool_async(client, "wait", NULL, 0, NULL, done_here, &second, NULL));
  turn(loop, &second.done);
  CONTAINS(second.text, "would block");
  /* A request that waits, on the loop's thread, dispatches the loop meanwhile. */
  CALLS(client, "reply", NULL, "on the loop");
  OK(mcpl_client_close(client));
  OK(mcpl_server_close(server));
  mcpl_client_free(client);
  mcpl_server_free(server);
  mcpl_loop_free(loop);
  CHECK(tally_count(&finalizer) == 1);
}

static void nothing_runs_without_a_dispatch(void) {
  struct pending opened = PENDING;
  dispatching = pthread_self();
  mcpl_loop *loop = mcpl_loop_new();
  mcpl_server *server = mcpl_server_new("server", "1");
  mcpl_client *client = joined(server);
  OK(mcpl_client_use_loop(client, loop));
  OK(mcpl_client_open_async(client, done_here, &opened, NULL));
  OK(mcpl_loop_wait(loop, -1));
  CHECK(tally_count(&opened.done) == 0);
  turn(loop, &opened.done);
  uint32_t count = 7;
  OK(mcpl_loop_dispatch(loop, 0, &count));
  CHECK(count == 0);
  EXPECT(MCPL_WAIT_TIMED_OUT, mcpl_loop_wait(loop, 0));
  mcpl_client_free(client);
  mcpl_server_free(server);
  mcpl_loop_free(loop);
  EXPECT(MCPL_STALE_HANDLE, mcpl_loop_dispatch(loop, 0, &count));
  CHECK(mcpl_loop_fd(loop) == -1);
}

static void *call_from_elsewhere(void *client) {
  CALLS(client, "reply", NULL, "on the loop");
  return NULL;
}

static void requests_of_other_threads_are_served_by_the_loop(void) {
  enum { CALLERS = 4 };
  pthread_t threads[CALLERS];
  dispatching = pthread_self();
  mcpl_loop *loop = mcpl_loop_new();
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_use_loop(server, loop));
  OK(mcpl_server_add_tool(server, "reply", "Replies", NULL, reply_here, NULL, NULL));
  mcpl_client *client = joined(server);
  OK(mcpl_client_open(client));
  for (int index = 0; index < CALLERS; index++) {
    CHECK(pthread_create(&threads[index], NULL, call_from_elsewhere, client) == 0);
  }
  uint32_t served = 0;
  while (served < CALLERS) {
    uint32_t count = 0;
    OK(mcpl_loop_wait(loop, -1));
    OK(mcpl_loop_dispatch(loop, 0, &count));
    served += count;
  }
  for (int index = 0; index < CALLERS; index++) {
    CHECK(pthread_join(threads[index], NULL) == 0);
  }
  mcpl_client_free(client);
  mcpl_server_free(server);
  mcpl_loop_free(loop);
}

static void freeing_a_loop_ends_queued_callbacks(void) {
  struct pending opened = PENDING;
  dispatching = pthread_self();
  mcpl_loop *loop = mcpl_loop_new();
  mcpl_server *server = mcpl_server_new("server", "1");
  mcpl_client *client = joined(server);
  OK(mcpl_client_use_loop(client, loop));
  OK(mcpl_client_open_async(client, completed, &opened, NULL));
  OK(mcpl_loop_wait(loop, -1));
  mcpl_loop_free(loop);
  mcpl_client_free(client);
  mcpl_server_free(server);
  CHECK(tally_count(&opened.done) == 1);
}

/* A dialog: its event loop runs within the callback for an input request, and ends with the request. */
struct dialog {
  mcpl_loop *loop;
  mcpl_request *request;
  struct pending pending_call;
  struct tally closed;
  int polls;
};

static void request_user_input(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length, (void)user;
  static const char form[] = "{\"message\": \"?\", \"requestedSchema\": {\"type\": \"object\", \"properties\": {}}}";
  char *answer = NULL;
  const mcpl_status status =
      mcpl_call_request_input_wait(call, NULL, MCPL_INPUT_REQUEST_METHOD_ELICIT, form, MCPL_AUTO_LENGTH, &answer, NULL);
  CHECK(status != MCPL_OK);
  CHECK(mcpl_call_fail_with(call, mcpl_last_error()) == MCPL_OK);
}

static void close_dialog(mcpl_input_request *request, void *user) {
  struct dialog *dialog = user;
  (void)request;
  CHECK(here());
  tally_add(&dialog->closed);
}

static void show_dialog(mcpl_input_request *request, const char *params, size_t length, void *user) {
  struct dialog *dialog = user;
  struct pollfd watched = {.fd = mcpl_loop_fd(dialog->loop), .events = POLLIN};
  (void)params, (void)length;
  CHECK(here());
  OK(mcpl_input_request_on_cancel(request, close_dialog, dialog, NULL));
  OK(mcpl_request_cancel(dialog->request));
  while (tally_count(&dialog->closed) == 0) {
    CHECK(poll(&watched, 1, 300000) == 1);
    OK(mcpl_loop_dispatch(dialog->loop, 0, NULL));
    dialog->polls++;
  }
}

static void a_dialog_within_a_callback_dispatches(void) {
  struct dialog dialog = {NULL, NULL, PENDING, TALLY, 0};
  dispatching = pthread_self();
  dialog.loop = mcpl_loop_new();
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "ask", "Asks the user", NULL, request_user_input, NULL, NULL));
  mcpl_client *client = joined(server);
  OK(mcpl_client_use_loop(client, dialog.loop));
  OK(mcpl_client_on_elicit(client, show_dialog, &dialog, NULL));
  OK(mcpl_client_open(client));
  OK(mcpl_client_call_tool_async(client, "ask", NULL, 0, NULL, done_here, &dialog.pending_call, &dialog.request));
  turn(dialog.loop, &dialog.pending_call.done);
  CHECK(dialog.pending_call.status == MCPL_REQUEST_CANCELLED);
  CHECK(tally_count(&dialog.closed) == 1);
  /* The descriptor was readable only when there was something to dispatch: the cancellation, and the outcome. */
  CHECK(dialog.polls >= 1 && dialog.polls <= 8);
  OK(mcpl_client_close(client));
  mcpl_client_free(client);
  mcpl_server_free(server);
  mcpl_loop_free(dialog.loop);
}

/* Notifications that arrive while the callback of one dispatches. */
struct nested {
  mcpl_loop *loop;
  mcpl_client *client;
  struct pending requested;
  struct tally received;
  bool is_within;
};

static void done_within(mcpl_request *request, const mcpl_error *error, const char *result, size_t length, void *user) {
  struct nested *nested = user;
  CHECK(nested->is_within);
  completed(request, error, result, length, &nested->requested);
}

static void dispatch_within(mcpl_client *client, const char *method, const char *params, size_t length, void *user) {
  struct nested *nested = user;
  (void)params, (void)length;
  CHECK(!nested->is_within);
  if (strcmp(method, "notifications/message") != 0) {
    return;
  }
  tally_add(&nested->received);
  if (tally_count(&nested->received) == 1) {
    nested->is_within = true;
    OK(mcpl_client_call_tool_async(client, "notify", NULL, 0, NULL, done_within, nested, NULL));
    while (tally_count(&nested->requested.done) == 0) {
      OK(mcpl_loop_wait(nested->loop, -1));
      OK(mcpl_loop_dispatch(nested->loop, 0, NULL));
    }
    nested->is_within = false;
  }
}

static void notify(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length, (void)user;
  OK(mcpl_call_log_text(call, MCPL_LOG_ERROR, NULL, "one", MCPL_AUTO_LENGTH));
  OK(mcpl_call_log_text(call, MCPL_LOG_ERROR, NULL, "another", MCPL_AUTO_LENGTH));
  OK(mcpl_call_reply_text(call, "notified", MCPL_AUTO_LENGTH));
}

static void notifications_stay_in_order_within_a_nested_dispatch(void) {
  struct nested nested = {NULL, NULL, PENDING, TALLY, false};
  struct pending first = PENDING;
  dispatching = pthread_self();
  nested.loop = mcpl_loop_new();
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "notify", "Notifies twice", NULL, notify, NULL, NULL));
  mcpl_client *client = joined(server);
  OK(mcpl_client_use_loop(client, nested.loop));
  OK(mcpl_client_on_notification(client, dispatch_within, &nested, NULL));
  OK(mcpl_client_open(client));
  OK(mcpl_client_set_log_level(client, MCPL_LOG_DEBUG, NULL));
  OK(mcpl_client_call_tool_async(client, "notify", NULL, 0, NULL, done_here, &first, NULL));
  turn(nested.loop, &first.done);
  while (tally_count(&nested.received) < 4) {
    OK(mcpl_loop_wait(nested.loop, -1));
    OK(mcpl_loop_dispatch(nested.loop, 0, NULL));
  }
  mcpl_client_free(client);
  mcpl_server_free(server);
  mcpl_loop_free(nested.loop);
}

/* The client has no loop, but its server's handlers run on the loop of this thread. */
static void a_request_of_a_client_without_a_loop_dispatches_the_threads_loop(void) {
  dispatching = pthread_self();
  mcpl_loop *loop = mcpl_loop_new();
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_use_loop(server, loop));
  OK(mcpl_server_add_tool(server, "reply", "Replies", NULL, reply_here, NULL, NULL));
  mcpl_client *client = joined(server);
  OK(mcpl_client_open(client));
  CALLS(client, "reply", NULL, "on the loop");
  OK(mcpl_client_close(client));
  mcpl_client_free(client);
  mcpl_server_free(server);
  mcpl_loop_free(loop);
}

/* Log messages that wait for a loop which is not dispatched. */
enum { FLOOD = 10000, MOST_WAITING = 4096 };

static void flood(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length, (void)user;
  for (int index = 0; index < FLOOD; index++) {
    OK(mcpl_call_log_text(call, MCPL_LOG_ERROR, NULL, "one of many", MCPL_AUTO_LENGTH));
  }
  OK(mcpl_call_reply_text(call, "flooded", MCPL_AUTO_LENGTH));
}

static void log_here(mcpl_client *client, mcpl_log_level level, const char *logger, const char *data, size_t length,
                     void *user) {
  (void)client, (void)level, (void)logger, (void)data, (void)length;
  CHECK(here());
  tally_add(user);
}

static void *call_flood(void *client) {
  CALLS(client, "flood", NULL, "flooded");
  return NULL;
}

static void a_loop_that_is_not_dispatched_keeps_few_notifications(void) {
  struct tally logged = TALLY;
  pthread_t thread;
  dispatching = pthread_self();
  mcpl_loop *loop = mcpl_loop_new();
  mcpl_server *server = mcpl_server_new_with("{\"name\": \"server\", \"version\": \"1\"}", MCPL_AUTO_LENGTH,
                                             "{\"log_rate\": [1000000, 1000000]}", MCPL_AUTO_LENGTH);
  OK(mcpl_server_add_tool(server, "flood", "Logs a lot", NULL, flood, NULL, NULL));
  mcpl_client *client = joined(server);
  OK(mcpl_client_use_loop(client, loop));
  OK(mcpl_client_on_log(client, log_here, &logged, NULL));
  OK(mcpl_client_open(client));
  OK(mcpl_client_set_log_level(client, MCPL_LOG_DEBUG, NULL));
  CHECK(pthread_create(&thread, NULL, call_flood, client) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(tally_count(&logged) == 0);
  OK(mcpl_client_close(client));
  CHECK(tally_count(&logged) > 0 && tally_count(&logged) <= MOST_WAITING);
  mcpl_client_free(client);
  mcpl_server_free(server);
  mcpl_loop_free(loop);
}

static const struct test tests[] = {
    TEST(callbacks_run_where_the_loop_is_dispatched),
    TEST(nothing_runs_without_a_dispatch),
    TEST(requests_of_other_threads_are_served_by_the_loop),
    TEST(freeing_a_loop_ends_queued_callbacks),
    TEST(a_dialog_within_a_callback_dispatches),
    TEST(notifications_stay_in_order_within_a_nested_dispatch),
    TEST(a_loop_that_is_not_dispatched_keeps_few_notifications),
    TEST(a_request_of_a_client_without_a_loop_dispatches_the_threads_loop),
};

MAIN(tests)
