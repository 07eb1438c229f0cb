/* Tools that report progress, wait and are cancelled. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "fixtures.h"

#define NAMED JSON({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]})
#define LABELLED JSON({"type": "object", "properties": {"label": {"type": "string"}}, "required": ["label"]})

/* Handlers run on workers, so they may block. */
static void pause_ms(long milliseconds) {
    struct timespec left = {.tv_nsec = milliseconds * 1000000};
    while (nanosleep(&left, &left) != 0) {
    }
}

static void log_info(mcpl_call *call, const char *text) {
    mcpl_call_log_text(call, MCPL_LOG_INFO, NULL, text, MCPL_AUTO_LENGTH);
}

static void with_logging(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    log_info(call, "Tool execution started");
    pause_ms(50);
    log_info(call, "Tool processing data");
    pause_ms(50);
    log_info(call, "Tool execution completed");
    mcpl_call_reply_text(call, "Tool with logging executed successfully", MCPL_AUTO_LENGTH);
}

static void log_levels(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    static const char *const NAMES[] = {
        [MCPL_LOG_DEBUG] = "debug",       [MCPL_LOG_INFO] = "info",         [MCPL_LOG_NOTICE] = "notice",
        [MCPL_LOG_WARNING] = "warning",   [MCPL_LOG_ERROR] = "error",       [MCPL_LOG_CRITICAL] = "critical",
        [MCPL_LOG_ALERT] = "alert",       [MCPL_LOG_EMERGENCY] = "emergency",
    };
    for (size_t level = 0; level < COUNT(NAMES); level++) {
        char *text = formatted("message at %s", NAMES[level]);
        mcpl_call_log_text(call, (mcpl_log_level)level, "fixture", text, MCPL_AUTO_LENGTH);
        free(text);
    }
    mcpl_call_reply_text(call, "logged", MCPL_AUTO_LENGTH);
}

static void logging(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    mcpl_call_log(call, MCPL_LOG_INFO, NULL, "\"Logging tool called\"", MCPL_AUTO_LENGTH);
    mcpl_call_reply_text(call, "logged", MCPL_AUTO_LENGTH);
}

static void with_progress(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    for (int step = 0; step <= 100; step += 50) {
        char *message = formatted("Completed step %d of 100", step);
        mcpl_call_progress(call, step, 100, message);
        free(message);
        pause_ms(50);
    }
    mcpl_call_reply_text(call, "progress done", MCPL_AUTO_LENGTH);
}

static void reconnection(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    mcpl_call_close_stream(call);
    pause_ms(100);
    mcpl_call_reply_text(call, "reconnected", MCPL_AUTO_LENGTH);
}

static void gate(mcpl_call *call, const char *arguments, size_t length, void *user) {
    everything *everything = user;
    char *name = text_argument(call, arguments, length, "/name");
    if (name != NULL) {
        char *text = formatted("gate %s passed", name);
        mcpl_call_progress(call, 0, 1, "waiting");
        doors_reply_when_open(&everything->gates, name, call, text);
        free(text);
    }
    mcpl_string_free(name);
}

static void open_gate(mcpl_call *call, const char *arguments, size_t length, void *user) {
    everything *everything = user;
    char *name = text_argument(call, arguments, length, "/name");
    if (name != NULL) {
        doors_open(&everything->gates, name);
        reply_formatted(call, "gate %s opened", name);
    }
    mcpl_string_free(name);
}

/* A call that waits to be cancelled. */
typedef struct {
    everything *everything;
    char *label;
} cancellable;

static void cancelled(mcpl_call *call, void *user) {
    cancellable *cancellable = user;
    doors_open(&cancellable->everything->cancellations, cancellable->label);
    mcpl_call_fail(call, "cancelled", MCPL_AUTO_LENGTH);
}

static void cancellable_free(void *user) {
    cancellable *cancellable = user;
    mcpl_string_free(cancellable->label);
    free(cancellable);
}

void wait_until_cancelled(mcpl_call *call, const char *arguments, size_t length, void *user) {
    char *label = text_argument(call, arguments, length, "/label");
    if (label == NULL) {
        return;
    }
    cancellable *waits = allocated(sizeof *waits);
    *waits = (cancellable){.everything = user, .label = label};
    mcpl_call_keep(call);
    mcpl_call_progress(call, 0, 1, "waiting");
    mcpl_call_on_cancel(call, cancelled, waits, cancellable_free);
}

static void cancellation_status(mcpl_call *call, const char *arguments, size_t length, void *user) {
    everything *everything = user;
    char *label = text_argument(call, arguments, length, "/label");
    if (label != NULL) {
        char *text = formatted("%s was cancelled", label);
        doors_reply_when_open(&everything->cancellations, label, call, text);
        free(text);
    }
    mcpl_string_free(label);
}

static const tool TOOLS[] = {
    {.name = "test_tool_with_logging", .description = "Logs while it runs", .handler = with_logging},
    {.name = "test_log_levels", .description = "Logs once at each level", .handler = log_levels},
    {.name = "test_logging_tool", .description = "Logs once", .handler = logging, .flags = MCPL_HANDLER_INLINE},
    {.name = "test_tool_with_progress", .description = "Reports progress", .handler = with_progress},
    {.name = "test_reconnection", .description = "Closes its stream and goes on", .handler = reconnection},
    {.name = "test_gate", .description = "Waits until a gate is open", .input = NAMED, .handler = gate},
    {.name = "test_open_gate", .description = "Opens a gate for good", .input = NAMED, .handler = open_gate},
    {.name = "test_cancellation",
     .description = "Waits until it is cancelled",
     .input = LABELLED,
     .handler = wait_until_cancelled},
    {.name = "test_cancellation_status",
     .description = "Waits until another tool was cancelled",
     .input = LABELLED,
     .handler = cancellation_status},
};

void add_running_tools(everything *everything) {
    add_tools(everything, TOOLS, COUNT(TOOLS));
}
