/* Shared by several families: the image, the audio, and short functions to write schemas, tools and replies. */
#ifndef FIXTURES_H
#define FIXTURES_H

#include <mcpline.h>
#include <string.h>

#include "everything.h"

/* JSON as a string literal. Each run of spaces between tokens becomes one space. */
#define JSON(...) #__VA_ARGS__
#define COUNT(array) (sizeof(array) / sizeof *(array))

#define PNG \
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
#define WAV "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="

/* A row in a family's table of tools. */
typedef struct {
    const char *name;
    const char *description;
    const char *input; /* the schema of its arguments; NULL: none */
    mcpl_handler handler;
    uint32_t flags;   /* MCPL_HANDLER_… */
    const char *more; /* an object with further members of its definition; NULL: none */
} tool;

void add_tools(everything *everything, const tool *tools, size_t count);

/* Prints what failed and ends the program, unless the status is MCPL_OK. */
void must(mcpl_status status, const char *what);

/* Allocate memory and texts, or end the program; release with free. */
void *allocated(size_t size);
char *copied(const char *text);
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
char *formatted(const char *format, ...);

/* Returns a string argument of a call; release with mcpl_string_free. If it is missing, ends the call and returns
 * NULL. */
char *text_argument(mcpl_call *call, const char *arguments, size_t length, const char *pointer);

/* Ends the call with a text. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void reply_formatted(mcpl_call *call, const char *format, ...);

/* Ends the call with the writer's text, and releases the writer. */
typedef mcpl_status (*reply_json)(mcpl_call *call, const char *json, size_t length);
void reply_written(mcpl_call *call, reply_json reply, mcpl_json *json);

/* Write a member of an object; a number only if it is not 0. */
void put_number_member(mcpl_json *json, const char *name, long number);
void put_string_member(mcpl_json *json, const char *name, const char *text);
void put_json_member(mcpl_json *json, const char *name, const char *value);

/* Returns the JSON without insignificant spaces; release with free. */
char *compact(const char *json, size_t length);

/* Whether the JSON string at this pointer has this text. */
bool says(const char *json, size_t length, const char *pointer, const char *text);

#endif
