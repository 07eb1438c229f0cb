/* The scenarios about authorization (`auth/...`). */
#ifndef AUTHORIZATION_H
#define AUTHORIZATION_H

#include <mcpline.h>

/* Plays a scenario, which is named without the `auth/`, with a client that isn't connected. Returns the exit code. */
int authorization_play(mcpl_client *client, const char *scenario, const char *url);

#endif
