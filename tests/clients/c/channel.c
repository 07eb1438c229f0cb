/* For pipe2: other processes that start at the same time must not inherit the pipes. */
#define _GNU_SOURCE
#include "channel.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* Passes the program's messages on until its stdout ends. */
static void *receive_lines(void *user) {
    program *program = user;
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length = 0;
    while ((length = getline(&line, &capacity, program->output)) > 0) {
        const struct timespec pause = {.tv_nsec = 1000 * 1000};
        length -= line[length - 1] == '\n';
        while (mcpl_channel_receive(program->channel, line, (size_t)length) == MCPL_BUSY) {
            nanosleep(&pause, NULL);
        }
    }
    free(line);
    mcpl_channel_hang_up(program->channel, NULL);
    return NULL;
}

/* Starts the program with these descriptors as its stdin and stdout. Returns 0 or an error number. */
static int spawn(program *program, int input, int output) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    int error = posix_spawnp(&program->process, program->command[0], &actions, NULL, program->command, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

static int start(program *program) {
    int to_program[2], from_program[2];
    if (pipe2(to_program, O_CLOEXEC) != 0) {
        return errno;
    }
    if (pipe2(from_program, O_CLOEXEC) != 0) {
        int error = errno;
        close(to_program[0]);
        close(to_program[1]);
        return error;
    }
    int error = spawn(program, to_program[0], from_program[1]);
    close(to_program[0]);
    close(from_program[1]);
    program->input = fdopen(to_program[1], "w");
    program->output = fdopen(from_program[0], "r");
    if (error == 0) {
        error = pthread_create(&program->reader, NULL, receive_lines, program);
    }
    return error;
}

static void open_program(mcpl_channel *channel, void *user) {
    program *program = user;
    program->channel = channel;
    int error = start(program);
    mcpl_channel_opened(channel, error == 0 ? NULL : strerror(error));
}

static mcpl_status send_line(mcpl_channel *channel, const char *message, size_t length, void *user) {
    program *program = user;
    fwrite(message, 1, length, program->input);
    fputc('\n', program->input);
    if (fflush(program->input) != 0) {
        mcpl_channel_hang_up(channel, strerror(errno));
    }
    return MCPL_OK;
}

/* The program ends with its stdin, and the reader with the program. */
static void close_program(mcpl_channel *channel, void *user) {
    (void)channel;
    program *program = user;
    if (program->process != 0) {
        fclose(program->input);
        pthread_join(program->reader, NULL);
        fclose(program->output);
        waitpid(program->process, NULL, 0);
        program->process = 0;
    }
}

const mcpl_channel_functions PROGRAM_CHANNEL = {
    .size = sizeof PROGRAM_CHANNEL,
    .open = open_program,
    .send = send_line,
    .close = close_program,
};
