/* The everything-server in C. Its specification is ../README.md. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "everything.h"
#include "fixtures.h"

static void diagnose(mcpl_log_level level, const char *target, const char *message, void *user) {
    (void)level;
    (void)user;
    fprintf(stderr, "%s: %s\n", target, message);
}

static long number(const char *text) {
    char *end = NULL;
    long number = text == NULL ? 0 : strtol(text, &end, 10);
    if (text == NULL || *end != '\0' || number <= 0) {
        fputs("usage: everything-server [--http PORT] [--page-size N]\n", stderr);
        exit(EXIT_FAILURE);
    }
    return number;
}

int main(int count, char **arguments) {
    long port = 0, page_size = 0;
    for (int index = 1; index < count; index += 2) {
        long value = number(arguments[index + 1]);
        if (strcmp(arguments[index], "--http") == 0) {
            port = value;
        } else if (strcmp(arguments[index], "--page-size") == 0) {
            page_size = value;
        } else {
            number(NULL);
        }
    }
    must(mcpl_set_diagnostics(MCPL_LOG_WARNING, diagnose, NULL, NULL), "the diagnostics");

    everything everything;
    everything_make(&everything, page_size);
    must(mcpl_server_stop_on_signals(everything.server), "listening for signals");
    if (port == 0) {
        must(mcpl_server_run_stdio(everything.server), "serving stdio");
    } else {
        must(mcpl_server_run_http(everything.server, "127.0.0.1", (uint16_t)port, NULL), "serving HTTP");
    }
    everything_free(&everything);
    return EXIT_SUCCESS;
}
