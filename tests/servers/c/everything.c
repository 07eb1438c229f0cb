#include "everything.h"

#include "fixtures.h"

void everything_make(everything *everything, const arguments *given) {
    const char *info =
        JSON({"name": "mcpline-everything", "title": "mcpline everything server", "version": "1.0.0"});
    mcpl_json *options = mcpl_json_new();
    mcpl_json_begin_object(options);
    mcpl_json_name(options, "instructions");
    mcpl_json_put_string(options, "Fixture server of the mcpline tests.", MCPL_AUTO_LENGTH);
    put_number_member(options, "page_size", given->page_size);
    put_number_member(options, "max_suspended_handlers", given->max_suspended_handlers);
    if (given->declared != 0) {
        put_json_member(options, "declare", JSON(["tools", "prompts", "resources"]));
    }
    if (given->extensions != 0) {
        put_extensions(options);
    }
    mcpl_json_end_object(options);
    const char *text = NULL;
    size_t length = 0;
    must(mcpl_json_text(options, &text, &length), "the options");
    everything->server = mcpl_server_new_with(info, MCPL_AUTO_LENGTH, text, length);
    must(everything->server == NULL ? mcpl_error_status(mcpl_last_error()) : MCPL_OK, "making the server");
    mcpl_json_free(options);

    doors_make(&everything->gates);
    doors_make(&everything->cancellations);
    doors_make(&everything->elicitations);
    everything->version = 1;
    pthread_mutex_init(&everything->changing, NULL);

    if (given->declared != 0) {
        return;
    }
    if (given->tools_only != 0) {
        add_simple_tool(everything);
        return;
    }
    if (given->prompts_only != 0) {
        add_simple_prompt(everything);
        return;
    }
    add_content_tools(everything);
    add_schema_tools(everything);
    add_failure_tools(everything);
    add_running_tools(everything);
    add_input_request_tools(everything);
    add_visit_tools(everything);
    add_returning_tools(everything);
    add_caller_tools(everything);
    add_changing_tools(everything);
    add_prompts(everything);
    add_resources(everything);
    add_custom_requests(everything);
    if (given->more != 0) {
        add_more(everything);
    }
    if (given->extensions != 0) {
        add_extensions(everything);
    }
    if (given->extras != 0) {
        add_extras(everything);
    }
    if (given->blocking != 0) {
        add_blocking(everything);
    }
}

void everything_free(everything *everything) {
    mcpl_server_free(everything->server);
    doors_free(&everything->gates);
    doors_free(&everything->cancellations);
    doors_free(&everything->elicitations);
    pthread_mutex_destroy(&everything->changing);
}
