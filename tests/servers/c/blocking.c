/* For tests/hostile only: tools that block worker threads, and one that counts its calls. */
#include <pthread.h>

#include "fixtures.h"

/* Number of worker threads: few, so that a test can block all of them. */
#define WORKERS 4

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;
static int held, releases, tickets;

static void hold(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    pthread_mutex_lock(&lock);
    held++;
    while (releases == 0) {
        pthread_cond_wait(&opened, &lock);
    }
    releases--;
    pthread_mutex_unlock(&lock);
    mcpl_call_reply_text(call, "released", MCPL_AUTO_LENGTH);
}

static void count_held(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    pthread_mutex_lock(&lock);
    int count = held;
    pthread_mutex_unlock(&lock);
    reply_formatted(call, "%d of %d", count, WORKERS);
}

static void release(mcpl_call *call, int count) {
    pthread_mutex_lock(&lock);
    releases += count;
    pthread_cond_broadcast(&opened);
    pthread_mutex_unlock(&lock);
    mcpl_call_reply_text(call, "released", MCPL_AUTO_LENGTH);
}

static void release_one(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    release(call, 1);
}

static void release_held(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    release(call, WORKERS);
}

static void ticket(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    pthread_mutex_lock(&lock);
    int number = ++tickets;
    pthread_mutex_unlock(&lock);
    reply_formatted(call, "%d", number);
}

static const tool TOOLS[] = {
    {.name = "test_hold", .description = "Holds a worker thread until it is released", .handler = hold},
    {.name = "test_held",
     .description = "Says how many worker threads are held",
     .handler = count_held,
     .flags = MCPL_HANDLER_INLINE},
    {.name = "test_release_one",
     .description = "Releases one worker thread",
     .handler = release_one,
     .flags = MCPL_HANDLER_INLINE},
    {.name = "test_release",
     .description = "Releases the worker threads",
     .handler = release_held,
     .flags = MCPL_HANDLER_INLINE},
    {.name = "test_ticket", .description = "Says which call of this tool it is", .handler = ticket},
};

void limit_workers(void) {
    must(mcpl_set_worker_threads(WORKERS), "limiting the worker threads");
}

void add_blocking(everything *everything) {
    add_tools(everything, TOOLS, COUNT(TOOLS));
}
