/* The mcpline client for C, calling one echo tool with the asynchronous functions: a given number of calls in flight,
 * each followed by the next one when it is done. With `MODERN` in the environment it uses 2026-07-28. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <mcpline.h>

static const char ARGUMENTS[] = "{\"text\":\"abcdefghijklmnopabcdefghijklmnop\"}";

static mcpl_client *client;
static atomic_bool going = true;
static atomic_long calls;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static long running; /* under `lock` */

static void failed(const mcpl_error *error) {
  fprintf(stderr, "%s\n", mcpl_error_message(error));
  exit(EXIT_FAILURE);
}

static void must(mcpl_status status) {
  if (status != MCPL_OK) {
    failed(mcpl_last_error());
  }
}

static void done(mcpl_request *request, const mcpl_error *error, const char *result, size_t length, void *user);

static void call(void) {
  must(mcpl_client_call_tool_async(client, "echo", ARGUMENTS, sizeof ARGUMENTS - 1, NULL, done, NULL, NULL));
}

static void done(mcpl_request *request, const mcpl_error *error, const char *result, size_t length, void *user) {
  (void)request, (void)result, (void)length, (void)user;
  if (error != NULL) {
    failed(error);
  }
  atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
  if (atomic_load_explicit(&going, memory_order_relaxed)) {
    call();
    return;
  }
  pthread_mutex_lock(&lock);
  running--;
  pthread_cond_signal(&ended);
  pthread_mutex_unlock(&lock);
}

static double now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void pause_ms(long milliseconds) {
  struct timespec left = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000};
  while (nanosleep(&left, &left) != 0) {
  }
}

int main(int count, char **arguments) {
  if (count < 5) {
    fputs("usage: mcpline_c WIDTH MILLISECONDS http URL | stdio COMMAND…\n", stderr);
    return EXIT_FAILURE;
  }
  long width = strtol(arguments[1], NULL, 10), window = strtol(arguments[2], NULL, 10);
  const char *revision =
      getenv("MODERN") == NULL ? "{\"revisions\":[\"2025-11-25\"]}" : "{\"revisions\":[\"2026-07-28\"]}";
  client = mcpl_client_new("bench", "1.0.0");
  must(mcpl_client_set_options(client, revision, MCPL_AUTO_LENGTH));
  if (arguments[3][0] == 'h') {
    must(mcpl_client_connect(client, arguments[4]));
  } else {
    must(mcpl_client_spawn(client, (const char *const *)arguments + 4, (size_t)count - 4));
  }

  running = width;
  for (long slot = 0; slot < width; slot++) {
    call();
  }
  pause_ms(window / 4);
  long before = atomic_load(&calls);
  double spent = now(CLOCK_PROCESS_CPUTIME_ID), began = now(CLOCK_MONOTONIC);
  pause_ms(window);
  long made = atomic_load(&calls) - before;
  spent = now(CLOCK_PROCESS_CPUTIME_ID) - spent;
  double took = now(CLOCK_MONOTONIC) - began;
  atomic_store(&going, false);
  pthread_mutex_lock(&lock);
  while (running > 0) {
    pthread_cond_wait(&ended, &lock);
  }
  pthread_mutex_unlock(&lock);
  printf("{\"calls\":%ld,\"cpu_us_per_call\":%.3f,\"calls_per_s\":%.0f}\n", made, spent * 1e6 / (double)made,
         (double)made / took);
  must(mcpl_client_close(client));
  mcpl_client_free(client);
  return EXIT_SUCCESS;
}
