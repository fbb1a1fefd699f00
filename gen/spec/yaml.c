#include "gen/spec/yaml.h"

#include <string.h>
#include <yaml.h>

#include "gen/spec/scalar.h"

enum {
  DEEPEST = 64,       /* groups within groups; a job has three */
  MOST_NODES = 10000, /* values, aliases followed: what a few lines of aliases to aliases could become */
};

/* An anchor, from where its value starts; `value` is NULL until it has ended. */
struct anchor {
  const char *name;
  struct spec_node *value;
  int nodes; /* in the value, aliases followed */
};

struct reader {
  struct arena *arena;
  const struct spec_source *source;
  struct diagnostics *diags;
  yaml_parser_t parser;
  yaml_event_t event;
  struct anchors {
    struct anchor *items;
    int count, capacity;
  } anchors;
  int nodes;
  bool failed; /* no further event makes sense */
};

struct entries {
  struct spec_entry *items;
  int count, capacity;
};

static struct location location_of(const struct reader *r) {
  return source_location(r->source, r->event.start_mark.index, r->event.end_mark.index);
}

static struct spec_node *read_value(struct reader *r, int depth);

static void fail(struct reader *r, struct location where, const char *message) {
  if (!r->failed) diag_error(r->diags, where, "%s", message);
  r->failed = true;
}

/* libyaml's words, in a sentence of ours: "while parsing a block mapping" is about the grammar, not about a job. */
static void report_problem(struct reader *r) {
  const yaml_parser_t *p = &r->parser;
  size_t at = p->problem_mark.index;
  struct location where = source_location(r->source, at, at);
  if (r->failed) return;
  r->failed = true;
  diag_error(r->diags, where, "not YAML: %s", p->problem == NULL ? "out of memory" : p->problem);
  if (at < r->source->characters && r->source->text[r->source->byte_of[at]] == '\t')
    diag_help(r->diags, "YAML indents with spaces, not with tabs");
  if (p->context == NULL) return;
  struct location context = source_location(r->source, p->context_mark.index, p->context_mark.index);
  if (context.line != where.line) diag_note(r->diags, context, "%s that starts here", p->context);
}

/* Moves on to the next event; false when there is none because the text is no YAML. */
static bool next(struct reader *r) {
  if (r->failed) return false;
  yaml_event_delete(&r->event);
  if (yaml_parser_parse(&r->parser, &r->event)) return true;
  memset(&r->event, 0, sizeof r->event);
  report_problem(r);
  return false;
}

/* Reserves `nodes` more; false with an error when the document has become too large. */
static bool count_nodes(struct reader *r, int nodes) {
  r->nodes += nodes;
  if (r->nodes <= MOST_NODES) return true;
  fail(r, location_of(r), "too many values; aliases to aliases multiply them");
  return false;
}

/* The index of a new anchor; -1 when the value has none. A later anchor of the same name replaces it. */
static int open_anchor(struct reader *r, const yaml_char_t *name) {
  if (name == NULL) return -1;
  struct anchor anchor = {arena_string(r->arena, (const char *)name), NULL, r->nodes};
  ARENA_PUSH(r->arena, r->anchors, anchor);
  return r->anchors.count - 1;
}

static void close_anchor(struct reader *r, int index, struct spec_node *value) {
  if (index < 0 || value == NULL) return;
  r->anchors.items[index].value = value;
  r->anchors.items[index].nodes = r->nodes - r->anchors.items[index].nodes;
}

static struct spec_node *new_node(struct reader *r, enum spec_kind kind) {
  struct spec_node *node = arena_alloc(r->arena, sizeof *node);
  node->kind = kind;
  node->text = "";
  node->where = location_of(r);
  count_nodes(r, 1);
  return node;
}

/* The value of an alias: the anchor's, at the alias's location. An error gives an empty value, so that reading
 * continues. */
static struct spec_node *read_alias(struct reader *r) {
  const char *name = (const char *)r->event.data.alias.anchor;
  struct spec_node *node = new_node(r, SPEC_NULL);
  int i = r->anchors.count - 1;
  while (i >= 0 && strcmp(r->anchors.items[i].name, name) != 0) i--;
  if (i < 0)
    diag_error(r->diags, location_of(r), "no anchor '&%s' before this alias", name);
  else if (r->anchors.items[i].value == NULL)
    diag_error(r->diags, location_of(r), "alias '*%s' within its own anchor", name);
  node->broken = i < 0 || r->anchors.items[i].value == NULL;
  if (node->broken) return node;
  if (!count_nodes(r, r->anchors.items[i].nodes - 1)) return NULL;
  struct location where = node->where;
  *node = *r->anchors.items[i].value;
  node->where = where;
  return node;
}

/* The kinds that a core tag may mean; SPEC_NULL for "!!null" too. False for a tag outside the core schema. */
static bool core_tag(const char *tag, enum spec_kind *kind) {
  static const struct {
    const char *name;
    enum spec_kind kind;
  } tags[] = {{"null", SPEC_NULL},  {"bool", SPEC_BOOL}, {"int", SPEC_INT}, {"float", SPEC_REAL},
              {"str", SPEC_STRING}, {"seq", SPEC_LIST},  {"map", SPEC_MAP}};
  size_t prefix = strlen("tag:yaml.org,2002:");
  if (strncmp(tag, "tag:yaml.org,2002:", prefix) != 0) return false;
  for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
    if (strcmp(tag + prefix, tags[i].name) == 0) {
      *kind = tags[i].kind;
      return true;
    }
  return false;
}

/* Applies an explicit tag; an error where it is none of the core schema's or does not fit the value. */
static void apply_tag(struct reader *r, struct spec_node *node, const char *tag) {
  enum spec_kind wanted = node->kind;
  if (!core_tag(tag, &wanted)) {
    diag_error(r->diags, node->where, "tag '%s' is not of YAML's core schema", tag);
    node->broken = true;
    return;
  }
  if (wanted == SPEC_STRING && node->kind <= SPEC_STRING) return; /* left as text by the caller */
  if (node->kind == SPEC_STRING) scalar_resolve(node);
  if (wanted == SPEC_REAL && node->kind == SPEC_INT) node->kind = SPEC_REAL;
  node->broken = node->kind != wanted;
  if (node->broken)
    diag_error(r->diags, node->where, "%s is not of its tag's type, %s", spec_describe(r->arena, node),
               strrchr(tag, ':') + 1);
}

static struct spec_node *read_scalar(struct reader *r) {
  const char *tag = (const char *)r->event.data.scalar.tag;
  bool plain = r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
  int anchor = open_anchor(r, r->event.data.scalar.anchor);
  struct spec_node *node = new_node(r, SPEC_STRING);
  node->length = r->event.data.scalar.length;
  node->text = arena_copy(r->arena, r->event.data.scalar.value, node->length);
  if (tag == NULL && plain)
    scalar_resolve(node);
  else if (tag != NULL && strcmp(tag, "!") != 0)
    apply_tag(r, node, tag);
  close_anchor(r, anchor, node);
  return node;
}

/* The event's scalar as a key; NULL with an error when it cannot be one. */
static const char *read_key(struct reader *r) {
  if (r->event.type != YAML_SCALAR_EVENT) {
    fail(r, location_of(r), "a key must be a plain word");
    return NULL;
  }
  const char *key = arena_copy(r->arena, r->event.data.scalar.value, r->event.data.scalar.length);
  if (strlen(key) != r->event.data.scalar.length) diag_error(r->diags, location_of(r), "a key must not hold a NUL");
  if (r->event.data.scalar.tag != NULL) diag_error(r->diags, location_of(r), "a key cannot have a tag");
  if (r->event.data.scalar.anchor != NULL) diag_error(r->diags, location_of(r), "a key cannot have an anchor");
  return key;
}

/* Whether the key is there already, with an error that names both locations. The last one counts, as in other readers
 * of YAML. */
static bool is_duplicate(struct reader *r, const struct entries *list, const struct spec_entry *entry) {
  for (int i = 0; i < list->count; i++)
    if (strcmp(list->items[i].key, entry->key) == 0) {
      diag_error(r->diags, entry->key_where, "duplicate key '%s'", entry->key);
      diag_note(r->diags, list->items[i].key_where, "'%s' is first set here", entry->key);
      list->items[i].value = entry->value;
      return true;
    }
  return false;
}

static void read_map_entries(struct reader *r, struct entries *list, int depth) {
  while (next(r) && r->event.type != YAML_MAPPING_END_EVENT) {
    struct spec_entry entry = {.key = read_key(r), .key_where = location_of(r)};
    if (entry.key == NULL || !next(r)) return;
    entry.value = read_value(r, depth + 1);
    if (entry.value == NULL) return;
    if (!is_duplicate(r, list, &entry)) ARENA_PUSH(r->arena, *list, entry);
  }
}

static void read_list_entries(struct reader *r, struct entries *list, int depth) {
  while (next(r) && r->event.type != YAML_SEQUENCE_END_EVENT) {
    struct spec_entry entry = {.value = read_value(r, depth + 1)};
    if (entry.value == NULL) return;
    ARENA_PUSH(r->arena, *list, entry);
  }
}

static struct spec_node *read_collection(struct reader *r, int depth) {
  bool map = r->event.type == YAML_MAPPING_START_EVENT;
  const yaml_char_t *tag = map ? r->event.data.mapping_start.tag : r->event.data.sequence_start.tag;
  int anchor = open_anchor(r, map ? r->event.data.mapping_start.anchor : r->event.data.sequence_start.anchor);
  struct spec_node *node = new_node(r, map ? SPEC_MAP : SPEC_LIST);
  struct entries list = {0};
  if (depth >= DEEPEST) fail(r, location_of(r), "groups within groups too deep");
  if (tag != NULL && strcmp((const char *)tag, "!") != 0) apply_tag(r, node, (const char *)tag);
  if (map)
    read_map_entries(r, &list, depth);
  else
    read_list_entries(r, &list, depth);
  if (r->failed) return NULL;
  node->entries = list.items;
  node->count = list.count;
  close_anchor(r, anchor, node);
  return node;
}

/* The value that starts with the current event; NULL when reading failed. */
static struct spec_node *read_value(struct reader *r, int depth) {
  struct spec_node *node = NULL;
  if (r->event.type == YAML_ALIAS_EVENT)
    node = read_alias(r);
  else if (r->event.type == YAML_SCALAR_EVENT)
    node = read_scalar(r);
  else if (r->event.type == YAML_SEQUENCE_START_EVENT || r->event.type == YAML_MAPPING_START_EVENT)
    node = read_collection(r, depth);
  return r->failed ? NULL : node;
}

/* Stream start, document start, the value, document end, stream end. */
static struct spec_node *read_document(struct reader *r) {
  if (!next(r) || !next(r)) return NULL;
  if (r->event.type == YAML_STREAM_END_EVENT) {
    fail(r, (struct location){.file = r->source->name}, "there is no value in the text");
    return NULL;
  }
  if (!next(r)) return NULL;
  struct spec_node *root = read_value(r, 0);
  if (root == NULL || !next(r) || !next(r)) return NULL;
  if (r->event.type == YAML_STREAM_END_EVENT) return root;
  fail(r, location_of(r), "a second document; a job is one");
  return NULL;
}

struct spec_node *yaml_parse(struct arena *arena, const struct spec_source *source, struct diagnostics *diags) {
  struct reader reader = {.arena = arena, .source = source, .diags = diags};
  if (!yaml_parser_initialize(&reader.parser)) {
    fail(&reader, (struct location){.file = source->name}, "out of memory");
    return NULL;
  }
  yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
  yaml_parser_set_input_string(&reader.parser, (const unsigned char *)source->text, source->length);
  struct spec_node *root = read_document(&reader);
  yaml_event_delete(&reader.event);
  yaml_parser_delete(&reader.parser);
  return root;
}
