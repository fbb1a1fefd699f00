#include "gen/spec/node.h"

#include <stdlib.h>
#include <string.h>

static bool key_is(const struct spec_entry *entry, const char *key, size_t length) {
  return entry->key != NULL && strlen(entry->key) == length && memcmp(entry->key, key, length) == 0;
}

static struct spec_entry *find(const struct spec_node *map, const char *key, size_t length) {
  if (map == NULL || map->kind != SPEC_MAP) return NULL;
  for (int i = 0; i < map->count; i++)
    if (key_is(&map->entries[i], key, length)) return &map->entries[i];
  return NULL;
}

struct spec_entry *spec_entry(const struct spec_node *map, const char *key) {
  return find(map, key, strlen(key));
}

const struct spec_node *spec_find(const struct spec_node *node, const char *key) {
  while (node != NULL && *key != '\0') {
    size_t length = strcspn(key, ".");
    const struct spec_entry *entry = find(node, key, length);
    node = entry == NULL ? NULL : entry->value;
    key += length;
    if (*key == '.') key++;
  }
  return node;
}

int spec_count(const struct spec_node *node) {
  return node == NULL ? 0 : node->kind == SPEC_LIST ? node->count : 1;
}

const struct spec_node *spec_at(const struct spec_node *node, int index) {
  if (index >= spec_count(node)) return NULL;
  return node->kind == SPEC_LIST ? node->entries[index].value : node;
}

bool spec_is(const struct spec_node *node, const char *value) {
  if (node->kind == SPEC_STRING) return strcmp(node->text, value) == 0;
  if (node->kind == SPEC_BOOL) return node->integer == (strcmp(value, "true") == 0);
  return (node->kind == SPEC_INT || node->kind == SPEC_REAL) && node->real == strtod(value, NULL);
}

struct spec_node *spec_copy_map(struct arena *arena, const struct spec_node *map, int more) {
  struct spec_node *copy = arena_alloc(arena, sizeof *copy);
  *copy = *map;
  copy->entries = arena_alloc(arena, ((size_t)map->count + (size_t)more + 1) * sizeof *copy->entries);
  if (map->count > 0) memcpy(copy->entries, map->entries, (size_t)map->count * sizeof *copy->entries);
  return copy;
}

/* Text of a job may hold anything; a message is one line. */
static const char *quoted_excerpt(struct arena *arena, const char *bytes, size_t length) {
  enum { LONGEST = 48 };
  struct text out = text_in(arena);
  text_puts(&out, "'");
  size_t shown = length > LONGEST ? LONGEST : length;
  while (shown < length && shown > 0 && ((unsigned char)bytes[shown] & 0xc0) == 0x80) shown--;
  for (size_t i = 0; i < shown; i++) {
    unsigned char byte = (unsigned char)bytes[i];
    bool c1 = byte == 0xc2 && i + 1 < shown && (unsigned char)bytes[i + 1] < 0xa0; /* U+0080 to U+009F */
    if (c1) byte = (unsigned char)bytes[++i];
    if (c1 || byte < ' ' || byte == 0x7f)
      text_printf(&out, "\\x%02x", byte);
    else
      text_add(&out, bytes + i, 1);
  }
  text_puts(&out, shown < length ? "…'" : "'");
  return text_string(&out);
}

const char *spec_describe(struct arena *arena, const struct spec_node *node) {
  switch (node->kind) {
  case SPEC_NULL:
    return node->length == 0 ? "empty" : "null";
  case SPEC_BOOL:
    return node->integer ? "true" : "false";
  case SPEC_LIST:
    return "a list";
  case SPEC_MAP:
    return "a group of keys";
  case SPEC_STRING:
    return quoted_excerpt(arena, node->text, node->length);
  case SPEC_INT:
  case SPEC_REAL:
    break;
  }
  return node->length <= 48 ? node->text : quoted_excerpt(arena, node->text, node->length);
}
