/* Connects a job's client to its address. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "../../servers/c/everything.h"
#include "channel.h"
#include "driver.h"

static void decline(mcpl_input_request *input, const char *params, size_t length, void *user) {
    (void)params, (void)length, (void)user;
    mcpl_input_request_answer(input, JSON({"action": "decline"}), MCPL_AUTO_LENGTH);
}

static void sampled(mcpl_input_request *input, const char *params, size_t length, void *user) {
    (void)params, (void)length, (void)user;
    const char *answer =
        JSON({"role": "assistant", "content": {"type": "text", "text": "sampled"}, "model": "driver"});
    mcpl_input_request_answer(input, answer, MCPL_AUTO_LENGTH);
}

static void roots(mcpl_input_request *input, const char *params, size_t length, void *user) {
    (void)params, (void)length, (void)user;
    mcpl_input_request_answer(input, JSON({"roots": [{"uri": "file:///"}]}), MCPL_AUTO_LENGTH);
}

/* Seconds that the notification listener takes for its first notification. */
static double listener_pause;

static void slow(mcpl_client *client, const char *method, const char *params, size_t length, void *user) {
    (void)client, (void)method, (void)params, (void)length, (void)user;
    struct timespec pause = {.tv_sec = (time_t)listener_pause};
    listener_pause = 0;
    nanosleep(&pause, NULL);
}

/* A setting of all clients: delays between reconnections begin at 20 ms. */
static void put_delay(mcpl_json *json, const char *name) {
    mcpl_json_name(json, name);
    mcpl_json_put_double(json, 0.02);
}

/* Whether the status is MCPL_OK; otherwise writes `error`. Call it before any other library function. */
static bool good(mcpl_status status, mcpl_json *report) {
    if (status != MCPL_OK) {
        put_error(report, mcpl_last_error());
    }
    return status == MCPL_OK;
}

static bool configure(mcpl_client *client, slice job, received *all, mcpl_json *report) {
    mcpl_json *options = mcpl_json_new();
    mcpl_json_begin_object(options);
    put_delay(options, "reconnect_delay");
    put_given(options, "revisions", job, "/settings/revisions");
    put_given(options, "era", job, "/settings/era");
    put_given(options, "probe_timeout", job, "/settings/probe");
    put_given(options, "open_timeout", job, "/settings/answer");
    put_given(options, "reconnect_attempts", job, "/settings/attempts");
    put_given(options, "trust_tool_annotations", job, "/settings/trust_tool_annotations");
    put_given(options, "ping_interval", job, "/settings/ping_interval");
    put_given(options, "ping_timeout", job, "/settings/ping_timeout");
    put_declared_extensions(options, job);
    mcpl_json_end_object(options);
    slice text = written(options);
    bool configured = good(mcpl_client_set_options(client, text.text, text.length), report);
    mcpl_json_free(options);

    configured = configured && good(register_custom(client, job, all), report);
    bool answers = false;
    mcpl_json_bool(job.text, job.length, "/settings/answers", &answers);
    if (configured && answers) {
        configured = good(mcpl_client_on_elicit(client, decline, NULL, NULL), report) &&
                     good(mcpl_client_on_sample(client, sampled, NULL, NULL), report) &&
                     good(mcpl_client_on_list_roots(client, roots, NULL, NULL), report);
    }
    if (configured && mcpl_json_double(job.text, job.length, "/settings/listener_pause", &listener_pause) == MCPL_OK) {
        configured = good(mcpl_client_on_notification(client, slow, NULL, NULL), report);
    }
    return configured;
}

static bool set_url(mcpl_client *client, const char *url, slice job, mcpl_json *report) {
    mcpl_json *options = mcpl_json_new();
    mcpl_json_begin_object(options);
    put_delay(options, "resume_delay");
    put_given(options, "max_body_bytes", job, "/settings/max_body_bytes");
    mcpl_json_end_object(options);
    bool set = good(mcpl_client_set_url(client, url, written(options).text), report);
    mcpl_json_free(options);
    return set;
}

/* Returns the strings of an array, which NULL follows. Release with free_words. */
static char **words_of(slice array, size_t *count) {
    *count = 0;
    mcpl_json_count(array.text, array.length, "", count);
    char **words = calloc(*count + 1, sizeof *words);
    if (words == NULL) {
        abort();
    }
    for (size_t index = 0; index < *count; index++) {
        words[index] = string_at(slice_element(array, index), "");
    }
    return words;
}

static void free_words(char **words) {
    for (char **word = words; *word != NULL; word++) {
        mcpl_string_free(*word);
    }
    free(words);
}

static void free_program(void *user) {
    program *program = user;
    free_words(program->command);
    free(program);
}

/* The everything-server of this process, which lasts until its end. */
static everything own;
static pthread_once_t own_made = PTHREAD_ONCE_INIT;

static void make_own(void) {
    const arguments extended = {.extensions = 1};
    everything_make(&own, &extended);
}

/* Sets the server at a job's address. */
static bool set_server(mcpl_client *client, slice job, mcpl_json *report) {
    size_t count = 0;
    slice command = slice_at(job, "/address/command"), channel = slice_at(job, "/address/channel");
    char *url = string_at(job, "/address/url"), *socket = string_at(job, "/address/socket");
    bool set = false;
    if (url != NULL) {
        set = set_url(client, url, job, report);
    } else if (socket != NULL) {
        set = good(mcpl_client_set_socket(client, socket), report);
    } else if (channel.text != NULL) {
        program *started = calloc(1, sizeof *started);
        if (started == NULL) {
            abort();
        }
        started->command = words_of(channel, &count);
        set = good(mcpl_client_set_channel(client, &PROGRAM_CHANNEL, started, free_program), report);
    } else if (command.text != NULL) {
        char **words = words_of(command, &count);
        set = good(mcpl_client_set_command(client, (const char *const *)words, count, NULL), report);
        free_words(words);
    } else {
        pthread_once(&own_made, make_own);
        set = good(mcpl_client_set_server(client, own.server), report);
    }
    mcpl_string_free(url);
    mcpl_string_free(socket);
    return set;
}

mcpl_client *connected(slice job, received *all, mcpl_json *report) {
    mcpl_client *client = mcpl_client_new("driver", "1.0.0");
    bool open = configure(client, job, all, report) && set_server(client, job, report) &&
                good(mcpl_client_open(client), report);
    if (!open) {
        mcpl_client_free(client);
        return NULL;
    }
    put_slice(report, "error", (slice){NULL, 0});
    return client;
}
