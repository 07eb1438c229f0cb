/* Prompts, and the completion of their arguments. */
#include <stdlib.h>

#include "fixtures.h"
#include "input_request_params.h"
#include "returned_input_requests.h"

static void simple(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    mcpl_call_reply_text(call, "This is a simple prompt for testing.", MCPL_AUTO_LENGTH);
}

static void with_arguments(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)user;
    char *first = text_argument(call, arguments, length, "/arg1");
    char *second = first == NULL ? NULL : text_argument(call, arguments, length, "/arg2");
    if (second != NULL) {
        reply_formatted(call, "Prompt with arguments: arg1='%s', arg2='%s'", first, second);
    }
    mcpl_string_free(second);
    mcpl_string_free(first);
}

/* The candidates of `arg2` depend on `arg1`. */
static void complete_second(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)user;
    char *first = NULL, *begun = NULL;
    mcpl_json_string(arguments, length, "/context/arguments/arg1", &first, NULL);
    mcpl_json_string(arguments, length, "/argument/value", &begun, NULL);
    char *all[2] = {NULL, NULL};
    const char *fitting[2];
    size_t count = 0;
    if (first != NULL && begun != NULL) {
        all[0] = formatted("%s one", first);
        all[1] = formatted("%s two", first);
        for (size_t index = 0; index < COUNT(all); index++) {
            if (strncmp(all[index], begun, strlen(begun)) == 0) {
                fitting[count++] = all[index];
            }
        }
    }
    mcpl_call_reply_values(call, fitting, count);
    free(all[0]);
    free(all[1]);
    mcpl_string_free(begun);
    mcpl_string_free(first);
}

static void with_embedded_resource(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)user;
    char *uri = text_argument(call, arguments, length, "/resourceUri");
    if (uri == NULL) {
        return;
    }
    const char *request =
        JSON({"role": "user", "content": {"type": "text", "text": "Please process the embedded resource above."}});
    mcpl_json *messages = mcpl_json_new();
    mcpl_json_begin_array(messages);
    mcpl_json_begin_object(messages);
    put_string_member(messages, "role", "user");
    mcpl_json_name(messages, "content");
    mcpl_json_begin_object(messages);
    put_string_member(messages, "type", "resource");
    mcpl_json_name(messages, "resource");
    mcpl_json_begin_object(messages);
    put_string_member(messages, "uri", uri);
    put_string_member(messages, "mimeType", "text/plain");
    put_string_member(messages, "text", "Embedded resource content for testing.");
    mcpl_json_end_object(messages);
    mcpl_json_end_object(messages);
    mcpl_json_end_object(messages);
    mcpl_json_put_json(messages, request, MCPL_AUTO_LENGTH);
    mcpl_json_end_array(messages);
    reply_written(call, mcpl_call_reply_content, messages);
    mcpl_string_free(uri);
}

static void with_image(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    const char *messages =
        "[{\"role\":\"user\",\"content\":{\"type\":\"image\",\"data\":\"" PNG "\",\"mimeType\":\"image/png\"}},"
        "{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"Please analyze the image above.\"}}]";
    mcpl_call_reply_content(call, messages, MCPL_AUTO_LENGTH);
}

static void conversation(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    const char *messages = JSON([
        {"role": "user", "content": {"type": "text", "text": "What is 2 + 2?"}},
        {"role": "assistant", "content": {"type": "text", "text": "4"}}
    ]);
    mcpl_call_reply_content(call, messages, MCPL_AUTO_LENGTH);
}

static void input_required(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    round round = round_of(call);
    char *context = accepted_text(&round, "user_context", "context");
    if (context == NULL) {
        char *params = form("What context should the prompt use?", FORM("context", "string"));
        return_input_requests(&round, &(input_request){"user_context", "elicitation/create", params}, 1, NULL);
        free(params);
    } else {
        reply_formatted(call, "Use this context: %s", context);
    }
    mcpl_string_free(context);
    round_free(&round);
}

static void add(everything *everything, const char *name, const char *description, const char *arguments,
                mcpl_handler handler) {
    must(mcpl_server_add_prompt(everything->server, name, description, arguments, handler, everything, NULL), name);
}

void add_simple_prompt(everything *everything) {
    add(everything, "test_simple_prompt", "A prompt without arguments", NULL, simple);
}

void add_prompts(everything *everything) {
    add_simple_prompt(everything);
    add(everything, "test_prompt_with_arguments", "A prompt with arguments",
        JSON([
            {"name": "arg1", "description": "First test argument", "required": true},
            {"name": "arg2", "description": "Second test argument", "required": true}
        ]),
        with_arguments);
    add(everything, "test_prompt_with_embedded_resource", "A prompt that embeds a resource",
        JSON([{"name": "resourceUri", "description": "URI of the resource to embed", "required": true}]),
        with_embedded_resource);
    add(everything, "test_prompt_with_image", "A prompt with an image", NULL, with_image);
    add(everything, "test_prompt_conversation", "A prompt with messages of both sides", NULL, conversation);
    add(everything, "test_input_required_result_prompt", "A prompt that returns a question", NULL, input_required);

    static const char *const FIRST[] = {"test alpha", "test beta", "paris"};
    must(mcpl_server_add_candidates(everything->server, "test_prompt_with_arguments", "arg1", FIRST, COUNT(FIRST)),
         "the candidates of arg1");
    must(mcpl_server_add_completion(everything->server, "test_prompt_with_arguments", "arg2", complete_second,
                                    everything, NULL),
         "the completion of arg2");
}
