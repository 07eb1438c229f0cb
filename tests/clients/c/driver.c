/* The C driver: a client that reads one job per line and prints one report per line. ../README.md has the format of
 * both. Each job runs on a thread, with the blocking functions. */
#define _POSIX_C_SOURCE 200809L
#include "driver.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static size_t running; /* number of jobs; protected by `lock`, which also serialises reports */

/* Connects, runs the steps and closes; the report is in the writer. Returns whether everything succeeded. */
static bool play(slice job, mcpl_json *report) {
    mcpl_json_clear(report);
    mcpl_json_begin_object(report);
    put_slice(report, "job", slice_at(job, "/job"));
    received *all = received_new();
    mcpl_client *client = connected(job, all, report);
    if (client == NULL) {
        received_free(all);
        put_slice(report, "revision", (slice){NULL, 0});
        put_slice(report, "server", (slice){NULL, 0});
        put_slice(report, "steps", (slice){"[]", 2});
        mcpl_json_end_object(report);
        return false;
    }
    char *client_info = NULL;
    size_t length = 0;
    mcpl_client_info(client, &client_info, &length);
    slice info = {client_info, length};
    put_slice(report, "revision", slice_at(info, "/protocolVersion"));
    put_slice(report, "server", slice_at(info, "/serverInfo/name"));
    mcpl_string_free(client_info);

    mcpl_json_name(report, "steps");
    mcpl_json_begin_array(report);
    bool good = true;
    slice steps = slice_at(job, "/steps"), step;
    for (size_t index = 0; steps.text != NULL && (step = slice_element(steps, index)).text != NULL; index++) {
        good &= take(client, step, all, report);
    }
    mcpl_json_end_array(report);
    mcpl_json_end_object(report);
    mcpl_client_close(client);
    mcpl_client_free(client);
    received_free(all);
    return good;
}

/* Runs a job as often as it says, until something fails; writes the report of the last run. */
static void *run(void *line) {
    slice job = {line, strlen(line)};
    mcpl_json *report = mcpl_json_new();
    double times = number_at(job, "/times", 1);
    for (double time = 0; time < times && play(job, report); time++) {
    }
    slice text = written(report);
    pthread_mutex_lock(&lock);
    /* Must be one line: the report has results as servers wrote them, perhaps with line ends between tokens. */
    for (size_t index = 0; index < text.length; index++) {
        char character = text.text[index];
        putc_unlocked(character == '\n' || character == '\r' ? ' ' : character, stdout);
    }
    fputc('\n', stdout);
    fflush(stdout);
    running--;
    pthread_cond_signal(&ended);
    pthread_mutex_unlock(&lock);
    mcpl_json_free(report);
    free(line);
    return NULL;
}

int main(void) {
    /* The program of a custom transport may end while a message is sent to it. */
    signal(SIGPIPE, SIG_IGN);
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    char *line = NULL;
    size_t capacity = 0;
    while (getline(&line, &capacity, stdin) > 0) {
        pthread_t thread;
        pthread_mutex_lock(&lock);
        running++;
        pthread_mutex_unlock(&lock);
        if (pthread_create(&thread, &detached, run, line) != 0) {
            fputs("driver: there can't be one more thread\n", stderr);
            return EXIT_FAILURE;
        }
        /* The thread owns it now. */
        line = NULL;
        capacity = 0;
    }
    free(line);
    pthread_mutex_lock(&lock);
    while (running > 0) {
        pthread_cond_wait(&ended, &lock);
    }
    pthread_mutex_unlock(&lock);
    pthread_attr_destroy(&detached);
    return EXIT_SUCCESS;
}
