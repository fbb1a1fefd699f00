#include "runtime/weights/tensor_parts.h"

#include "runtime/base/dtype.h"
#include "runtime/process/world.h"
#include "runtime/weights/safetensors.h"
#include "runtime/weights/sharded_rows.h"

#include <stdlib.h>
#include <string.h>

enum { LINE = 64 }; /* tensors start at lines of memory */

/* A tensor in elements of the weights' array. Piece p of rank r is at `whole + (p * ranks + r) * length` of the whole,
 * and piece p of its rank's part at `p * length`. */
struct tensor_part {
  enum accel_axis axis;
  size_t ranks; /* 1: each rank has the whole */
  size_t whole;
  size_t pieces, length;
};

static const struct accel_program *rank_program; /* with a rank's own parts */
static struct tensor_part *parts;                /* by tensor */

static size_t elements_of(const struct accel_tensor *tensor) {
  size_t bytes = (size_t)rt_shape_count(tensor->rank, tensor->shape) * rt_dtype_size(tensor->dtype);
  return (bytes + sizeof(float) - 1) / sizeof(float);
}

static int64_t product(const int64_t *shape, int first, int end) {
  int64_t count = 1;
  for (int i = first; i < end; i++) count *= shape[i];
  return count;
}

/* Makes a tensor whole, and notes what of it a rank has. */
static void join(const struct accel_program *program, const struct accel_tensor_part *as, struct accel_tensor *tensor,
                 struct tensor_part *part) {
  int64_t outer = product(tensor->shape, 0, as->dim), inner = product(tensor->shape, as->dim + 1, tensor->rank);
  part->axis = as->axis;
  part->ranks = (size_t)program->mesh[as->axis];
  part->pieces = (size_t)(outer * as->blocks);
  part->length = (size_t)(tensor->shape[as->dim] / as->blocks * inner);
  tensor->shape[as->dim] *= program->mesh[as->axis];
}

static bool join_tensors(const struct accel_program *program, struct accel_program *joined) {
  size_t count = (size_t)program->n_tensors + 1, end = 0;
  struct accel_tensor *tensors = calloc(count, sizeof *tensors);
  parts = calloc(count, sizeof *parts);
  if (tensors == NULL || parts == NULL) return false;
  for (int i = 0; i < program->n_tensors; i++) {
    tensors[i] = program->tensors[i];
    parts[i] = (struct tensor_part){.ranks = 1, .pieces = 1, .length = elements_of(&tensors[i])};
  }
  for (int i = 0; i < program->n_tensor_parts; i++) {
    const struct accel_tensor_part *part = &program->tensor_parts[i];
    join(program, part, &tensors[part->tensor], &parts[part->tensor]);
  }
  for (int i = 0; i < program->n_tensors; i++) {
    parts[i].whole = end;
    tensors[i].offset = end * sizeof(float);
    end += (elements_of(&tensors[i]) * sizeof(float) + LINE - 1) / LINE * (LINE / sizeof(float));
  }
  joined->tensors = tensors;
  joined->sharding.whole = (int64_t)end;
  return true;
}

/* A state's slices have the shapes and the positions that their parameters have as a whole. */
static bool join_slices(const struct accel_program *joined, struct accel_state *state) {
  struct accel_slice *slices = calloc((size_t)state->n_slices + 1, sizeof *slices);
  if (slices == NULL) return false;
  for (int i = 0; i < state->n_slices; i++) {
    slices[i] = state->slices[i];
    slices[i].first = (int64_t)parts[slices[i].parameter].whole;
    memcpy(slices[i].shape, joined->tensors[slices[i].parameter].shape, sizeof slices[i].shape);
  }
  state->slices = slices;
  return true;
}

static bool is_of_parameters(const struct accel_state *state) {
  return state->slices == NULL || state->slices[0].parameter >= 0;
}

static bool join_states(const struct accel_program *program, struct accel_program *joined) {
  struct accel_state *states = calloc((size_t)program->n_states + 1, sizeof *states);
  if (states == NULL) return false;
  memcpy(states, program->states, (size_t)program->n_states * sizeof *states);
  joined->states = states;
  for (int i = 0; i < program->n_states && is_of_parameters(&states[i]); i++) {
    if (states[i].slices != NULL && !join_slices(joined, &states[i])) return false;
    joined->sharding.n_states = i + 1;
  }
  return true;
}

const struct accel_program *rt_tensor_parts_join(const struct accel_program *program, struct problem *problem) {
  static struct accel_program joined;
  if (program->n_tensor_parts == 0) return program;
  rank_program = program;
  joined = *program;
  joined.sharding = (struct accel_sharding){0};
  if (join_tensors(program, &joined) && join_states(program, &joined)) return &joined;
  rt_problem(problem, "no memory for the list of tensors");
  return NULL;
}

/* ---- To the whole and back ---- */

/* The tensors that a state has. */
static int count_entries(int state) {
  const struct accel_state *of = &rank_program->states[state];
  return of->slices != NULL ? of->n_slices : rank_program->n_tensors;
}

/* Of one of them: its part, and where the rank's own array has it. */
static const struct tensor_part *entry_of(int state, int entry, size_t *own) {
  const struct accel_slice *slices = rank_program->states[state].slices;
  *own = slices != NULL ? (size_t)slices[entry].first : rank_program->tensors[entry].offset / sizeof(float);
  return &parts[slices != NULL ? slices[entry].parameter : entry];
}

/* Room for a tensor: the whole of the largest, or with `part` what a rank has of it. */
static char *room(const struct accel_program *program, size_t size, bool part) {
  size_t most = 1;
  for (int i = 0; i < program->n_tensors; i++) {
    size_t bytes = (part ? 1 : parts[i].ranks) * parts[i].pieces * parts[i].length * size;
    most = bytes > most ? bytes : most;
  }
  char *bytes = malloc(most);
  struct problem problem;
  rt_problem(&problem, "no memory for %zu bytes of a tensor that ranks divide", most);
  rt_world_require(bytes != NULL, &problem, 1);
  return bytes;
}

/* One rank's part of a tensor into the whole, piece by piece. */
static void put(const struct tensor_part *part, size_t rank, const char *own, char *whole, size_t size) {
  size_t length = part->length * size;
  for (size_t p = 0; p < part->pieces; p++) memcpy(whole + (p * part->ranks + rank) * length, own + p * length, length);
}

void rt_tensor_parts_collect(const struct accel_program *program, int state, const char *own, char *whole) {
  size_t size = rt_dtype_size(program->states[state].dtype), at;
  char *piece = room(program, size, true);
  for (int i = 0; i < count_entries(state); i++) {
    const struct tensor_part *part = entry_of(state, i, &at);
    for (size_t rank = 0; rank < part->ranks; rank++) {
      int from = part->ranks > 1 ? (int)rank * rt_stride_along(program, part->axis) : 0;
      rt_rows_collect(rank_program, state, from, own, at, part->pieces * part->length, piece);
      if (whole != NULL) put(part, rank, piece, whole + part->whole * size, size);
    }
  }
  free(piece);
}

void rt_tensor_parts_deal(const struct accel_program *program, int state, char *own, const char *whole) {
  size_t size = rt_dtype_size(program->states[state].dtype), at;
  char *all = room(program, size, false), *piece = room(program, size, true);
  for (int i = 0; i < count_entries(state); i++) {
    const struct tensor_part *part = entry_of(state, i, &at);
    size_t length = part->length * size, bytes = part->ranks * part->pieces * length;
    size_t rank = part->ranks > 1 ? (size_t)rt_rank_along(program, part->axis) : 0;
    if (whole != NULL) memcpy(all, whole + part->whole * size, bytes);
    rt_world_share(all, bytes);
    for (size_t p = 0; p < part->pieces; p++)
      memcpy(piece + p * length, all + (p * part->ranks + rank) * length, length);
    rt_rows_take(rank_program, state, own, at, part->pieces * part->length, piece);
  }
  free(piece);
  free(all);
}
