/* Functions to read jobs and to write reports. */
#ifndef WRITING_H
#define WRITING_H

#include <mcpline.h>

/* JSON that is owned elsewhere. */
typedef struct {
    const char *text;
    size_t length;
} slice;

#define JSON(...) #__VA_ARGS__

/* Returns the value at a JSON pointer; without text if there is none. */
slice slice_at(slice json, const char *pointer);
/* Returns an element of an array; without text if there are no more. */
slice slice_element(slice array, size_t index);
/* Returns the string at a JSON pointer, NULL if there is none. Release with mcpl_string_free. */
char *string_at(slice json, const char *pointer);
/* Returns the number at a JSON pointer, or the default if there is none. */
double number_at(slice json, const char *pointer, double otherwise);

/* Write a member: a string, or `null` for NULL; JSON, or `null` for a slice without text. */
void put_string(mcpl_json *json, const char *name, const char *text);
void put_slice(mcpl_json *json, const char *name, slice value);
/* Copies a member of an object, unchanged, if it exists. */
void put_given(mcpl_json *json, const char *name, slice from, const char *pointer);

/* Returns the writer's text, zero-terminated and valid until the next use. */
slice written(mcpl_json *json);

/* Writes the member `error` for a failure. */
void put_error(mcpl_json *json, const mcpl_error *error);

#endif
