/* A custom transport: a program that this transport starts, with one message per line on its stdin and stdout. */
#ifndef CHANNEL_H
#define CHANNEL_H

#include <mcpline.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/types.h>

/* A program and its current channel: a client opens the next one only after the previous one is closed. Set `command`,
 * which NULL follows, and leave the rest zero. */
typedef struct {
    char **command;
    mcpl_channel *channel;
    pid_t process; /* 0 if it does not run */
    FILE *input;
    FILE *output;
    pthread_t reader;
} program;

/* The callbacks, whose user data is a `program`. */
extern const mcpl_channel_functions PROGRAM_CHANNEL;

#endif
