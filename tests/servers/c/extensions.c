/* Features of `--extensions 1`: two extensions of the protocol with their methods, tools, prompt and resource. */
#include <stdlib.h>

#include "fixtures.h"

#define STAMPS "com.example/stamps"
#define RECEIPTS "com.example/receipts"
#define RECEIPT JSON({"resultType": "acme/receipt", "token": "t-1"})

void put_extensions(mcpl_json *options) {
    put_json_member(options, "extensions", JSON({"com.example/stamps": {"colors": 3}, "com.example/receipts": {}}));
    put_json_member(options, "result_types", JSON({"acme/receipt": "com.example/receipts"}));
}

/* Returns the client's settings of the stamps extension; release with free. NULL if it does not declare the
 * extension. */
static char *client_stamps(mcpl_call *call) {
    char *info = NULL, *settings = NULL;
    const char *found = NULL;
    size_t length = 0, size = 0;
    mcpl_json_kind kind = MCPL_JSON_NULL;
    if (mcpl_call_info(call, &info, &length) == MCPL_OK &&
        mcpl_json_find(info, length, "/clientCapabilities/extensions/com.example~1stamps", &found, &size) == MCPL_OK &&
        mcpl_json_kind_of(found, size, &kind) == MCPL_OK && kind == MCPL_JSON_OBJECT) {
        settings = formatted("%.*s", (int)size, found);
    }
    mcpl_string_free(info);
    return settings;
}

/* Called only for clients that declare the extension. */
static void issue(mcpl_call *call, const char *params, size_t length, void *user) {
    (void)user;
    const char *color = NULL;
    size_t size = 0;
    char *settings = client_stamps(call);
    mcpl_json_find(params, length, "/color", &color, &size);
    char *stamp = formatted("{\"stamp\":%.*s,\"for\":%s}", (int)size, color, settings == NULL ? "null" : settings);
    mcpl_call_reply_result(call, stamp, MCPL_AUTO_LENGTH);
    free(stamp);
    free(settings);
}

static void used(mcpl_call *call, const char *params, size_t length, void *user) {
    everything *everything = user;
    char *name = text_argument(call, params, length, "/name");
    if (name != NULL) {
        doors_open(&everything->gates, name);
        mcpl_call_reply_text(call, "", 0);
    }
    mcpl_string_free(name);
}

static void redeem(mcpl_call *call, const char *params, size_t length, void *user) {
    (void)user;
    char *token = text_argument(call, params, length, "/token");
    if (token == NULL) {
        return;
    }
    if (strcmp(token, "endless") == 0) {
        mcpl_call_reply_result(call, JSON({"resultType": "acme/receipt", "token": "endless"}), MCPL_AUTO_LENGTH);
    } else {
        mcpl_json *result = mcpl_json_new();
        char *text = formatted("redeemed %s", token);
        mcpl_json_begin_object(result);
        mcpl_json_name(result, "content");
        mcpl_json_begin_array(result);
        mcpl_json_begin_object(result);
        put_string_member(result, "type", "text");
        put_string_member(result, "text", text);
        mcpl_json_end_object(result);
        mcpl_json_end_array(result);
        mcpl_json_end_object(result);
        reply_written(call, mcpl_call_reply_result, result);
        free(text);
    }
    mcpl_string_free(token);
}

static void need_stamps(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    char *settings = client_stamps(call);
    if (settings == NULL) {
        const char *data = JSON({"requiredCapabilities": {"extensions": {"com.example/stamps": {}}}});
        mcpl_call_fail_rpc(call, -32021, "the client does not declare " STAMPS, data, MCPL_AUTO_LENGTH);
    } else {
        mcpl_call_reply_text(call, "stamps declared", MCPL_AUTO_LENGTH);
    }
    free(settings);
}

static void reply_receipt(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    mcpl_call_reply_result(call, RECEIPT, MCPL_AUTO_LENGTH);
}

static void reply_stray(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    mcpl_call_reply_result(call, JSON({"resultType": "acme/none", "token": "t-1"}), MCPL_AUTO_LENGTH);
}

static const tool TOOLS[] = {
    {.name = "test_extension",
     .description = "Needs an extension that the client declares",
     .handler = need_stamps},
    {.name = "test_receipt", .description = "Returns a receipt", .handler = reply_receipt},
    {.name = "test_stray_type",
     .description = "Returns a result of a type that no extension has",
     .handler = reply_stray},
};

void add_extensions(everything *everything) {
    const mcpl_handler_options of_stamps = {.size = sizeof of_stamps, .extension = STAMPS};
    const mcpl_handler_options of_receipts = {.size = sizeof of_receipts, .extension = RECEIPTS};
    mcpl_server *server = everything->server;
    const char *colored =
        JSON({"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]});
    const char *named = JSON({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    const char *paid = JSON({"type": "object", "properties": {"token": {"type": "string"}}, "required": ["token"]});
    must(mcpl_server_on_request(server, "acme/issue", colored, &of_stamps, issue, everything, NULL), "acme/issue");
    must(mcpl_server_on_notification(server, "acme/used", named, &of_stamps, used, everything, NULL), "acme/used");
    must(mcpl_server_on_request(server, "acme/redeem", paid, &of_receipts, redeem, everything, NULL), "acme/redeem");
    add_tools(everything, TOOLS, COUNT(TOOLS));
    must(mcpl_server_add_prompt_with(server, JSON({"name": "test_receipt_prompt", "description": "Returns a receipt"}),
                                     MCPL_AUTO_LENGTH, NULL, reply_receipt, everything, NULL),
         "test_receipt_prompt");
    must(mcpl_server_add_resource_with(
             server, JSON({"uri": "test://receipt", "name": "receipt", "description": "Returns a receipt"}),
             MCPL_AUTO_LENGTH, NULL, reply_receipt, everything, NULL),
         "test://receipt");
}
