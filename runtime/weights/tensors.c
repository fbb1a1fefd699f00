#include "runtime/weights/tensors.h"

#include "runtime/base/dtype.h"
#include "runtime/process/world.h"
#include "runtime/weights/disk_states.h"
#include "runtime/weights/experts.h"
#include "runtime/weights/safetensors.h"
#include "runtime/weights/sharded_rows.h"
#include "runtime/weights/streamed.h"
#include "runtime/weights/tensor_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *rt_dtype_name(enum accel_dtype dtype) {
  static const char *const names[ACCEL_DTYPES] = {
      [ACCEL_FLOAT32] = "F32", [ACCEL_FLOAT16] = "F16", [ACCEL_BFLOAT16] = "BF16", [ACCEL_INT32] = "I32",
      [ACCEL_INT64] = "I64",   [ACCEL_UINT8] = "U8",    [ACCEL_FLOAT64] = "F64",   [ACCEL_INT8] = "I8",
      [ACCEL_INT16] = "I16",   [ACCEL_BOOL] = "BOOL",
  };
  return names[dtype];
}

static char *name_of(const struct accel_state *state, const char *parameter) {
  if (parameter == NULL) return strdup(state->name);
  if (state->name[0] == '\0') return strdup(parameter);
  size_t size = strlen(parameter) + strlen(state->name) + sizeof "state..";
  char *name = malloc(size);
  if (name != NULL) snprintf(name, size, "state.%s.%s", parameter, state->name);
  return name;
}

static int slices_of(const struct accel_program *program, const struct accel_state *state) {
  return state->slices != NULL ? state->n_slices : program->n_tensors;
}

/* Slice `i` of a state; one that has no slices of its own has what the weights have. */
static struct accel_slice slice_of(const struct accel_program *program, const struct accel_state *state, int i) {
  if (state->slices != NULL) return state->slices[i];
  const struct accel_tensor *tensor = &program->tensors[i];
  struct accel_slice slice = {i, (int64_t)(tensor->offset / sizeof(float)), 0, tensor->rank, {0}};
  memcpy(slice.shape, tensor->shape, sizeof slice.shape);
  return slice;
}

/* Of a slice: integers among the weights are what they are. */
static enum accel_dtype dtype_of(const struct accel_program *program, const struct accel_state *state, int parameter) {
  bool integers = state->slices == NULL && program->tensors[parameter].dtype != ACCEL_FLOAT32;
  return integers ? program->tensors[parameter].dtype : state->dtype;
}

/* Whether a state is the weights, of which layers are on a disk. */
static bool holds_layers(const struct accel_program *program, const struct accel_state *state) {
  return program->disk.layers_folder != NULL && state == program->states;
}

/* Parameters are in their own order then, wherever they are. */
static void place_layer(struct tensor_view *view, const struct accel_program *program, int parameter, bool is_there) {
  const struct accel_tensor *tensor = &program->tensors[parameter];
  view->position = is_there ? (size_t)parameter + 1 : 0;
  if (!is_there || !rt_is_layer_on_disk(program, tensor)) return;
  view->scratch = program->disk.disk->layers;
  view->bytes = program->disk.disk->parameter(tensor->offset);
}

static bool add_state(struct tensor_list *list, const struct accel_program *program, const struct accel_state *state,
                      char *array) {
  for (int i = 0; i < slices_of(program, state); i++) {
    struct accel_slice slice = slice_of(program, state, i);
    if (slice.parameter >= 0 && rt_is_streamed(program, &program->tensors[slice.parameter])) continue;
    struct tensor_view view = {.dtype = dtype_of(program, state, slice.parameter), .rank = slice.rank};
    memcpy(view.shape, slice.shape, sizeof view.shape);
    if (rt_is_on_disk(program, state)) view.scratch = program->disk.disk->scratch;
    size_t size = rt_dtype_size(view.dtype);
    view.bytes = array != NULL ? array + (size_t)slice.first * rt_dtype_size(state->dtype) : NULL;
    view.position = (uintptr_t)view.bytes;
    if (holds_layers(program, state)) place_layer(&view, program, slice.parameter, array != NULL);
    view.size = (size_t)rt_shape_count(slice.rank, slice.shape) * size;
    view.name = name_of(state, slice.parameter >= 0 ? program->tensors[slice.parameter].name : NULL);
    if (view.name == NULL) return false;
    list->items[list->count++] = view;
  }
  return true;
}

static int by_position(const void *a, const void *b) {
  const struct tensor_view *left = a, *right = b;
  if (left->position != right->position) return left->position < right->position ? -1 : 1;
  return strcmp(left->name, right->name); /* empty tensors may share an offset */
}

/* For a tensor of each slice of all states. */
static bool make_room(struct tensor_list *list, const struct accel_program *program) {
  size_t count = 1;
  for (int i = 0; i < program->n_states; i++) count += (size_t)slices_of(program, &program->states[i]);
  list->items = calloc(count, sizeof *list->items);
  return list->items != NULL;
}

static bool fill(struct tensor_list *list, const struct accel_program *program, const char *file, char *const *arrays) {
  if (!make_room(list, program)) return false;
  for (int i = 0; i < program->n_states; i++)
    if (strcmp(program->states[i].file, file) == 0 &&
        !add_state(list, program, &program->states[i], arrays != NULL ? arrays[i] : NULL))
      return false;
  qsort(list->items, (size_t)list->count, sizeof *list->items, by_position);
  return true;
}

bool rt_tensors_of_state(struct tensor_list *list, const struct accel_program *program, const char *file,
                         char *const *arrays, struct problem *problem) {
  *list = (struct tensor_list){0};
  if (fill(list, program, file, arrays)) return true;
  rt_tensors_free(list);
  return rt_problem(problem, "no memory for the list of tensors");
}

/* ---- Streamed parameters ---- */

struct streamed {
  const struct accel_program *program;
  int tensor;
};

static bool make_streamed(const struct tensor_view *tensor, void *out) {
  const struct streamed *streamed = tensor->source;
  memcpy(out, streamed->program->reader->hold(streamed->tensor), tensor->size);
  return true;
}

static bool add_streamed(struct tensor_list *list, const struct accel_program *program, int which) {
  const struct accel_tensor *tensor = &program->tensors[which];
  struct tensor_view *view = &list->items[list->count++];
  struct streamed *source = malloc(sizeof *source);
  *view = (struct tensor_view){.name = strdup(tensor->name), .dtype = tensor->dtype, .rank = tensor->rank};
  memcpy(view->shape, tensor->shape, sizeof view->shape);
  view->size = (size_t)rt_shape_count(tensor->rank, tensor->shape) * rt_dtype_size(tensor->dtype);
  view->source = source;
  view->make = make_streamed;
  if (source != NULL) *source = (struct streamed){program, which};
  return source != NULL && view->name != NULL;
}

bool rt_tensors_add_streamed(struct tensor_list *list, const struct accel_program *program, struct problem *problem) {
  if (!rt_streams(program)) return true;
  const size_t most = (size_t)(list->count + program->n_tensors) + 1;
  struct tensor_view *items = realloc(list->items, most * sizeof *items);
  bool good = items != NULL;
  if (good) list->items = items;
  for (int i = 0; i < program->n_tensors && good; i++)
    if (rt_is_streamed(program, &program->tensors[i])) good = add_streamed(list, program, i);
  return good || rt_problem(problem, "no memory for the list of tensors");
}

/* ---- Parts ---- */

/* The name of what this rank has of a parameter, or in its place. */
static char *name_here(const struct accel_program *program, const struct accel_state *state, int parameter) {
  const char *name = program->tensors[parameter].name;
  const struct accel_expert_tensor *expert = rt_expert_tensor_of(program, parameter);
  if (expert == NULL) return name_of(state, name);
  char *own = rt_expert_name(expert, name, rt_rank_along(program, expert->axis));
  char *made = own != NULL ? name_of(state, own) : NULL;
  free(own);
  return made;
}

/* "NAME[FIRST:END]" of "NAME", which is given back. */
static char *part_name(char *name, int64_t first, int64_t end) {
  size_t size = name != NULL ? strlen(name) + 2 * 20 + sizeof "[:]" : 0;
  char *part = name != NULL ? malloc(size) : NULL;
  if (part != NULL) snprintf(part, size, "%s[%" PRId64 ":%" PRId64 "]", name, first, end);
  free(name);
  return part;
}

/* What a rank has of a slice within one row of what ranks divide; nothing where they have no element in common. */
static bool add_part(struct tensor_list *list, const struct accel_program *program, const struct accel_state *state,
                     const struct accel_slice *slice, const struct accel_row *row, char *own, int shard) {
  int64_t begin = (int64_t)(row->first + (size_t)shard * row->shard_size),
          first = begin > slice->first ? begin : slice->first;
  int64_t length = (int64_t)(shard + 1 < program->mesh[ACCEL_DP_SHARD] ? row->shard_size : row->last);
  int64_t end = slice->first + rt_shape_count(slice->rank, slice->shape);
  if (begin + length < end) end = begin + length;
  if (first >= end) return true;
  size_t size = rt_dtype_size(state->dtype);
  struct tensor_view view = {.dtype = state->dtype, .rank = 1, .shape = {end - first}};
  view.bytes = own + (row->own + (size_t)(first - begin)) * size;
  view.position = (uintptr_t)view.bytes;
  view.size = (size_t)(end - first) * size;
  view.name = part_name(name_here(program, state, slice->parameter), first - slice->first, end - slice->first);
  if (view.name == NULL) return false;
  list->items[list->count++] = view;
  return true;
}

/* A slice that no ranks divide. */
static bool add_undivided(struct tensor_list *list, const struct accel_program *program,
                          const struct accel_state *state, const struct accel_slice *slice, char *own) {
  int64_t count = rt_shape_count(slice->rank, slice->shape);
  struct tensor_view view = {.dtype = dtype_of(program, state, slice->parameter), .rank = 1, .shape = {count}};
  view.bytes = own + (size_t)slice->first * rt_dtype_size(state->dtype);
  view.position = (uintptr_t)view.bytes;
  view.size = (size_t)count * rt_dtype_size(view.dtype);
  view.name = part_name(name_here(program, state, slice->parameter), 0, count);
  if (view.name == NULL) return false;
  list->items[list->count++] = view;
  return true;
}

static bool meets_rows(const struct accel_program *program, const struct accel_slice *slice) {
  return rt_rows_meet(program, rt_world()->rank, (size_t)slice->first,
                      (size_t)rt_shape_count(slice->rank, slice->shape));
}

/* program: of a rank's own tensors. What a read leaves out of the rest comes with the weights. */
static bool add_parts(struct tensor_list *list, const struct accel_program *program, int which, char *const *all,
                      bool once) {
  const struct accel_state *state = &program->states[which];
  const int shard = rt_rank_along(program, ACCEL_DP_SHARD);
  const bool divided = rt_rows_divide(program, which), leaves_rest = once && rt_rows_leave_rest(program, which);
  int first, end;
  rt_rows_of(program, rt_world()->rank, &first, &end);
  for (int i = 0; i < slices_of(program, state); i++) {
    struct accel_slice slice = slice_of(program, state, i);
    if (!rt_tensor_is_here(program, slice.parameter, once)) continue;
    const bool is_rest = leaves_rest && !meets_rows(program, &slice);
    if ((!divided || is_rest) && !(once && shard > 0) &&
        !add_undivided(list, program, state, &slice, all[is_rest ? 0 : which]))
      return false;
    struct accel_row row;
    for (int k = first; k < end && divided; k++)
      if (rt_rows_have(program, which, k, &row) && !add_part(list, program, state, &slice, &row, all[which], shard))
        return false;
  }
  return true;
}

bool rt_tensors_of_rank(struct tensor_list *list, const struct accel_program *program, const char *file,
                        char *const *own, bool once, struct problem *problem) {
  const struct accel_program *of_rank = rt_rank_program(program);
  *list = (struct tensor_list){0};
  bool good = make_room(list, of_rank);
  for (int i = 0; good && i < of_rank->n_states; i++)
    if (strcmp(of_rank->states[i].file, file) == 0) good = add_parts(list, of_rank, i, own, once);
  if (good) {
    qsort(list->items, (size_t)list->count, sizeof *list->items, by_position);
    return true;
  }
  rt_tensors_free(list);
  return rt_problem(problem, "no memory for the list of tensors");
}

void rt_tensors_free(struct tensor_list *list) {
  for (int i = 0; i < list->count; i++) {
    free(list->items[i].name);
    if (list->items[i].release != NULL)
      list->items[i].release(list->items[i].source);
    else
      free(list->items[i].source);
  }
  free(list->items);
  *list = (struct tensor_list){0};
}

size_t rt_state_bytes(const struct accel_state *state) {
  return (size_t)state->count * rt_dtype_size(state->dtype);
}
