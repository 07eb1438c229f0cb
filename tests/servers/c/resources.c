/* Resources, the template, and the completion of its variable. */
#include <stdlib.h>

#include "fixtures.h"

/* The bytes of PNG. */
static const unsigned char IMAGE[] = {
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52,
    0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x06, 0x00, 0x00, 0x00, 0x1f, 0x15, 0xc4,
    0x89, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x44, 0x41, 0x54, 0x78, 0xda, 0x63, 0xfc, 0xcf, 0xc0, 0xf0,
    0x1f, 0x00, 0x05, 0x05, 0x02, 0x00, 0x5f, 0xc8, 0xf1, 0xd2, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45,
    0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
};

static void static_text(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    mcpl_call_reply_text(call, "This is the content of the static text resource.", MCPL_AUTO_LENGTH);
}

static void static_binary(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length, (void)user;
    mcpl_call_reply_bytes(call, IMAGE, sizeof IMAGE, NULL);
}

static void watched(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)arguments, (void)length;
    everything *everything = user;
    pthread_mutex_lock(&everything->changing);
    long version = everything->version;
    pthread_mutex_unlock(&everything->changing);
    reply_formatted(call, "Watched resource, version %ld", version);
}

static void template_data(mcpl_call *call, const char *arguments, size_t length, void *user) {
    (void)user;
    char *id = text_argument(call, arguments, length, "/id");
    if (id == NULL) {
        return;
    }
    char *text = formatted("Data for ID: %s", id);
    mcpl_json *data = mcpl_json_new();
    mcpl_json_begin_object(data);
    put_string_member(data, "id", id);
    mcpl_json_name(data, "templateTest");
    mcpl_json_put_bool(data, true);
    put_string_member(data, "data", text);
    mcpl_json_end_object(data);
    reply_written(call, mcpl_call_reply_text, data);
    free(text);
    mcpl_string_free(id);
}

static void add(everything *everything, const char *definition, uint32_t flags, mcpl_handler handler) {
    mcpl_handler_options options = {.size = sizeof options, .flags = flags};
    must(mcpl_server_add_resource_with(everything->server, definition, MCPL_AUTO_LENGTH, &options, handler, everything,
                                       NULL),
         definition);
}

void add_resources(everything *everything) {
    add(everything,
        JSON({
            "uri": "test://static-text",
            "name": "static-text",
            "title": "Static text",
            "description": "A text that never changes",
            "mimeType": "text/plain"
        }),
        MCPL_HANDLER_INLINE, static_text);
    add(everything,
        JSON({
            "uri": "test://static-binary",
            "name": "static-binary",
            "description": "An image",
            "mimeType": "image/png"
        }),
        0, static_binary);
    add(everything,
        JSON({
            "uri": "test://watched-resource",
            "name": "watched-resource",
            "description": "A text that changes",
            "mimeType": "text/plain"
        }),
        0, watched);

    const char *template = JSON({
        "uriTemplate": "test://template/{id}/data",
        "name": "template-data",
        "description": "Data for any id",
        "mimeType": "application/json"
    });
    must(mcpl_server_add_resource_template_with(everything->server, template, MCPL_AUTO_LENGTH, NULL, template_data,
                                                everything, NULL),
         template);
    static const char *const IDS[] = {"1", "12", "123", "2"};
    must(mcpl_server_add_candidates(everything->server, "test://template/{id}/data", "id", IDS, COUNT(IDS)),
         "the candidates of id");
}
