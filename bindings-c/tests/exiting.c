/* Use of the library while a program exits: `atexit` functions, and destructors of static C++ objects, run after
 * thread-local storage has been destroyed. */

#include "check.h"

static mcpl_client *client;
static mcpl_server *server;
static struct tally of_client = TALLY;
static struct tally of_server = TALLY;

static void at_end(void) {
  EXPECT(MCPL_USAGE_ERROR, mcpl_client_close(NULL));
  EXPECT(MCPL_USAGE_ERROR, mcpl_error_status(mcpl_last_error()));
  OK(mcpl_client_ping(client, NULL));
  OK(mcpl_client_close(client));
  CHECK(tally_count(&of_client) == 1);
  EXPECT(MCPL_CLOSED, mcpl_client_ping(client, NULL));
  mcpl_client_free(client);
  mcpl_server_free(server);
  CHECK(tally_count(&of_server) == 1);
  EXPECT(MCPL_STALE_HANDLE, mcpl_server_close(server));
}

static void ask(mcpl_input_request *request, const char *params, size_t length, void *user) {
  (void)request, (void)params, (void)length, (void)user;
}

static void nothing(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)call, (void)arguments, (void)length, (void)user;
}

static void notified(mcpl_client *one, const char *method, const char *params, size_t length, void *user) {
  (void)one, (void)method, (void)params, (void)length;
  tally_add(user);
}

/* Everything for which the library uses thread-local storage: a failure, a callback and a finalizer. */
static void use_this_thread(void) {
  struct tally notifications = TALLY;
  struct tally finalizer = TALLY;
  EXPECT(MCPL_USAGE_ERROR, mcpl_client_close(NULL));
  mcpl_loop *loop = mcpl_loop_new();
  mcpl_client *other = joined(server);
  OK(mcpl_client_use_loop(other, loop));
  OK(mcpl_client_on_notification(other, notified, &notifications, NULL));
  OK(mcpl_client_on_elicit(other, ask, &finalizer, finalized));
  OK(mcpl_client_open(other));
  OK(mcpl_server_add_tool(server, "more", "Is listed", NULL, nothing, NULL, NULL));
  while (tally_count(&notifications) == 0) {
    OK(mcpl_client_ping(other, NULL));
  }
  OK(mcpl_client_close(other));
  CHECK(tally_count(&finalizer) == 1);
  mcpl_client_free(other);
  mcpl_loop_free(loop);
}

int main(void) {
  CHECK(atexit(at_end) == 0);
  server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "a", "Nothing", NULL, nothing, &of_server, finalized));
  client = joined(server);
  OK(mcpl_client_on_elicit(client, ask, &of_client, finalized));
  OK(mcpl_client_open(client));
  use_this_thread();
  printf("1 passed, 0 failed\n");
  return EXIT_SUCCESS;
}
