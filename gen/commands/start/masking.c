#include "gen/commands/start/masking.h"

#include <jansson.h>
#include <string.h>

static json_t *load(struct arena *arena, const char *folder, const char *name) {
  return json_load_file(arena_printf(arena, "%s/%s", folder, name), 0, NULL);
}

/* "[MASK]", or an object that has it as its content. */
static const char *mask_text(struct arena *arena, const char *folder, const char *name) {
  json_t *file = load(arena, folder, name), *mask = json_object_get(file, "mask_token");
  const char *text = json_string_value(json_is_object(mask) ? json_object_get(mask, "content") : mask);
  if (text != NULL) text = arena_string(arena, text);
  json_decref(file);
  return text;
}

int64_t masking_token(struct arena *arena, const char *folder) {
  const char *text = mask_text(arena, folder, "tokenizer_config.json");
  int64_t number = -1;
  size_t i;
  json_t *token;
  if (text == NULL) text = mask_text(arena, folder, "special_tokens_map.json");
  if (text == NULL) return -1;
  json_t *file = load(arena, folder, "tokenizer.json");
  json_array_foreach(json_object_get(file, "added_tokens"), i, token) {
    const char *content = json_string_value(json_object_get(token, "content"));
    const json_t *id = json_object_get(token, "id");
    if (content != NULL && strcmp(content, text) == 0 && json_is_integer(id)) number = json_integer_value(id);
  }
  json_decref(file);
  return number;
}
