#include "gen/emit/origin.h"

#include <string.h>

#include "gen/emit/values.h"

/* The key of a value that no template reads. */
#define ORIGIN "origin"

void set_origin(struct arena *arena, struct jinja_value map, struct location where) {
  if (where.file == NULL || where.line == 0) return;
  struct jinja_value list = jinja_get(map, ORIGIN), location = jinja_map(arena);
  if (list.kind == JINJA_UNDEFINED) {
    list = jinja_list(arena);
    jinja_set(arena, map, ORIGIN, list);
  }
  set_text(arena, location, "file", where.file);
  set_int(arena, location, "line", where.line);
  jinja_push(arena, list, location);
}

void set_node_origin(struct arena *arena, struct jinja_value map, const struct node *node) {
  if (node->body.count == 0) set_origin(arena, map, node->where);
  for (int i = 0; i < node->body.count; i++) set_origin(arena, map, node->body.items[i]->where);
}

/* ---- From spans to lines ---- */

static void add_template(struct arena *arena, struct line_origin *line, const struct jinja_span *span) {
  struct jinja_location location = {span->chain[0].template_name, span->chain[0].line, 0};
  for (int i = 0; i < line->n_templates; i++)
    if (line->templates[i].line == location.line &&
        strcmp(line->templates[i].template_name, location.template_name) == 0)
      return;
  if (line->n_templates == 0) {
    line->callers = span->chain + 1;
    line->n_callers = span->chain_count - 1;
  }
  line->templates =
      arena_grow(arena, line->templates, line->n_templates, &line->templates_capacity, sizeof *line->templates);
  line->templates[line->n_templates++] = location;
}

static void add_model(struct arena *arena, struct line_origin *line, struct jinja_value location) {
  struct location where = {.file = jinja_text(jinja_get(location, "file")),
                           .line = (int)jinja_get(location, "line").as.integer};
  for (int i = 0; i < line->n_model; i++)
    if (line->model[i].line == where.line && strcmp(line->model[i].file, where.file) == 0) return;
  line->model = arena_grow(arena, line->model, line->n_model, &line->model_capacity, sizeof *line->model);
  line->model[line->n_model++] = where;
}

static void add_models(struct arena *arena, struct line_origin *line, const struct jinja_span *span) {
  for (int i = 0; i < span->item_count; i++) {
    if (span->items[i].kind != JINJA_MAP) continue;
    struct jinja_value list = jinja_get(span->items[i], ORIGIN);
    if (list.kind != JINJA_LIST) continue;
    for (int k = 0; k < jinja_count(list); k++) add_model(arena, line, jinja_at(list, k));
    return;
  }
}

void find_origins(struct arena *arena, const struct jinja_output *output, const struct format_output *formatted,
                  struct origins *origins) {
  origins->count = 0;
  for (size_t i = 0; i < formatted->length; i++) origins->count += formatted->text[i] == '\n';
  origins->lines = arena_alloc(arena, ((size_t)origins->count + 1) * sizeof *origins->lines);
  const struct format_move *move = formatted->moves, *end = move + formatted->count;
  const char *start = output->text;
  int number = 1;
  for (int i = 0; i < output->span_count; i++) {
    const struct jinja_span *span = &output->spans[i];
    for (; number < span->line; number++) start = strchr(start, '\n') + 1;
    const size_t from = (size_t)(start - output->text) + (size_t)span->column - 1, to = from + (size_t)span->length;
    while (move < end && move->from + move->length <= from) move++;
    for (const struct format_move *moved = move; moved < end && moved->from < to; moved++) {
      add_template(arena, &origins->lines[moved->line - 1], span);
      add_models(arena, &origins->lines[moved->line - 1], span);
    }
  }
}
