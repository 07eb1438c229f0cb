/* Tools that send input requests. Those that ask the model or for roots wait for the answer in the handler, which
 * occupies a worker. Those that ask the user, who may take a day, continue in a callback, which occupies no thread. */
#include <stdlib.h>

#include "fixtures.h"
#include "input_request_params.h"

static void sampling(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)user;
    char *prompt = text_argument(call, arguments, length, "/prompt");
    if (prompt == NULL) {
        return;
    }
    char *params = message_to_model(prompt, 100);
    size_t size = 0;
    char *answer = request_input(call, "sample", MCPL_INPUT_REQUEST_METHOD_SAMPLE, params, &size);
    if (answer != NULL) {
        char *text = said(answer, size);
        reply_formatted(call, "LLM response: %s", text);
        free(text);
    }
    mcpl_string_free(answer);
    free(params);
    mcpl_string_free(prompt);
}

/* Replies with the tool use of a block, if it is one. */
static bool reply_tool_use(mcpl_call *call, const char *block, size_t length) {
    char *name = NULL;
    const char *input = NULL;
    size_t size = 0;
    bool uses = says(block, length, "/type", "tool_use") &&
                mcpl_json_string(block, length, "/name", &name, NULL) == MCPL_OK &&
                mcpl_json_find(block, length, "/input", &input, &size) == MCPL_OK;
    if (uses) {
        char *text = compact(input, size);
        reply_formatted(call, "tool_use %s %s", name, text);
        free(text);
    }
    mcpl_string_free(name);
    return uses;
}

static void sampling_with_tools(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    const char *params =
        "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"What is the weather in Oslo?\"}}],"
        "\"maxTokens\":100,\"tools\":[" GET_WEATHER "],\"toolChoice\":{\"mode\":\"auto\"}}";
    size_t size = 0;
    char *answer = request_input(call, "sample", MCPL_INPUT_REQUEST_METHOD_SAMPLE, params, &size);
    if (answer == NULL) {
        return;
    }
    const char *content = NULL, *block = NULL;
    size_t content_size = 0, block_size = 0;
    mcpl_json_find(answer, size, "/content", &content, &content_size);
    bool replied = reply_tool_use(call, content, content_size);
    for (size_t index = 0; !replied && mcpl_json_item(content, content_size, index, NULL, &block, &block_size) == MCPL_OK;
         index++) {
        replied = reply_tool_use(call, block, block_size);
    }
    if (!replied) {
        char *text = said(answer, size);
        reply_formatted(call, "text %s", text);
        free(text);
    }
    mcpl_string_free(answer);
}

/* Ends the call with the user's answer to a form, after this text. */
static void reply_answer(mcpl_call *call, const mcpl_error *error, const char *result, size_t length, void *user) {
    if (error != NULL) {
        mcpl_call_fail_with(call, error);
        return;
    }
    char *action = NULL;
    const char *content = NULL;
    size_t size = 0;
    mcpl_json_string(result, length, "/action", &action, NULL);
    mcpl_json_find(result, length, "/content", &content, &size);
    bool accepted = content != NULL && says(result, length, "/action", "accept");
    char *text = accepted ? compact(content, size) : copied("{}");
    reply_formatted(call, "%saction=%s, content=%s", (const char *)user, action, text);
    free(text);
    mcpl_string_free(action);
}

/* Ends the call with the action of the user's answer, after this text. */
static void reply_action(mcpl_call *call, const mcpl_error *error, const char *result, size_t length, void *user) {
    char *action = NULL;
    if (error != NULL) {
        mcpl_call_fail_with(call, error);
    } else if (mcpl_json_string(result, length, "/action", &action, NULL) == MCPL_OK) {
        reply_formatted(call, "%saction=%s", (const char *)user, action);
    }
    mcpl_string_free(action);
}

/* Sends an elicitation; the callback gets this text. */
static void request_user_input(mcpl_call *call, const char *message, const char *schema, mcpl_response_callback answer, char *text) {
    char *params = form(message, schema);
    mcpl_call_request_input(call, "user", MCPL_INPUT_REQUEST_METHOD_ELICIT, params, MCPL_AUTO_LENGTH, answer, text, NULL);
    free(params);
}

static void elicitation(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)user;
    const char *schema = JSON({
        "type": "object",
        "properties": {"username": {"type": "string"}, "email": {"type": "string"}},
        "required": ["username", "email"]
    });
    char *message = text_argument(call, arguments, length, "/message");
    if (message != NULL) {
        request_user_input(call, message, schema, reply_answer, "User response: ");
    }
    mcpl_string_free(message);
}

static void elicitation_defaults(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    const char *schema = JSON({
        "type": "object",
        "properties": {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "default": true}
        }
    });
    request_user_input(call, "Please provide user information", schema, reply_answer, "Elicitation result: ");
}

static void elicitation_enums(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    const char *schema = JSON({
        "type": "object",
        "properties": {
            "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
            "titledSingle": {"type": "string", "oneOf": [
                {"const": "value1", "title": "First Option"},
                {"const": "value2", "title": "Second Option"},
                {"const": "value3", "title": "Third Option"}
            ]},
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"]
            },
            "untitledMulti": {"type": "array", "items": {
                "type": "string",
                "enum": ["option1", "option2", "option3"]
            }},
            "titledMulti": {"type": "array", "items": {"anyOf": [
                {"const": "value1", "title": "First Choice"},
                {"const": "value2", "title": "Second Choice"},
                {"const": "value3", "title": "Third Choice"}
            ]}}
        }
    });
    request_user_input(call, "Please select options", schema, reply_answer, "Elicitation completed: ");
}

static void url_elicitation(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    const char *params = JSON({
        "mode": "url",
        "message": "Please authorise access",
        "url": "https://example.com/authorise",
        "elicitationId": "fixture-1"
    });
    mcpl_call_request_input(call, "user", MCPL_INPUT_REQUEST_METHOD_ELICIT, params, MCPL_AUTO_LENGTH, reply_action, "URL elicitation: ", NULL);
}

/* Returns the URIs of the client's roots, one per line; release with free. NULL if the call has ended instead. */
static char *lines_of_roots(mcpl_call *call) {
    size_t size = 0;
    char *answer = request_input(call, "roots", MCPL_INPUT_REQUEST_METHOD_LIST_ROOTS, NULL, &size);
    if (answer == NULL) {
        return NULL;
    }
    const char *listed = NULL, *root = NULL;
    size_t listed_size = 0, root_size = 0;
    char *lines = copied("");
    mcpl_json_find(answer, size, "/roots", &listed, &listed_size);
    for (size_t index = 0; mcpl_json_item(listed, listed_size, index, NULL, &root, &root_size) == MCPL_OK; index++) {
        char *uri = NULL;
        mcpl_json_string(root, root_size, "/uri", &uri, NULL);
        char *longer = formatted("%s%s%s", lines, index == 0 ? "" : "\n", uri);
        mcpl_string_free(uri);
        free(lines);
        lines = longer;
    }
    mcpl_string_free(answer);
    if (*lines == '\0') {
        free(lines);
        lines = copied("none");
    }
    return lines;
}

static void roots(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    char *lines = lines_of_roots(call);
    if (lines != NULL) {
        mcpl_call_reply_text(call, lines, MCPL_AUTO_LENGTH);
        free(lines);
    }
}

static void roots_changed(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    char *lines = lines_of_roots(call);
    if (lines != NULL) {
        mcpl_call_log_text(call, MCPL_LOG_INFO, "roots", lines, MCPL_AUTO_LENGTH);
        mcpl_call_reply_text(call, "", MCPL_AUTO_LENGTH);
        free(lines);
    }
}

/* `user` is the name, the answer to the first elicitation. */
static void second_answered(mcpl_call *call, const mcpl_error *error, const char *result, size_t length, void *user) {
    int64_t age = 0;
    if (error != NULL) {
        mcpl_call_fail_with(call, error);
    } else if (says(result, length, "/action", "accept") &&
               mcpl_json_int64(result, length, "/content/age", &age) == MCPL_OK) {
        reply_formatted(call, "%s is %lld", (const char *)user, (long long)age);
    } else {
        mcpl_call_reply_text(call, "no age", MCPL_AUTO_LENGTH);
    }
}

static void string_free(void *text) {
    mcpl_string_free(text);
}

static void first_answered(mcpl_call *call, const mcpl_error *error, const char *result, size_t length, void *user) {
    (void)user;
    char *name = NULL;
    if (error != NULL) {
        mcpl_call_fail_with(call, error);
    } else if (!says(result, length, "/action", "accept") ||
               mcpl_json_string(result, length, "/content/name", &name, NULL) != MCPL_OK) {
        mcpl_call_reply_text(call, "no name", MCPL_AUTO_LENGTH);
    } else {
        char *message = formatted("How old are you, %s?", name);
        char *params = form(message, FORM("age", "integer"));
        mcpl_call_request_input(call, "second", MCPL_INPUT_REQUEST_METHOD_ELICIT, params, MCPL_AUTO_LENGTH, second_answered, name, string_free);
        free(params);
        free(message);
    }
}

static void two_questions(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    char *params = form("What is your name?", FORM("name", "string"));
    mcpl_call_request_input(call, "first", MCPL_INPUT_REQUEST_METHOD_ELICIT, params, MCPL_AUTO_LENGTH, first_answered, NULL, NULL);
    free(params);
}

static void streaming_elicitation(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    request_user_input(call, "Streaming elicitation", FORM("answer", "string"), reply_action, "Streaming elicitation: ");
}

static const tool TOOLS[] = {
    {.name = "test_sampling",
     .description = "Asks the client's model",
     .input = JSON({"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]}),
     .handler = sampling},
    {.name = "test_sampling_with_tools",
     .description = "Asks the client's model, which may use a tool",
     .handler = sampling_with_tools},
    {.name = "test_elicitation",
     .description = "Asks the user for a name and an address",
     .input = JSON({"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}),
     .handler = elicitation},
    {.name = "test_elicitation_sep1034_defaults",
     .description = "Asks the user with a form that has defaults",
     .handler = elicitation_defaults},
    {.name = "test_elicitation_sep1330_enums",
     .description = "Asks the user with a form that has choices",
     .handler = elicitation_enums},
    {.name = "test_url_elicitation", .description = "Asks the user to visit a page", .handler = url_elicitation},
    {.name = "test_roots", .description = "Lists the client's root directories", .handler = roots},
    {.name = "test_two_questions",
     .description = "Asks the user twice",
     .handler = two_questions,
     .flags = MCPL_HANDLER_INLINE},
    {.name = "test_streaming_elicitation",
     .description = "Asks the user while a stream is open",
     .handler = streaming_elicitation},
};

void add_input_request_tools(everything *everything) {
    add_tools(everything, TOOLS, COUNT(TOOLS));
    must(mcpl_server_on_roots_changed(everything->server, roots_changed, NULL, NULL), "the handler of changed roots");
}
