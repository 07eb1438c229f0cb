#include "writing.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

slice slice_at(slice json, const char *pointer) {
    slice found = {NULL, 0};
    if (mcpl_json_find(json.text, json.length, pointer, &found.text, &found.length) != MCPL_OK) {
        return (slice){NULL, 0};
    }
    return found;
}

slice slice_element(slice array, size_t index) {
    slice found = {NULL, 0};
    if (mcpl_json_item(array.text, array.length, index, NULL, &found.text, &found.length) != MCPL_OK) {
        return (slice){NULL, 0};
    }
    return found;
}

char *string_at(slice json, const char *pointer) {
    char *text = NULL;
    mcpl_json_string(json.text, json.length, pointer, &text, NULL);
    return text;
}

double number_at(slice json, const char *pointer, double otherwise) {
    double number = otherwise;
    return mcpl_json_double(json.text, json.length, pointer, &number) == MCPL_OK ? number : otherwise;
}

void put_string(mcpl_json *json, const char *name, const char *text) {
    mcpl_json_name(json, name);
    if (text == NULL) {
        mcpl_json_put_null(json);
    } else {
        mcpl_json_put_string(json, text, MCPL_AUTO_LENGTH);
    }
}

void put_slice(mcpl_json *json, const char *name, slice value) {
    mcpl_json_name(json, name);
    if (value.text == NULL) {
        mcpl_json_put_null(json);
    } else {
        mcpl_json_put_json(json, value.text, value.length);
    }
}

void put_given(mcpl_json *json, const char *name, slice from, const char *pointer) {
    slice value = slice_at(from, pointer);
    if (value.text != NULL) {
        put_slice(json, name, value);
    }
}

slice written(mcpl_json *json) {
    slice text = {NULL, 0};
    if (mcpl_json_text(json, &text.text, &text.length) != MCPL_OK) {
        fprintf(stderr, "driver: %s\n", mcpl_error_message(mcpl_last_error()));
        exit(EXIT_FAILURE);
    }
    return text;
}

/* Returns the kind of an error: the name of its status without the prefix, in lower case. */
static const char *kind_of(mcpl_status status) {
    /* Jobs run on several threads. */
    static _Thread_local char kind[64];
    const char *name = mcpl_status_name(status) + strlen("MCPL_");
    size_t length = 0;
    for (; name[length] != 0 && length + 1 < sizeof kind; ++length) {
        kind[length] = (char)tolower((unsigned char)name[length]);
    }
    kind[length] = 0;
    return kind;
}

static char *copied(const char *text) {
    size_t size = strlen(text) + 1;
    char *copy = malloc(size);
    return copy == NULL ? NULL : memcpy(copy, text, size);
}

void put_error(mcpl_json *json, const mcpl_error *error) {
    /* The next library call replaces the thread's last error, and writing is one. */
    const char *kind = kind_of(mcpl_error_status(error));
    int64_t code = mcpl_error_rpc_code(error);
    char *message = copied(mcpl_error_message(error));
    char *kept = copied(mcpl_error_details(error));
    slice details = {kept, kept == NULL ? 0 : strlen(kept)};
    bool retry_safe = false, outcome_unknown = false;
    mcpl_json_bool(details.text, details.length, "/retry_safe", &retry_safe);
    mcpl_json_bool(details.text, details.length, "/outcome_unknown", &outcome_unknown);

    mcpl_json_name(json, "error");
    mcpl_json_begin_object(json);
    put_string(json, "kind", kind);
    put_string(json, "text", message);
    put_slice(json, "status", slice_at(details, "/status"));
    mcpl_json_name(json, "code");
    if (code == 0) {
        mcpl_json_put_null(json);
    } else {
        mcpl_json_put_int64(json, code);
    }
    mcpl_json_name(json, "retry_safe");
    mcpl_json_put_bool(json, retry_safe);
    mcpl_json_name(json, "outcome_unknown");
    mcpl_json_put_bool(json, outcome_unknown);
    mcpl_json_end_object(json);
    free(kept);
    free(message);
}
