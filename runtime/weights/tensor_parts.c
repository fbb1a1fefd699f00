#include "runtime/weights/tensor_parts.h"

#include "runtime/base/dtype.h"
#include "runtime/process/world.h"
#include "runtime/weights/experts.h"
#include "runtime/weights/safetensors.h"
#include "runtime/weights/sharded_rows.h"
#include "runtime/weights/streamed.h"

#include <stdlib.h>
#include <string.h>

enum { LINE = 64 }; /* tensors start at lines of memory */

/* A rank's tensor in elements of the weights' array. Piece p of rank r is at
 * `whole + p * (ranks * length - padding) + r * stride` of the whole, where the last rank's are shorter by `padding`,
 * and at `p * length` of its rank's part. Of parts of one tensor `stride` is `length`; of tensors in each other's
 * place, which are one piece, it is from a rank's to the next one's. */
struct tensor_part {
  enum accel_axis axis;
  size_t ranks; /* 1: each rank has the whole */
  size_t whole;
  size_t pieces, length, stride, padding;
  int position, step; /* among the whole tensors; from a rank's to the next one's, 0 for parts of one */
  uint64_t stages;    /* of a pipeline: that have the tensor, a bit each; 0: all ranks do */
};

static int64_t count_of(const struct accel_slice *slice) {
  return rt_shape_count(slice->rank, slice->shape);
}

static bool is_of_parts(const struct tensor_part *part) {
  return part->ranks > 1 && part->step == 0;
}

/* The part as a state has it with a number for so many elements: no piece of a rank cuts these. */
static struct tensor_part part_of_numbers(struct tensor_part part, int64_t numbers) {
  const size_t each = part.pieces * part.length / (size_t)numbers;
  part.length /= each;
  part.stride /= each;
  part.padding /= each;
  return part;
}

static const struct accel_program *rank_program; /* with a rank's own parts */
static struct tensor_part *parts;                /* by tensor of a rank */

/* The whole tensors, as they are made. */
struct joining {
  struct accel_tensor *tensors;
  int count;
  size_t end; /* elements */
};

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
  part->length = part->stride = (size_t)(tensor->shape[as->dim] / as->blocks * inner);
  part->padding = (size_t)(as->padding * inner);
  tensor->shape[as->dim] = tensor->shape[as->dim] * program->mesh[as->axis] - as->padding;
}

/* Adds a tensor at the end of the whole ones; gives its first element. */
static size_t add_whole(struct joining *joining, const struct accel_tensor *tensor) {
  struct accel_tensor *added = &joining->tensors[joining->count++];
  size_t at = joining->end;
  *added = *tensor;
  added->offset = at * sizeof(float);
  joining->end += (elements_of(added) * sizeof(float) + LINE - 1) / LINE * (LINE / sizeof(float));
  return at;
}

/* Adds the tensors from `first` up to `end` of each rank, rank by rank. */
static bool add_experts(const struct accel_program *program, int first, int end, struct joining *joining) {
  enum accel_axis axis = rt_expert_tensor_of(program, first)->axis;
  for (int rank = 0; rank < program->mesh[axis]; rank++)
    for (int i = first; i < end; i++) {
      struct tensor_part *part = &parts[i];
      struct accel_tensor tensor = program->tensors[i];
      tensor.name = rt_expert_name(rt_expert_tensor_of(program, i), tensor.name, rank);
      if (tensor.name == NULL) return false;
      int position = joining->count;
      size_t at = add_whole(joining, &tensor);
      if (rank == 0) part->whole = at, part->position = position;
      if (rank == 1) part->stride = at - part->whole, part->step = position - part->position;
      part->axis = axis;
      part->ranks = (size_t)program->mesh[axis];
    }
  return true;
}

/* Adds all: `own` are a rank's, those that ranks have parts of made whole. */
static bool add_tensors(const struct accel_program *program, const struct accel_tensor *own, struct joining *joining) {
  bool good = true;
  for (int i = 0, end; good && i < program->n_tensors; i = end) {
    const struct accel_expert_tensor *expert = rt_expert_tensor_of(program, i);
    end = i + (expert != NULL ? expert->together : 1);
    if (expert != NULL) {
      good = add_experts(program, i, end, joining);
      continue;
    }
    parts[i].position = joining->count;
    parts[i].whole = add_whole(joining, &own[i]);
  }
  return good;
}

/* The stages that have a tensor. */
static uint64_t stages_of(const struct accel_program *program, const struct accel_tensor *tensor) {
  uint64_t stages = 0;
  size_t first = tensor->offset / sizeof(float);
  for (int i = 0; i < program->n_stages; i++) {
    const struct accel_stage_range *range = &program->stages[i];
    if (first >= range->first && first < range->first + range->count) stages |= UINT64_C(1) << range->stage;
  }
  return stages;
}

static int whole_count(const struct accel_program *program) {
  int count = program->n_tensors;
  for (int i = 0; i < program->n_expert_tensors; i++) count += program->mesh[program->expert_tensors[i].axis] - 1;
  return count;
}

static bool join_tensors(const struct accel_program *program, struct accel_program *joined) {
  size_t count = (size_t)program->n_tensors + 1;
  struct accel_tensor *own = calloc(count, sizeof *own);
  struct joining joining = {.tensors = calloc((size_t)whole_count(program) + 1, sizeof *own)};
  parts = calloc(count, sizeof *parts);
  bool good = own != NULL && joining.tensors != NULL && parts != NULL;
  for (int i = 0; good && i < program->n_tensors; i++) {
    own[i] = program->tensors[i];
    parts[i] = (struct tensor_part){.ranks = 1, .pieces = 1, .length = elements_of(&own[i])};
    parts[i].stages = stages_of(program, &own[i]);
  }
  for (int i = 0; good && i < program->n_tensor_parts; i++) {
    const struct accel_tensor_part *part = &program->tensor_parts[i];
    join(program, part, &own[part->tensor], &parts[part->tensor]);
  }
  good = good && add_tensors(program, own, &joining);
  joined->tensors = joining.tensors;
  joined->n_tensors = joining.count;
  joined->sharding.whole = (int64_t)joining.end;
  free(own);
  return good;
}

/* How many whole tensors a rank's one stands for. */
static int wholes_of(const struct tensor_part *part) {
  return part->step > 0 ? (int)part->ranks : 1;
}

static bool has_shape(const struct accel_slice *slice, const struct accel_tensor *tensor) {
  return slice->rank == tensor->rank && memcmp(slice->shape, tensor->shape, sizeof slice->shape) == 0;
}

static int64_t whole_count_of(struct tensor_part part) {
  return (int64_t)(part.pieces * (part.ranks * part.length - part.padding));
}

/* A state's slices have the positions that their parameters have as a whole, and their shapes, if a rank's have those
 * of its parameters. Of a parameter that ranks have parts of there may be fewer numbers in a row, of a block each. */
static bool join_slices(const struct accel_program *joined, struct accel_state *state) {
  const struct accel_slice *own = state->slices;
  int n_own = state->n_slices;
  state->n_slices = 0;
  for (int i = 0; i < n_own; i++) state->n_slices += wholes_of(&parts[own[i].parameter]);
  struct accel_slice *slices = calloc((size_t)state->n_slices + 1, sizeof *slices), *next = slices;
  state->slices = slices;
  for (int i = 0; i < n_own && slices != NULL; i++) {
    const struct tensor_part *part = &parts[own[i].parameter];
    for (int which = 0; which < wholes_of(part); which++, next++) {
      *next = own[i];
      next->parameter = part->position + which * part->step;
      next->first = (int64_t)(part->whole + (size_t)which * part->stride);
      if (has_shape(&own[i], &rank_program->tensors[own[i].parameter]))
        memcpy(next->shape, joined->tensors[next->parameter].shape, sizeof next->shape);
      else if (is_of_parts(part))
        next->shape[0] = whole_count_of(part_of_numbers(*part, count_of(&own[i])));
    }
  }
  return slices != NULL;
}

/* A list of tensors by their positions. */
static bool join_list(const int **list, int *n) {
  const int *own = *list;
  const int n_own = *n;
  *n = 0;
  for (int i = 0; i < n_own; i++) *n += wholes_of(&parts[own[i]]);
  int *positions = calloc((size_t)*n + 1, sizeof *positions), *next = positions;
  *list = positions;
  for (int i = 0; i < n_own && positions != NULL; i++) {
    const struct tensor_part *part = &parts[own[i]];
    for (int which = 0; which < wholes_of(part); which++) *next++ = part->position + which * part->step;
  }
  return positions != NULL;
}

/* Adapters are of matrices that all ranks have, or have parts of. */
static bool join_adapters(struct accel_adapters *adapters) {
  struct accel_adapter *items = calloc((size_t)adapters->count + 1, sizeof *items);
  if (items == NULL) return false;
  for (int i = 0; i < adapters->count; i++) {
    items[i] = adapters->items[i];
    items[i].weight = parts[items[i].weight].position;
    items[i].a = parts[items[i].a].position;
    items[i].b = parts[items[i].b].position;
  }
  adapters->items = items;
  return join_list(&adapters->whole, &adapters->n_whole);
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

bool rt_divides_tensors(const struct accel_program *program) {
  return program->n_tensor_parts > 0 || program->n_expert_tensors > 0 || program->n_stages > 0;
}

const struct accel_program *rt_tensor_parts_join(const struct accel_program *program, struct problem *problem) {
  static struct accel_program joined;
  if (!rt_divides_tensors(program)) return program;
  rank_program = program;
  joined = *program;
  joined.sharding = (struct accel_sharding){0};
  if (join_tensors(program, &joined) && join_states(program, &joined) && join_adapters(&joined.adapters) &&
      join_list(&joined.start.fresh, &joined.start.n_fresh))
    return &joined;
  rt_problem(problem, "no memory for the list of tensors");
  return NULL;
}

const struct accel_program *rt_rank_program(const struct accel_program *program) {
  return rt_divides_tensors(program) ? rank_program : program;
}

/* ---- To the whole and back ---- */

/* The tensors that a state has. */
static int count_entries(int state) {
  const struct accel_state *of = &rank_program->states[state];
  return of->slices != NULL ? of->n_slices : rank_program->n_tensors;
}

/* Of one of them: its part, and where the rank's own array has it. */
static struct tensor_part entry_of(int state, int entry, size_t *own) {
  const struct accel_slice *slices = rank_program->states[state].slices;
  *own = slices != NULL ? (size_t)slices[entry].first : rank_program->tensors[entry].offset / sizeof(float);
  struct tensor_part part = parts[slices != NULL ? slices[entry].parameter : entry];
  if (slices != NULL && !is_of_parts(&part)) part.length = (size_t)count_of(&slices[entry]);
  if (slices != NULL && is_of_parts(&part)) part = part_of_numbers(part, count_of(&slices[entry]));
  return part;
}

/* A buffer for a tensor: the whole of the largest, or with `part` what a rank has of it. */
static char *new_buffer(size_t size, bool part) {
  size_t most = 1;
  for (int i = 0; i < rank_program->n_tensors; i++) {
    size_t bytes = (part ? 1 : parts[i].ranks) * parts[i].pieces * parts[i].length * size;
    most = bytes > most ? bytes : most;
  }
  char *bytes = malloc(most);
  struct problem problem;
  rt_problem(&problem, "no memory for %zu bytes of a tensor that ranks divide", most);
  rt_world_require(bytes != NULL, &problem, 1);
  return bytes;
}

/* The first stage that has something of a tensor; 0: all do. */
static int first_stage(const struct tensor_part *part) {
  int stage = 0;
  while (part->stages != 0 && (part->stages >> stage & 1) == 0) stage++;
  return stage;
}

/* The first rank that has something of it. */
static int first_rank(const struct accel_program *program, const struct tensor_part *part) {
  return first_stage(part) * rt_stride_along(program, ACCEL_PP);
}

/* Whether this rank has something of it. */
static bool is_here(const struct accel_program *program, const struct tensor_part *part) {
  return part->stages == 0 || (part->stages >> rt_rank_along(program, ACCEL_PP) & 1) != 0;
}

bool rt_tensor_is_here(const struct accel_program *program, int tensor, bool first) {
  if (first && rt_expert_tensor_of(program, tensor) == NULL && rt_rank_along(program, ACCEL_EP) > 0) return false;
  if (program->n_stages == 0) return true;
  return first ? first_stage(&parts[tensor]) == rt_rank_along(program, ACCEL_PP) : is_here(program, &parts[tensor]);
}

/* Where a rank's piece is in the whole. */
static size_t place(const struct tensor_part *part, size_t piece, size_t rank) {
  return part->whole + piece * (part->ranks * part->length - part->padding) + rank * part->stride;
}

/* Its elements there. */
static size_t piece_length(const struct tensor_part *part, size_t rank) {
  return part->length - (rank + 1 == part->ranks ? part->padding : 0);
}

void rt_tensor_parts_collect(const struct accel_program *program, int state, char *const *own, char *whole) {
  const bool leaves_rest = rt_rows_leave_rest(rank_program, state);
  size_t size = rt_dtype_size(program->states[state].dtype), at;
  char *piece = new_buffer(size, true);
  for (int i = 0; i < count_entries(state); i++) {
    const struct tensor_part entry = entry_of(state, i, &at), *part = &entry;
    for (size_t rank = 0; rank < part->ranks; rank++) {
      int from = first_rank(program, part) + (part->ranks > 1 ? (int)rank * rt_stride_along(program, part->axis) : 0);
      if (leaves_rest) rt_rows_collect(rank_program, 0, from, own[0], at, part->pieces * part->length, piece);
      rt_rows_collect(rank_program, state, from, own[state], at, part->pieces * part->length, piece);
      for (size_t p = 0; whole != NULL && p < part->pieces; p++)
        memcpy(whole + place(part, p, rank) * size, piece + p * part->length * size, piece_length(part, rank) * size);
    }
  }
  free(piece);
}

void rt_tensor_parts_scatter(const struct accel_program *program, int state, char *own, const char *whole) {
  size_t size = rt_dtype_size(program->states[state].dtype), at;
  char *all = new_buffer(size, false), *piece = new_buffer(size, true);
  for (int i = 0; i < count_entries(state); i++) {
    const struct tensor_part entry = entry_of(state, i, &at), *part = &entry;
    size_t length = part->length * size, bytes = part->ranks * part->pieces * length;
    size_t rank = part->ranks > 1 ? (size_t)rt_rank_along(program, part->axis) : 0;
    if (part->padding > 0) memset(all, 0, bytes);
    for (size_t p = 0; whole != NULL && p < part->pieces; p++)
      for (size_t r = 0; r < part->ranks; r++)
        memcpy(all + (p * part->ranks + r) * length, whole + place(part, p, r) * size, piece_length(part, r) * size);
    rt_world_broadcast(all, bytes);
    for (size_t p = 0; p < part->pieces; p++)
      memcpy(piece + p * length, all + (p * part->ranks + rank) * length, length);
    if (is_here(program, part)) rt_rows_take(rank_program, state, own, at, part->pieces * part->length, piece);
  }
  free(piece);
  free(all);
}

/* Elements [first, first + count) of a parameter, of which `made` is the whole where its initialiser makes it. */
static void read_range(const struct accel_program *program, const struct weights_file *file, int tensor,
                       const float *made, size_t first, size_t count, char *to) {
  if (made != NULL)
    memcpy(to, made + first, count * sizeof *made);
  else
    rt_weights_read(program, file, tensor, (int64_t)first, (int64_t)count, (float *)to);
}

/* A rank's pieces of a parameter, one after the other, padded with zeros; a whole one may be of another type. */
static void read_pieces(const struct accel_program *program, const struct weights_file *file, int tensor,
                        const struct tensor_part *part, const float *made, char *to) {
  const struct accel_tensor *whole = &program->tensors[tensor];
  size_t rank = part->ranks > 1 && part->step == 0 ? (size_t)rt_rank_along(program, part->axis) : 0;
  size_t ranks = part->step == 0 ? part->ranks : 1;
  if (ranks == 1) {
    read_range(program, file, tensor, made, 0, (size_t)rt_shape_count(whole->rank, whole->shape), to);
    return;
  }
  for (size_t p = 0; p < part->pieces; p++) {
    size_t length = piece_length(part, rank), at = p * part->length * sizeof(float);
    read_range(program, file, tensor, made, p * (ranks * part->length - part->padding) + rank * part->length, length,
               to + at);
    memset(to + at + length * sizeof(float), 0, (part->length - length) * sizeof(float));
  }
}

/* A rank's pieces of a parameter, which is made whole first where its initialiser makes it. */
static bool read_part(const struct accel_program *program, const struct weights_file *file,
                      const struct tensor_part *part, char *piece) {
  int tensor = part->position + (part->step > 0 ? part->step * rt_rank_along(program, part->axis) : 0);
  const struct accel_tensor *whole = &program->tensors[tensor];
  float *made = NULL;
  if (file->matched[tensor] == NULL) {
    made = malloc(elements_of(whole) * sizeof *made);
    if (made == NULL) return false;
    rt_weights_read(program, file, tensor, 0, rt_shape_count(whole->rank, whole->shape), made);
  }
  read_pieces(program, file, tensor, part, made, piece);
  free(made);
  return true;
}

static bool read_entry(const struct accel_program *program, const struct weights_file *file, int entry, char *piece,
                       char *own) {
  size_t at;
  const struct tensor_part part = entry_of(0, entry, &at);
  const bool streams = rt_streams(rank_program) && rt_is_streamed(rank_program, &rank_program->tensors[entry]);
  if (!is_here(program, &part) || streams) return true;
  if (!read_part(program, file, &part, piece)) return false;
  rt_rows_take(rank_program, 0, own, at, part.pieces * part.length, piece);
  return true;
}

bool rt_tensor_part_read(const struct accel_program *program, const struct weights_file *file, int tensor,
                         float *values) {
  const struct tensor_part *part = &parts[tensor];
  const struct named_tensor *found = file->matched[part->position];
  const bool good = read_part(program, file, part, (char *)values);
  if (found != NULL) rt_sources_forget(&file->sources, found);
  return good;
}

bool rt_tensor_parts_read(const struct accel_program *program, const struct weights_file *file, char *own,
                          struct problem *problem) {
  char *piece = new_buffer(sizeof(float), true);
  bool good = true;
  for (int i = 0; good && i < count_entries(0); i++) good = read_entry(program, file, i, piece, own);
  free(piece);
  return good || rt_problem(problem, "no memory for a tensor that ranks divide");
}
