/* Named doors, each of which opens once and stays open. Calls can wait for a door before or after it opens. */
#ifndef DOORS_H
#define DOORS_H

#include <pthread.h>
#include <stdbool.h>

#include <mcpline.h>

typedef struct door door;
typedef struct {
    pthread_mutex_t lock;
    door *first;
} doors;

void doors_make(doors *doors);
void doors_free(doors *doors);

/* Replies to the call with this text once the door is open: immediately, or later on the thread that opens it. */
void doors_reply_when_open(doors *doors, const char *name, mcpl_call *call, const char *text);
void doors_open(doors *doors, const char *name);
bool doors_is_open(doors *doors, const char *name);

#endif
