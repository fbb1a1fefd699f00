#include "gen/provenance/json.h"

#include <stdlib.h>
#include <string.h>

json_t *json_text(const char *text) {
  json_t *string = json_string(text);
  if (string != NULL) return string;
  char *copy = strdup(text);
  for (char *at = copy; at != NULL && *at != '\0'; at++)
    if ((unsigned char)*at >= 0x80) *at = '?';
  string = json_string(copy != NULL ? copy : "?");
  free(copy);
  return string;
}

void json_put(json_t *object, const char *key, const char *text) {
  json_object_set_new(object, key, json_text(text));
}

static void add(struct text *out, json_t *value, size_t flags) {
  char *dumped = json_dumps(value, flags | JSON_ENCODE_ANY);
  if (dumped != NULL) text_puts(out, dumped);
  free(dumped);
  json_decref(value);
}

void json_add(struct text *out, json_t *value) {
  add(out, value, 0);
}

void json_add_indented(struct text *out, json_t *value) {
  add(out, value, JSON_INDENT(2));
  text_puts(out, "\n");
}
