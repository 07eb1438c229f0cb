/* Tools about the caller. */
#include <stdlib.h>

#include "fixtures.h"

static int by_name(const void *one, const void *other) {
    return strcmp(*(char *const *)one, *(char *const *)other);
}

/* Returns the names of an object's members, sorted, joined by a comma; release with free. */
static char *names(const char *object, size_t length) {
    size_t count = 0;
    mcpl_json_count(object, length, "", &count);
    char **each = allocated((count + 1) * sizeof *each);
    const char *value = NULL;
    for (size_t index = 0; index < count; index++) {
        mcpl_json_item(object, length, index, &each[index], &value, NULL);
    }
    qsort(each, count, sizeof *each, by_name);
    char *joined = copied("");
    for (size_t index = 0; index < count; index++) {
        char *longer = formatted("%s%s%s", joined, index == 0 ? "" : ",", each[index]);
        free(joined);
        joined = longer;
        mcpl_string_free(each[index]);
    }
    free(each);
    return joined;
}

/* Returns an HTTP header of the request; release with mcpl_string_free. NULL if it is missing. */
static char *header(const char *info, size_t length, const char *name) {
    const char *headers = NULL, *pair = NULL;
    size_t headers_length = 0, pair_length = 0;
    char *value = NULL;
    mcpl_json_find(info, length, "/headers", &headers, &headers_length);
    for (size_t index = 0;
         value == NULL && mcpl_json_item(headers, headers_length, index, NULL, &pair, &pair_length) == MCPL_OK;
         index++) {
        if (says(pair, pair_length, "/0", name)) {
            mcpl_json_string(pair, pair_length, "/1", &value, NULL);
        }
    }
    return value;
}

static void request_info(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    char *info = NULL, *revision = NULL, *name = NULL, *version = NULL;
    size_t size = 0, declared_size = 0;
    const char *declared = NULL;
    mcpl_call_info(call, &info, &size);
    mcpl_json_string(info, size, "/revision", &revision, NULL);
    mcpl_json_string(info, size, "/client/name", &name, NULL);
    mcpl_json_string(info, size, "/client/version", &version, NULL);
    mcpl_json_find(info, size, "/clientCapabilities", &declared, &declared_size);
    char *client = name == NULL ? copied("none") : formatted("%s %s", name, version);
    char *capabilities = names(declared, declared_size);
    char *fixture = header(info, size, "x-fixture");

    mcpl_json *result = mcpl_json_new();
    mcpl_json_begin_object(result);
    put_string_member(result, "revision", revision);
    put_string_member(result, "client", client);
    put_string_member(result, "capabilities", capabilities);
    put_string_member(result, "header", fixture == NULL ? "none" : fixture);
    mcpl_json_end_object(result);
    reply_written(call, mcpl_call_reply_structured, result);

    mcpl_string_free(fixture);
    free(capabilities);
    free(client);
    mcpl_string_free(version);
    mcpl_string_free(name);
    mcpl_string_free(revision);
    mcpl_string_free(info);
}

static const tool TOOLS[] = {
    {.name = "test_request_info",
     .description = "Tells what it knows of the request",
     .handler = request_info,
     .more = JSON({"outputSchema": {
         "type": "object",
         "properties": {
             "revision": {"type": "string"},
             "client": {"type": "string"},
             "capabilities": {"type": "string"},
             "header": {"type": "string"}
         },
         "required": ["revision", "client", "capabilities", "header"]
     }})},
};

void add_caller_tools(everything *everything) {
    add_tools(everything, TOOLS, COUNT(TOOLS));
}
