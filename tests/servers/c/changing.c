/* Tools that change the server's features. */
#include "fixtures.h"

static void dynamic(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    mcpl_call_reply_text(call, "dynamic", MCPL_AUTO_LENGTH);
}

static void update_resource(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length;
    everything *everything = user;
    pthread_mutex_lock(&everything->changing);
    long version = ++everything->version;
    pthread_mutex_unlock(&everything->changing);
    mcpl_server_notify_resource_updated(everything->server, "test://watched-resource");
    reply_formatted(call, "version %ld", version);
}

/* Ends a call with `removed` if the removal succeeded, otherwise `added`. */
static void reply_change(mcpl_call *call, mcpl_status removing, mcpl_status adding) {
    if (removing == MCPL_OK) {
        mcpl_call_reply_text(call, "removed", MCPL_AUTO_LENGTH);
    } else if (adding == MCPL_OK) {
        mcpl_call_reply_text(call, "added", MCPL_AUTO_LENGTH);
    } else {
        mcpl_call_fail_with(call, mcpl_last_error());
    }
}

static void trigger_tool_change(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length;
    everything *everything = user;
    mcpl_status removing = mcpl_server_remove_tool(everything->server, "test_dynamic_tool"), adding = removing;
    if (removing == MCPL_NOT_FOUND) {
        adding = mcpl_server_add_tool(everything->server, "test_dynamic_tool", "A tool that comes and goes", NULL,
                                      dynamic, NULL, NULL);
    }
    reply_change(call, removing, adding);
}

static void trigger_prompt_change(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length;
    everything *everything = user;
    mcpl_status removing = mcpl_server_remove_prompt(everything->server, "test_dynamic_prompt"), adding = removing;
    if (removing == MCPL_NOT_FOUND) {
        adding = mcpl_server_add_prompt(everything->server, "test_dynamic_prompt", "A prompt that comes and goes", NULL,
                                        dynamic, NULL, NULL);
    }
    reply_change(call, removing, adding);
}

static void trigger_resource_change(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length;
    everything *everything = user;
    const char *definition = JSON({
        "uri": "test://dynamic-resource",
        "name": "dynamic-resource",
        "description": "A resource that comes and goes"
    });
    mcpl_status removing = mcpl_server_remove_resource(everything->server, "test://dynamic-resource"), adding = removing;
    if (removing == MCPL_NOT_FOUND) {
        adding = mcpl_server_add_resource_with(everything->server, definition, MCPL_AUTO_LENGTH, NULL, dynamic, NULL,
                                               NULL);
    }
    reply_change(call, removing, adding);
}

static const tool TOOLS[] = {
    {.name = "test_update_resource", .description = "Changes the watched resource", .handler = update_resource},
    {.name = "test_trigger_tool_change",
     .description = "Adds a tool, or removes it",
     .handler = trigger_tool_change},
    {.name = "test_trigger_prompt_change",
     .description = "Adds a prompt, or removes it",
     .handler = trigger_prompt_change},
    {.name = "test_trigger_resource_change",
     .description = "Adds a resource, or removes it",
     .handler = trigger_resource_change},
};

void add_changing_tools(everything *everything) {
    add_tools(everything, TOOLS, COUNT(TOOLS));
}
