/* YAML, with the scalars of its core schema. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "gen/commands/render/template_values.h"

enum { MAX_VALUE_DEPTH = 200 };

static bool one_of(const char *text, const char *const *words) {
  for (; *words != NULL; words++) {
    if (strcmp(text, *words) == 0) return true;
  }
  return false;
}

static bool plain_integer(const char *text, int64_t *value) {
  int base = strncmp(text, "0x", 2) == 0 ? 16 : strncmp(text, "0o", 2) == 0 ? 8 : 10;
  const char *digits = base == 10 ? text + (text[0] == '-' || text[0] == '+') : text + 2;
  const char *allowed = base == 16 ? "0123456789abcdefABCDEF" : base == 8 ? "01234567" : "0123456789";
  if (digits[0] == '\0' || strspn(digits, allowed) != strlen(digits)) return false;
  errno = 0;
  *value = strtoimax(base == 10 ? text : digits, NULL, base);
  return errno == 0;
}

static bool plain_real(const char *text, double *value) {
  static const char *const infinities[] = {".inf", ".Inf", ".INF", NULL}, *const nans[] = {".nan", ".NaN", ".NAN",
                                                                                           NULL};
  bool sign = text[0] == '-' || text[0] == '+';
  if (one_of(text + sign, infinities)) return *value = text[0] == '-' ? -INFINITY : INFINITY, true;
  if (one_of(text, nans)) return *value = NAN, true;
  if (strspn(text, "0123456789.eE+-") != strlen(text) || strpbrk(text, "0123456789") == NULL) return false;
  char *end;
  *value = strtod(text, &end);
  return *end == '\0';
}

static struct jinja_value plain_scalar(struct arena *arena, const char *text) {
  static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
  static const char *const trues[] = {"true", "True", "TRUE", NULL}, *const falses[] = {"false", "False", "FALSE",
                                                                                        NULL};
  int64_t integer;
  double real;
  if (one_of(text, nulls)) return jinja_none();
  if (one_of(text, trues)) return jinja_bool(true);
  if (one_of(text, falses)) return jinja_bool(false);
  if (plain_integer(text, &integer)) return jinja_int(integer);
  return plain_real(text, &real) ? jinja_double(real) : jinja_string(arena, text);
}

struct yaml {
  struct arena *arena;
  yaml_document_t document;
  const char *problem;
  yaml_mark_t mark;
  int nodes; /* an alias can expand to much: an upper bound keeps a small file from becoming a huge value */
};

static void refuse(struct yaml *yaml, yaml_mark_t mark) {
  yaml->problem = "the values are too deep or too many";
  yaml->mark = mark;
}

static struct jinja_value from_yaml(struct yaml *yaml, int index, int depth);

static struct jinja_value yaml_map(struct yaml *yaml, const yaml_node_t *node, int depth) {
  struct jinja_value map = jinja_map(yaml->arena);
  for (yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; pair++) {
    const yaml_node_t *key = yaml_document_get_node(&yaml->document, pair->key);
    if (key->type != YAML_SCALAR_NODE) {
      yaml->problem = "a key must be a scalar";
      yaml->mark = key->start_mark;
      return map;
    }
    jinja_set(yaml->arena, map, (const char *)key->data.scalar.value, from_yaml(yaml, pair->value, depth + 1));
  }
  return map;
}

static struct jinja_value from_yaml(struct yaml *yaml, int index, int depth) {
  struct arena *arena = yaml->arena;
  const yaml_node_t *node = yaml_document_get_node(&yaml->document, index);
  if (depth > MAX_VALUE_DEPTH || ++yaml->nodes > 10000000) {
    refuse(yaml, node->start_mark);
    return jinja_none();
  }
  if (node->type == YAML_MAPPING_NODE) return yaml_map(yaml, node, depth);
  if (node->type == YAML_SEQUENCE_NODE) {
    struct jinja_value list = jinja_list(arena);
    for (yaml_node_item_t *item = node->data.sequence.items.start;
         item < node->data.sequence.items.top && yaml->problem == NULL; item++) {
      jinja_push(arena, list, from_yaml(yaml, *item, depth + 1));
    }
    return list;
  }
  if (node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
    return plain_scalar(arena, (const char *)node->data.scalar.value);
  return jinja_string_n(arena, (const char *)node->data.scalar.value, node->data.scalar.length);
}

/* Stops a file that is nested deeper than values may be before the parser's loader, which takes the square of that. */
static bool is_shallow(struct yaml *yaml, const char *bytes, size_t length) {
  yaml_parser_t parser;
  yaml_event_t event;
  if (!yaml_parser_initialize(&parser)) return false;
  yaml_parser_set_input_string(&parser, (const unsigned char *)bytes, length);
  int depth = 0;
  for (bool ends = false; !ends && yaml->problem == NULL && yaml_parser_parse(&parser, &event);) {
    ends = event.type == YAML_STREAM_END_EVENT;
    depth += event.type == YAML_MAPPING_START_EVENT || event.type == YAML_SEQUENCE_START_EVENT;
    depth -= event.type == YAML_MAPPING_END_EVENT || event.type == YAML_SEQUENCE_END_EVENT;
    if (depth > MAX_VALUE_DEPTH) refuse(yaml, event.start_mark);
    yaml_event_delete(&event);
  }
  yaml_parser_delete(&parser);
  return yaml->problem == NULL;
}

bool values_read_yaml(struct arena *arena, const char *path, const char *bytes, size_t length,
                      struct jinja_value *values) {
  struct yaml yaml = {.arena = arena};
  yaml_parser_t parser;
  if (!yaml_parser_initialize(&parser)) return false;
  yaml_parser_set_input_string(&parser, (const unsigned char *)bytes, length);
  bool fine = is_shallow(&yaml, bytes, length) && yaml_parser_load(&parser, &yaml.document);
  if (!fine && yaml.problem == NULL) {
    fprintf(stderr, "%s:%zu:%zu: error: %s\n", path, parser.problem_mark.line + 1, parser.problem_mark.column + 1,
            parser.problem != NULL ? parser.problem : "not YAML");
  } else if (fine) {
    if (yaml_document_get_root_node(&yaml.document) != NULL) *values = from_yaml(&yaml, 1, 0);
    yaml_document_delete(&yaml.document);
  }
  if (yaml.problem != NULL) {
    fprintf(stderr, "%s:%zu:%zu: error: %s\n", path, yaml.mark.line + 1, yaml.mark.column + 1, yaml.problem);
    fine = false;
  }
  yaml_parser_delete(&parser);
  return fine;
}
