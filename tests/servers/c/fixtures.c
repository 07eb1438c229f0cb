#include "fixtures.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define NO_ARGUMENTS JSON({"type": "object", "properties": {}})

void must(mcpl_status status, const char *what) {
    if (status != MCPL_OK) {
        fprintf(stderr, "%s: %s\n", what, mcpl_error_message(mcpl_last_error()));
        exit(EXIT_FAILURE);
    }
}

void *allocated(size_t size) {
    void *memory = calloc(1, size);
    if (memory == NULL) {
        fputs("out of memory\n", stderr);
        abort();
    }
    return memory;
}

char *copied(const char *text) {
    size_t size = strlen(text) + 1;
    return memcpy(allocated(size), text, size);
}

static char *formatted_list(const char *format, va_list values) {
    va_list again;
    va_copy(again, values);
    size_t size = (size_t)vsnprintf(NULL, 0, format, again) + 1;
    va_end(again);
    char *text = allocated(size);
    vsnprintf(text, size, format, values);
    return text;
}

char *formatted(const char *format, ...) {
    va_list values;
    va_start(values, format);
    char *text = formatted_list(format, values);
    va_end(values);
    return text;
}

void reply_formatted(mcpl_call *call, const char *format, ...) {
    va_list values;
    va_start(values, format);
    char *text = formatted_list(format, values);
    va_end(values);
    mcpl_call_reply_text(call, text, MCPL_AUTO_LENGTH);
    free(text);
}

void reply_written(mcpl_call *call, reply_json reply, mcpl_json *json) {
    const char *text = NULL;
    size_t length = 0;
    mcpl_status status = mcpl_json_text(json, &text, &length);
    if (status == MCPL_OK) {
        status = reply(call, text, length);
    }
    if (status != MCPL_OK) {
        char *why = copied(mcpl_error_message(mcpl_last_error()));
        mcpl_call_fail_internal(call, why);
        free(why);
    }
    mcpl_json_free(json);
}

char *text_argument(mcpl_call *call, const char *arguments, size_t length, const char *pointer) {
    char *text = NULL;
    if (mcpl_json_string(arguments, length, pointer, &text, NULL) != MCPL_OK) {
        mcpl_call_fail_rpc(call, -32602, "an argument is missing", NULL, 0);
    }
    return text;
}

void put_number_member(mcpl_json *json, const char *name, long number) {
    if (number != 0) {
        mcpl_json_name(json, name);
        mcpl_json_put_int64(json, number);
    }
}

void put_string_member(mcpl_json *json, const char *name, const char *text) {
    mcpl_json_name(json, name);
    mcpl_json_put_string(json, text, MCPL_AUTO_LENGTH);
}

void put_json_member(mcpl_json *json, const char *name, const char *value) {
    mcpl_json_name(json, name);
    mcpl_json_put_json(json, value, MCPL_AUTO_LENGTH);
}

char *compact(const char *json, size_t length) {
    char *text = allocated(length + 1), *end = text;
    bool quoted = false;
    for (const char *from = json; from < json + length; from++) {
        if (!quoted && strchr(" \t\r\n", *from) != NULL) {
            continue;
        }
        *end++ = *from;
        if (quoted && *from == '\\') {
            *end++ = *++from;
        } else if (*from == '"') {
            quoted = !quoted;
        }
    }
    return text;
}

bool says(const char *json, size_t length, const char *pointer, const char *text) {
    char *found = NULL;
    bool same = mcpl_json_string(json, length, pointer, &found, NULL) == MCPL_OK && strcmp(found, text) == 0;
    mcpl_string_free(found);
    return same;
}

/* Adds a tool by a full definition, because it has members that the short function does not take. */
static void add_defined(everything *everything, const tool *tool) {
    mcpl_json *definition = mcpl_json_new();
    mcpl_json_begin_object(definition);
    put_string_member(definition, "name", tool->name);
    put_string_member(definition, "description", tool->description);
    put_json_member(definition, "inputSchema", tool->input == NULL ? NO_ARGUMENTS : tool->input);
    const char *more = tool->more == NULL ? "{}" : tool->more;
    char *name = NULL;
    const char *value = NULL;
    size_t length = 0;
    for (size_t index = 0; mcpl_json_item(more, strlen(more), index, &name, &value, &length) == MCPL_OK; index++) {
        mcpl_json_name(definition, name);
        mcpl_json_put_json(definition, value, length);
        mcpl_string_free(name);
    }
    mcpl_json_end_object(definition);

    const char *text = NULL;
    must(mcpl_json_text(definition, &text, &length), tool->name);
    mcpl_handler_options options = {.size = sizeof options, .flags = tool->flags};
    must(mcpl_server_add_tool_with(everything->server, text, length, &options, tool->handler, everything, NULL),
         tool->name);
    mcpl_json_free(definition);
}

void add_tools(everything *everything, const tool *tools, size_t count) {
    for (const tool *each = tools; each < tools + count; each++) {
        if (each->flags != 0 || each->more != NULL) {
            add_defined(everything, each);
        } else {
            must(mcpl_server_add_tool(everything->server, each->name, each->description, each->input, each->handler,
                                      everything, NULL),
                 each->name);
        }
    }
}
