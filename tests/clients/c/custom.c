/* Custom requests, extensions and notification listeners of a driver's client. */
#define _POSIX_C_SOURCE 200809L
#include "custom.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *allocated(size_t size) {
    void *memory = calloc(1, size);
    if (memory == NULL) {
        abort();
    }
    return memory;
}

static char *copied(slice text) {
    char *copy = allocated(text.length + 1);
    memcpy(copy, text.text, text.length);
    return copy;
}

/* ---- received notifications */

typedef struct notification {
    struct notification *next;
    char *method;
    char *params;
} notification;

struct received {
    pthread_mutex_t lock;
    pthread_cond_t arrived;
    notification *first;
    notification **end;
};

received *received_new(void) {
    received *all = allocated(sizeof *all);
    pthread_mutex_init(&all->lock, NULL);
    pthread_cond_init(&all->arrived, NULL);
    all->end = &all->first;
    return all;
}

void received_free(received *all) {
    for (notification *item = all->first, *next; item != NULL; item = next) {
        next = item->next;
        free(item->method);
        free(item->params);
        free(item);
    }
    pthread_cond_destroy(&all->arrived);
    pthread_mutex_destroy(&all->lock);
    free(all);
}

static void add_notification(mcpl_client *client, const char *method, const char *params, size_t length, void *user) {
    (void)client;
    received *all = user;
    notification *item = allocated(sizeof *item);
    item->method = copied((slice){method, strlen(method)});
    item->params = copied((slice){params, length});
    pthread_mutex_lock(&all->lock);
    *all->end = item;
    all->end = &item->next;
    pthread_cond_broadcast(&all->arrived);
    pthread_mutex_unlock(&all->lock);
}

static size_t count_of(const received *all, const char *method) {
    size_t count = 0;
    for (const notification *item = all->first; item != NULL; item = item->next) {
        count += strcmp(item->method, method) == 0;
    }
    return count;
}

void received_put_first(received *all, const char *method, size_t count, mcpl_json *json) {
    pthread_mutex_lock(&all->lock);
    while (count_of(all, method) < count) {
        pthread_cond_wait(&all->arrived, &all->lock);
    }
    mcpl_json_begin_array(json);
    for (const notification *item = all->first; count > 0; item = item->next) {
        if (strcmp(item->method, method) == 0) {
            mcpl_json_put_json(json, item->params, MCPL_AUTO_LENGTH);
            count--;
        }
    }
    mcpl_json_end_array(json);
    pthread_mutex_unlock(&all->lock);
}

/* ---- custom requests of the server */

/* Returns a member of a JSON object; without text if there are no more. Release the name with mcpl_string_free. */
static slice member(slice object, size_t index, char **name) {
    slice value = {NULL, 0};
    if (mcpl_json_item(object.text, object.length, index, name, &value.text, &value.length) != MCPL_OK) {
        return (slice){NULL, 0};
    }
    return value;
}

/* Copies members of the params into the result, as `user` says: {"NAME": "MEMBER OF THE PARAMS"}. */
static void serve(mcpl_input_request *request, const char *params, size_t length, void *user) {
    slice members = {user, strlen(user)}, source;
    mcpl_json *result = mcpl_json_new();
    mcpl_json_begin_object(result);
    char *name = NULL;
    bool found = true;
    for (size_t index = 0; (source = member(members, index, &name)).text != NULL; index++) {
        char *wanted = string_at(source, "");
        char pointer[256];
        snprintf(pointer, sizeof pointer, "/%s", wanted);
        slice value = slice_at((slice){params, length}, pointer);
        found = found && value.text != NULL;
        put_slice(result, name, value);
        mcpl_string_free(wanted);
        mcpl_string_free(name);
    }
    mcpl_json_end_object(result);
    if (found) {
        mcpl_input_request_answer(request, written(result).text, MCPL_AUTO_LENGTH);
    } else {
        mcpl_input_request_refuse(request, -32602, "params have no such member", NULL, 0);
    }
    mcpl_json_free(result);
}

/* ---- extensions */

/* How to resolve results of a type: by a request of this method, with this client. */
typedef struct {
    mcpl_client *client;
    char *method;
} resolver;

static void free_resolver(void *user) {
    resolver *resolving = user;
    mcpl_string_free(resolving->method);
    free(resolving);
}

static void fail(mcpl_input_request *request, const mcpl_error *error) {
    mcpl_input_request_fail(request, mcpl_error_status(error), mcpl_error_message(error), mcpl_error_details(error));
}

static void resolved(mcpl_request *request, const mcpl_error *error, const char *result, size_t length, void *user) {
    (void)request;
    if (error == NULL) {
        mcpl_input_request_answer(user, result, length);
    } else {
        fail(user, error);
    }
}

static void resolve(mcpl_input_request *request, const char *params, size_t length, void *user) {
    const resolver *resolving = user;
    mcpl_json *redeemed = mcpl_json_new();
    mcpl_json_begin_object(redeemed);
    put_slice(redeemed, "token", slice_at((slice){params, length}, "/result/token"));
    mcpl_json_end_object(redeemed);
    slice text = written(redeemed);
    if (mcpl_client_request_async(resolving->client, resolving->method, text.text, text.length, NULL, resolved, request,
                                  NULL) != MCPL_OK) {
        fail(request, mcpl_last_error());
    }
    mcpl_json_free(redeemed);
}

void put_declared_extensions(mcpl_json *options, slice job) {
    slice declared = slice_at(job, "/settings/extensions"), extension;
    if (declared.text == NULL) {
        return;
    }
    mcpl_json_name(options, "capabilities");
    mcpl_json_begin_object(options);
    mcpl_json_name(options, "extensions");
    mcpl_json_begin_object(options);
    char *identifier = NULL;
    for (size_t index = 0; (extension = member(declared, index, &identifier)).text != NULL; index++) {
        slice settings = slice_at(extension, "/settings");
        put_slice(options, identifier, settings.text != NULL ? settings : (slice){"{}", 2});
        mcpl_string_free(identifier);
    }
    mcpl_json_end_object(options);
    mcpl_json_end_object(options);
}

/* Registers the handlers for result types of an extension: {"TYPE": "METHOD"}. */
static mcpl_status register_resolvers(mcpl_client *client, slice types) {
    mcpl_status status = MCPL_OK;
    slice method;
    char *type = NULL;
    for (size_t index = 0; status == MCPL_OK && types.text != NULL; index++) {
        method = member(types, index, &type);
        if (method.text == NULL) {
            break;
        }
        resolver *resolving = allocated(sizeof *resolving);
        *resolving = (resolver){client, string_at(method, "")};
        status = mcpl_client_on_result_type(client, type, resolve, resolving, free_resolver);
        mcpl_string_free(type);
    }
    return status;
}

mcpl_status register_custom(mcpl_client *client, slice job, received *all) {
    mcpl_status status = MCPL_OK;
    slice served = slice_at(job, "/settings/serves"), members;
    char *method = NULL;
    for (size_t index = 0; status == MCPL_OK && served.text != NULL; index++) {
        members = member(served, index, &method);
        if (members.text == NULL) {
            break;
        }
        status = mcpl_client_on_request(client, method, serve, copied(members), free);
        mcpl_string_free(method);
    }
    slice declared = slice_at(job, "/settings/extensions"), extension;
    for (size_t index = 0; status == MCPL_OK && declared.text != NULL; index++) {
        extension = member(declared, index, NULL);
        if (extension.text == NULL) {
            break;
        }
        status = register_resolvers(client, slice_at(extension, "/resolves"));
    }
    bool listens = false;
    mcpl_json_bool(job.text, job.length, "/settings/listens", &listens);
    if (status == MCPL_OK && listens) {
        status = mcpl_client_on_notification(client, add_notification, all, NULL);
    }
    return status;
}
