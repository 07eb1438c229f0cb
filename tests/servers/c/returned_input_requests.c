/* Tools that return their input requests and are called again with the answers. */
#include "returned_input_requests.h"

#include <stdlib.h>

#include "fixtures.h"
#include "input_request_params.h"

#define ELICIT "elicitation/create"
#define SAMPLE "sampling/createMessage"
#define NAME_FORM "{\"message\":\"What is your name?\",\"requestedSchema\":" FORM("name", "string") "}"
#define CONFIRM "{\"message\":\"Please confirm\",\"requestedSchema\":" FORM("ok", "boolean") "}"

round round_of(mcpl_call *call) {
    round round = {.call = call};
    mcpl_call_info(call, &round.json, &round.length);
    return round;
}

void round_free(round *round) {
    mcpl_string_free(round->json);
}

/* Whether the client's answers have this value: a key, which is a plain word, and a JSON pointer in its answer. */
static bool has(const round *round, const char *key, const char *within, mcpl_json_kind wanted) {
    char *pointer = formatted("/inputResponses/%s%s", key, within);
    const char *value = NULL;
    size_t length = 0;
    mcpl_json_kind kind = MCPL_JSON_NULL;
    bool there = mcpl_json_find(round->json, round->length, pointer, &value, &length) == MCPL_OK &&
                 mcpl_json_kind_of(value, length, &kind) == MCPL_OK && kind == wanted;
    free(pointer);
    return there;
}

/* Whether there is an answer to this form. */
static bool answered(const round *round, const char *key) {
    return has(round, key, "/action", MCPL_JSON_STRING);
}

/* Whether there is an answer of the model. */
static bool sampled(const round *round, const char *key) {
    return has(round, key, "/role", MCPL_JSON_STRING) &&
           (has(round, key, "/content", MCPL_JSON_OBJECT) || has(round, key, "/content", MCPL_JSON_ARRAY));
}

static bool listed(const round *round, const char *key) {
    return has(round, key, "/roots", MCPL_JSON_ARRAY);
}

/* Whether the client declared this capability. */
static bool declared(const round *round, const char *capability) {
    char *pointer = formatted("/clientCapabilities/%s", capability);
    const char *value = NULL;
    bool there = mcpl_json_find(round->json, round->length, pointer, &value, NULL) == MCPL_OK;
    free(pointer);
    return there;
}

/* Returns the state that the client sent back; release with mcpl_string_free. NULL if there is none. */
static char *state_of(const round *round) {
    char *state = NULL;
    mcpl_json_string(round->json, round->length, "/requestState", &state, NULL);
    return state;
}

char *accepted_text(const round *round, const char *key, const char *member) {
    char *action = formatted("/inputResponses/%s/action", key);
    char *pointer = formatted("/inputResponses/%s/content/%s", key, member);
    char *text = NULL;
    if (says(round->json, round->length, action, "accept")) {
        mcpl_json_string(round->json, round->length, pointer, &text, NULL);
    }
    free(pointer);
    free(action);
    return text;
}

void return_input_requests(const round *round, const input_request *requests, size_t count, const char *state) {
    mcpl_json *result = mcpl_json_new();
    mcpl_json_begin_object(result);
    mcpl_json_name(result, "requests");
    mcpl_json_begin_array(result);
    for (const input_request *each = requests; each < requests + count; each++) {
        mcpl_json_begin_array(result);
        mcpl_json_put_string(result, each->key, MCPL_AUTO_LENGTH);
        mcpl_json_put_string(result, each->method, MCPL_AUTO_LENGTH);
        if (each->params == NULL) {
            mcpl_json_put_null(result);
        } else {
            mcpl_json_put_json(result, each->params, MCPL_AUTO_LENGTH);
        }
        mcpl_json_end_array(result);
    }
    mcpl_json_end_array(result);
    if (state != NULL) {
        put_string_member(result, "state", state);
    }
    mcpl_json_end_object(result);
    reply_written(round->call, mcpl_call_reply_input_required, result);
}

static void elicitation(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    round round = round_of(call);
    char *name = accepted_text(&round, "user_name", "name");
    if (name == NULL) {
        return_input_requests(&round, &(input_request){"user_name", ELICIT, NAME_FORM}, 1, NULL);
    } else {
        reply_formatted(call, "Hello, %s!", name);
    }
    mcpl_string_free(name);
    round_free(&round);
}

static void sampling(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    round round = round_of(call);
    if (sampled(&round, "capital_question")) {
        const char *answer = NULL;
        size_t size = 0;
        mcpl_json_find(round.json, round.length, "/inputResponses/capital_question", &answer, &size);
        char *text = said(answer, size);
        reply_formatted(call, "Model said: %s", text);
        free(text);
    } else {
        char *params = message_to_model("What is the capital of France?", 100);
        return_input_requests(&round, &(input_request){"capital_question", SAMPLE, params}, 1, NULL);
        free(params);
    }
    round_free(&round);
}

static void list_roots(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    round round = round_of(call);
    if (listed(&round, "client_roots")) {
        size_t count = 0;
        mcpl_json_count(round.json, round.length, "/inputResponses/client_roots/roots", &count);
        reply_formatted(call, "Client exposed %zu root(s).", count);
    } else {
        return_input_requests(&round, &(input_request){"client_roots", "roots/list", NULL}, 1, NULL);
    }
    round_free(&round);
}

static void request_state(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    round round = round_of(call);
    if (answered(&round, "confirm") && says(round.json, round.length, "/requestState", "request-state-nonce")) {
        mcpl_call_reply_text(call, "state-ok: confirmation received", MCPL_AUTO_LENGTH);
    } else {
        return_input_requests(&round, &(input_request){"confirm", ELICIT, CONFIRM}, 1, "request-state-nonce");
    }
    round_free(&round);
}

static void multiple_inputs(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    round round = round_of(call);
    if (answered(&round, "user_name") && sampled(&round, "greeting") && listed(&round, "client_roots")) {
        mcpl_call_reply_text(call, "All inputs received.", MCPL_AUTO_LENGTH);
    } else {
        char *greeting = message_to_model("Generate a greeting", 50);
        const input_request requests[] = {
            {"user_name", ELICIT, NAME_FORM},
            {"greeting", SAMPLE, greeting},
            {"client_roots", "roots/list", NULL},
        };
        return_input_requests(&round, requests, COUNT(requests), "multiple-inputs");
        free(greeting);
    }
    round_free(&round);
}

/* Sends the elicitation of the color, with the name in the state. */
static void return_color_request(const round *round, const char *name) {
    char *params = form("Step 2: What is your favorite color?", FORM("color", "string"));
    char *state = formatted("round-2:%s", name);
    return_input_requests(round, &(input_request){"step2", ELICIT, params}, 1, state);
    free(state);
    free(params);
}

static void multi_round(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    static const char SECOND[] = "round-2:";
    round round = round_of(call);
    char *state = state_of(&round);
    char *color = accepted_text(&round, "step2", "color");
    char *name = accepted_text(&round, "step1", "name");
    if (state != NULL && strncmp(state, SECOND, strlen(SECOND)) == 0) {
        const char *kept = state + strlen(SECOND);
        if (color == NULL) {
            return_color_request(&round, kept);
        } else {
            reply_formatted(call, "%s likes %s.", kept, color);
        }
    } else if (name != NULL) {
        return_color_request(&round, name);
    } else {
        char *params = form("Step 1: What is your name?", FORM("name", "string"));
        return_input_requests(&round, &(input_request){"step1", ELICIT, params}, 1, "round-1");
        free(params);
    }
    mcpl_string_free(name);
    mcpl_string_free(color);
    mcpl_string_free(state);
    round_free(&round);
}

static void tampered_state(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    round round = round_of(call);
    char *state = state_of(&round);
    if (answered(&round, "confirm") && state != NULL) {
        reply_formatted(call, "state-ok: %s", state);
    } else {
        return_input_requests(&round, &(input_request){"confirm", ELICIT, CONFIRM}, 1, "round-1");
    }
    mcpl_string_free(state);
    round_free(&round);
}

static void capabilities(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    round round = round_of(call);
    char *hello = message_to_model("Say hello", 50);
    input_request requests[2];
    size_t count = 0;
    if (declared(&round, "sampling") && !sampled(&round, "sample")) {
        requests[count++] = (input_request){"sample", SAMPLE, hello};
    }
    if (declared(&round, "elicitation") && !answered(&round, "ask")) {
        requests[count++] = (input_request){"ask", ELICIT, NAME_FORM};
    }
    if (count > 0) {
        return_input_requests(&round, requests, count, "capability-gated");
    } else {
        bool has_form = answered(&round, "ask"), has_sample = sampled(&round, "sample");
        reply_formatted(call, "capabilities respected: %s%s%s", has_form ? "ask" : "",
                        has_form && has_sample ? "," : "", has_sample ? "sample" : "");
    }
    free(hello);
    round_free(&round);
}

static const tool TOOLS[] = {
    {.name = "test_input_required_result_elicitation",
     .description = "Returns a question to the user",
     .handler = elicitation},
    {.name = "test_input_required_result_sampling",
     .description = "Returns a question to the client's model",
     .handler = sampling},
    {.name = "test_input_required_result_list_roots",
     .description = "Returns the question for root directories",
     .handler = list_roots},
    {.name = "test_input_required_result_request_state",
     .description = "Returns a question and a state",
     .handler = request_state},
    {.name = "test_input_required_result_multiple_inputs",
     .description = "Returns one question of each kind",
     .handler = multiple_inputs},
    {.name = "test_input_required_result_multi_round",
     .description = "Returns questions in two rounds",
     .handler = multi_round,
     .flags = MCPL_HANDLER_INLINE},
    {.name = "test_input_required_result_tampered_state",
     .description = "Returns a state that must come back as it was",
     .handler = tampered_state},
    {.name = "test_input_required_result_capabilities",
     .description = "Returns the questions that the client can answer",
     .handler = capabilities},
};

void add_returning_tools(everything *everything) {
    add_tools(everything, TOOLS, COUNT(TOOLS));
}
