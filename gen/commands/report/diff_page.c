#include "gen/commands/report/diff_page.h"

/* How long a bar is, of 100. */
static const char *bar_text(struct arena *arena, double number, double most) {
  return arena_printf(arena, "%.4g", number > 0 && most > 0 ? 100 * number / most : 0);
}

static struct jinja_value change_value(struct arena *arena, const struct change *change) {
  struct jinja_value row = jinja_map(arena), bars = jinja_list(arena);
  double numbers[2];
  jinja_set(arena, row, "name", page_text(arena, change->name));
  jinja_set(arena, row, "a", change->a != NULL ? page_text(arena, change->a) : jinja_none());
  jinja_set(arena, row, "b", change->b != NULL ? page_text(arena, change->b) : jinja_none());
  jinja_set(arena, row, "ratio", jinja_string(arena, change_ratio(arena, change)));
  const bool are = change_numbers(change, numbers);
  const double most = are && numbers[0] > numbers[1] ? numbers[0] : numbers[1];
  for (int i = 0; are && i < 2; i++) jinja_push(arena, bars, jinja_string(arena, bar_text(arena, numbers[i], most)));
  jinja_set(arena, row, "bars", bars);
  return row;
}

static struct jinja_value changes_value(struct arena *arena, const struct changes *changes) {
  struct jinja_value list = jinja_list(arena);
  for (int i = 0; i < changes->count; i++) jinja_push(arena, list, change_value(arena, &changes->items[i]));
  return list;
}

/* [{line, text}], lines from 1. */
static struct jinja_value lines_value(struct arena *arena, const struct diff_input *input, const int *lines,
                                      int count) {
  struct jinja_value list = jinja_list(arena);
  for (int i = 0; i < count; i++) {
    struct jinja_value line = jinja_map(arena);
    jinja_set(arena, line, "line", jinja_int(lines[i] + 1));
    jinja_set(arena, line, "text", page_text(arena, input_line(arena, input, lines[i])));
    jinja_push(arena, list, line);
  }
  return list;
}

static struct jinja_value name_value(struct arena *arena, const struct step_function *function) {
  return function != NULL ? page_text(arena, function->name) : jinja_none();
}

static struct jinja_value function_value(struct arena *arena, const struct comparison *comparison,
                                         const struct function_change *change, bool all) {
  struct jinja_value value = jinja_map(arena);
  const bool shown = all || (change->a != NULL && change->b != NULL);
  jinja_set(arena, value, "a", name_value(arena, change->a));
  jinja_set(arena, value, "b", name_value(arena, change->b));
  jinja_set(arena, value, "n_removed", jinja_int(change->n_removed));
  jinja_set(arena, value, "n_added", jinja_int(change->n_added));
  jinja_set(arena, value, "removed", lines_value(arena, comparison->a, change->removed, shown ? change->n_removed : 0));
  jinja_set(arena, value, "added", lines_value(arena, comparison->b, change->added, shown ? change->n_added : 0));
  return value;
}

/* "": both have programs, so that their step paths were compared; else whose is missing. */
static const char *without_program(const struct comparison *comparison) {
  if (comparison->a->n_step_functions == 0) return comparison->a->name;
  return comparison->b->n_step_functions == 0 ? comparison->b->name : "";
}

int diff_page_write(const struct options *options, const struct comparison *comparison, const struct inputs *inputs) {
  struct arena *arena = options->arena;
  struct jinja_value page = jinja_map(arena), functions = jinja_list(arena);
  struct text json = text_in(arena);
  comparison_json(comparison, &json);
  for (int i = 0; i < comparison->n_functions; i++)
    jinja_push(arena, functions, function_value(arena, comparison, &comparison->functions[i], options->verbose));
  jinja_set(arena, page, "a", page_text(arena, comparison->a->name));
  jinja_set(arena, page, "b", page_text(arena, comparison->b->name));
  jinja_set(arena, page, "same", jinja_bool(comparison_is_empty(comparison)));
  jinja_set(arena, page, "job", changes_value(arena, &comparison->job));
  jinja_set(arena, page, "plan", changes_value(arena, &comparison->plan));
  jinja_set(arena, page, "functions", functions);
  jinja_set(arena, page, "without", page_text(arena, without_program(comparison)));
  jinja_set(arena, page, "elsewhere_a", jinja_int(comparison->elsewhere_a));
  jinja_set(arena, page, "elsewhere_b", jinja_int(comparison->elsewhere_b));
  jinja_set(arena, page, "data", page_json(arena, text_string(&json)));
  return page_write(options, "diff.html.j2", page, inputs, options->html);
}
