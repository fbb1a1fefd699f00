/* Kernels as templates see them: operands with shapes and strides, attributes, and for fused ones the loop nest and
 * its parts. */
#include <string.h>

#include "gen/base/text.h"
#include "gen/emit/values.h"
#include "gen/ir/op.h"
#include "gen/program/kernels.h"
#include "gen/program/library.h"
#include "gen/program/target.h"

static struct jinja_value strides_value(struct arena *arena, const int64_t *strides, int rank) {
  struct jinja_value list = jinja_list(arena);
  for (int i = 0; i < rank; i++) jinja_push(arena, list, jinja_int(strides[i]));
  return list;
}

/* Of each axis the product of the extents before it, or of those after it. */
static struct jinja_value products_value(struct arena *arena, struct shape shape, bool after) {
  struct jinja_value list = jinja_list(arena);
  for (int i = 0; i < shape.rank; i++)
    jinja_push(arena, list, jinja_int(after ? shape_product(shape, i + 1, shape.rank) : shape_product(shape, 0, i)));
  return list;
}

/* Whether an operand's rows, those of all leading positions, lie as far from each other. */
static bool steps_evenly(const struct kernel_operand *operand) {
  for (int i = 0; i + 2 < operand->shape.rank; i++)
    if (operand->strides[i] != operand->strides[i + 1] * operand->shape.dim[i + 1]) return false;
  return true;
}

static struct jinja_value operand_value(struct arena *arena, const struct kernel *kernel,
                                        const struct kernel_operand *operand) {
  struct jinja_value value = jinja_map(arena);
  struct shape shape = operand->shape;
  set_text(arena, value, "name", operand->name);
  jinja_set(arena, value, "shape", shape_value(arena, shape));
  set_int(arena, value, "rank", shape.rank);
  set_int(arena, value, "count", shape_count(shape));
  set_int(arena, value, "rows", shape.rank > 0 ? shape_product(shape, 0, shape.rank - 1) : 1);
  set_int(arena, value, "cols", shape.rank > 0 ? shape.dim[shape.rank - 1] : 1);
  jinja_set(arena, value, "before", products_value(arena, shape, false));
  jinja_set(arena, value, "after", products_value(arena, shape, true));
  jinja_set(arena, value, "strides", strides_value(arena, operand->strides, shape.rank));
  set_text(arena, value, "extent",
           operand->dense ? extent_text(arena, shape) : arena_printf(arena, "%lld", (long long)operand->extent));
  set_text(arena, value, "type", element_type(operand->dtype));
  set_bool(arena, value, "even", steps_evenly(operand));
  set_bool(arena, value, "accumulate", operand->accumulate);
  jinja_set(arena, value, "loop_strides", strides_value(arena, operand->loop_strides, kernel->n_loops));
  return value;
}

static struct jinja_value reals_value(struct arena *arena, const struct attribute *a) {
  struct jinja_value list = jinja_list(arena);
  for (int64_t i = 0; i < a->n_reals; i++) jinja_push(arena, list, jinja_double(a->reals[i]));
  return list;
}

static void set_attributes(struct arena *arena, struct jinja_value map, const struct node *node) {
  for (int i = 0; i < node->n_attributes; i++) {
    const struct attribute *a = &node->attributes[i];
    if (a->kind == ATTRIBUTE_INT) set_int(arena, map, a->name, a->integer);
    if (a->kind == ATTRIBUTE_REAL) set_real(arena, map, a->name, a->real);
    if (a->kind == ATTRIBUTE_INTS) jinja_set(arena, map, a->name, shape_value(arena, a->ints));
    if (a->kind == ATTRIBUTE_REALS) jinja_set(arena, map, a->name, reals_value(arena, a));
  }
}

static const char *template_of(struct arena *arena, const char *folder, const struct op_kind *kind) {
  return arena_printf(arena, "%s/%s.c.j2", folder, kind->template_name != NULL ? kind->template_name : kind->name);
}

const char *kernel_template(struct arena *arena, const struct op_kind *kind) {
  return template_of(arena, "device", kind);
}

/* The C variable that holds what a part uses: "x0" loaded from input 0, "t3" made by part 3. */
static const char *variable(struct arena *arena, const struct kernel *kernel, const struct value *value) {
  const struct node *node = kernel->node;
  for (int i = 0; i < node->n_inputs; i++)
    if (node->inputs[i] == value) return arena_printf(arena, "v%d", i);
  for (int i = 0; i < node->body.count; i++)
    if (node->body.items[i]->outputs[0] == value) return arena_printf(arena, "t%d", i);
  return "";
}

/* A part is an expression of C, which is the same on all devices. */
static struct jinja_value part_value(struct arena *arena, const struct kernel *kernel, int index) {
  const struct node *part = kernel->node->body.items[index];
  struct jinja_value value = jinja_map(arena), arguments = jinja_list(arena), attributes = jinja_map(arena);
  set_text(arena, value, "template", template_of(arena, "kernels", part->kind));
  set_text(arena, value, "macro", part->kind->name);
  set_text(arena, value, "variable", arena_printf(arena, "t%d", index));
  set_attributes(arena, attributes, part);
  jinja_set(arena, value, "k", attributes);
  for (int i = 0; i < part->n_inputs; i++)
    jinja_push(arena, arguments, jinja_string(arena, variable(arena, kernel, part->inputs[i])));
  jinja_set(arena, value, "arguments", arguments);
  int output = -1;
  for (int i = 0; i < kernel->node->n_outputs; i++)
    if (kernel->node->outputs[i] == part->outputs[0]) output = i;
  set_int(arena, value, "output", output);
  set_node_origin(arena, value, part);
  return value;
}

static void set_loops(struct arena *arena, struct jinja_value k, const struct kernel *kernel) {
  struct jinja_value loops = jinja_list(arena), parts = jinja_list(arena);
  for (int i = 0; i < kernel->n_loops; i++) jinja_push(arena, loops, jinja_int(kernel->loops[i]));
  for (int i = 0; i < kernel->node->body.count; i++) jinja_push(arena, parts, part_value(arena, kernel, i));
  jinja_set(arena, k, "loops", loops);
  jinja_set(arena, k, "parts", parts);
}

/* Of a kernel along one axis, the product of the extents before it and of those after it. */
static void set_axis(struct arena *arena, struct jinja_value k, const struct node *node) {
  for (int i = 0; i < node->n_attributes && node->n_inputs > 0; i++) {
    if (strcmp(node->attributes[i].name, "axis") != 0) continue;
    struct shape shape = node->inputs[0]->shape;
    set_int(arena, k, "outer", shape_product(shape, 0, (int)node->attributes[i].integer));
    set_int(arena, k, "inner", shape_product(shape, (int)node->attributes[i].integer + 1, shape.rank));
  }
}

/* The type of the 16-bit elements that it reads or writes; DTYPE_FLOAT32: there are none. */
static enum dtype half_of(const struct kernel *kernel) {
  for (int i = 0; i < kernel->node->n_outputs; i++)
    if (dtype_is_bits16(kernel->outputs[i].dtype)) return kernel->outputs[i].dtype;
  for (int i = 0; i < kernel->node->n_inputs; i++)
    if (dtype_is_bits16(kernel->inputs[i].dtype)) return kernel->inputs[i].dtype;
  return DTYPE_FLOAT32;
}

enum dtype half_of_kernels(const struct program *program) {
  enum dtype half = program->bits16;
  for (int i = 0; i < program->kernels.count && half == DTYPE_FLOAT32; i++) half = half_of(program->kernels.items[i]);
  return half;
}

struct jinja_value gemms_value(const struct program *program, const struct kernel *kernel) {
  struct jinja_value value = jinja_map(program->arena);
  for (int i = 0; i < program->library.gemms.count; i++) {
    const struct library_gemm *gemm = &program->library.gemms.items[i];
    bool own = strcmp(gemm->algorithm, library_variant) == 0;
    if (gemm->kernel == kernel) set_text(program->arena, value, gemm->part, own ? "" : gemm->algorithm);
  }
  return value;
}

/* The axis of the mesh along which a kernel exchanges numbers or asks which rank it runs on, as "tp"; or those of all
 * batches, near ranks first. */
static void set_mesh_axis(const struct program *program, struct jinja_value k, const struct node *node) {
  struct arena *arena = program->arena;
  const struct op_ranks *ranks = &node->kind->ranks;
  struct axes batches = {0};
  for (int i = program->mesh.batches.count - 1; i >= 0; i--)
    batches.items[batches.count++] = program->mesh.batches.items[i];
  if (ranks->exchanged != NULL && ranks->exchanged(node).axis < 0)
    jinja_set(arena, k, "mesh_axes", axis_names_value(arena, batches));
  int axis = ranks->exchanged != NULL ? ranks->exchanged(node).axis : -1;
  if (axis < 0 && ranks->part_axis != NULL) axis = ranks->part_axis(node);
  if (axis >= 0) set_text(arena, k, "mesh_axis", job_axis_names[axis]);
}

static struct jinja_value kernel_value(const struct program *program, const struct kernel *kernel) {
  struct arena *arena = program->arena;
  const struct node *node = kernel->node;
  struct jinja_value value = jinja_map(arena), k = jinja_map(arena);
  struct jinja_value inputs = jinja_list(arena), outputs = jinja_list(arena);
  set_attributes(arena, k, node);
  set_mesh_axis(program, k, node);
  set_axis(arena, k, node);
  for (int i = 0; i < node->n_outputs; i++) {
    struct jinja_value operand = operand_value(arena, kernel, &kernel->outputs[i]);
    set_bool(arena, operand, "workspace", node->kind->memory.workspace >> op_described(node->kind, i) & 1);
    jinja_push(arena, outputs, operand);
    jinja_set(arena, k, kernel->outputs[i].name, operand);
  }
  for (int i = 0; i < node->n_inputs; i++) {
    struct jinja_value operand = operand_value(arena, kernel, &kernel->inputs[i]);
    jinja_push(arena, inputs, operand);
    jinja_set(arena, k, kernel->inputs[i].name, operand);
  }
  set_text(arena, k, "name", kernel->name);
  set_text(arena, k, "variant", kernel->variant);
  jinja_set(arena, k, "gemms", gemms_value(program, kernel));
  set_int(arena, k, "weights", kernel->weights);
  jinja_set(arena, k, "inputs", inputs);
  jinja_set(arena, k, "outputs", outputs);
  set_bool(arena, k, "bits16", half_of(kernel) != DTYPE_FLOAT32);
  set_int(arena, k, "sums", program->kernels.sums);
  set_bool(arena, k, "tf32", program->job->precision.tf32);
  set_bool(arena, k, "by_library", library_computes(program, kernel));
  set_bool(arena, k, "in_blocks", program->job->training.deterministic);
  set_bool(arena, k, "random", node->kind->kernel.random);
  if (node->body.count > 0) set_loops(arena, k, kernel);
  set_text(arena, value, "template", kernel_template(arena, node->kind));
  set_text(arena, value, "macro", node->kind->name);
  jinja_set(arena, value, "k", k);
  return value;
}

/* A kernel comes from the model's lines of all steps that call it. */
static void set_kernel_origins(const struct program *program, struct jinja_value list) {
  for (int i = 0; i < program->functions.count; i++) {
    const struct function *function = program->functions.items[i];
    for (int k = 0; k < function->n_steps; k++) {
      int n = kernel_index(program, function->steps[k].kernel);
      if (n >= 0) set_node_origin(program->arena, jinja_at(list, n), function->steps[k].node);
    }
  }
}

struct jinja_value kernels_value(const struct program *program) {
  struct jinja_value list = jinja_list(program->arena);
  for (int i = 0; i < program->kernels.count; i++)
    jinja_push(program->arena, list, kernel_value(program, program->kernels.items[i]));
  set_kernel_origins(program, list);
  return list;
}
