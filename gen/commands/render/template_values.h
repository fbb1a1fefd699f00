/* Values for a template. */
#ifndef ACCEL_COMMANDS_RENDER_TEMPLATE_VALUES_H
#define ACCEL_COMMANDS_RENDER_TEMPLATE_VALUES_H

#include <jansson.h>

#include "gen/jinja/jinja.h"

/* A copy, in `arena`, of the JSON's values. */
struct jinja_value values_of_json(struct arena *arena, json_t *json);

/* Read the text of the file at `path`. False when it is none: a line on standard error says what is wrong, and where.
 */
bool values_read_json(struct arena *arena, const char *path, const char *bytes, size_t length,
                      struct jinja_value *values);
bool values_read_yaml(struct arena *arena, const char *path, const char *bytes, size_t length,
                      struct jinja_value *values);

#endif
