#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gen/provenance/compare.h"
#include "gen/provenance/json.h"

const char *input_line(struct arena *arena, const struct diff_input *input, int line) {
  return arena_copy(arena, input->lines.starts[line], (size_t)input->lines.lengths[line]);
}

static int lines_in(const struct step_function *function) {
  return function->last - function->first + 1;
}

/* ---- For people ---- */

bool change_numbers(const struct change *change, double numbers[2]) {
  const char *values[] = {change->a, change->b};
  for (int i = 0; i < 2; i++) {
    char *end;
    if (values[i] == NULL || values[i][0] == '\0') return false;
    numbers[i] = strtod(values[i], &end);
    if (*end != '\0' || !isfinite(numbers[i])) return false;
  }
  return true;
}

const char *change_ratio(struct arena *arena, const struct change *change) {
  double numbers[2];
  if (!change_numbers(change, numbers) || numbers[0] == 0) return "";
  return arena_printf(arena, "%+.1f %%", 100 * (numbers[1] - numbers[0]) / numbers[0]);
}

/* In brackets, after blanks. */
static const char *ratio_text(struct arena *arena, const struct change *change) {
  const char *ratio = change_ratio(arena, change);
  return ratio[0] != '\0' ? arena_printf(arena, "  (%s)", ratio) : "";
}

static const char *shown(const char *value) {
  return value != NULL ? value : "(none)";
}

static void put_changes(struct text *out, const struct changes *changes, bool ratios) {
  int width = 0;
  for (int i = 0; i < changes->count; i++) {
    int length = (int)strlen(changes->items[i].name);
    if (length > width) width = length;
  }
  for (int i = 0; i < changes->count; i++) {
    const struct change *change = &changes->items[i];
    text_printf(out, "  %-*s  %s -> %s%s\n", width, change->name, shown(change->a), shown(change->b),
                ratios ? ratio_text(out->arena, change) : "");
  }
}

static void put_lines(struct text *out, char sign, const struct diff_input *input, const int *lines, int count) {
  for (int i = 0; i < count; i++) text_printf(out, "    %c %s\n", sign, input_line(out->arena, input, lines[i]));
}

static void put_function(struct text *out, const struct comparison *c, const struct function_change *change, bool all) {
  if (change->a == NULL || change->b == NULL) {
    const struct step_function *there = change->a != NULL ? change->a : change->b;
    text_printf(out, "  %c %s: %d lines\n", change->a != NULL ? '-' : '+', there->name, lines_in(there));
    if (!all) return;
  } else {
    bool renamed = strcmp(change->a->name, change->b->name) != 0;
    text_printf(out, "  %s%s%s", change->a->name, renamed ? " -> " : "", renamed ? change->b->name : "");
    if (c->b->program != NULL) text_printf(out, ", %s:%d", c->b->program, change->b->first + 1);
    text_puts(out, "\n");
  }
  put_lines(out, '-', c->a, change->removed, change->n_removed);
  put_lines(out, '+', c->b, change->added, change->n_added);
}

static int step_lines(const struct diff_input *input) {
  int count = 0;
  for (int i = 0; i < input->n_step_functions; i++) count += lines_in(&input->step_functions[i]);
  return count;
}

static void put_step_path(struct text *out, const struct comparison *c, bool all) {
  const struct diff_input *a = c->a, *b = c->b;
  if (a->n_step_functions == 0 || b->n_step_functions == 0) {
    text_printf(out, "step path: not compared: no program of %s is there\n",
                a->n_step_functions == 0 ? a->name : b->name);
    return;
  }
  text_printf(out, "step path: %s", c->n_functions == 0 ? "the same" : "");
  if (c->n_functions > 0)
    text_printf(out, "%d functions of %d lines -> %d of %d", a->n_step_functions, step_lines(a), b->n_step_functions,
                step_lines(b));
  text_puts(out, "\n");
  for (int i = 0; i < c->n_functions; i++) put_function(out, c, &c->functions[i], all);
}

static void put_elsewhere(struct text *out, const struct comparison *c) {
  if (c->a->lines.count == 0 || c->b->lines.count == 0) return;
  if (c->elsewhere_a == 0 && c->elsewhere_b == 0)
    text_puts(out, "elsewhere: the same\n");
  else
    text_printf(out, "elsewhere: %d lines -> %d\n", c->elsewhere_a, c->elsewhere_b);
}

void comparison_text(const struct comparison *c, bool all, struct text *out) {
  text_puts(out, c->job.count == 0 ? "job: the same\n" : "job:\n");
  put_changes(out, &c->job, false);
  text_puts(out, c->plan.count == 0 ? "plan: the same\n" : "plan:\n");
  put_changes(out, &c->plan, true);
  put_step_path(out, c, all);
  put_elsewhere(out, c);
}

/* ---- JSON ---- */

static json_t *text_or_null(const char *text) {
  return text != NULL ? json_text(text) : json_null();
}

static json_t *changes_json(const struct changes *changes) {
  json_t *list = json_array();
  for (int i = 0; i < changes->count; i++) {
    json_t *object = json_object();
    json_put(object, "name", changes->items[i].name);
    json_object_set_new(object, "a", text_or_null(changes->items[i].a));
    json_object_set_new(object, "b", text_or_null(changes->items[i].b));
    json_array_append_new(list, object);
  }
  return list;
}

static json_t *lines_json(struct arena *arena, const struct diff_input *input, const int *lines, int count) {
  json_t *list = json_array();
  for (int i = 0; i < count; i++) {
    json_t *object = json_object();
    json_object_set_new(object, "line", json_integer(lines[i] + 1));
    json_put(object, "text", input_line(arena, input, lines[i]));
    json_array_append_new(list, object);
  }
  return list;
}

static json_t *functions_json(struct arena *arena, const struct comparison *c) {
  json_t *list = json_array();
  for (int i = 0; i < c->n_functions; i++) {
    const struct function_change *change = &c->functions[i];
    json_t *object = json_object();
    json_object_set_new(object, "a", change->a != NULL ? json_text(change->a->name) : json_null());
    json_object_set_new(object, "b", change->b != NULL ? json_text(change->b->name) : json_null());
    json_object_set_new(object, "removed", lines_json(arena, c->a, change->removed, change->n_removed));
    json_object_set_new(object, "added", lines_json(arena, c->b, change->added, change->n_added));
    json_array_append_new(list, object);
  }
  return list;
}

void comparison_json(const struct comparison *c, struct text *out) {
  json_t *root = json_object(), *elsewhere = json_object();
  json_put(root, "a", c->a->name);
  json_put(root, "b", c->b->name);
  json_object_set_new(root, "same", json_boolean(comparison_is_empty(c)));
  json_object_set_new(root, "job", changes_json(&c->job));
  json_object_set_new(root, "plan", changes_json(&c->plan));
  json_object_set_new(root, "step_path", functions_json(out->arena, c));
  json_object_set_new(elsewhere, "removed", json_integer(c->elsewhere_a));
  json_object_set_new(elsewhere, "added", json_integer(c->elsewhere_b));
  json_object_set_new(root, "elsewhere", elsewhere);
  json_add_indented(out, root);
}
