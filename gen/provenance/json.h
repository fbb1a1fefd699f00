/* JSON: jansson's values from and to our texts. Private to gen/provenance. */
#ifndef ACCEL_PROVENANCE_JSON_H
#define ACCEL_PROVENANCE_JSON_H

#include <jansson.h>

#include "gen/base/text.h"

/* A string. JSON holds UTF-8 only; in the name of a file that is none, each byte past ASCII becomes '?'. */
json_t *json_text(const char *text);

/* Sets a string in an object. */
void json_put(json_t *object, const char *key, const char *text);

/* Adds a value on one line, and gives it back. */
void json_add(struct text *out, json_t *value);

/* Adds a value in lines, with a line end, and gives it back. */
void json_add_indented(struct text *out, json_t *value);

#endif
