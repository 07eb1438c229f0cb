/* Tools that require a URL elicitation first. */
#include <stdlib.h>

#include "fixtures.h"

#define IDENTIFIED JSON({"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]})

/* Whether the client accepted the input request with this key. Keys may have a `/`, so no JSON pointer is used. */
static bool accepted(mcpl_call *call, const char *key) {
    char *info = NULL;
    size_t length = 0;
    const char *answers = NULL, *answer = NULL;
    size_t answers_length = 0, answer_length = 0;
    bool found = false;
    mcpl_call_info(call, &info, &length);
    mcpl_json_find(info, length, "/inputResponses", &answers, &answers_length);
    char *name = NULL;
    for (size_t index = 0;
         !found && mcpl_json_item(answers, answers_length, index, &name, &answer, &answer_length) == MCPL_OK; index++) {
        found = name != NULL && strcmp(name, key) == 0 && says(answer, answer_length, "/action", "accept");
        mcpl_string_free(name);
    }
    mcpl_string_free(info);
    return found;
}

static void url_elicitation_required(mcpl_call *call, const char *arguments, size_t length, void *user) {
    everything *everything = user;
    char *id = text_argument(call, arguments, length, "/id");
    if (id == NULL) {
        return;
    }
    if (doors_is_open(&everything->elicitations, id) || accepted(call, id)) {
        reply_formatted(call, "authorised %s", id);
    } else {
        char *url = formatted("https://example.com/authorise?visit=%s", id);
        mcpl_json *elicitations = mcpl_json_new();
        mcpl_json_begin_array(elicitations);
        mcpl_json_begin_object(elicitations);
        put_string_member(elicitations, "mode", "url");
        put_string_member(elicitations, "message", "Please authorise access");
        put_string_member(elicitations, "url", url);
        put_string_member(elicitations, "elicitationId", id);
        mcpl_json_end_object(elicitations);
        mcpl_json_end_array(elicitations);
        reply_written(call, mcpl_call_fail_url_elicitation_required, elicitations);
        free(url);
    }
    mcpl_string_free(id);
}

static void complete_url_elicitation(mcpl_call *call, const char *arguments, size_t length, void *user) {
    everything *everything = user;
    char *id = text_argument(call, arguments, length, "/id");
    if (id != NULL) {
        doors_open(&everything->elicitations, id);
        mcpl_server_notify_elicitation_complete(everything->server, id);
        reply_formatted(call, "completed %s", id);
    }
    mcpl_string_free(id);
}

static const tool TOOLS[] = {
    {.name = "test_url_elicitation_required",
     .description = "Needs a visit first",
     .input = IDENTIFIED,
     .handler = url_elicitation_required},
    {.name = "test_complete_url_elicitation",
     .description = "Completes a visit",
     .input = IDENTIFIED,
     .handler = complete_url_elicitation},
};

void add_visit_tools(everything *everything) {
    add_tools(everything, TOOLS, COUNT(TOOLS));
}
