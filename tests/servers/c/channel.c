/* A custom transport: messages over stdin and stdout. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <time.h>

#include "fixtures.h"

/* Calls of one channel do not overlap. */
static mcpl_status send_line(mcpl_channel *channel, const char *message, size_t length, void *user) {
    (void)channel, (void)user;
    fwrite(message, 1, length, stdout);
    fputc('\n', stdout);
    fflush(stdout);
    return MCPL_OK;
}

void serve_channel(everything *everything, long number) {
    /* The principals of `--channel N`. */
    static const char *const PRINCIPALS[] = {
        NULL,
        NULL,
        JSON({"subject": "alice"}),
        JSON({"subject": "alice", "scopes": ["acme:write"]}),
    };
    const mcpl_channel_functions functions = {.size = sizeof functions, .send = send_line};
    const char *principal = PRINCIPALS[number < (long)COUNT(PRINCIPALS) ? number : 0];
    mcpl_channel *channel =
        mcpl_server_serve_channel(everything->server, &functions, principal, MCPL_AUTO_LENGTH, NULL, NULL);
    must(channel == NULL ? mcpl_error_status(mcpl_last_error()) : MCPL_OK, "serving the channel");

    char *line = NULL;
    size_t capacity = 0;
    ssize_t length = 0;
    while ((length = getline(&line, &capacity, stdin)) > 0) {
        length -= line[length - 1] == '\n';
        const struct timespec pause = {.tv_nsec = 1000 * 1000};
        while (mcpl_channel_receive(channel, line, (size_t)length) == MCPL_BUSY) {
            nanosleep(&pause, NULL);
        }
    }
    free(line);
    mcpl_channel_hang_up(channel, NULL);
}
