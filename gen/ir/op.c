#include "gen/ir/op.h"

#include <string.h>

const struct op_kind *op_kind_find(const char *name) {
  for (int i = 0; i < op_file_count; i++)
    for (int k = 0; op_files[i]->kinds != NULL && op_files[i]->kinds[k] != NULL; k++)
      if (strcmp(op_files[i]->kinds[k]->name, name) == 0) return op_files[i]->kinds[k];
  return NULL;
}

bool op_kind_is_among(const struct op_kind *kind, const char *const *names) {
  for (int i = 0; names != NULL && names[i] != NULL; i++)
    if (strcmp(names[i], kind->name) == 0) return true;
  return false;
}

const struct op_function *op_function_find(const char *name) {
  for (int i = 0; i < op_file_count; i++)
    for (int k = 0; op_files[i]->functions != NULL && op_files[i]->functions[k].name != NULL; k++)
      if (strcmp(op_files[i]->functions[k].name, name) == 0) return &op_files[i]->functions[k];
  return NULL;
}

int op_described(const struct op_kind *kind, int output) {
  return kind->alike ? 0 : output;
}

double op_flops(const struct node *node) {
  if (node->kind->cost.flops != NULL) return node->kind->cost.flops(node);
  if (node->kind->cost.flops_each > 0) return node->kind->cost.flops_each * (double)shape_count(node->inputs[0]->shape);
  return node->n_outputs > 0 ? (double)shape_count(node->outputs[0]->shape) : 0;
}

double op_matmul_flops(const struct node *node) {
  if (node->kind->cost.matmul_flops != NULL) return node->kind->cost.matmul_flops(node);
  return node->kind->types.autocast.cuda == AUTOCAST_BITS16 ? op_flops(node) : 0;
}

int op_thread_variants(double work, const char **variants) {
  enum { FEW = 1 << 10, SHARED_FROM = 1 << 14, MANY = 1 << 16 };
  variants[0] = work < SHARED_FROM ? "one" : "all";
  variants[1] = work < SHARED_FROM ? "all" : "one";
  return work < FEW || work > MANY ? 1 : 2;
}

int op_threads(const struct node *node, const int64_t *const *strides, const char **variants) {
  (void)strides;
  return op_thread_variants(op_flops(node) / 4, variants);
}

/* An operand's dimensions are the last ones of the result; one of extent 1 serves all positions. */
static int broadcast_axis(const struct node *node, int axis, int input) {
  struct shape out = node->outputs[0]->shape, in = node->inputs[input]->shape;
  int own = axis - (out.rank - in.rank);
  return own < 0 || (in.dim[own] == 1 && out.dim[axis] != 1) ? AXIS_WHOLE : own;
}

int op_along(const struct node *node, int axis, int input) {
  if (node->kind->sequence.along != NULL) return node->kind->sequence.along(node, axis, input);
  return node->kind->class == OP_ELEMENTWISE ? broadcast_axis(node, axis, input) : AXIS_MIXED;
}

struct value *op_operand(const struct node *node, int index) {
  return index < node->n_inputs ? node->inputs[index] : node->outputs[0];
}

/* The dimension of output 0 along which operand `seed` is split; -1: there is none. */
static int output_axis(const struct node *node, int seed, int dim) {
  if (seed == node->n_inputs) return dim;
  for (int axis = 0; axis < node->outputs[0]->shape.rank; axis++)
    if (op_along(node, axis, seed) == dim) return axis;
  return -1;
}

/* Element t of output 0 follows from elements t of inputs, so that parts follow from parts. */
bool op_place_along(const struct node *node, int seed, struct placement *placements) {
  const struct placement split = placements[seed];
  int axis = output_axis(node, seed, split.dim);
  if (node->n_inputs == 0 || axis < 0) return false;
  for (int i = 0; i < node->n_inputs; i++) {
    int own = op_along(node, axis, i);
    if (own != AXIS_WHOLE && own < 0) return false;
    placements[i] = own == AXIS_WHOLE ? (struct placement){.form = PLACED_WHOLE} : placement_along(split, own);
  }
  placements[node->n_inputs] = placement_along(split, axis);
  return true;
}

static bool place(const struct node *node, int seed, int64_t ranks, struct placement *placements) {
  const struct op_ranks *rules = &node->kind->ranks;
  if (placements[seed].form == PLACED_SORTED) {
    if (rules->place_sorted != NULL) return rules->place_sorted(node, seed, placements);
  } else if (rules->place != NULL) {
    return rules->place(node, seed, ranks, placements);
  }
  return !node->kind->kernel.random && op_place_along(node, seed, placements);
}

bool op_place(const struct node *node, int seed, int64_t ranks, struct placement *placements) {
  const struct op_kind *kind = node->kind;
  const bool balanced = placements[seed].balanced;
  /* What a kind assigns to is of the whole of its inputs, unless it says how ranks have parts of these. */
  if (op_assigns(kind) && kind->ranks.place == NULL) return false;
  if (!place(node, seed, ranks, placements)) return false;
  for (int i = 0; i <= node->n_inputs; i++)
    placements[i].balanced = balanced && (placements[i].form == PLACED_SPLIT || placements[i].form == PLACED_SORTED);
  for (int i = 0; i <= node->n_inputs; i++)
    if (!placement_fits(placements[i], op_operand(node, i)->shape, ranks) &&
        !(kind->ranks.pads && placement_pads(placements[i], op_operand(node, i)->shape, ranks)))
      return false;
  return true;
}

static void set_extents(struct node *node, struct shape shape) {
  const char *name = node->kind->sequence.extents;
  for (int i = 0; i < node->n_attributes && name != NULL; i++)
    if (strcmp(node->attributes[i].name, name) == 0) node->attributes[i].ints = shape;
}

bool op_shorten(struct arena *arena, struct node *node, const struct placement *placements, int64_t ranks, int axis) {
  struct shape shapes[MAX_OUTPUTS];
  enum dtype dtypes[MAX_OUTPUTS];
  const char *error;
  set_extents(node, node->outputs[0]->shape);
  if (node->kind->ranks.shorten != NULL) node->kind->ranks.shorten(node, placements, ranks);
  if (node->kind->ranks.part_axis != NULL) node->attributes[node->n_attributes++] = attribute_int("axis", axis);
  int count = node->kind->infer(arena, node, shapes, dtypes, &error);
  if (count != node->n_outputs || !shape_equal(shapes[0], node->outputs[0]->shape)) return false;
  for (int i = 1; i < count; i++) node->outputs[i]->shape = shapes[op_described(node->kind, i)];
  return true;
}

bool op_assigns(const struct op_kind *kind) {
  for (size_t i = 0; i < sizeof kind->memory.assigns / sizeof kind->memory.assigns[0]; i++)
    if (kind->memory.assigns[i] > 0) return true;
  return false;
}

const struct op_kind *op_cast_kind(enum dtype dtype) {
  for (int i = 0; i < op_file_count; i++)
    for (int k = 0; op_files[i]->kinds != NULL && op_files[i]->kinds[k] != NULL; k++)
      if (op_files[i]->kinds[k]->types.converts && op_files[i]->kinds[k]->types.to == dtype)
        return op_files[i]->kinds[k];
  return NULL;
}

bool op_is_sum(const struct node *node) {
  if (!node->kind->fusion.adds) return false;
  const struct shape shape = node->outputs[0]->shape;
  return shape_equal(node->inputs[0]->shape, shape) && shape_equal(node->inputs[1]->shape, shape);
}

bool value_is_view(const struct value *value) {
  return value->producer != NULL && value->producer->kind->class == OP_VIEW;
}

const struct value *viewed_value(const struct value *value) {
  while (value_is_view(value)) value = value->producer->inputs[0];
  return value;
}

int64_t op_left_out(const struct node *node) {
  return node->kind->index.ignores ? node_int(node, "ignore") : OP_NO_NUMBER;
}

bool op_index_fits(const struct value *index, int64_t limit, int64_t none, int64_t *wrong) {
  int64_t low, high;
  const struct node *producer = viewed_value(index)->producer;
  if (producer == NULL || producer->kind->index.range == NULL) return true;
  producer->kind->index.range(producer, none, &low, &high);
  *wrong = high < limit ? low : high;
  return low >= 0 && high < limit;
}
