/* The parts of the driver. */
#ifndef DRIVER_H
#define DRIVER_H

#include "custom.h"
#include "writing.h"

/* Connects to where a job says, with its settings, and writes the member `error`, why it couldn't: then it is NULL. Blocks. */
mcpl_client *connected(slice job, received *all, mcpl_json *report);

/* Takes a step and writes what came of it as an object. Blocks. Returns whether it succeeded. */
bool take(mcpl_client *client, slice step, received *all, mcpl_json *report);

#endif
