/* How the driver reads its jobs and writes its reports. */
#ifndef WRITING_H
#define WRITING_H

#include <mcpline.h>

/* JSON that somebody else keeps. */
typedef struct {
    const char *text;
    size_t length;
} slice;

#define JSON(...) #__VA_ARGS__

/* What is at a JSON pointer; without text if there is nothing. */
slice slice_at(slice json, const char *pointer);
/* An element of an array; without text if there are no more. */
slice slice_element(slice array, size_t index);
/* Released with mcpl_string_free, NULL if there is no string. */
char *string_at(slice json, const char *pointer);
/* A number, or another one if there is none. */
double number_at(slice json, const char *pointer, double otherwise);

/* Writes a member: a string or `null` for NULL; JSON or `null` for a slice without text. */
void put_string(mcpl_json *json, const char *name, const char *text);
void put_slice(mcpl_json *json, const char *name, slice value);
/* Writes a member of an object, as it is, if it is there. */
void put_given(mcpl_json *json, const char *name, slice from, const char *pointer);

/* What was written so far, as a text that ends with a zero byte, valid until the next use. */
slice written(mcpl_json *json);

/* Writes the member `error`: what came of something that failed. */
void put_error(mcpl_json *json, const mcpl_error *error);

#endif
