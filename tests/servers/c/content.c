/* Tools that return content of every kind. */
#include <stdio.h>
#include <stdlib.h>

#include "fixtures.h"

#define IMAGE "{\"type\":\"image\",\"data\":\"" PNG "\",\"mimeType\":\"image/png\"}"
#define AUDIO "{\"type\":\"audio\",\"data\":\"" WAV "\",\"mimeType\":\"audio/wav\"}"

static void reply_content(mcpl_call *call, const char *content) {
    mcpl_call_reply_content(call, content, MCPL_AUTO_LENGTH);
}

static void simple_text(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    mcpl_call_reply_text(call, "This is a simple text response for testing.", MCPL_AUTO_LENGTH);
}

static void image_content(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    reply_content(call, "[" IMAGE "]");
}

static void audio_content(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    reply_content(call, "[" AUDIO "]");
}

static void embedded_resource(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    reply_content(call, JSON([{
        "type": "resource",
        "resource": {
            "uri": "test://embedded-resource",
            "mimeType": "text/plain",
            "text": "This is an embedded resource content."
        }
    }]));
}

static void resource_link(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    reply_content(call, JSON([{
        "type": "resource_link",
        "uri": "test://static-text",
        "name": "static-text",
        "mimeType": "text/plain",
        "description": "A link to the static text"
    }]));
}

static void multiple_content_types(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    const char *text = JSON({"type": "text", "text": "Multiple content types test:"});
    mcpl_json *content = mcpl_json_new();
    mcpl_json_begin_array(content);
    mcpl_json_put_json(content, text, MCPL_AUTO_LENGTH);
    mcpl_json_put_json(content, IMAGE, MCPL_AUTO_LENGTH);
    mcpl_json_begin_object(content);
    put_string_member(content, "type", "resource");
    mcpl_json_name(content, "resource");
    mcpl_json_begin_object(content);
    put_string_member(content, "uri", "test://mixed-content-resource");
    put_string_member(content, "mimeType", "application/json");
    put_string_member(content, "text", JSON({"test":"data","value":123}));
    mcpl_json_end_object(content);
    mcpl_json_end_object(content);
    mcpl_json_end_array(content);
    reply_written(call, mcpl_call_reply_content, content);
}

static void structured_content(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    mcpl_json *weather = mcpl_json_new();
    mcpl_json_begin_object(weather);
    mcpl_json_name(weather, "temperature");
    mcpl_json_put_double(weather, 22.5);
    put_string_member(weather, "conditions", "Partly cloudy");
    mcpl_json_name(weather, "humidity");
    mcpl_json_put_int64(weather, 65);
    mcpl_json_end_object(weather);
    reply_written(call, mcpl_call_reply_structured, weather);
}

static void structured_list(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    mcpl_call_reply_structured(call, "[1,2,3]", MCPL_AUTO_LENGTH);
}

static void annotated(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    const char *result = JSON({
        "content": [{
            "type": "text",
            "text": "annotated",
            "annotations": {"audience": ["user"], "priority": 0.5}
        }],
        "_meta": {"example.com/answer": 42}
    });
    mcpl_call_reply_result(call, result, MCPL_AUTO_LENGTH);
}

static void echo(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)user;
    char *text = NULL;
    size_t size = 0;
    if (mcpl_json_string(arguments, length, "/text", &text, &size) == MCPL_OK) {
        mcpl_call_reply_text(call, text, size);
    } else {
        mcpl_call_fail_rpc(call, -32602, "there is no text", NULL, 0);
    }
    mcpl_string_free(text);
}

static void large_result(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)user;
    int64_t size = 0;
    if (mcpl_json_int64(arguments, length, "/size", &size) != MCPL_OK || size < 0) {
        mcpl_call_fail_rpc(call, -32602, "that is no size", NULL, 0);
        return;
    }
    char *text = allocated((size_t)size + 1);
    memset(text, 'x', (size_t)size);
    mcpl_call_reply_text(call, text, (size_t)size);
    free(text);
}

/* Replies with the shortest decimal that reads as the same number. */
static void reply_number(mcpl_call *call, double number) {
    char text[32];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, number);
        if (strtod(text, NULL) == number) {
            break;
        }
    }
    mcpl_call_reply_text(call, text, MCPL_AUTO_LENGTH);
}

static void add_numbers(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)user;
    double a = 0, b = 0;
    if (mcpl_json_double(arguments, length, "/a", &a) != MCPL_OK ||
        mcpl_json_double(arguments, length, "/b", &b) != MCPL_OK) {
        mcpl_call_fail_rpc(call, -32602, "there are not two numbers", NULL, 0);
        return;
    }
    reply_number(call, a + b);
}

static const tool TOOLS[] = {
    {.name = "test_simple_text",
     .description = "Returns a simple text",
     .handler = simple_text,
     .flags = MCPL_HANDLER_INLINE},
    {.name = "test_image_content", .description = "Returns an image", .handler = image_content},
    {.name = "test_audio_content", .description = "Returns a recording", .handler = audio_content},
    {.name = "test_embedded_resource", .description = "Returns a resource, sent along", .handler = embedded_resource},
    {.name = "test_resource_link", .description = "Returns a link to a resource", .handler = resource_link},
    {.name = "test_multiple_content_types",
     .description = "Returns text, an image and a resource",
     .handler = multiple_content_types},
    {.name = "test_structured_content",
     .description = "Returns structured content",
     .handler = structured_content,
     .more = JSON({"outputSchema": {
         "type": "object",
         "properties": {
             "temperature": {"type": "number"},
             "conditions": {"type": "string"},
             "humidity": {"type": "integer"}
         },
         "required": ["temperature", "conditions", "humidity"]
     }})},
    {.name = "test_structured_list",
     .description = "Returns structured content that is no object",
     .handler = structured_list,
     .flags = MCPL_HANDLER_INLINE,
     .more = JSON({"outputSchema": {"type": "array", "items": {"type": "integer"}}})},
    {.name = "test_annotated_tool",
     .description = "Has everything that a tool can say of itself",
     .handler = annotated,
     .more = JSON({
         "title": "Annotated tool",
         "annotations": {
             "title": "Annotated tool",
             "readOnlyHint": true,
             "destructiveHint": false,
             "idempotentHint": true,
             "openWorldHint": false
         },
         "icons": [{"src": "https://example.com/icon.png", "mimeType": "image/png", "sizes": ["48x48"]}],
         "_meta": {"example.com/fixture": "annotated"}
     })},
    {.name = "test_echo",
     .description = "Returns the text unchanged",
     .input = JSON({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}),
     .handler = echo},
    {.name = "test_large_result",
     .description = "Returns a long text",
     .input = JSON({"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]}),
     .handler = large_result},
    {.name = "test_add_numbers",
     .description = "Adds two numbers",
     .input = JSON({
         "type": "object",
         "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
         "required": ["a", "b"]
     }),
     .handler = add_numbers,
     .flags = MCPL_HANDLER_INLINE},
};

void add_simple_tool(everything *everything) {
    add_tools(everything, TOOLS, 1);
}

void add_content_tools(everything *everything) {
    add_tools(everything, TOOLS, COUNT(TOOLS));
}
