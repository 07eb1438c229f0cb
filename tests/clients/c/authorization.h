/* The authorization scenarios (`auth/...`). */
#ifndef AUTHORIZATION_H
#define AUTHORIZATION_H

#include <mcpline.h>

/* Runs a scenario, named without the `auth/`, with a client that is not connected. Returns the exit code. */
int authorization_play(mcpl_client *client, const char *scenario, const char *url);

#endif
