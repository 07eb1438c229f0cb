/* The parts of the driver. */
#ifndef DRIVER_H
#define DRIVER_H

#include "custom.h"
#include "writing.h"

/* Connects to the address of a job, with its settings. On failure, writes the member `error` and returns NULL.
 * Blocks. */
mcpl_client *connected(slice job, received *all, mcpl_json *report);

/* Runs a step and writes its outcome as an object. Blocks. Returns whether it succeeded. */
bool take(mcpl_client *client, slice step, received *all, mcpl_json *report);

#endif
