#include "runtime/weights/layers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A row of a table, for one of the layers that it stands for. */
struct entry {
  int row, layer;
};

/* The layers that a row of the tensors stands for; NULL: it is one tensor. */
static const struct accel_layers *layers_of(const struct accel_program *program, int tensor) {
  for (int i = 0; i < program->n_layers; i++)
    if (tensor >= program->layers[i].first && tensor - program->layers[i].first < program->layers[i].rows)
      return &program->layers[i];
  return NULL;
}

static int layer_count(const struct accel_layers *layers) {
  return layers != NULL ? layers->count : 1;
}

/* The first one of the entries that alternate with this one. */
static const struct accel_layers *round_of(const struct accel_program *program, const struct accel_layers *layers) {
  while (layers != NULL && layers > program->layers && layers[-1].with_next) layers--;
  return layers;
}

/* The rows of all entries that alternate, of which this is the first one. */
static int rows_of_round(const struct accel_layers *layers) {
  int rows = layers->rows;
  for (; layers->with_next; layers++) rows += layers[1].rows;
  return rows;
}

/* The position among all tensors of a row's tensor of one layer. */
static int position_of(const struct accel_program *program, int tensor, int layer) {
  const struct accel_layers *own = round_of(program, layers_of(program, tensor));
  int position = tensor;
  for (int i = 0; i < program->n_layers; i++) {
    const struct accel_layers *layers = &program->layers[i];
    if (layers->first < tensor && round_of(program, layers) != own) position += layers->rows * (layers->count - 1);
  }
  return own != NULL ? position + layer * rows_of_round(own) : position;
}

/* A table whose rows begin with the number of a tensor; first NULL: the table of the tensors itself. */
struct table {
  const void *first;
  size_t row_bytes;
  int rows;
};

static int tensor_of(const struct table *table, int row) {
  return table->first != NULL ? *(const int *)((const char *)table->first + (size_t)row * table->row_bytes) : row;
}

/* The entry of the rounds of layers that a row of a table belongs to; NULL: to none. */
static const struct accel_layers *round_of_row(const struct accel_program *program, const struct table *table,
                                               int row) {
  return round_of(program, layers_of(program, tensor_of(table, row)));
}

/* The row after the neighbours of `row` that are of the same rounds of layers. */
static int end_of(const struct accel_program *program, const struct table *table, int row) {
  const struct accel_layers *round = round_of_row(program, table, row);
  int end = row + 1;
  while (round != NULL && end < table->rows && round_of_row(program, table, end) == round) end++;
  return end;
}

/* The rows of all layers, layer by layer; their number is in *count. */
static struct entry *entries_of(const struct accel_program *program, const struct table *table, int *count) {
  *count = 0;
  for (int i = 0; i < table->rows; i++) *count += layer_count(layers_of(program, tensor_of(table, i)));
  struct entry *entries = calloc((size_t)*count + 1, sizeof *entries), *next = entries;
  if (entries == NULL) return NULL;
  for (int row = 0, end; row < table->rows; row = end) {
    int layers = layer_count(layers_of(program, tensor_of(table, row)));
    end = end_of(program, table, row);
    for (int layer = 0; layer < layers; layer++)
      for (int i = row; i < end; i++) *next++ = (struct entry){i, layer};
  }
  return entries;
}

/* "h.3.attn.weight" of "h.%d.attn.weight". */
static char *name_of(const char *pattern, int layer) {
  const char *number = strstr(pattern, "%d");
  size_t size = strlen(pattern) + 12;
  char *name = malloc(size);
  if (name != NULL) snprintf(name, size, "%.*s%d%s", (int)(number - pattern), pattern, layer, number + 2);
  return name;
}

static bool expand_tensors(const struct accel_program *program, struct accel_program *whole) {
  struct table table = {.rows = program->n_tensors};
  struct entry *entries = entries_of(program, &table, &whole->n_tensors);
  struct accel_tensor *tensors = calloc((size_t)whole->n_tensors + 1, sizeof *tensors);
  bool good = entries != NULL && tensors != NULL;
  whole->tensors = tensors;
  for (int i = 0; good && i < whole->n_tensors; i++) {
    const struct accel_layers *layers = layers_of(program, entries[i].row);
    tensors[i] = program->tensors[entries[i].row];
    if (layers == NULL) continue;
    tensors[i].name = name_of(tensors[i].name, layers->from + entries[i].layer);
    tensors[i].offset += (size_t)entries[i].layer * layers->stride;
    good = tensors[i].name != NULL;
  }
  free(entries);
  return good;
}

static bool expand_gradients(const struct accel_program *program, struct accel_program *whole) {
  struct table table = {.rows = program->n_tensors};
  int count;
  if (program->gradients == NULL) return true;
  struct entry *entries = entries_of(program, &table, &count);
  struct accel_gradient *gradients = calloc((size_t)count + 1, sizeof *gradients);
  whole->gradients = gradients;
  bool good = entries != NULL && gradients != NULL;
  for (int i = 0; good && i < count; i++) {
    const struct accel_gradient *row = &program->gradients[entries[i].row];
    gradients[i] = (struct accel_gradient){row->offset + entries[i].layer * row->stride, 0};
  }
  free(entries);
  return good;
}

static bool expand_slices(const struct accel_program *program, struct accel_state *state) {
  struct table table = {state->slices, sizeof *state->slices, state->n_slices};
  const struct accel_slice *rows = state->slices;
  if (rows == NULL) return true;
  struct entry *entries = entries_of(program, &table, &state->n_slices);
  struct accel_slice *slices = calloc((size_t)state->n_slices + 1, sizeof *slices);
  state->slices = slices;
  bool good = entries != NULL && slices != NULL;
  for (int i = 0; good && i < state->n_slices; i++) {
    struct entry entry = entries[i];
    slices[i] = rows[entry.row];
    if (slices[i].parameter >= 0) slices[i].parameter = position_of(program, slices[i].parameter, entry.layer);
    slices[i].first += entry.layer * slices[i].stride;
  }
  free(entries);
  return good;
}

static bool expand_states(const struct accel_program *program, struct accel_program *whole) {
  struct accel_state *states = calloc((size_t)program->n_states + 1, sizeof *states);
  bool good = states != NULL;
  whole->states = states;
  for (int i = 0; good && i < program->n_states; i++) {
    states[i] = program->states[i];
    good = expand_slices(program, &states[i]);
  }
  return good;
}

/* A list of tensors by their positions. */
static bool expand_list(const struct accel_program *program, const int **list, int *n) {
  struct table table = {*list, sizeof **list, *n};
  const int *rows = *list;
  if (*n == 0) return true;
  struct entry *entries = entries_of(program, &table, n);
  int *positions = calloc((size_t)*n + 1, sizeof *positions);
  *list = positions;
  bool good = entries != NULL && positions != NULL;
  for (int i = 0; good && i < *n; i++) positions[i] = position_of(program, rows[entries[i].row], entries[i].layer);
  free(entries);
  return good;
}

static bool expand_parts(const struct accel_program *program, struct accel_program *whole) {
  struct table table = {program->tensor_parts, sizeof *program->tensor_parts, program->n_tensor_parts};
  if (program->n_tensor_parts == 0) return true;
  struct entry *entries = entries_of(program, &table, &whole->n_tensor_parts);
  struct accel_tensor_part *parts = calloc((size_t)whole->n_tensor_parts + 1, sizeof *parts);
  whole->tensor_parts = parts;
  bool good = entries != NULL && parts != NULL;
  for (int i = 0; good && i < whole->n_tensor_parts; i++) {
    parts[i] = program->tensor_parts[entries[i].row];
    parts[i].tensor = position_of(program, parts[i].tensor, entries[i].layer);
  }
  free(entries);
  return good;
}

static bool expand_experts(const struct accel_program *program, struct accel_program *whole) {
  struct table table = {program->expert_tensors, sizeof *program->expert_tensors, program->n_expert_tensors};
  if (program->n_expert_tensors == 0) return true;
  struct entry *entries = entries_of(program, &table, &whole->n_expert_tensors);
  struct accel_expert_tensor *expert = calloc((size_t)whole->n_expert_tensors + 1, sizeof *expert);
  whole->expert_tensors = expert;
  bool good = entries != NULL && expert != NULL;
  for (int i = 0; good && i < whole->n_expert_tensors; i++) {
    expert[i] = program->expert_tensors[entries[i].row];
    expert[i].tensor = position_of(program, expert[i].tensor, entries[i].layer);
  }
  free(entries);
  return good;
}

static bool expand_adapters(const struct accel_program *program, struct accel_adapters *adapters) {
  struct table table = {adapters->items, sizeof *adapters->items, adapters->count};
  const struct accel_adapter *rows = adapters->items;
  if (adapters->count == 0) return true;
  struct entry *entries = entries_of(program, &table, &adapters->count);
  struct accel_adapter *items = calloc((size_t)adapters->count + 1, sizeof *items);
  adapters->items = items;
  bool good = entries != NULL && items != NULL;
  for (int i = 0; good && i < adapters->count; i++) {
    const struct accel_adapter *row = &rows[entries[i].row];
    int layer = entries[i].layer;
    items[i] = (struct accel_adapter){position_of(program, row->weight, layer), position_of(program, row->a, layer),
                                      position_of(program, row->b, layer), row->in_out};
  }
  free(entries);
  return good;
}

static bool expand_quantized(const struct accel_program *program, struct accel_program *whole) {
  struct table table = {program->quantized, sizeof *program->quantized, program->n_quantized};
  if (program->n_quantized == 0) return true;
  struct entry *entries = entries_of(program, &table, &whole->n_quantized);
  struct accel_quantized *quantized = calloc((size_t)whole->n_quantized + 1, sizeof *quantized);
  whole->quantized = quantized;
  bool good = entries != NULL && quantized != NULL;
  for (int i = 0; good && i < whole->n_quantized; i++) {
    quantized[i] = program->quantized[entries[i].row];
    int *const tensors[] = {&quantized[i].codes, &quantized[i].absmax, &quantized[i].nested_absmax,
                            &quantized[i].nested_offset};
    for (int k = 0; k < 4; k++)
      if (*tensors[k] >= 0) *tensors[k] = position_of(program, *tensors[k], entries[i].layer);
  }
  free(entries);
  return good;
}

const struct accel_program *rt_layers_expand(const struct accel_program *program, struct problem *problem) {
  static struct accel_program whole;
  if (program->n_layers == 0) return program;
  whole = *program;
  whole.n_layers = 0;
  if (expand_tensors(program, &whole) && expand_parts(program, &whole) && expand_experts(program, &whole) &&
      expand_gradients(program, &whole) && expand_states(program, &whole) &&
      expand_list(program, &whole.start.fresh, &whole.start.n_fresh) &&
      expand_list(program, &whole.adapters.whole, &whole.adapters.n_whole) &&
      expand_adapters(program, &whole.adapters) && expand_quantized(program, &whole))
    return &whole;
  rt_problem(problem, "no memory for the list of tensors");
  return NULL;
}
