/* Custom requests, extensions and notification listeners of a driver's client. */
#ifndef CUSTOM_H
#define CUSTOM_H

#include "writing.h"

/* Notifications that a client has received. */
typedef struct received received;

received *received_new(void);
void received_free(received *all);
/* Waits for the first `count` notifications of a method, and writes their params as an array. */
void received_put_first(received *all, const char *method, size_t count, mcpl_json *json);

/* Writes the option `capabilities` with the extensions in a job's settings, if there are any. */
void put_declared_extensions(mcpl_json *options, slice job);
/* Registers the handlers in a job's settings: for custom requests, result types of extensions, and notifications.
 * Returns the first failure. */
mcpl_status register_custom(mcpl_client *client, slice job, received *all);

#endif
