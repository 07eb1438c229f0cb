/* What a driver's client serves, declares and listens to beyond what the protocol defines. */
#ifndef CUSTOM_H
#define CUSTOM_H

#include "writing.h"

/* The notifications that a client has received. */
typedef struct received received;

received *received_new(void);
void received_free(received *all);
/* Waits for the first `count` notifications of a method; writes their params as an array. */
void received_put_first(received *all, const char *method, size_t count, mcpl_json *json);

/* Writes the option `capabilities` with the extensions that a job's settings declare, if they do. */
void put_extensions(mcpl_json *options, slice job);
/* Registers what a job's settings say: handlers of custom requests and of results of extensions' types, and the listener of
 * notifications. Returns the first failure. */
mcpl_status register_custom(mcpl_client *client, slice job, received *all);

#endif
