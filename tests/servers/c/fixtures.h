/* What several families share: the image, the recording, and short ways to write schemas, tools and answers. */
#ifndef FIXTURES_H
#define FIXTURES_H

#include <mcpline.h>
#include <string.h>

#include "everything.h"

/* JSON as it stands, as a text. Spaces between tokens are kept, as one each. */
#define JSON(...) #__VA_ARGS__
#define COUNT(array) (sizeof(array) / sizeof *(array))

#define PNG \
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
#define WAV "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="

/* A tool as the tables of each family have it. */
typedef struct {
    const char *name;
    const char *description;
    const char *input; /* the schema of its arguments; NULL: it has none */
    mcpl_handler handler;
    uint32_t flags;   /* MCPL_HANDLER_… */
    const char *more; /* an object of further members of its definition; NULL: none */
} tool;

void add_tools(everything *everything, const tool *tools, size_t count);

/* Ends the program, saying what failed, unless this is MCPL_OK. */
void must(mcpl_status status, const char *what);

/* Memory and texts, or the end of the program; released with free. */
void *allocated(size_t size);
char *copied(const char *text);
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
char *formatted(const char *format, ...);

/* A text argument of a call, released with mcpl_string_free; NULL, with the call ended, if it isn't there. */
char *text_argument(mcpl_call *call, const char *arguments, size_t length, const char *pointer);

/* Ends the call with a text. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void reply_formatted(mcpl_call *call, const char *format, ...);

/* Ends the call with what was written, and releases the writer. */
typedef mcpl_status (*reply_json)(mcpl_call *call, const char *json, size_t length);
void reply_written(mcpl_call *call, reply_json reply, mcpl_json *json);

/* Writes a member of an object; a number only if it isn't 0. */
void put_number_member(mcpl_json *json, const char *name, long number);
void put_string_member(mcpl_json *json, const char *name, const char *text);
void put_json_member(mcpl_json *json, const char *name, const char *value);

/* JSON without the spaces that it needn't have; released with free. */
char *compact(const char *json, size_t length);

/* Whether a JSON string in this place has this text. */
bool says(const char *json, size_t length, const char *pointer, const char *text);

#endif
