/* The C everything-client: `everything-client URL`. Its specification is ../README.md. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mcpline.h>

#include "authorization.h"

#define JSON(...) #__VA_ARGS__
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Prints what failed and ends the program, unless the status is MCPL_OK. */
static void must(mcpl_status status, const char *what) {
    if (status != MCPL_OK) {
        const mcpl_error *error = mcpl_last_error();
        fprintf(stderr, "%s: %s: %s\n", what, mcpl_status_name(status), mcpl_error_message(error));
        exit(EXIT_FAILURE);
    }
}

/* A function that fetches a list. */
typedef mcpl_status (*lister)(mcpl_client *, const mcpl_request_options *, char **, size_t *);

/* Calls a function with a member of each entry of a list. */
static void each(mcpl_client *client, lister list, const char *member, void (*use)(mcpl_client *, const char *)) {
    char *listed = NULL;
    size_t length = 0;
    must(list(client, NULL, &listed, &length), "listing");
    const char *one = NULL;
    size_t size = 0;
    for (size_t index = 0; mcpl_json_item(listed, length, index, NULL, &one, &size) == MCPL_OK; index++) {
        char *name = NULL;
        must(mcpl_json_string(one, size, member, &name, NULL), member);
        use(client, name);
        mcpl_string_free(name);
    }
    mcpl_string_free(listed);
}

static void call(mcpl_client *client, const char *tool, const char *arguments, size_t length) {
    char *result = NULL;
    must(mcpl_client_call_tool(client, tool, arguments, length, NULL, &result, NULL), tool);
    mcpl_string_free(result);
}

static void call_bare(mcpl_client *client, const char *tool) {
    call(client, tool, NULL, 0);
}

static void call_with_region(mcpl_client *client, const char *tool) {
    call(client, tool, JSON({"region": "eu"}), MCPL_AUTO_LENGTH);
}

static void read_bare(mcpl_client *client, const char *uri) {
    char *result = NULL;
    must(mcpl_client_read_resource(client, uri, NULL, &result, NULL), uri);
    mcpl_string_free(result);
}

static void get_bare(mcpl_client *client, const char *prompt) {
    char *result = NULL;
    must(mcpl_client_get_prompt(client, prompt, NULL, 0, NULL, &result, NULL), prompt);
    mcpl_string_free(result);
}

static void list_tools(mcpl_client *client) {
    char *tools = NULL;
    must(mcpl_client_list_tools(client, NULL, &tools, NULL), "listing tools");
    mcpl_string_free(tools);
}

static void tools_call(mcpl_client *client) {
    list_tools(client);
    call(client, "add_numbers", JSON({"a": 5, "b": 3}), MCPL_AUTO_LENGTH);
}

static void elicitation_defaults(mcpl_client *client) {
    list_tools(client);
    call_bare(client, "test_client_elicitation_defaults");
}

static void sse_retry(mcpl_client *client) {
    list_tools(client);
    call_bare(client, "test_reconnection");
}

static void request_state(mcpl_client *client) {
    static const char *const TOOLS[] = {
        "test_mrtr_echo_state",
        "test_mrtr_no_state",
        "test_mrtr_unrelated",
        "test_mrtr_no_result_type",
    };
    list_tools(client);
    for (size_t index = 0; index < COUNT(TOOLS); index++) {
        call_bare(client, TOOLS[index]);
    }
}

static void standard_headers(mcpl_client *client) {
    each(client, mcpl_client_list_tools, "/name", call_bare);
    each(client, mcpl_client_list_resources, "/uri", read_bare);
    each(client, mcpl_client_list_prompts, "/name", get_bare);
}

static void custom_headers(mcpl_client *client) {
    const char *context = getenv("MCP_CONFORMANCE_CONTEXT");
    const char *calls = NULL, *one = NULL, *arguments = NULL;
    size_t calls_length = 0, one_length = 0, arguments_length = 0;
    if (context == NULL) {
        context = "";
    }
    must(mcpl_json_find(context, strlen(context), "/toolCalls", &calls, &calls_length), "the context");
    list_tools(client);
    for (size_t index = 0; mcpl_json_item(calls, calls_length, index, NULL, &one, &one_length) == MCPL_OK; index++) {
        char *name = NULL;
        must(mcpl_json_string(one, one_length, "/name", &name, NULL), "a call's name");
        must(mcpl_json_find(one, one_length, "/arguments", &arguments, &arguments_length), "a call's arguments");
        call(client, name, arguments, arguments_length);
        mcpl_string_free(name);
    }
}

static void invalid_tool_headers(mcpl_client *client) {
    each(client, mcpl_client_list_tools, "/name", call_with_region);
}

/* Calls the echo tool with the input schema of a listed tool, unchanged. */
static void schema_preservation(mcpl_client *client) {
    char *tools = NULL;
    const char *tool = NULL, *schema = NULL;
    size_t length = 0, tool_length = 0, schema_length = 0;
    must(mcpl_client_list_tools(client, NULL, &tools, &length), "listing tools");
    for (size_t index = 0; schema == NULL && mcpl_json_item(tools, length, index, NULL, &tool, &tool_length) == MCPL_OK;
         index++) {
        char *name = NULL;
        must(mcpl_json_string(tool, tool_length, "/name", &name, NULL), "a tool's name");
        if (strcmp(name, "json_schema_2020_12_tool") == 0) {
            must(mcpl_json_find(tool, tool_length, "/inputSchema", &schema, &schema_length), "its input schema");
        }
        mcpl_string_free(name);
    }
    mcpl_json *arguments = mcpl_json_new();
    mcpl_json_begin_object(arguments);
    mcpl_json_name(arguments, "schema");
    mcpl_json_put_json(arguments, schema, schema_length);
    mcpl_json_end_object(arguments);
    const char *text = NULL;
    size_t text_length = 0;
    must(mcpl_json_text(arguments, &text, &text_length), "the arguments");
    call(client, "json_schema_echo", text, text_length);
    mcpl_json_free(arguments);
    mcpl_string_free(tools);
}

typedef struct {
    const char *name;
    void (*play)(mcpl_client *);
    const char *elicited; /* the answer to a form; NULL: no handler */
} scenario;

static const scenario SCENARIOS[] = {
    {"initialize", list_tools, NULL},
    {"json-schema-ref-no-deref", list_tools, NULL},
    {"tools_call", tools_call, NULL},
    {"elicitation-sep1034-client-defaults", elicitation_defaults, JSON({"action": "accept"})},
    {"sse-retry", sse_retry, NULL},
    {"request-metadata", list_tools, JSON({"action": "decline"})},
    {"sep-2322-client-request-state", request_state, JSON({"action": "accept", "content": {"confirmed": true}})},
    {"http-standard-headers", standard_headers, NULL},
    {"http-custom-headers", custom_headers, NULL},
    {"http-invalid-tool-headers", invalid_tool_headers, NULL},
    {"json-schema-2020-12-preservation", schema_preservation, NULL},
};

static void elicit(mcpl_input_request *input, const char *params, size_t length, void *user) {
    (void)params, (void)length;
    mcpl_input_request_answer(input, user, MCPL_AUTO_LENGTH);
}

/* The client's options: the era of the scenario, and long timeouts, because the suite starts everything at once: a
 * busy machine must not look like a server of another era. Servers of the suite answer `tools/list` without declaring
 * tools. */
static const char *options(void) {
    const char *revision = getenv("MCP_CONFORMANCE_PROTOCOL_VERSION");
    if (revision == NULL || *revision == '\0') {
        return JSON({"probe_timeout": 25, "allow_undeclared_capabilities": true});
    }
    if (strcmp(revision, "2026-07-28") == 0) {
        return JSON({"probe_timeout": 25, "allow_undeclared_capabilities": true, "revisions": ["2026-07-28"]});
    }
    return JSON({
        "probe_timeout": 25,
        "allow_undeclared_capabilities": true,
        "revisions": ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
    });
}

int main(int count, char **arguments) {
    if (count != 2) {
        fputs("usage: everything-client URL\n", stderr);
        return 2;
    }
    const char *wanted = getenv("MCP_CONFORMANCE_SCENARIO");
    if (wanted != NULL && strncmp(wanted, "auth/", 5) == 0) {
        mcpl_client *client = mcpl_client_new("everything-client", "1.0.0");
        must(mcpl_client_set_options(client, options(), MCPL_AUTO_LENGTH), "the options");
        return authorization_play(client, wanted + 5, arguments[1]);
    }
    const scenario *scenario = SCENARIOS, *end = SCENARIOS + COUNT(SCENARIOS);
    while (scenario < end && (wanted == NULL || strcmp(scenario->name, wanted) != 0)) {
        scenario++;
    }
    if (scenario == end) {
        fprintf(stderr, "no scenario is named \"%s\"\n", wanted == NULL ? "" : wanted);
        return EXIT_FAILURE;
    }

    mcpl_client *client = mcpl_client_new("everything-client", "1.0.0");
    must(mcpl_client_set_options(client, options(), MCPL_AUTO_LENGTH), "the options");
    if (scenario->elicited != NULL) {
        must(mcpl_client_on_elicit(client, elicit, (void *)scenario->elicited, NULL), "the handler");
    }
    must(mcpl_client_connect(client, arguments[1]), "connecting");
    scenario->play(client);
    must(mcpl_client_close(client), "closing");
    mcpl_client_free(client);
    return EXIT_SUCCESS;
}
