#include "gen/commands/export/gguf_keys.h"

#include <fnmatch.h>
#include <math.h>
#include <string.h>

/* The cells of a row, in the order of struct gguf_key in accel/model.h. */
enum { CELL_KEY, CELL_VALUE, CELL_IS, CELL_TYPE, CELL_TEXT, CELL_WHEN };

static bool fail(const struct exported *of, const char *what, const char *why, const char *help) {
  diag_error(of->diags, (struct location){.file = of->family.config}, "'%s' %s", what, why);
  if (help != NULL) diag_help(of->diags, "%s", help);
  return false;
}

static bool is_uint32(double number) {
  return number == trunc(number) && number >= 0 && number <= UINT32_MAX;
}

static bool add_value(const struct exported *of, const struct model_row *row, const char *key,
                      struct gguf_metadata *metadata) {
  struct model_value value;
  const char *word = row->cells[CELL_VALUE];
  if (!exported_number(of, word, &value)) return fail(of, word, "is missing, which a file of GGUF needs", NULL);
  const char *type = row->cells[CELL_TYPE] != NULL ? row->cells[CELL_TYPE] : value.kind == MODEL_REAL ? "f32" : "";
  if (strcmp(type, "f32") == 0) {
    if (!isfinite((float)value.number)) return fail(of, word, "is too large for a file of GGUF", NULL);
    gguf_add_float32(metadata, key, (float)value.number);
  } else if (value.kind == MODEL_BOOL) {
    gguf_add_bool(metadata, key, value.number != 0);
  } else if (is_uint32(value.number)) {
    gguf_add_uint32(metadata, key, (uint32_t)value.number);
  } else {
    return fail(of, word, "is not a whole number from 0 to 4294967295", NULL);
  }
  return true;
}

/* "llama.block_count" of "block_count"; what has a group already keeps it. */
static const char *full_key(const struct exported *of, const char *architecture, const char *key) {
  return strncmp(key, "general.", 8) == 0 ? key : arena_printf(of->arena, "%s.%s", architecture, key);
}

/* The row of a key that holds; NULL: none. */
static const struct model_row *row_of(const struct exported *of, const struct model_rows *rows, const char *key) {
  for (int i = 0; i < rows->count; i++) {
    const char *const *cells = rows->items[i].cells;
    if (cells[CELL_KEY] != NULL && strcmp(cells[CELL_KEY], key) == 0 && exported_holds(of, cells[CELL_WHEN]))
      return &rows->items[i];
  }
  return NULL;
}

static bool find_layers(const struct exported *of, const struct model_rows *rows, int64_t *layers) {
  const struct model_row *row = row_of(of, rows, "block_count");
  struct model_value value;
  if (row != NULL && exported_number(of, row->cells[CELL_VALUE], &value)) {
    *layers = (int64_t)value.number;
    return true;
  }
  diag_error(of->diags, (struct location){.file = of->family.source}, "the table 'gguf_keys' has no block_count");
  return false;
}

/* For each layer, whether its item of a list is `is`. */
static bool add_bools(const struct exported *of, const struct model_rows *rows, const struct model_row *row,
                      const char *key, struct gguf_metadata *metadata) {
  const char *word = row->cells[CELL_VALUE];
  const size_t before = strcspn(word, "*");
  int64_t layers;
  if (!find_layers(of, rows, &layers)) return false;
  bool *values = arena_alloc(of->arena, (size_t)(layers + 1) * sizeof *values);
  for (int64_t i = 0; i < layers; i++) {
    const char *path = arena_printf(of->arena, "%.*s%lld", (int)before, word, (long long)i);
    const struct model_value *item = exported_field(of, path);
    if (item == NULL) return fail(of, path, "is missing, which a file of GGUF needs", NULL);
    values[i] = strcmp(item->text, row->cells[CELL_IS]) == 0;
  }
  gguf_add_bools(metadata, key, values, (uint64_t)layers);
  return true;
}

static bool check_value(const struct exported *of, const struct model_row *row) {
  const char *word = row->cells[CELL_VALUE];
  const struct model_value *field = exported_field(of, word);
  struct model_value number;
  if (field == NULL || text_names(arena_printf(of->arena, " %s ", row->cells[CELL_IS]), field->text, false))
    return true;
  if (field->kind != MODEL_TEXT && exported_number(of, row->cells[CELL_IS], &number) && number.number == field->number)
    return true;
  return fail(of, word, arena_printf(of->arena, "is %s, which a file of GGUF cannot represent", field->text),
              arena_printf(of->arena, "it can have %s", row->cells[CELL_IS]));
}

static bool add_row(const struct exported *of, const struct model_rows *rows, const struct model_row *row,
                    const char *architecture, struct gguf_metadata *metadata) {
  const char *key = row->cells[CELL_KEY], *type = row->cells[CELL_TYPE];
  if (!exported_holds(of, row->cells[CELL_WHEN])) return true;
  if (type != NULL && strcmp(type, "bools") == 0)
    return add_bools(of, rows, row, full_key(of, architecture, key), metadata);
  if (row->cells[CELL_IS] != NULL && !check_value(of, row)) return false;
  if (key == NULL) return true;
  if (row->cells[CELL_TEXT] == NULL) return add_value(of, row, full_key(of, architecture, key), metadata);
  gguf_add_text(metadata, full_key(of, architecture, key), row->cells[CELL_TEXT]);
  return true;
}

/* Whether a row has the field, alone or in a product or sum. */
static bool is_in(const struct exported *of, const struct model_rows *rows, const char *field) {
  for (int i = 0; i < rows->count; i++) {
    const char *at = rows->items[i].cells[CELL_VALUE];
    if (at == NULL) continue;
    if (fnmatch(at, field, 0) == 0) return true;
    for (; *at != '\0'; at += strspn(at, "+*/")) {
      const size_t length = strcspn(at, "+*/");
      if (strcmp(arena_copy(of->arena, at, length), field) == 0) return true;
      at += length;
    }
  }
  return false;
}

bool gguf_add_keys(struct exported *of, struct gguf_metadata *metadata) {
  struct model_rows rows;
  const int before = of->diags->errors;
  if (!model_rows(of->arena, of->family.model, "gguf_keys", &rows, of->diags)) return false;
  const struct model_row *named = row_of(of, &rows, "general.architecture");
  const char *architecture = named != NULL ? named->cells[CELL_TEXT] : NULL;
  if (architecture == NULL) {
    diag_error(of->diags, (struct location){.file = of->family.config}, "'%s' cannot be exported as GGUF",
               of->family.architecture);
    diag_help(of->diags, "%s has no table gguf_keys; docs/models.md lists the models that have one", of->family.source);
    return false;
  }
  for (int i = 0; i < rows.count; i++) add_row(of, &rows, &rows.items[i], architecture, metadata);
  for (int i = 0; i < of->config.count; i++)
    if (!is_in(of, &rows, of->config.items[i].path))
      fail(of, of->config.items[i].path, "has no meaning in a file of GGUF that is known here", NULL);
  return of->diags->errors == before;
}

bool gguf_layers(struct exported *of, int64_t *layers) {
  struct model_rows rows;
  return model_rows(of->arena, of->family.model, "gguf_keys", &rows, of->diags) && find_layers(of, &rows, layers);
}
