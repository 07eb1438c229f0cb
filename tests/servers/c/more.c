/* Features of `--more 1`, which most tests do not need. */
#include <stdlib.h>

#include "fixtures.h"
#include "input_request_params.h"
#include "returned_input_requests.h"

#define SECRET "secret-detail-7c1f"
#define CANDIDATES 150

static void failing(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    mcpl_call_fail_internal(call, SECRET);
}

/* Returns the blocks of a model's answer as a JSON array; release with free. */
static char *blocks_of(const char *answer, size_t length) {
    const char *content = NULL;
    size_t size = 0;
    mcpl_json_kind kind = MCPL_JSON_NULL;
    mcpl_json_find(answer, length, "/content", &content, &size);
    mcpl_json_kind_of(content, size, &kind);
    const char *begin = kind == MCPL_JSON_ARRAY ? "" : "[", *end = kind == MCPL_JSON_ARRAY ? "" : "]";
    return formatted("%s%.*s%s", begin, (int)size, content, end);
}

static void sampling_with_media(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    const char *params =
        "{\"messages\":["
        "{\"role\":\"user\",\"content\":{\"type\":\"image\",\"data\":\"" PNG "\",\"mimeType\":\"image/png\"}},"
        "{\"role\":\"user\",\"content\":{\"type\":\"audio\",\"data\":\"" WAV "\",\"mimeType\":\"audio/wav\"}}"
        "],\"maxTokens\":100}";
    size_t size = 0;
    char *answer = request_input(call, "sample", MCPL_INPUT_REQUEST_METHOD_SAMPLE, params, &size);
    if (answer == NULL) {
        return;
    }
    char *blocks = blocks_of(answer, size);
    char *kind = NULL, *data = NULL, *reason = NULL;
    mcpl_json_string(blocks, strlen(blocks), "/0/type", &kind, NULL);
    bool is_text = kind != NULL && strcmp(kind, "text") == 0;
    mcpl_json_string(blocks, strlen(blocks), is_text ? "/0/text" : "/0/data", &data, NULL);
    mcpl_json_string(answer, size, "/stopReason", &reason, NULL);
    reply_formatted(call, "%s %s, stopped by %s", kind, data, reason == NULL ? "none" : reason);
    mcpl_string_free(reason);
    mcpl_string_free(data);
    mcpl_string_free(kind);
    free(blocks);
    mcpl_string_free(answer);
}

/* Writes the result of a use of `get_weather`, with the metadata of the use. */
static void put_weather_result(mcpl_json *results, const char *use, size_t length) {
    char *id = NULL, *city = NULL;
    const char *meta = NULL;
    size_t meta_length = 0;
    mcpl_json_string(use, length, "/id", &id, NULL);
    mcpl_json_string(use, length, "/input/city", &city, NULL);
    char *text = formatted("%s is sunny", city);
    mcpl_json_begin_object(results);
    put_string_member(results, "type", "tool_result");
    put_string_member(results, "toolUseId", id);
    mcpl_json_name(results, "content");
    mcpl_json_begin_array(results);
    mcpl_json_begin_object(results);
    put_string_member(results, "type", "text");
    put_string_member(results, "text", text);
    mcpl_json_end_object(results);
    mcpl_json_end_array(results);
    if (mcpl_json_find(use, length, "/_meta", &meta, &meta_length) == MCPL_OK) {
        mcpl_json_name(results, "_meta");
        mcpl_json_put_json(results, meta, meta_length);
    }
    mcpl_json_end_object(results);
    free(text);
    mcpl_string_free(city);
    mcpl_string_free(id);
}

/* Returns the results of all tool uses in these blocks as a JSON array; release with free. NULL if there are none. */
static char *results_of(const char *blocks) {
    mcpl_json *results = mcpl_json_new();
    const char *block = NULL;
    size_t length = 0, uses = 0;
    mcpl_json_begin_array(results);
    for (size_t index = 0; mcpl_json_item(blocks, strlen(blocks), index, NULL, &block, &length) == MCPL_OK; index++) {
        if (says(block, length, "/type", "tool_use")) {
            put_weather_result(results, block, length);
            uses++;
        }
    }
    mcpl_json_end_array(results);
    char *text = taken(results);
    if (uses == 0) {
        free(text);
        text = NULL;
    }
    return text;
}

static void sampling_in_rounds(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    char *messages = copied(
        JSON({"role": "user", "content": {"type": "text", "text": "What is the weather in Oslo and Rome?"}}));
    for (int round = 1; messages != NULL; round++) {
        char *params = formatted(
            "{\"messages\":[%s],\"maxTokens\":100,\"tools\":[" GET_WEATHER "],\"toolChoice\":{\"mode\":\"auto\"}}",
            messages);
        char *key = formatted("sample%d", round);
        size_t size = 0;
        char *answer = request_input(call, key, MCPL_INPUT_REQUEST_METHOD_SAMPLE, params, &size);
        char *blocks = answer == NULL ? NULL : blocks_of(answer, size);
        char *results = blocks == NULL ? NULL : results_of(blocks);
        char *longer = NULL;
        if (results != NULL) {
            longer = formatted("%s,{\"role\":\"assistant\",\"content\":%s},{\"role\":\"user\",\"content\":%s}", messages,
                               blocks, results);
        } else if (answer != NULL) {
            char *text = said(answer, size);
            reply_formatted(call, "LLM response: %s", text);
            free(text);
        }
        free(messages);
        messages = longer;
        free(results);
        free(blocks);
        mcpl_string_free(answer);
        free(key);
        free(params);
    }
}

static const tool TOOLS[] = {
    {.name = "test_sampling_with_media",
     .description = "Asks the client's model with an image and a recording",
     .handler = sampling_with_media},
    {.name = "test_sampling_in_rounds",
     .description = "Asks the client's model until it uses no tool",
     .handler = sampling_in_rounds},
};

static void described_prompt(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    const char *messages = JSON([
        {"role": "user", "content": {
            "type": "text",
            "text": "described",
            "annotations": {"audience": ["assistant"], "priority": 0.5}
        }},
        {"role": "user", "content": {
            "type": "resource_link",
            "uri": "test://static-text",
            "name": "static-text",
            "mimeType": "text/plain",
            "description": "A link to the static text"
        }}
    ]);
    mcpl_call_reply_content(call, messages, MCPL_AUTO_LENGTH);
}

static void complete_many(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    char *each[CANDIDATES];
    for (int index = 0; index < CANDIDATES; index++) {
        each[index] = formatted("c%d", index + 1);
    }
    mcpl_call_reply_values(call, (const char *const *)each, CANDIDATES);
    for (int index = 0; index < CANDIDATES; index++) {
        free(each[index]);
    }
}

static void described_resource(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    mcpl_call_reply_text(call, "described", MCPL_AUTO_LENGTH);
}

static void requesting_resource(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    char *params = form("Which version?", FORM("version", "string"));
    size_t size = 0;
    char *answer = request_input(call, "user", MCPL_INPUT_REQUEST_METHOD_ELICIT, params, &size);
    if (answer != NULL) {
        char *version = NULL;
        mcpl_json_string(answer, size, "/content/version", &version, NULL);
        reply_formatted(call, "Version %s", version == NULL ? "none" : version);
        mcpl_string_free(version);
    }
    mcpl_string_free(answer);
    free(params);
}

static void requesting_template(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)user;
    char *id = text_argument(call, arguments, length, "/id");
    if (id == NULL) {
        return;
    }
    round round = round_of(call);
    char *reason = accepted_text(&round, "user", "reason");
    if (reason == NULL) {
        char *message = formatted("Why %s?", id);
        char *params = form(message, FORM("reason", "string"));
        return_input_requests(&round, &(input_request){"user", "elicitation/create", params}, 1, NULL);
        free(params);
        free(message);
    } else {
        reply_formatted(call, "%s: %s", id, reason);
    }
    mcpl_string_free(reason);
    round_free(&round);
    mcpl_string_free(id);
}

typedef mcpl_status (*adder)(mcpl_server *server, const char *definition, size_t length,
                             const mcpl_handler_options *options, mcpl_handler handler, void *user,
                             mcpl_finalizer finalize);

static void add(everything *everything, adder adder, const char *definition, mcpl_handler handler) {
    must(adder(everything->server, definition, MCPL_AUTO_LENGTH, NULL, handler, everything, NULL), definition);
}

void add_more(everything *everything) {
    add_tools(everything, TOOLS, COUNT(TOOLS));
    add(everything, mcpl_server_add_prompt_with,
        JSON({
            "name": "test_described_prompt",
            "title": "Described prompt",
            "description": "A prompt with everything a definition can have",
            "icons": [{"src": "https://example.com/icon.png", "mimeType": "image/png", "sizes": ["48x48"]}],
            "arguments": [
                {"name": "many", "description": "Has many candidates"},
                {"name": "broken", "description": "Fails to complete"}
            ]
        }),
        described_prompt);
    must(mcpl_server_add_completion(everything->server, "test_described_prompt", "many", complete_many, everything,
                                    NULL),
         "the completion of many");
    must(mcpl_server_add_completion(everything->server, "test_described_prompt", "broken", failing, everything, NULL),
         "the completion of broken");
    add(everything, mcpl_server_add_prompt_with,
        JSON({"name": "test_failing_prompt", "description": "Fails unexpectedly"}), failing);
    add(everything, mcpl_server_add_resource_with,
        JSON({
            "uri": "test://described-resource",
            "name": "described-resource",
            "title": "Described resource",
            "description": "A text with its size and an icon",
            "mimeType": "text/plain",
            "size": 9,
            "icons": [{"src": "https://example.com/icon.png", "mimeType": "image/png", "sizes": ["48x48"]}]
        }),
        described_resource);
    add(everything, mcpl_server_add_resource_with,
        JSON({
            "uri": "test://asking-resource",
            "name": "asking-resource",
            "description": "Asks the user in mid-call",
            "mimeType": "text/plain"
        }),
        requesting_resource);
    add(everything, mcpl_server_add_resource_with,
        JSON({
            "uri": "test://failing-resource",
            "name": "failing-resource",
            "description": "Fails unexpectedly",
            "mimeType": "text/plain"
        }),
        failing);
    add(everything, mcpl_server_add_resource_template_with,
        JSON({
            "uriTemplate": "test://asking/{id}",
            "name": "asking-template",
            "title": "Asking template",
            "description": "Returns a question to the user",
            "mimeType": "text/plain",
            "icons": [{"src": "https://example.com/icon.png", "mimeType": "image/png", "sizes": ["48x48"]}]
        }),
        requesting_template);
}
