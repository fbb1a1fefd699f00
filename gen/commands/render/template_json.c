#include <stdio.h>

#include "gen/commands/render/template_values.h"

struct jinja_value values_of_json(struct arena *arena, json_t *json) {
  struct jinja_value value;
  const char *key;
  json_t *item;
  size_t i;
  switch (json_typeof(json)) {
  case JSON_OBJECT:
    value = jinja_map(arena);
    json_object_foreach(json, key, item) jinja_set(arena, value, key, values_of_json(arena, item));
    return value;
  case JSON_ARRAY:
    value = jinja_list(arena);
    json_array_foreach(json, i, item) jinja_push(arena, value, values_of_json(arena, item));
    return value;
  case JSON_STRING:
    return jinja_string_n(arena, json_string_value(json), json_string_length(json));
  case JSON_INTEGER:
    return jinja_int(json_integer_value(json));
  case JSON_REAL:
    return jinja_double(json_real_value(json));
  case JSON_NULL:
    return jinja_none();
  default:
    return jinja_bool(json_is_true(json));
  }
}

bool values_read_json(struct arena *arena, const char *path, const char *bytes, size_t length,
                      struct jinja_value *values) {
  json_error_t why;
  json_t *json = json_loadb(bytes, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
  if (json == NULL) {
    fprintf(stderr, "%s:%d:%d: error: %s\n", path, why.line, why.column, why.text);
    return false;
  }
  *values = values_of_json(arena, json);
  json_decref(json);
  return true;
}
