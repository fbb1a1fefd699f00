#include "gen/provenance/compare.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "gen/provenance/json.h"

void add_pair(struct arena *arena, struct pairs *pairs, const char *name, const char *value) {
  ARENA_PUSH(arena, *pairs, ((struct pair){name, value}));
}

/* ---- Figures ---- */

/* A number or a text as it is; an item of a list, such as a collective, in one line. */
static const char *figure_text(struct arena *arena, const json_t *value) {
  struct text text = text_in(arena);
  if (json_is_string(value))
    text_puts(&text, json_string_value(value));
  else if (json_is_real(value))
    text_printf(&text, "%.10g", json_real_value(value));
  else
    json_add(&text, json_deep_copy(value));
  return text_string(&text);
}

static void add_figures(struct arena *arena, struct pairs *pairs, const char *path, const json_t *value) {
  const char *key;
  json_t *member;
  size_t i;
  json_object_foreach((json_t *)value, key, member) {
    add_figures(arena, pairs, arena_printf(arena, "%s%s%s", path, path[0] != '\0' ? "." : "", key), member);
  }
  json_array_foreach(value, i, member) {
    add_pair(arena, pairs, arena_printf(arena, "%s.%zu", path, i), figure_text(arena, member));
  }
  if (!json_is_object(value) && !json_is_array(value)) add_pair(arena, pairs, path, figure_text(arena, value));
}

/* Memory first, then the rest as it comes. Which way each kernel is written shows in its text. */
struct pairs figures_of(struct arena *arena, const char *json) {
  struct pairs all = {0}, ordered = {0};
  json_t *root = json_loads(json, 0, NULL);
  json_object_del(root, "choices");
  add_figures(arena, &all, "", root);
  json_decref(root);
  for (int memory = 1; memory >= 0; memory--)
    for (int i = 0; i < all.count; i++)
      if ((strncmp(all.items[i].name, "arena_bytes.", 12) == 0) == (memory == 1))
        ARENA_PUSH(arena, ordered, all.items[i]);
  return ordered;
}

struct pairs summary_of(struct arena *arena, const char *text) {
  struct pairs pairs = {0};
  struct lines lines = lines_of(arena, text, strlen(text));
  for (int i = 0; i < lines.count; i++) {
    const char *line = arena_copy(arena, lines.starts[i], (size_t)lines.lengths[i]);
    size_t word = strcspn(line, " ");
    if (word > 0 && line[word] != '\0')
      add_pair(arena, &pairs, arena_copy(arena, line, word), line + word + strspn(line + word, " "));
  }
  return pairs;
}

/* ---- Names with values ---- */

static const char *value_of(const struct pairs *pairs, const char *name) {
  for (int i = 0; i < pairs->count; i++)
    if (strcmp(pairs->items[i].name, name) == 0) return pairs->items[i].value;
  return NULL;
}

/* In the order of `a`; what only `b` has comes last. */
static void compare_pairs(struct arena *arena, const struct pairs *a, const struct pairs *b, struct changes *changes) {
  for (int i = 0; i < a->count; i++) {
    const char *other = value_of(b, a->items[i].name);
    struct change change = {a->items[i].name, a->items[i].value, other};
    if (other == NULL || strcmp(other, change.a) != 0) ARENA_PUSH(arena, *changes, change);
  }
  for (int i = 0; i < b->count; i++) {
    struct change change = {b->items[i].name, NULL, b->items[i].value};
    if (value_of(a, change.name) == NULL) ARENA_PUSH(arena, *changes, change);
  }
}

/* By the keys that differ from defaults, and whose defaults these are, where one of the two has no others. */
static void compare_jobs(struct arena *arena, const struct diff_input *a, const struct diff_input *b,
                         struct changes *changes) {
  bool whole = a->keys.count > 0 && b->keys.count > 0;
  int before = changes->count;
  compare_pairs(arena, whole ? &a->keys : &a->stated, whole ? &b->keys : &b->stated, changes);
  for (int i = before; i < changes->count && !whole; i++) {
    struct change *change = &changes->items[i];
    if (change->a == NULL) change->a = "(default)";
    if (change->b == NULL) change->b = "(default)";
  }
  if (!whole && a->generator != NULL && b->generator != NULL && strcmp(a->generator, b->generator) != 0)
    ARENA_PUSH(arena, *changes, ((struct change){"defaults", a->generator, b->generator}));
}

static void compare_plans(struct arena *arena, const struct diff_input *a, const struct diff_input *b,
                          struct changes *changes) {
  if (a->figures.count > 0 && b->figures.count > 0) {
    struct pairs traffic_a = {0}, traffic_b = {0};
    compare_pairs(arena, &a->figures, &b->figures, changes);
    const char *one = value_of(&a->summary, "traffic"), *other = value_of(&b->summary, "traffic");
    if (one != NULL) add_pair(arena, &traffic_a, "traffic", one);
    if (other != NULL) add_pair(arena, &traffic_b, "traffic", other);
    compare_pairs(arena, &traffic_a, &traffic_b, changes);
  } else {
    compare_pairs(arena, &a->summary, &b->summary, changes);
  }
}

/* ---- The step path ---- */

static int function_of(const struct diff_input *input, const char *name) {
  for (int i = 0; i < input->n_step_functions; i++)
    if (strcmp(input->step_functions[i].name, name) == 0) return i;
  return -1;
}

/* Whether two names are the same but for the numbers in them: matmul_12x64 and matmul_24x64. */
static bool names_alike(const char *a, const char *b) {
  static const char digits[] = "0123456789";
  for (;; a++, b++) {
    size_t a_number = strspn(a, digits), b_number = strspn(b, digits);
    a += a_number;
    b += b_number;
    if (*a != *b || (a_number == 0) != (b_number == 0)) return false;
    if (*a == '\0') return true;
  }
}

/* For each function of `a` the one of `b` that it is compared with, or -1; taken[] of those. */
static int *pair_functions(struct arena *arena, const struct diff_input *a, const struct diff_input *b, bool *taken) {
  int *with = arena_alloc(arena, ((size_t)a->n_step_functions + 1) * sizeof *with);
  for (int i = 0; i < a->n_step_functions; i++) {
    with[i] = function_of(b, a->step_functions[i].name);
    if (with[i] >= 0) taken[with[i]] = true;
  }
  for (int i = 0; i < a->n_step_functions; i++)
    for (int k = 0; k < b->n_step_functions && with[i] < 0; k++) {
      if (taken[k] || function_of(a, b->step_functions[k].name) >= 0 ||
          !names_alike(a->step_functions[i].name, b->step_functions[k].name))
        continue;
      with[i] = k;
      taken[k] = true;
    }
  return with;
}

/* The lines of a function; none for NULL. */
static struct lines part_of(const struct diff_input *input, const struct step_function *function) {
  if (function == NULL) return (struct lines){0};
  return (struct lines){input->lines.starts + function->first, input->lines.lengths + function->first,
                        function->last - function->first + 1};
}

/* The lines that have no match, counted in the whole text. */
static int *unmatched(struct arena *arena, const int *match, const struct lines *part,
                      const struct step_function *function, int *count) {
  int *lines = arena_alloc(arena, ((size_t)part->count + 1) * sizeof *lines);
  *count = 0;
  for (int i = 0; i < part->count; i++)
    if (match[i] < 0) lines[(*count)++] = function->first + i;
  return lines;
}

static void compare_functions(struct arena *arena, struct comparison *c, const struct step_function *a,
                              const struct step_function *b) {
  struct lines one = part_of(c->a, a), other = part_of(c->b, b);
  struct function_change change = {.a = a, .b = b};
  change.removed = unmatched(arena, lines_match(arena, &one, &other), &one, a, &change.n_removed);
  change.added = unmatched(arena, lines_match(arena, &other, &one), &other, b, &change.n_added);
  if (change.n_removed + change.n_added == 0) return;
  c->functions = arena_grow(arena, c->functions, c->n_functions, &c->functions_capacity, sizeof *c->functions);
  c->functions[c->n_functions++] = change;
}

static void compare_code(struct arena *arena, struct comparison *c) {
  const struct diff_input *a = c->a, *b = c->b;
  if (a->n_step_functions == 0 || b->n_step_functions == 0) return;
  bool *taken = arena_alloc(arena, (size_t)b->n_step_functions);
  const int *with = pair_functions(arena, a, b, taken);
  for (int i = 0; i < a->n_step_functions; i++)
    compare_functions(arena, c, &a->step_functions[i], with[i] >= 0 ? &b->step_functions[with[i]] : NULL);
  for (int i = 0; i < b->n_step_functions; i++)
    if (!taken[i]) compare_functions(arena, c, NULL, &b->step_functions[i]);
}

/* The lines of a text outside of its step path. */
static struct lines outside(struct arena *arena, const struct diff_input *input) {
  struct lines rest = {arena_alloc(arena, ((size_t)input->lines.count + 1) * sizeof *rest.starts),
                       arena_alloc(arena, ((size_t)input->lines.count + 1) * sizeof *rest.lengths), 0};
  for (int i = 0; i < input->lines.count; i++) {
    bool in_step = false;
    for (int k = 0; k < input->n_step_functions && !in_step; k++)
      in_step = i >= input->step_functions[k].first && i <= input->step_functions[k].last;
    if (in_step) continue;
    rest.starts[rest.count] = input->lines.starts[i];
    rest.lengths[rest.count++] = input->lines.lengths[i];
  }
  return rest;
}

static int count_unmatched(struct arena *arena, const struct lines *a, const struct lines *b) {
  const int *match = lines_match(arena, a, b);
  int count = 0;
  for (int i = 0; i < a->count; i++) count += match[i] < 0;
  return count;
}

struct comparison compare(struct arena *arena, const struct diff_input *a, const struct diff_input *b) {
  struct comparison c = {.a = a, .b = b};
  compare_jobs(arena, a, b, &c.job);
  if (a->model != NULL && b->model != NULL && strcmp(a->model, b->model) != 0)
    ARENA_PUSH(arena, c.job, ((struct change){MODEL_NAME, a->model, b->model}));
  compare_plans(arena, a, b, &c.plan);
  compare_code(arena, &c);
  struct lines rest_a = outside(arena, a), rest_b = outside(arena, b);
  if (a->lines.count > 0 && b->lines.count > 0) {
    c.elsewhere_a = count_unmatched(arena, &rest_a, &rest_b);
    c.elsewhere_b = count_unmatched(arena, &rest_b, &rest_a);
  }
  return c;
}

bool comparison_is_empty(const struct comparison *c) {
  return c->job.count == 0 && c->plan.count == 0 && c->n_functions == 0 && c->elsewhere_a == 0 && c->elsewhere_b == 0;
}
