/* Signals reach the program's threads, not those of the library; and the stacks of handlers. */

#include "check.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STACK = 16 * 1024 * 1024 };

static void inspect(mcpl_call *call, const char *arguments, size_t length, void *user) {
  sigset_t blocked;
  (void)arguments, (void)length, (void)user;
  CHECK(pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0);
  CHECK(sigismember(&blocked, SIGTERM) == 1 && sigismember(&blocked, SIGINT) == 1);
  CHECK(sigismember(&blocked, SIGSEGV) == 0 && sigismember(&blocked, SIGABRT) == 0);
  OK(mcpl_call_reply_text(call, "blocked", MCPL_AUTO_LENGTH));
}

/* The program blocks a signal after the library has started its threads. */
static void a_signal_that_the_program_blocks_is_not_taken_by_the_library(void) {
  sigset_t signals;
  sigset_t before;
  struct signalfd_siginfo received;
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "inspect", "Inspects its thread", NULL, inspect, NULL, NULL));
  mcpl_client *client = joined(server);
  OK(mcpl_client_open(client));
  CALLS(client, "inspect", NULL, "blocked");
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  CHECK(pthread_sigmask(SIG_BLOCK, &signals, &before) == 0);
  /* The library has left the mask of this thread as it was. */
  CHECK(sigismember(&before, SIGTERM) == 0 && sigismember(&before, SIGHUP) == 0);
  const int descriptor = signalfd(-1, &signals, SFD_CLOEXEC);
  CHECK(descriptor >= 0);
  CHECK(kill(getpid(), SIGTERM) == 0);
  CHECK(read(descriptor, &received, sizeof received) == sizeof received);
  CHECK(received.ssi_signo == SIGTERM);
  CHECK(close(descriptor) == 0);
  CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
  mcpl_client_free(client);
  mcpl_server_free(server);
}

static void the_servers_that_a_client_starts_get_signals(void) {
  const char *const command[] = {"/bin/sh", "-c", "grep SigBlk /proc/self/status >&2; exit 1"};
  mcpl_client *client = mcpl_client_new("test", "1");
  CHECK(client != NULL);
  OK(mcpl_client_set_command(client, command, 3, NULL));
  EXPECT(MCPL_SERVER_EXITED, mcpl_client_open(client));
  CONTAINS(mcpl_error_details(mcpl_last_error()), "0000000000000000");
  mcpl_client_free(client);
}

static void use_stack(mcpl_call *call, const char *arguments, size_t length, void *user) {
  volatile char memory[STACK / 2];
  (void)arguments, (void)length, (void)user;
  for (size_t index = 0; index < sizeof memory; index += 1024) {
    memory[index] = 1;
  }
  OK(mcpl_call_reply_text(call, memory[1024] == 1 ? "used" : "", MCPL_AUTO_LENGTH));
}

static void the_stacks_of_handlers_have_the_size_that_is_set(void) {
  EXPECT(MCPL_USAGE_ERROR, mcpl_set_worker_stack_size(4096));
  OK(mcpl_set_worker_stack_size(STACK));
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "use", "Uses its stack", NULL, use_stack, NULL, NULL));
  mcpl_client *client = joined(server);
  OK(mcpl_client_open(client));
  CALLS(client, "use", NULL, "used");
  mcpl_client_free(client);
  mcpl_server_free(server);
  OK(mcpl_set_worker_stack_size(0));
}

static int descend(volatile int depth) {
  volatile char frame[4096];
  frame[0] = (char)depth;
  return depth < 0 ? 0 : descend(depth + 1) + frame[0];
}

static void overflow_stack(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length, (void)user;
  (void)descend(0);
  OK(mcpl_call_reply_text(call, "", MCPL_AUTO_LENGTH));
}

/* Nothing of the library is in use when this process forks, so the child may use it. */
static void a_handler_that_overflows_its_stack_ends_the_process(void) {
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    const struct rlimit none = {0, 0};
    CHECK(setrlimit(RLIMIT_CORE, &none) == 0);
    OK(mcpl_set_worker_stack_size(STACK));
    mcpl_server *server = mcpl_server_new("server", "1");
    OK(mcpl_server_add_tool(server, "overflow", "Uses too much", NULL, overflow_stack, NULL, NULL));
    mcpl_client *client = joined(server);
    OK(mcpl_client_open(client));
    char *result = NULL;
    (void)mcpl_client_call_tool(client, "overflow", NULL, 0, NULL, &result, NULL);
    _exit(EXIT_SUCCESS);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  /* AddressSanitizer reports it and exits. */
  CHECK(WIFSIGNALED(status) ? WTERMSIG(status) == SIGSEGV : WEXITSTATUS(status) != EXIT_SUCCESS);
}

static const struct test tests[] = {
    TEST(a_signal_that_the_program_blocks_is_not_taken_by_the_library),
    TEST(the_servers_that_a_client_starts_get_signals),
    TEST(the_stacks_of_handlers_have_the_size_that_is_set),
    TEST(a_handler_that_overflows_its_stack_ends_the_process),
};

MAIN(tests)
