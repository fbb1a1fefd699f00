/* Write: a tree as YAML text that reads back as the same tree. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/spec/node.h"
#include "gen/spec/scalar.h"

const char *spec_number(struct arena *arena, double value, bool real) {
  char digits[40];
  if (!isfinite(value)) return isnan(value) ? ".nan" : value < 0 ? "-.inf" : ".inf";
  bool integral = fabs(value) < 1e15 && value == floor(value);
  if (integral) snprintf(digits, sizeof digits, "%.0f", value);
  for (int precision = 1; precision <= 17 && !integral; precision++) {
    snprintf(digits, sizeof digits, "%.*g", precision, value);
    if (strtod(digits, NULL) == value) break;
  }
  bool whole = strpbrk(digits, ".e") == NULL;
  return arena_printf(arena, real && whole ? "%s.0" : "%s", digits);
}

/* Letters, digits and a few marks that mean nothing to YAML anywhere. */
static bool is_plain(const char *text, size_t length) {
  static const char marks[] = "_./-";
  if (length == 0 || text[0] == '-' || text[0] == '.') return false;
  for (size_t i = 0; i < length; i++) {
    char c = text[i];
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!letter && (c == '\0' || strchr(marks, c) == NULL)) return false;
  }
  struct spec_node word = {.text = text, .length = length};
  scalar_resolve(&word);
  return word.kind == SPEC_STRING;
}

/* Bytes of a character that YAML takes for a line end (NEL, LS, PS) or does not print; it is escaped by its bytes'
 * code point. 0 for any other. */
static int odd_character(const char *at, size_t left, unsigned *code) {
  const unsigned char *byte = (const unsigned char *)at;
  if (left >= 2 && byte[0] == 0xc2 && byte[1] < 0xa0) return *code = byte[1], 2;
  if (left >= 3 && byte[0] == 0xe2 && byte[1] == 0x80 && (byte[2] | 1) == 0xa9)
    return *code = 0x2000u + byte[2] - 0x80u, 3;
  if (left >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0) return *code = 0xfeff, 3;
  if (left >= 3 && byte[0] == 0xef && byte[1] == 0xbf && byte[2] >= 0xbe) return *code = 0xffc0u + byte[2] - 0x80u, 3;
  return 0;
}

static void write_quoted(struct text *out, const char *text, size_t length) {
  text_puts(out, "\"");
  for (size_t i = 0; i < length;) {
    unsigned char byte = (unsigned char)text[i];
    unsigned code = 0;
    int odd = odd_character(text + i, length - i, &code);
    if (odd > 0)
      text_printf(out, "\\u%04x", code);
    else if (byte < ' ' || byte == 0x7f)
      text_printf(out, "\\x%02x", byte);
    else if (byte == '"' || byte == '\\')
      text_printf(out, "\\%c", byte);
    else
      text_add(out, text + i, 1);
    i += odd > 0 ? (size_t)odd : 1;
  }
  text_puts(out, "\"");
}

static void write_text(struct text *out, const char *text, size_t length) {
  if (is_plain(text, length))
    text_add(out, text, length);
  else
    write_quoted(out, text, length);
}

void spec_write_value(struct text *out, const struct spec_node *node) {
  switch (node->kind) {
  case SPEC_NULL:
    text_puts(out, "null");
    break;
  case SPEC_BOOL:
    text_puts(out, node->integer ? "true" : "false");
    break;
  case SPEC_INT:
    if (node->wide)
      text_puts(out, node->text);
    else
      text_printf(out, "%lld", (long long)node->integer);
    break;
  case SPEC_REAL:
    text_puts(out, spec_number(out->arena, node->real, true));
    break;
  case SPEC_STRING:
    write_text(out, node->text, node->length);
    break;
  case SPEC_LIST:
    text_puts(out, "[");
    for (int i = 0; i < node->count; i++) {
      text_puts(out, i > 0 ? ", " : "");
      spec_write_value(out, node->entries[i].value);
    }
    text_puts(out, "]");
    break;
  case SPEC_MAP: /* an empty one, or one in a list */
    text_puts(out, "{");
    for (int i = 0; i < node->count; i++) {
      text_puts(out, i > 0 ? ", " : "");
      write_text(out, node->entries[i].key, strlen(node->entries[i].key));
      text_puts(out, ": ");
      spec_write_value(out, node->entries[i].value);
    }
    text_puts(out, "}");
    break;
  }
}

static void write_map(struct text *out, const struct spec_node *map, int indent) {
  for (int i = 0; i < map->count; i++) {
    const struct spec_node *value = map->entries[i].value;
    text_printf(out, "%*s", indent, "");
    write_text(out, map->entries[i].key, strlen(map->entries[i].key));
    bool group = value->kind == SPEC_MAP && value->count > 0;
    text_puts(out, group ? ":\n" : ": ");
    if (group)
      write_map(out, value, indent + 2);
    else {
      spec_write_value(out, value);
      text_puts(out, "\n");
    }
  }
}

void spec_write(struct text *out, const struct spec_node *map) {
  write_map(out, map, 0);
}
