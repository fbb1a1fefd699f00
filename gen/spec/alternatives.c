#include "gen/spec/alternatives.h"

#include <stdlib.h>
#include <string.h>

#include "gen/spec/keys.h"
#include "gen/spec/node.h"
#include "gen/spec/schema.h"

static void add(struct arena *arena, struct job_choice *choice, const char *value) {
  if (strcmp(value, choice->value) == 0) return;
  for (int i = 0; i < choice->n_alternatives; i++)
    if (strcmp(choice->alternatives[i].value, value) == 0) return;
  choice->alternatives =
      arena_grow(arena, choice->alternatives, choice->n_alternatives, &choice->capacity, sizeof *choice->alternatives);
  choice->alternatives[choice->n_alternatives++] =
      (struct job_alternative){.value = value, .set = {choice->key, value}};
}

static void add_words(struct arena *arena, struct job_choice *choice, const json_t *words) {
  size_t i;
  const json_t *word;
  json_array_foreach(words, i, word) {
    struct spec_node node = {.kind = SPEC_STRING, .text = json_string_value(word)};
    struct text out = text_in(arena);
    if (node.text == NULL) continue;
    node.length = strlen(node.text);
    spec_write_value(&out, &node);
    add(arena, choice, text_string(&out));
  }
}

/* A value for where the one before it is refused: twice 128 divides by what 128 divides by, 129 does not. */
static void add_in_need(struct arena *arena, struct job_choice *choice, const char *value) {
  int before = choice->n_alternatives;
  add(arena, choice, value);
  if (choice->n_alternatives > before) choice->alternatives[before].in_need = true;
}

static void add_integers(struct arena *arena, struct job_choice *choice, int64_t value) {
  if (value > INT64_MAX / 4 || value < -INT64_MAX / 4) return;
  add(arena, choice, "1"); /* one of many things has no loop over them */
  add(arena, choice, arena_printf(arena, "%lld", (long long)(value == 0 ? 2 : value + 1)));
  add_in_need(arena, choice, arena_printf(arena, "%lld", 2 * (long long)value));
}

static void add_reals(struct arena *arena, struct job_choice *choice, double value) {
  add(arena, choice, spec_number(arena, value == 0 ? 0.5 : value / 2, true));
  add_in_need(arena, choice, spec_number(arena, value == 0 ? 0.001 : value * 2, true));
}

/* A list with one of its numbers halved. */
static const char *list_with_half(struct arena *arena, const struct spec_node *list, int which) {
  struct text out = text_in(arena);
  text_puts(&out, "[");
  for (int i = 0; i < list->count; i++) {
    const struct spec_node *item = list->entries[i].value;
    text_puts(&out, i > 0 ? ", " : "");
    if (i == which)
      text_puts(&out, spec_number(arena, item->real == 0 ? 0.5 : item->real / 2, true));
    else
      spec_write_value(&out, item);
  }
  text_puts(&out, "]");
  return text_string(&out);
}

static void add_lists(struct arena *arena, struct job_choice *choice, const struct spec_node *list) {
  add(arena, choice, list->count > 0 ? "[]" : "[\"*\"]");
  for (int i = 0; i < list->count; i++) {
    enum spec_kind kind = list->entries[i].value->kind;
    if (kind == SPEC_INT || kind == SPEC_REAL) add(arena, choice, list_with_half(arena, list, i));
  }
}

static void add_string(struct arena *arena, struct job_choice *choice, const struct spec_node *node) {
  int digits = (int)strspn(node->text, "0123456789");
  bool size = digits > 0 && digits < 10;
  const char *text = size ? arena_printf(arena, "%d%s", atoi(node->text) + 1, node->text + digits)
                          : arena_printf(arena, "%sx", node->text);
  struct spec_node longer = {.kind = SPEC_STRING, .text = text};
  struct text out = text_in(arena);
  longer.length = strlen(longer.text);
  spec_write_value(&out, &longer);
  add(arena, choice, text_string(&out));
  add_in_need(arena, choice, "1"); /* a word instead of a number */
}

static void find_alternatives(struct arena *arena, const json_t *root, const struct spec_node *node,
                              struct job_choice *choice) {
  const json_t *schema = schema_find(root, choice->key);
  const json_t *words = schema != NULL ? schema_keyword(root, schema, "enum") : NULL;
  const json_t *least = schema != NULL ? schema_keyword(root, schema, "minimum") : NULL;
  bool number = node->kind == SPEC_INT || node->kind == SPEC_REAL;
  if (words != NULL) add_words(arena, choice, words);
  if (node->kind == SPEC_BOOL) add(arena, choice, node->integer != 0 ? "false" : "true");
  if (number && least != NULL && json_number_value(least) == 0) add(arena, choice, "0");
  if (node->kind == SPEC_INT && !node->wide) add_integers(arena, choice, node->integer);
  if (node->kind == SPEC_REAL) add_reals(arena, choice, node->real);
  if (node->kind == SPEC_LIST) add_lists(arena, choice, node);
  if (node->kind == SPEC_STRING && words == NULL) add_string(arena, choice, node);
}

/* Writes a value in flow form with another instead of the one that is `old`. */
static void write_with(struct text *out, const struct spec_node *node, const struct spec_node *old, const char *value) {
  if (node == old) {
    text_puts(out, value);
    return;
  }
  if (node->count == 0) {
    spec_write_value(out, node);
    return;
  }
  text_puts(out, node->kind == SPEC_MAP ? "{" : "[");
  for (int i = 0; i < node->count; i++) {
    const struct spec_entry *entry = &node->entries[i];
    text_puts(out, i > 0 ? ", " : "");
    if (node->kind == SPEC_MAP) text_printf(out, "\"%s\": ", entry->key); /* the schema's, or an identifier by check */
    write_with(out, entry->value, old, value);
  }
  text_puts(out, node->kind == SPEC_MAP ? "}" : "]");
}

/* What of the tree is set for the key: its own value, or the list or group on the way to it after which its name is no
 * path of keys. *set is that one's key. */
static const struct spec_node *find_settable(struct arena *arena, const struct spec_node *tree, const char *key,
                                             const char **set) {
  const struct spec_node *node = tree;
  for (const char *rest = key; *rest != '\0' && node->kind == SPEC_MAP;) {
    size_t length = strcspn(rest, ".");
    const struct spec_entry *entry = spec_entry(node, arena_copy(arena, rest, length));
    if (entry == NULL) {
      *set = arena_copy(arena, key, (size_t)(rest - key - 1));
      return node;
    }
    node = entry->value;
    rest += length + (rest[length] == '.');
    *set = arena_copy(arena, key, (size_t)(rest - key) - (*rest != '\0'));
  }
  return node;
}

static void set_overrides(struct arena *arena, const struct job *job, const struct spec_node *node,
                          struct job_choice *choice) {
  const char *set = choice->key;
  const struct spec_node *settable = find_settable(arena, job->tree, choice->key, &set);
  for (int i = 0; i < choice->n_alternatives && settable != node; i++) {
    struct text out = text_in(arena);
    write_with(&out, settable, node, choice->alternatives[i].value);
    choice->alternatives[i].set = (struct job_override){set, text_string(&out)};
  }
}

struct job_choice *job_choices(struct arena *arena, const struct job *job, int *count) {
  const struct job_key *keys = job_keys(arena, job, count);
  json_t *root = schema_of_job();
  struct job_choice *choices = arena_alloc(arena, ((size_t)*count + 1) * sizeof *choices);
  for (int i = 0; i < *count; i++) {
    const struct spec_node *node = keys[i].node;
    choices[i] = (struct job_choice){
        .key = keys[i].name, .value = keys[i].value, .written = !node->is_default, .where = node->where};
    find_alternatives(arena, root, node, &choices[i]);
    set_overrides(arena, job, node, &choices[i]);
  }
  json_decref(root);
  return choices;
}
