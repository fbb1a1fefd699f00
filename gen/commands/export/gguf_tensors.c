#include "gen/commands/export/gguf_tensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gen/base/path.h"
#include "gen/commands/export/gguf_keys.h"

/* The cells of a row, in the order of struct gguf_tensor in accel/model.h. */
enum { CELL_TENSOR, CELL_NAME, CELL_CHANGE, CELL_TYPE, CELL_WHEN };

/* ---- Names ---- */

/* Whether a name is one of a pattern, in which # and * are numbers; they are found in *layer and *part. */
static bool is_named(const char *pattern, const char *name, int64_t *layer, int64_t *part) {
  while (*pattern != '\0') {
    if (*pattern != '#' && *pattern != '*') {
      if (*pattern++ != *name++) return false;
      continue;
    }
    const size_t digits = strspn(name, "0123456789");
    if (digits == 0 || digits > 9) return false;
    *(*pattern++ == '#' ? layer : part) = strtol(name, NULL, 10);
    name += digits;
  }
  return *name == '\0';
}

/* The row of a name, also of one without its first word: "h.0.ln_1.bias", as a file of the model without its head has
 * it. */
static const struct model_row *row_for(const struct model_rows *rows, const char *name, int64_t *layer, int64_t *part) {
  for (int i = 0; i < rows->count; i++)
    if (rows->items[i].cells[CELL_TENSOR] != NULL && is_named(rows->items[i].cells[CELL_TENSOR], name, layer, part))
      return &rows->items[i];
  for (int i = 0; i < rows->count; i++) {
    if (rows->items[i].cells[CELL_TENSOR] == NULL) continue;
    const char *below = strchr(rows->items[i].cells[CELL_TENSOR], '.');
    if (strncmp(rows->items[i].cells[CELL_TENSOR], "transformer.", 12) == 0 && is_named(below + 1, name, layer, part))
      return &rows->items[i];
  }
  return NULL;
}

static const char *numbered(struct arena *arena, const char *pattern, int64_t layer) {
  const size_t before = strcspn(pattern, "#");
  if (pattern[before] == '\0') return pattern;
  return arena_printf(arena, "%.*s%" PRId64 "%s", (int)before, pattern, layer, pattern + before + 1);
}

/* Whether a row holds for a layer, whose number its condition may have for #; -1: of none. */
static bool holds(const struct exported *of, const struct model_row *row, int64_t layer) {
  const char *when = row->cells[CELL_WHEN];
  return exported_holds(of, when != NULL ? numbered(of->arena, when, layer) : NULL);
}

/* ---- Changes ---- */

static bool fail(const struct exported *of, const struct stored_tensor *source, const char *why) {
  char shape[200];
  diag_error(of->diags, (struct location){.file = of->folder}, "%s %s: %s", source->name,
             rt_shape_text(shape, sizeof shape, source->rank, source->shape), why);
  return false;
}

/* One of a change's numbers, and where the next one begins. */
static const char *read_number(const struct exported *of, const char *words, int64_t *number) {
  struct model_value value;
  const size_t length = strcspn(words, " ");
  *number = -1;
  if (exported_number(of, arena_copy(of->arena, words, length), &value)) *number = (int64_t)value.number;
  return words + length + strspn(words + length, " ");
}

static bool read_change(const struct exported *of, const char *words, struct gguf_tensor *tensor) {
  static const char *const names[] = {"",     "transpose", "swap",      "swap_each", "part",
                                      "plus", "squeeze",   "minus_exp", "heads",     "heads_transposed"};
  const size_t length = strcspn(words, " ");
  const char *name = arena_copy(of->arena, words, length), *numbers = words + length + strspn(words + length, " ");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (strcmp(names[i], name) != 0) continue;
    tensor->change = (enum gguf_change)i;
    numbers = read_number(of, numbers, &tensor->a);
    numbers = read_number(of, numbers, &tensor->b);
    read_number(of, numbers, &tensor->c);
    return true;
  }
  diag_error(of->diags, (struct location){.file = of->family.source}, "the table 'gguf_tensors' has no change '%s'",
             words);
  return false;
}

/* The rows `b` to `b` + `c` of each of `a` heads, as a matrix for each. */
static bool heads_shape(const struct exported *of, struct gguf_tensor *tensor, const struct stored_tensor *source) {
  const bool turned = tensor->change == CHANGE_HEADS_TRANSPOSED;
  if (source->rank != 2 || tensor->a < 1 || tensor->b < 0 || tensor->c < 1 || source->shape[0] % tensor->a != 0 ||
      tensor->c > source->shape[0] / tensor->a - tensor->b)
    return fail(of, source, "its rows are not those of so many heads");
  tensor->rank = 3;
  tensor->shape[0] = tensor->a;
  tensor->shape[1] = turned ? source->shape[1] : tensor->c;
  tensor->shape[2] = turned ? tensor->c : source->shape[1];
  return true;
}

/* The shape of what a change makes of the source's. */
static bool change_shape(const struct exported *of, struct gguf_tensor *tensor, const struct stored_tensor *source) {
  const bool moves = tensor->change == CHANGE_SWAP || tensor->change == CHANGE_SWAP_EACH;
  const int axis = source->rank > 2 ? source->rank - 2 : 0; /* of a matrix's rows */
  tensor->rank = source->rank;
  memcpy(tensor->shape, source->shape, sizeof tensor->shape);
  if (source->rank < 1 || source->rank > 3) return fail(of, source, "GGUF takes vectors, matrices and lists of them");
  if (moves && (tensor->a < 1 || tensor->b < 1 || source->shape[0] % (tensor->a * tensor->b) != 0))
    return fail(of, source, "its rows are not those of so many heads");
  if (tensor->change == CHANGE_TRANSPOSE && source->rank != 2) return fail(of, source, "it is not a matrix");
  if (tensor->change == CHANGE_PART && (tensor->b < 1 || source->rank < 2 || source->shape[axis] % tensor->b != 0))
    return fail(of, source, "its rows are not so many parts");
  if (tensor->change == CHANGE_PART) tensor->shape[axis] /= tensor->b;
  if (tensor->change == CHANGE_TRANSPOSE) {
    tensor->shape[0] = source->shape[1];
    tensor->shape[1] = source->shape[0];
  }
  if (tensor->change == CHANGE_SQUEEZE && (source->rank != 3 || source->shape[1] != 1))
    return fail(of, source, "its second axis is not 1");
  if (tensor->change == CHANGE_SQUEEZE) {
    tensor->rank = 2;
    tensor->shape[1] = source->shape[2];
  }
  if (tensor->change >= CHANGE_HEADS && !heads_shape(of, tensor, source)) return false;
  const bool single = moves && source->rank == 1;
  tensor->width = single ? 1 : tensor->shape[tensor->rank - 1];
  tensor->rows = tensor->width > 0 ? rt_shape_count(tensor->rank, tensor->shape) / tensor->width : 0;
  return tensor->rows > 0 || fail(of, source, "it is empty");
}

/* As llama.cpp takes them: vectors and norms are always float32, and rows that are no whole blocks float16. */
static enum gguf_type type_for(const struct gguf_tensor *tensor, const struct model_row *row, enum gguf_type type) {
  if (tensor->rank == 1 || row->cells[CELL_TYPE] != NULL || has_ending(tensor->name, "_norm.weight")) return GGUF_F32;
  return type == GGUF_Q8_0 && tensor->width % 32 != 0 ? GGUF_F16 : type;
}

/* ---- Finding ---- */

static bool is_number_type(const char *dtype) {
  return strcmp(dtype, "F32") == 0 || strcmp(dtype, "F16") == 0 || strcmp(dtype, "BF16") == 0;
}

static bool begin(const struct exported *of, const struct model_row *row, const struct stored_tensor *source,
                  const char *name, enum gguf_type type, struct gguf_tensors *tensors) {
  const char *change = row->cells[CELL_CHANGE];
  struct gguf_tensor tensor = {.name = name, .n_sources = 1, .a = -1, .b = -1};
  if (!is_number_type(source->dtype)) return fail(of, source, "only F32, F16 and BF16 are exported");
  if (!read_change(of, change != NULL ? change : "", &tensor) || !change_shape(of, &tensor, source)) return false;
  tensor.type = type_for(&tensor, row, type);
  tensor.sources = arena_alloc(of->arena, sizeof(struct stored_tensor *));
  tensor.sources[0] = source;
  ARENA_PUSH(of->arena, *tensors, tensor);
  return true;
}

/* The parts 0, 1, … of a tensor that a row stacks. */
static bool stack(const struct exported *of, const char *pattern, int64_t layer, struct gguf_tensor *tensor) {
  enum { MOST = 4096 };
  const struct stored_tensor *found[MOST], *first = tensor->sources[0];
  const char *start = numbered(of->arena, pattern, layer);
  const size_t before = strcspn(start, "*");
  int count = 0;
  for (; count < MOST; count++) {
    const char *name = arena_printf(of->arena, "%.*s%d%s", (int)before, start, count, start + before + 1);
    found[count] = rt_shards_find(&of->shards, name);
    if (found[count] == NULL) break;
    if (found[count]->rank != 2 || memcmp(found[count]->shape, first->shape, 2 * sizeof *first->shape) != 0 ||
        !is_number_type(found[count]->dtype))
      return fail(of, found[count], "it is unlike the others of its layer");
  }
  tensor->sources = arena_alloc(of->arena, (size_t)count * sizeof(struct stored_tensor *));
  memcpy(tensor->sources, found, (size_t)count * sizeof(struct stored_tensor *));
  tensor->n_sources = count;
  tensor->rank = 3;
  tensor->shape[2] = first->shape[1];
  tensor->shape[1] = first->shape[0];
  tensor->shape[0] = count;
  tensor->rows = count * first->shape[0];
  return true;
}

/* Whether the part before one is there. */
static bool follows(const struct exported *of, const char *pattern, int64_t layer, int64_t part) {
  const char *start = numbered(of->arena, pattern, layer);
  const size_t before = strcspn(start, "*");
  const char *name = arena_printf(of->arena, "%.*s%" PRId64 "%s", (int)before, start, part - 1, start + before + 1);
  return rt_shards_find(&of->shards, name) != NULL;
}

static bool add(const struct exported *of, const struct model_rows *rows, const struct stored_tensor *source,
                enum gguf_type type, struct gguf_tensors *tensors) {
  int64_t layer = -1, part = -1;
  const struct model_row *row = row_for(rows, source->name, &layer, &part);
  if (row == NULL) return fail(of, source, "the family has no such tensor in a file of GGUF");
  bool all = part < 1 || follows(of, row->cells[CELL_TENSOR], layer, part) ||
             fail(of, source, "the one before it in its layer is missing");
  for (int i = (int)(row - rows->items); i < rows->count; i++) { /* parts have a row each */
    const struct model_row *one = &rows->items[i];
    if (one->cells[CELL_TENSOR] == NULL) continue;
    if (one != row && !is_named(one->cells[CELL_TENSOR], source->name, &layer, &part)) continue;
    if (one->cells[CELL_NAME] == NULL || !holds(of, one, layer) || part > 0) continue;
    all &= begin(of, one, source, numbered(of->arena, one->cells[CELL_NAME], layer), type, tensors) &&
           (part < 0 || stack(of, one->cells[CELL_TENSOR], layer, &tensors->items[tensors->count - 1]));
  }
  return all;
}

/* Rows without a tensor of the weights: what is computed from the config. */
static bool add_computed(const struct exported *of, const struct model_rows *rows, struct gguf_tensors *tensors) {
  static const char factors[] = "rope_factors ";
  for (int i = 0; i < rows->count; i++) {
    const struct model_row *row = &rows->items[i];
    const struct stored_tensor *computed;
    const char *change = row->cells[CELL_CHANGE];
    if (row->cells[CELL_TENSOR] != NULL || !holds(of, row, -1)) continue;
    if (change == NULL || strncmp(change, factors, sizeof factors - 1) != 0 ||
        !gguf_rope_factors(of, change + sizeof factors - 1, &computed)) {
      diag_error(of->diags, (struct location){.file = of->family.config}, "%s does not follow from the config",
                 row->cells[CELL_NAME]);
      return false;
    }
    struct model_row plain = *row;
    plain.cells[CELL_CHANGE] = NULL;
    if (!begin(of, &plain, computed, row->cells[CELL_NAME], GGUF_F32, tensors)) return false;
  }
  return true;
}

/* ---- What is missing ---- */

static bool has_tensor(const struct gguf_tensors *tensors, const char *name) {
  for (int i = 0; i < tensors->count; i++)
    if (strcmp(tensors->items[i].name, name) == 0) return true;
  return false;
}

/* Whether each layer has each row's tensor. */
static bool check_rows(const struct exported *of, const struct model_rows *rows, int64_t layers,
                       const struct gguf_tensors *tensors) {
  const int before = of->diags->errors;
  for (int i = 0; i < rows->count; i++) {
    const char *pattern = rows->items[i].cells[CELL_NAME];
    for (int64_t k = 0; pattern != NULL && k < (strchr(pattern, '#') != NULL ? layers : 1); k++)
      if (holds(of, &rows->items[i], k) && !has_tensor(tensors, numbered(of->arena, pattern, k)))
        diag_error(of->diags, (struct location){.file = of->folder}, "the weights have no %s",
                   numbered(of->arena, rows->items[i].cells[CELL_TENSOR], k));
  }
  return of->diags->errors == before;
}

/* Whether the model has no parameter of a tensor: masks, and heads of other classes. */
static bool is_left_out(const struct exported *of, const char *name) {
  for (int i = of->tensors.count - 1; i >= 0 && of->tensors.items[i].parameter == NULL; i--)
    if (strcmp(of->tensors.items[i].name, name) == 0) return true;
  return false;
}

bool gguf_find_tensors(struct exported *of, enum gguf_type type, struct gguf_tensors *tensors) {
  struct model_rows rows;
  int64_t layers;
  bool all = true;
  *tensors = (struct gguf_tensors){0};
  if (!model_rows(of->arena, of->family.model, "gguf_tensors", &rows, of->diags) || !gguf_layers(of, &layers))
    return false;
  for (int i = 0; i < of->shards.n_tensors && of->diags->errors < 20; i++)
    if (!is_left_out(of, of->shards.by_name[i]->name)) all &= add(of, &rows, of->shards.by_name[i], type, tensors);
  return all && add_computed(of, &rows, tensors) && check_rows(of, &rows, layers, tensors);
}
