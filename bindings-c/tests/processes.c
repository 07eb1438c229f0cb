/* Servers in their own processes, which run this program, and the ways in which they end.
 *
 *     processes serve KEEP|SILENT TELLS WAITS
 *
 * is such a server. It reports to the pipe TELLS what it does. With KEEP it stays until the pipe WAITS ends. Both are
 * paths: a server that a client starts inherits no descriptors.
 */

#include "check.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

/* ---- the server */

static int report_fd;

static void report(char what) { CHECK(write(report_fd, &what, 1) == 1); }

static void keep(mcpl_call *call, const char *arguments, size_t length, void *user) {
  (void)arguments, (void)length, (void)user;
  OK(mcpl_call_keep(call));
  report('k');
}

/* Waits until the other end is closed. */
static void stay(int waits) {
  char none = 0;
  while (read(waits, &none, 1) > 0) {
  }
}

/* Serves a tool that never answers, and stays when its client has closed its input. */
static void serve_and_stay(int waits) {
  mcpl_server *server = mcpl_server_new("server", "1");
  OK(mcpl_server_add_tool(server, "keep", "Never answers", NULL, keep, NULL, NULL));
  OK(mcpl_server_run_stdio(server));
  report('e');
  stay(waits);
  report('x');
  mcpl_server_free(server);
}

/* Sends nothing, and takes a moment to exit when its client has closed its input. */
static void be_silent(void) {
  char byte = 0;
  report('s');
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  usleep(100000);
  report('e');
}

static int serve(char **argv) {
  report_fd = open(argv[3], O_WRONLY);
  const int waits = open(argv[4], O_RDONLY);
  CHECK(report_fd >= 0 && waits >= 0);
  if (strcmp(argv[2], "KEEP") == 0) {
    serve_and_stay(waits);
  } else {
    be_silent();
  }
  return EXIT_SUCCESS;
}

/* ---- its client */

/* Pipes between the server and this program. */
struct lines {
  /* Reads the server's reports; keeps the server waiting for this program. */
  int reports;
  int holds;
  /* The server's ends, which it opens itself. */
  int report_fd;
  int waits;
};

static struct lines lines(void) {
  int telling[2];
  int holding[2];
  /* Without FD_CLOEXEC: if the server inherited them, it would wait for itself. */
  CHECK(pipe(telling) == 0 && pipe(holding) == 0);
  return (struct lines){.reports = telling[0], .holds = holding[1], .report_fd = telling[1], .waits = holding[0]};
}

/* Closes the server's ends in this process. */
static void started(struct lines *lines) { CHECK(close(lines->report_fd) == 0 && close(lines->waits) == 0); }

/* Returns the server's next report; zero if it has ended. */
static char next_report(struct lines *lines) {
  char what = 0;
  CHECK(read(lines->reports, &what, 1) >= 0);
  return what;
}

/* Creates a client that starts this program as a server of this kind, with so many seconds to exit. */
static mcpl_client *client_of(const char *kind, const char *grace, const struct lines *lines) {
  char tells[64];
  char waits[64];
  char options[64];
  snprintf(tells, sizeof tells, "/proc/%d/fd/%d", (int)getpid(), lines->report_fd);
  snprintf(waits, sizeof waits, "/proc/%d/fd/%d", (int)getpid(), lines->waits);
  snprintf(options, sizeof options, "{\"exit_timeout\":%s}", grace);
  char program[4096] = "";
  CHECK(readlink("/proc/self/exe", program, sizeof program - 1) > 0);
  const char *argv[] = {program, "serve", kind, tells, waits};
  mcpl_client *client = mcpl_client_new("client", "1");
  OK(mcpl_client_set_command(client, argv, sizeof argv / sizeof *argv, options));
  return client;
}

/* Returns whether a thread of this name runs. */
static bool runs(const char *name) {
  bool found = false;
  DIR *threads = opendir("/proc/self/task");
  CHECK(threads != NULL);
  for (struct dirent *thread = readdir(threads); thread != NULL; thread = readdir(threads)) {
    char path[300];
    char comm[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", thread->d_name);
    FILE *file = fopen(path, "r");
    if (file != NULL) {
      found = found || (fgets(comm, sizeof comm, file) != NULL && strncmp(comm, name, strlen(name)) == 0);
      fclose(file);
    }
  }
  closedir(threads);
  return found;
}

static struct tally freed = TALLY;

/* Frees its client. */
static void free_it(mcpl_request *request, const mcpl_error *error, const char *result, size_t length, void *user) {
  (void)request, (void)result, (void)length;
  CHECK(mcpl_error_status(error) == MCPL_CLOSED);
  mcpl_client_free(user);
  tally_add(&freed);
}

static void *close_it(void *client) {
  OK(mcpl_client_close(client));
  return NULL;
}

/* The freed client is the last object of the program: the library ends with it. */
static void a_client_is_freed_while_it_is_closed(void) {
  struct lines with = lines();
  pthread_t closing;
  mcpl_client *client = client_of("KEEP", "300", &with);
  OK(mcpl_client_open(client));
  started(&with);
  OK(mcpl_client_call_tool_async(client, "keep", NULL, 0, NULL, free_it, client, NULL));
  CHECK(next_report(&with) == 'k');
  CHECK(pthread_create(&closing, NULL, close_it, client) == 0);
  CHECK(next_report(&with) == 'e');
  tally_wait(&freed, 1);
  /* If closing in the background did not wait for the server, it would end it now. */
  usleep(100000);
  CHECK(close(with.holds) == 0);
  CHECK(next_report(&with) == 'x');
  CHECK(pthread_join(closing, NULL) == 0);
  close(with.reports);
  /* The library ends in the background, as its last object does. */
  while (runs("mcpline-close")) {
    usleep(10000);
  }
}

/* Checks that the server has ended by itself by now. */
static void has_ended(struct lines *lines) {
  char last = 0;
  CHECK(fcntl(lines->reports, F_SETFL, O_NONBLOCK) == 0);
  CHECK(read(lines->reports, &last, 1) == 1 && last == 'e');
  CHECK(close(lines->reports) == 0 && close(lines->holds) == 0);
}

static void closing_a_client_that_opens_ends_the_process_in_order(void) {
  struct lines with = lines();
  struct pending opening = PENDING;
  mcpl_client *client = client_of("SILENT", "300", &with);
  OK(mcpl_client_open_async(client, completed, &opening, NULL));
  CHECK(next_report(&with) == 's');
  started(&with);
  OK(mcpl_client_close(client));
  has_ended(&with);
  tally_wait(&opening.done, 1);
  CHECK(opening.status == MCPL_CLOSED);
  mcpl_client_free(client);
}

/* The client is the last object of the program here as well. */
static void freeing_a_client_whose_opening_was_cancelled_ends_the_process_in_order(void) {
  struct lines with = lines();
  struct pending opening = PENDING;
  mcpl_request *request = NULL;
  mcpl_client *client = client_of("SILENT", "300", &with);
  OK(mcpl_client_open_async(client, completed, &opening, &request));
  CHECK(next_report(&with) == 's');
  started(&with);
  OK(mcpl_request_cancel(request));
  tally_wait(&opening.done, 1);
  CHECK(opening.status == MCPL_REQUEST_CANCELLED);
  mcpl_client_free(client);
  has_ended(&with);
}

static void settings_of_a_client_apply_to_any_command(void) {
  /* It reads first: ThreadSanitizer does not see that epoll orders what is written at once after the start. */
  const char *argv[] = {"/bin/sh", "-c", "read -r line; echo \"$GIVEN $KEPT $REMOVED in $PWD\" >&2; exit 3"};
  mcpl_client *client = mcpl_client_new("test", "1");
  OK(mcpl_client_set_env(client, "GIVEN", "given"));
  OK(mcpl_client_set_env(client, "REMOVED", "unwanted"));
  OK(mcpl_client_set_command(client, argv, 3,
                             "{\"cwd\": \"/\", \"env\": {\"GIVEN\": \"unwanted\", \"KEPT\": \"kept\"}}"));
  OK(mcpl_client_set_env(client, "REMOVED", NULL));
  OK(mcpl_client_set_cwd(client, "/usr"));
  EXPECT(MCPL_SERVER_EXITED, mcpl_client_open(client));
  CONTAINS(mcpl_error_details(mcpl_last_error()), "given kept  in /usr");
  mcpl_client_free(client);
}

/* The changes of a client's connection. */
struct changes {
  mcpl_connection_event events[5];
  mcpl_status lost;
  struct tally count;
};

static void on_connection(mcpl_client *client, mcpl_connection_event event, const mcpl_error *error, void *user) {
  struct changes *changes = user;
  const int at = tally_count(&changes->count);
  (void)client;
  CHECK(at < 5);
  CHECK((error != NULL) == (event == MCPL_CONNECTION_EVENT_LOST));
  changes->events[at] = event;
  if (error != NULL) {
    changes->lost = mcpl_error_status(error);
  }
  tally_add(&changes->count);
}

static void a_client_reports_changes_of_its_connection(void) {
  struct lines with = lines();
  struct changes changes = {.count = TALLY};
  struct tally released = TALLY;
  mcpl_client *client = client_of("KEEP", "300", &with);
  OK(mcpl_client_on_connection(client, on_connection, &released, finalized));
  /* Replaces the first. */
  OK(mcpl_client_on_connection(client, on_connection, &changes, NULL));
  OK(mcpl_client_open(client));
  const uint32_t pid = mcpl_client_pid(client);
  CHECK(pid != 0);
  CHECK(kill((pid_t)pid, SIGKILL) == 0);
  tally_wait(&changes.count, 2);
  char *info = NULL;
  EXPECT(MCPL_CONNECTION_LOST, mcpl_client_info(client, &info, NULL));
  OK(mcpl_client_ping(client, NULL));
  OK(mcpl_client_info(client, &info, NULL));
  CONTAINS(info, "\"name\":\"server\"");
  mcpl_string_free(info);
  started(&with);
  CHECK(close(with.holds) == 0);
  OK(mcpl_client_close(client));
  CHECK(tally_count(&changes.count) == 5);
  CHECK(tally_count(&released) == 1);
  static const mcpl_connection_event expected[] = {
      MCPL_CONNECTION_EVENT_CONNECTED, MCPL_CONNECTION_EVENT_LOST,   MCPL_CONNECTION_EVENT_RETRYING,
      MCPL_CONNECTION_EVENT_RESTORED,  MCPL_CONNECTION_EVENT_CLOSED,
  };
  CHECK(memcmp(changes.events, expected, sizeof expected) == 0);
  CHECK(changes.lost == MCPL_SERVER_EXITED);
  CHECK(close(with.reports) == 0);
  mcpl_client_free(client);
}

static const struct test tests[] = {
    TEST(settings_of_a_client_apply_to_any_command),
    TEST(a_client_reports_changes_of_its_connection),
    TEST(closing_a_client_that_opens_ends_the_process_in_order),
    TEST(freeing_a_client_whose_opening_was_cancelled_ends_the_process_in_order),
    TEST(a_client_is_freed_while_it_is_closed),
};

int main(int argc, char **argv) {
  if (argc == 5 && strcmp(argv[1], "serve") == 0) {
    return serve(argv);
  }
  return run_tests(tests, sizeof tests / sizeof *tests, argc, argv);
}
