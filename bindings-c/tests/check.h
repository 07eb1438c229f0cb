/* Shared by the test programs: checks, tests by name, and waiting for other threads. */

#ifndef CHECK_H
#define CHECK_H

#include <mcpline.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Ends the program if a check fails: a test that continued would only produce confusing errors. */
#define CHECK(condition)                                                                                               \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      check_failed(__FILE__, __LINE__, #condition);                                                                    \
    }                                                                                                                  \
  } while (0)

/* Checks that a function returns this status; otherwise prints the one that it returned. */
#define EXPECT(expected, call) check_status(__FILE__, __LINE__, #call, (expected), (call))

/* Checks that a function succeeds. */
#define OK(call) EXPECT(MCPL_OK, call)

/* Checks that a text contains this. */
#define CONTAINS(text, part) check_contains(__FILE__, __LINE__, (text), (part))

static inline void check_failed(const char *file, int line, const char *what) {
  fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
  fflush(NULL);
  abort();
}

static inline void check_status(const char *file, int line, const char *what, mcpl_status expected, mcpl_status got) {
  if (got != expected) {
    fprintf(stderr, "%s:%d: %s is %s instead of %s (last error: %s)\n", file, line, what, mcpl_status_name(got),
            mcpl_status_name(expected), mcpl_error_message(mcpl_last_error()));
    abort();
  }
}

static inline void check_contains(const char *file, int line, const char *text, const char *part) {
  if (text == NULL || strstr(text, part) == NULL) {
    fprintf(stderr, "%s:%d: %s has no %s\n", file, line, text == NULL ? "(null)" : text, part);
    abort();
  }
}

/* Counts events on other threads, and waits for them. The time limit only prevents a test from hanging. */
struct tally {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int count;
};

#define TALLY {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0}

static inline void tally_add(struct tally *tally) {
  pthread_mutex_lock(&tally->lock);
  tally->count++;
  pthread_cond_broadcast(&tally->changed);
  pthread_mutex_unlock(&tally->lock);
}

static inline int tally_count(struct tally *tally) {
  pthread_mutex_lock(&tally->lock);
  const int count = tally->count;
  pthread_mutex_unlock(&tally->lock);
  return count;
}

static inline void tally_wait(struct tally *tally, int least) {
  struct timespec limit;
  clock_gettime(CLOCK_REALTIME, &limit);
  limit.tv_sec += 300;
  pthread_mutex_lock(&tally->lock);
  while (tally->count < least) {
    CHECK(pthread_cond_timedwait(&tally->changed, &tally->lock, &limit) == 0);
  }
  pthread_mutex_unlock(&tally->lock);
}

/* A finalizer that counts: user data is the tally itself. */
static inline void finalized(void *user) { tally_add(user); }

/* A client of a server in this process. */
static inline mcpl_client *joined(mcpl_server *server) {
  mcpl_client *client = mcpl_client_new("test", "1");
  CHECK(client != NULL);
  OK(mcpl_client_set_server(client, server));
  return client;
}

/* Returns the text of a tool's result; free it. */
static inline char *called(mcpl_client *client, const char *tool, const char *arguments) {
  char *result = NULL;
  OK(mcpl_client_call_tool(client, tool, arguments, MCPL_AUTO_LENGTH, NULL, &result, NULL));
  return result;
}

/* Checks that a tool's result contains this. */
#define CALLS(client, tool, arguments, part)                                                                           \
  do {                                                                                                                 \
    char *answered = called((client), (tool), (arguments));                                                            \
    CONTAINS(answered, part);                                                                                          \
    mcpl_string_free(answered);                                                                                        \
  } while (0)

/* An asynchronous request and its outcome. */
struct pending {
  struct tally done;
  mcpl_status status;
  char text[512];
};

#define PENDING {TALLY, MCPL_OK, ""}

static inline void completed(mcpl_request *request, const mcpl_error *error, const char *result, size_t length,
                             void *user) {
  struct pending *pending = user;
  (void)request;
  pending->status = error == NULL ? MCPL_OK : mcpl_error_status(error);
  if (error != NULL) {
    snprintf(pending->text, sizeof pending->text, "%s", mcpl_error_message(error));
  } else {
    snprintf(pending->text, sizeof pending->text, "%.*s", (int)length, result);
  }
  tally_add(&pending->done);
}

struct test {
  const char *name;
  void (*run)(void);
};

#define TEST(name) {#name, name}

/* Runs all tests, or those whose names are given; closes with `N passed, N failed` (a failure ends the program). */
static inline int run_tests(const struct test *tests, size_t count, int argc, char **argv) {
  int passed = 0;
  for (size_t index = 0; index < count; index++) {
    bool wanted = argc < 2;
    for (int argument = 1; argument < argc; argument++) {
      wanted = wanted || strcmp(argv[argument], tests[index].name) == 0;
    }
    if (wanted) {
      fprintf(stderr, "%s\n", tests[index].name);
      tests[index].run();
      passed++;
    }
  }
  printf("%d passed, 0 failed\n", passed);
  return passed > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#define MAIN(tests)                                                                                                    \
  int main(int argc, char **argv) { return run_tests((tests), sizeof(tests) / sizeof *(tests), argc, argv); }

#endif
