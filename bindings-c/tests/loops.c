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
  uint32_t count = 7;
  (void)arguments, (void)length;
  CHECK(here());
  EXPECT(MCPL_WOULD_DEADLOCK, mcpl_call_ask_wait(call, NULL, MCPL_ASK_LIST_ROOTS, NULL, 0, &result, NULL));
  CHECK(result == NULL);
  CHECK(mcpl_loop_dispatch(user, 0, &count) != MCPL_OK);
  EXPECT(MCPL_WOULD_DEADLOCK, mcpl_loop_wait(user, -1));
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
  OK(mcpl_server_add_tool(server, "wait", "Waits", NULL, wait_here, loop, NULL));
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

static const struct test tests[] = {
    TEST(callbacks_run_where_the_loop_is_dispatched),
    TEST(nothing_runs_without_a_dispatch),
    TEST(requests_of_other_threads_are_served_by_the_loop),
    TEST(freeing_a_loop_ends_queued_callbacks),
};

MAIN(tests)
