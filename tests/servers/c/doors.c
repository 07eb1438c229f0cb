#include "doors.h"

#include <stdlib.h>

#include "fixtures.h"

/* A waiting call and the text of its reply. If the call ends meanwhile, its handle is stale. */
typedef struct waiting {
    mcpl_call *call;
    char *text;
    struct waiting *next;
} waiting;

struct door {
    char *name;
    bool open;
    waiting *waiting;
    door *next;
};

/* Returns the door of this name, and creates it if necessary. Requires the lock. */
static door *door_of(doors *doors, const char *name) {
    for (door *each = doors->first; each != NULL; each = each->next) {
        if (strcmp(each->name, name) == 0) {
            return each;
        }
    }
    door *made = allocated(sizeof *made);
    *made = (door){.name = copied(name), .next = doors->first};
    doors->first = made;
    return made;
}

static void waiting_free(waiting *waiting) {
    free(waiting->text);
    free(waiting);
}

void doors_make(doors *doors) {
    pthread_mutex_init(&doors->lock, NULL);
    doors->first = NULL;
}

void doors_free(doors *doors) {
    for (door *each = doors->first, *next; each != NULL; each = next) {
        next = each->next;
        for (waiting *one = each->waiting, *after; one != NULL; one = after) {
            after = one->next;
            waiting_free(one);
        }
        free(each->name);
        free(each);
    }
    pthread_mutex_destroy(&doors->lock);
}

void doors_reply_when_open(doors *doors, const char *name, mcpl_call *call, const char *text) {
    pthread_mutex_lock(&doors->lock);
    door *door = door_of(doors, name);
    bool open = door->open;
    if (!open) {
        mcpl_call_keep(call);
        waiting *added = allocated(sizeof *added);
        *added = (waiting){.call = call, .text = copied(text), .next = door->waiting};
        door->waiting = added;
    }
    pthread_mutex_unlock(&doors->lock);
    if (open) {
        mcpl_call_reply_text(call, text, MCPL_AUTO_LENGTH);
    }
}

void doors_open(doors *doors, const char *name) {
    pthread_mutex_lock(&doors->lock);
    door *door = door_of(doors, name);
    waiting *passing = door->waiting;
    door->open = true;
    door->waiting = NULL;
    pthread_mutex_unlock(&doors->lock);
    for (waiting *next; passing != NULL; passing = next) {
        next = passing->next;
        mcpl_call_reply_text(passing->call, passing->text, MCPL_AUTO_LENGTH);
        waiting_free(passing);
    }
}

bool doors_is_open(doors *doors, const char *name) {
    pthread_mutex_lock(&doors->lock);
    bool open = door_of(doors, name)->open;
    pthread_mutex_unlock(&doors->lock);
    return open;
}
