#include "gen/model/rows.h"

#include <ctype.h>
#include <string.h>

#include "gen/model/config.h"
#include "gen/model/evaluate.h"

/* ---- A table ---- */

static void add_row(struct evaluator *evaluator, const char *table, const struct cvalue *row, struct model_rows *rows) {
  struct model_row out = {0};
  if (row->kind != CVALUE_AGGREGATE || row->count > MODEL_ROW_CELLS)
    evaluate_fail(evaluator, (struct location){.file = evaluator->program->file},
                  "accel/model.h has the struct of its rows", "the model's table '%s' is not a list of such rows",
                  table);
  for (int64_t i = 0; i < row->count; i++) out.cells[i] = cvalue_string_of(&row->items[i]);
  ARENA_PUSH(evaluator->arena, *rows, out);
}

static void read_rows(struct evaluator *evaluator, const char *table, struct model_rows *rows) {
  for (int i = 0; i < evaluator->program->n_statics; i++) {
    const struct variable *variable = evaluator->program->statics[i];
    if (strcmp(variable->name, table) != 0 || variable->initial == NULL) continue;
    const struct cvalue list = initialize(evaluator, variable->type, variable->initial, false);
    for (int64_t k = 0; list.kind == CVALUE_AGGREGATE && k < list.count; k++)
      add_row(evaluator, table, &list.items[k], rows);
  }
}

/* Alone in its function, so that no variable of it lives across the jump. */
static void read_guarded(struct evaluator *evaluator, const char *table, struct model_rows *rows) {
  if (setjmp(evaluator->failure) == 0) read_rows(evaluator, table, rows);
}

bool model_rows(struct arena *arena, const struct tree *model, const char *table, struct model_rows *rows,
                struct diagnostics *diags) {
  const int before = diags->errors;
  struct evaluator evaluator = model_evaluator(arena, model, diags);
  *rows = (struct model_rows){0};
  read_guarded(&evaluator, table, rows);
  builder_abandon(evaluator.builder);
  return diags->errors == before;
}

/* ---- The config ---- */

/* The bytes that all names of an enumeration begin with, up to an underscore. */
static size_t common_start(const struct type *type) {
  const char *first = type->enumerators[0].name, *end = strrchr(first, '_');
  size_t length = end != NULL ? (size_t)(end - first) + 1 : 0;
  for (int i = 1; i < type->n_enumerators; i++)
    while (length > 0 && (strncmp(type->enumerators[i].name, first, length) != 0 || first[length - 1] != '_')) length--;
  return length;
}

static const char *word_of(struct arena *arena, const struct type *type, const char *name) {
  char *word = arena_string(arena, name + common_start(type));
  for (char *c = word; *c != '\0'; c++) *c = (char)tolower((unsigned char)*c);
  return word;
}

static struct model_value value_of(struct arena *arena, const char *path, const struct type *type,
                                   const struct cvalue *cell) {
  struct model_value value = {.path = path, .kind = MODEL_TEXT, .text = cvalue_string_of(cell)};
  if (cell->kind != CVALUE_INTEGER && cell->kind != CVALUE_REAL) return value;
  value.kind = cell->kind == CVALUE_REAL ? MODEL_REAL : type->is_bool ? MODEL_BOOL : MODEL_INTEGER;
  value.number = cell->kind == CVALUE_REAL ? cell->real : (double)cell->integer;
  value.text = value.kind == MODEL_BOOL ? (value.number != 0 ? "true" : "false") : cvalue_text(arena, *cell);
  for (int i = 0; cell->kind == CVALUE_INTEGER && i < type->n_enumerators; i++)
    if (type->enumerators[i].value == cell->integer) value.text = type->enumerators[i].name;
  if (cell->kind == CVALUE_INTEGER && type->n_enumerators > 0) value.word = word_of(arena, type, value.text);
  return value;
}

static void add_values(struct arena *arena, const char *path, const struct type *type, const struct cvalue *cell,
                       struct model_values *values) {
  if (!ctype_is_aggregate(type)) {
    ARENA_PUSH(arena, *values, value_of(arena, path, type, cell));
    return;
  }
  for (int64_t i = 0; i < cell->count; i++) {
    const char *name =
        ctype_of(type) == CTYPE_STRUCT ? type->members[i].name : arena_printf(arena, "%lld", (long long)i);
    const char *below = path[0] == '\0' ? name : arena_printf(arena, "%s.%s", path, name);
    add_values(arena, below, ctype_part(type, i), &cell->items[i], values);
  }
}

static void read_values(struct evaluator *evaluator, const struct type *type, const struct model_request *request,
                        struct model_values *values) {
  if (setjmp(evaluator->failure) != 0) return;
  const struct cvalue config = config_argument(evaluator, type, request);
  add_values(evaluator->arena, "", type, &config, values);
}

bool model_values(struct arena *arena, const struct tree *model, const struct model_request *request,
                  struct model_values *values, struct diagnostics *diags) {
  const int before = diags->errors;
  const struct type *type = config_type(model, request->entry);
  struct evaluator evaluator = model_evaluator(arena, model, diags);
  *values = (struct model_values){0};
  if (type != NULL) read_values(&evaluator, type, request, values);
  builder_abandon(evaluator.builder);
  return diags->errors == before;
}
