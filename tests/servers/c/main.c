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
        fputs("usage: everything-server [--http PORT] [--page-size N] [--OPTION N]…\n", stderr);
        exit(EXIT_FAILURE);
    }
    return number;
}

/* Returns the HTTP options as JSON, which belongs to the writer. */
static const char *http_options(mcpl_json *json, const arguments *given) {
    mcpl_json_begin_object(json);
    put_number_member(json, "max_sessions", given->max_sessions);
    put_number_member(json, "read_timeout", given->read_timeout);
    put_number_member(json, "write_timeout", given->write_timeout);
    mcpl_json_end_object(json);
    const char *text = NULL;
    size_t length = 0;
    must(mcpl_json_text(json, &text, &length), "the options of HTTP");
    return text;
}

int main(int count, char **words) {
    arguments given = {0};
    const struct {
        const char *name;
        long *value;
    } options[] = {
        {"--http", &given.port},
        {"--channel", &given.channel},
        {"--page-size", &given.page_size},
        {"--max-suspended-handlers", &given.max_suspended_handlers},
        {"--max-sessions", &given.max_sessions},
        {"--read-timeout", &given.read_timeout},
        {"--write-timeout", &given.write_timeout},
        {"--extras", &given.extras},
        {"--blocking", &given.blocking},
        {"--more", &given.more},
        {"--extensions", &given.extensions},
        {"--declared", &given.declared},
        {"--tools-only", &given.tools_only},
        {"--prompts-only", &given.prompts_only},
    };
    for (int index = 1; index < count; index += 2) {
        size_t option = 0;
        while (option < COUNT(options) && strcmp(words[index], options[option].name) != 0) {
            option++;
        }
        *options[option < COUNT(options) ? option : 0].value = number(option < COUNT(options) ? words[index + 1] : NULL);
    }
    must(mcpl_set_diagnostics(MCPL_LOG_WARNING, diagnose, NULL, NULL), "the diagnostics");

    if (given.blocking != 0) {
        limit_workers();
    }
    everything everything;
    everything_make(&everything, &given);
    if (given.channel != 0) {
        serve_channel(&everything, given.channel);
        everything_free(&everything);
        return EXIT_SUCCESS;
    }
    must(mcpl_server_stop_on_signals(everything.server), "listening for signals");
    if (given.port == 0) {
        must(mcpl_server_run_stdio(everything.server), "serving stdio");
    } else {
        mcpl_json *json = mcpl_json_new();
        const char *options_json = http_options(json, &given);
        must(mcpl_server_run_http(everything.server, "127.0.0.1", (uint16_t)given.port, options_json), "serving HTTP");
        mcpl_json_free(json);
    }
    everything_free(&everything);
    return EXIT_SUCCESS;
}
