/* Processes that fork while the library runs: in the child every function fails with MCPL_FORKED, and freeing does
 * nothing. */

#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

/* Runs a function in a child, which has to return within five minutes. */
static void in_child(void (*run)(void *), void *user) {
  fflush(NULL);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    alarm(300);
    run(user);
    _exit(EXIT_SUCCESS);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS);
}

struct objects {
  mcpl_server *server;
  mcpl_client *client;
  mcpl_loop *loop;
  mcpl_call *call;
  struct tally held;
  struct tally finalizer;
};

static void hold(mcpl_call *call, const char *arguments, size_t length, void *user) {
  struct objects *objects = user;
  (void)arguments, (void)length;
  OK(mcpl_call_keep(call));
  objects->call = call;
  tally_add(&objects->held);
}

static void hello(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length, (void)user;
  OK(mcpl_call_reply_text(call, "hello", MCPL_AUTO_LENGTH));
}

static struct objects *objects_at_exit;

static void free_all(void) {
  mcpl_client_free(objects_at_exit->client);
  mcpl_server_free(objects_at_exit->server);
  mcpl_loop_free(objects_at_exit->loop);
  /* Leaks are what the threads had, which the child lacks. */
  _exit(tally_count(&objects_at_exit->finalizer) == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}

static void use_in_child(void *user) {
  struct objects *objects = user;
  struct tally refused = TALLY;
  char *text = NULL;
  uint32_t count = 7;
  EXPECT(MCPL_FORKED, mcpl_client_call_tool(objects->client, "hello", NULL, 0, NULL, &text, NULL));
  CONTAINS(mcpl_error_message(mcpl_last_error()), "forked");
  CHECK(strcmp(mcpl_status_name(MCPL_FORKED), "MCPL_FORKED") == 0);
  EXPECT(MCPL_FORKED, mcpl_server_stats(objects->server, &text, NULL));
  CHECK(text == NULL);
  EXPECT(MCPL_FORKED, mcpl_server_close(objects->server));
  EXPECT(MCPL_FORKED, mcpl_client_close(objects->client));
  EXPECT(MCPL_FORKED, mcpl_loop_dispatch(objects->loop, 0, &count));
  EXPECT(MCPL_FORKED, mcpl_loop_wait(objects->loop, -1));
  CHECK(mcpl_loop_fd(objects->loop) == -1);
  EXPECT(MCPL_FORKED, mcpl_call_reply_text(objects->call, "held", MCPL_AUTO_LENGTH));
  CHECK(mcpl_call_is_cancelled(objects->call));
  EXPECT(MCPL_FORKED, mcpl_server_on_end(objects->server, NULL, &refused, finalized));
  CHECK(tally_count(&refused) == 1);
  CHECK(mcpl_server_new("server", "1") == NULL);
  EXPECT(MCPL_FORKED, mcpl_error_status(mcpl_last_error()));
  CHECK(mcpl_client_new("client", "1") == NULL);
  CHECK(mcpl_loop_new() == NULL);
  objects_at_exit = objects;
  CHECK(atexit(free_all) == 0);
  exit(EXIT_FAILURE);
}

static void a_child_is_refused_and_ends(void) {
  struct pending held = PENDING;
  struct objects objects = {NULL, NULL, NULL, NULL, TALLY, TALLY};
  objects.loop = mcpl_loop_new();
  objects.server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(objects.server, "hold", "Is answered later", NULL, hold, &objects, NULL));
  OK(mcpl_server_add_tool(objects.server, "hello", "Replies", NULL, hello, &objects.finalizer, finalized));
  objects.client = joined(objects.server);
  OK(mcpl_client_open(objects.client));
  OK(mcpl_client_call_tool_async(objects.client, "hold", NULL, 0, NULL, completed, &held, NULL));
  tally_wait(&objects.held, 1);
  in_child(use_in_child, &objects);
  /* The parent goes on. */
  OK(mcpl_call_reply_text(objects.call, "held", MCPL_AUTO_LENGTH));
  tally_wait(&held.done, 1);
  CONTAINS(held.text, "held");
  CALLS(objects.client, "hello", NULL, "hello");
  mcpl_client_free(objects.client);
  mcpl_server_free(objects.server);
  mcpl_loop_free(objects.loop);
  CHECK(tally_count(&objects.finalizer) == 1);
}

static void check_handler_in_child(void *user) {
  EXPECT(MCPL_FORKED, mcpl_call_reply_text(user, "child", MCPL_AUTO_LENGTH));
}

static void fork_here(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length, (void)user;
  in_child(check_handler_in_child, call);
  OK(mcpl_call_reply_text(call, "parent", MCPL_AUTO_LENGTH));
}

static void a_handler_may_fork(void) {
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "fork", "Forks", NULL, fork_here, NULL, NULL));
  mcpl_client *client = joined(server);
  OK(mcpl_client_open(client));
  CALLS(client, "fork", NULL, "parent");
  mcpl_client_free(client);
  mcpl_server_free(server);
}

struct busy {
  mcpl_server *server;
  struct tally ended;
};

static void *take_locks(void *user) {
  struct busy *busy = user;
  while (tally_count(&busy->ended) == 0) {
    char *text = NULL;
    OK(mcpl_server_stats(busy->server, &text, NULL));
    mcpl_string_free(text);
    mcpl_server_free(mcpl_server_new("other", "1"));
  }
  return NULL;
}

static void free_in_child(void *user) {
  char *text = NULL;
  EXPECT(MCPL_FORKED, mcpl_server_stats(user, &text, NULL));
  CHECK(mcpl_server_new("server", "1") == NULL);
  mcpl_server_free(user);
}

/* Other threads may hold locks of the library at the moment of the fork: the child must not take any. */
static void a_child_takes_no_locks(void) {
  struct busy busy = {mcpl_server_new("server", "1"), TALLY};
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, take_locks, &busy) == 0);
  for (int round = 0; round < 50; round++) {
    in_child(free_in_child, busy.server);
  }
  tally_add(&busy.ended);
  CHECK(pthread_join(thread, NULL) == 0);
  mcpl_server_free(busy.server);
}

static void serve_in_child(void *user) {
  (void)user;
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "hello", "Replies", NULL, hello, NULL, NULL));
  mcpl_client *client = joined(server);
  OK(mcpl_client_open(client));
  CALLS(client, "hello", NULL, "hello");
  mcpl_client_free(client);
  mcpl_server_free(server);
}

/* As a daemon does. */
static void a_child_may_use_the_library_if_everything_was_freed(void) {
  serve_in_child(NULL);
  in_child(serve_in_child, NULL);
}

static const struct test tests[] = {
    TEST(a_child_is_refused_and_ends),
    TEST(a_handler_may_fork),
    TEST(a_child_takes_no_locks),
    TEST(a_child_may_use_the_library_if_everything_was_freed),
};

MAIN(tests)
