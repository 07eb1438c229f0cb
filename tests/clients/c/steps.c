/* The steps of a job. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "driver.h"

/* Writes the outcome of a request as members of its report, and releases the result. Returns whether it succeeded. */
static bool put_outcome(mcpl_json *report, mcpl_status status, char *result, size_t length) {
    if (status == MCPL_OK) {
        /* A method without a result has an empty one. */
        put_slice(report, "result", length == 0 ? (slice){NULL, 0} : (slice){result, length});
    } else {
        put_error(report, mcpl_last_error());
    }
    mcpl_string_free(result);
    return status == MCPL_OK;
}

/* Returns the timeout of a step's request. */
static mcpl_request_options patience(slice step) {
    return (mcpl_request_options){
        .size = sizeof(mcpl_request_options),
        .timeout_ms = llround(number_at(step, "/timeout", 0) * 1000),
    };
}

/* A tool call: the tool's name, and the options of the step. */
typedef struct {
    char *name;
    slice arguments;
    mcpl_json *more;
    mcpl_request_options options;
} tool_call;

static tool_call tool_call_of(slice step) {
    tool_call call = {
        .name = string_at(step, "/name"),
        .arguments = slice_at(step, "/arguments"),
        .more = mcpl_json_new(),
    };
    mcpl_json_begin_object(call.more);
    put_given(call.more, "reissue", step, "/reissue");
    mcpl_json_end_object(call.more);
    call.options = patience(step);
    call.options.json = written(call.more).text;
    return call;
}

static void tool_call_free(tool_call *call) {
    mcpl_string_free(call->name);
    mcpl_json_free(call->more);
}

static void count_progress(mcpl_request *request, double progress, double total, const char *message, void *user) {
    (void)request, (void)progress, (void)total, (void)message;
    atomic_fetch_add((atomic_int *)user, 1);
}

static bool call_tool(mcpl_client *client, slice step, mcpl_json *report) {
    atomic_int progress_count = 0;
    char *result = NULL;
    size_t length = 0;
    tool_call call = tool_call_of(step);
    call.options.progress = count_progress;
    call.options.user = &progress_count;
    mcpl_status status = mcpl_client_call_tool(client, call.name, call.arguments.text, call.arguments.length,
                                               &call.options, &result, &length);
    bool good = put_outcome(report, status, result, length);
    mcpl_json_name(report, "progress");
    mcpl_json_put_int64(report, atomic_load(&progress_count));
    tool_call_free(&call);
    return good;
}

/* A call that is cancelled while it runs. */
typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
    bool good;
    mcpl_json *report;
} giving_up;

static void give_up(mcpl_request *request, double progress, double total, const char *message, void *user) {
    (void)progress, (void)total, (void)message, (void)user;
    mcpl_request_cancel(request);
}

static void given_up(mcpl_request *request, const mcpl_error *error, const char *result, size_t length, void *user) {
    (void)request;
    giving_up *call = user;
    pthread_mutex_lock(&call->lock);
    if (error == NULL) {
        put_slice(call->report, "result", (slice){result, length});
    } else if (mcpl_error_status(error) == MCPL_REQUEST_CANCELLED) {
        put_string(call->report, "result", "cancelled");
    } else {
        put_error(call->report, error);
        call->good = false;
    }
    call->done = true;
    pthread_cond_signal(&call->changed);
    pthread_mutex_unlock(&call->lock);
}

/* Waits until the call is done or the time has elapsed. Requires the lock. */
static void wait_for(giving_up *call, double seconds) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)seconds;
    until.tv_nsec += (long)((seconds - floor(seconds)) * 1e9);
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    while (!call->done && pthread_cond_timedwait(&call->changed, &call->lock, &until) != ETIMEDOUT) {
    }
}

/* Calls a tool and cancels the call: at the first progress report, or after some seconds. */
static bool cancel_tool(mcpl_client *client, slice step, mcpl_json *report) {
    giving_up waiting = {
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .changed = PTHREAD_COND_INITIALIZER,
        .good = true,
        .report = report,
    };
    double after = number_at(step, "/after", 0);
    tool_call call = tool_call_of(step);
    call.options.progress = after > 0 ? NULL : give_up;
    mcpl_request *request = NULL;
    mcpl_status status = mcpl_client_call_tool_async(client, call.name, call.arguments.text, call.arguments.length,
                                                     &call.options, given_up, &waiting, &request);
    if (status != MCPL_OK) {
        put_error(report, mcpl_last_error());
        waiting.good = false;
    } else {
        pthread_mutex_lock(&waiting.lock);
        if (after > 0) {
            wait_for(&waiting, after);
            pthread_mutex_unlock(&waiting.lock);
            mcpl_request_cancel(request);
            pthread_mutex_lock(&waiting.lock);
        }
        while (!waiting.done) {
            pthread_cond_wait(&waiting.changed, &waiting.lock);
        }
        pthread_mutex_unlock(&waiting.lock);
    }
    tool_call_free(&call);
    return waiting.good;
}

typedef mcpl_status (*lister)(mcpl_client *, const mcpl_request_options *, char **, size_t *);

static bool list(mcpl_client *client, lister list, slice step, mcpl_json *report) {
    char *result = NULL;
    size_t length = 0;
    mcpl_request_options options = patience(step);
    mcpl_status status = list(client, &options, &result, &length);
    return put_outcome(report, status, result, length);
}

static bool list_tools(mcpl_client *client, slice step, mcpl_json *report) {
    return list(client, mcpl_client_list_tools, step, report);
}

static bool list_resources(mcpl_client *client, slice step, mcpl_json *report) {
    return list(client, mcpl_client_list_resources, step, report);
}

static bool list_resource_templates(mcpl_client *client, slice step, mcpl_json *report) {
    return list(client, mcpl_client_list_resource_templates, step, report);
}

static bool list_prompts(mcpl_client *client, slice step, mcpl_json *report) {
    return list(client, mcpl_client_list_prompts, step, report);
}

static bool ping(mcpl_client *client, slice step, mcpl_json *report) {
    mcpl_request_options options = patience(step);
    return put_outcome(report, mcpl_client_ping(client, &options), NULL, 0);
}

static bool read_resource(mcpl_client *client, slice step, mcpl_json *report) {
    char *uri = string_at(step, "/uri"), *result = NULL;
    size_t length = 0;
    mcpl_request_options options = patience(step);
    mcpl_status status = mcpl_client_read_resource(client, uri, &options, &result, &length);
    bool good = put_outcome(report, status, result, length);
    mcpl_string_free(uri);
    return good;
}

static bool get_prompt(mcpl_client *client, slice step, mcpl_json *report) {
    char *name = string_at(step, "/name"), *result = NULL;
    slice arguments = slice_at(step, "/arguments");
    size_t length = 0;
    mcpl_request_options options = patience(step);
    mcpl_status status =
        mcpl_client_get_prompt(client, name, arguments.text, arguments.length, &options, &result, &length);
    bool good = put_outcome(report, status, result, length);
    mcpl_string_free(name);
    return good;
}

static bool complete(mcpl_client *client, slice step, mcpl_json *report) {
    slice params = slice_at(step, "/params");
    char *result = NULL;
    size_t length = 0;
    mcpl_request_options options = patience(step);
    mcpl_status status = mcpl_client_complete(client, params.text, params.length, &options, &result, &length);
    return put_outcome(report, status, result, length);
}

static bool subscribe(mcpl_client *client, slice step, mcpl_json *report) {
    char *uri = string_at(step, "/uri");
    mcpl_request_options options = patience(step);
    bool good = put_outcome(report, mcpl_client_subscribe(client, uri, &options), NULL, 0);
    mcpl_string_free(uri);
    return good;
}

static bool unsubscribe(mcpl_client *client, slice step, mcpl_json *report) {
    char *uri = string_at(step, "/uri");
    mcpl_request_options options = patience(step);
    bool good = put_outcome(report, mcpl_client_unsubscribe(client, uri, &options), NULL, 0);
    mcpl_string_free(uri);
    return good;
}

static bool set_log_level(mcpl_client *client, slice step, mcpl_json *report) {
    static const char *const NAMES[] = {
        [MCPL_LOG_DEBUG] = "debug",       [MCPL_LOG_INFO] = "info",         [MCPL_LOG_NOTICE] = "notice",
        [MCPL_LOG_WARNING] = "warning",   [MCPL_LOG_ERROR] = "error",       [MCPL_LOG_CRITICAL] = "critical",
        [MCPL_LOG_ALERT] = "alert",       [MCPL_LOG_EMERGENCY] = "emergency",
    };
    char *name = string_at(step, "/level");
    size_t level = 0;
    while (level < sizeof NAMES / sizeof *NAMES - 1 && name != NULL && strcmp(NAMES[level], name) != 0) {
        level++;
    }
    mcpl_string_free(name);
    mcpl_request_options options = patience(step);
    return put_outcome(report, mcpl_client_set_log_level(client, (mcpl_log_level)level, &options), NULL, 0);
}

static bool request(mcpl_client *client, slice step, mcpl_json *report) {
    atomic_int progress_count = 0;
    char *method = string_at(step, "/method"), *result = NULL;
    size_t length = 0;
    slice params = slice_at(step, "/params");
    mcpl_request_options options = patience(step);
    options.progress = count_progress;
    options.user = &progress_count;
    mcpl_status status =
        mcpl_client_request(client, method, params.text, params.length, &options, &result, &length);
    bool good = put_outcome(report, status, result, length);
    mcpl_json_name(report, "progress");
    mcpl_json_put_int64(report, atomic_load(&progress_count));
    mcpl_string_free(method);
    return good;
}

static bool notify(mcpl_client *client, slice step, mcpl_json *report) {
    char *method = string_at(step, "/method");
    slice params = slice_at(step, "/params");
    bool good = put_outcome(report, mcpl_client_notify(client, method, params.text, params.length), NULL, 0);
    mcpl_string_free(method);
    return good;
}

static bool await_notifications(received *all, slice step, mcpl_json *report) {
    char *method = string_at(step, "/method");
    mcpl_json_name(report, "result");
    received_put_first(all, method, (size_t)number_at(step, "/count", 1), report);
    mcpl_string_free(method);
    return true;
}

static const struct {
    const char *name;
    bool (*take)(mcpl_client *, slice, mcpl_json *);
} STEPS[] = {
    {"list_tools", list_tools},
    {"list_resources", list_resources},
    {"list_resource_templates", list_resource_templates},
    {"list_prompts", list_prompts},
    {"ping", ping},
    {"call_tool", call_tool},
    {"cancel_tool", cancel_tool},
    {"read_resource", read_resource},
    {"get_prompt", get_prompt},
    {"complete", complete},
    {"subscribe", subscribe},
    {"unsubscribe", unsubscribe},
    {"set_log_level", set_log_level},
    {"request", request},
    {"notify", notify},
};

bool take(mcpl_client *client, slice step, received *all, mcpl_json *report) {
    char *name = string_at(step, "/do");
    bool good = false;
    mcpl_json_begin_object(report);
    if (name != NULL && strcmp(name, "await_notifications") == 0) {
        good = await_notifications(all, step, report);
    }
    for (size_t index = 0; index < sizeof STEPS / sizeof *STEPS; index++) {
        if (name != NULL && strcmp(STEPS[index].name, name) == 0) {
            good = STEPS[index].take(client, step, report);
        }
    }
    mcpl_json_end_object(report);
    mcpl_string_free(name);
    return good;
}
