#include "gen/plan/kernels/kernels.h"

#include <string.h>

#include "gen/base/text.h"
#include "gen/ir/names.h"
#include "gen/ir/op.h"
#include "gen/plan/kernels/packs.h"
#include "gen/plan/memory/layout.h"
#include "gen/program/choose.h"
#include "gen/program/target.h"

const char *operand_name(struct arena *arena, const struct node *node, bool output, int index) {
  if (node->body.count > 0) {
    int count = output ? node->n_outputs : node->n_inputs;
    return count == 1 ? (output ? "y" : "x") : arena_printf(arena, "%s%d", output ? "y" : "x", index);
  }
  const char *const *names = output ? node->kind->output_names : node->kind->input_names;
  for (int i = 0; i <= index; i++)
    if (names[i] == NULL) return arena_printf(arena, "%s%d", output ? "y" : "x", index);
  return names[index];
}

static int64_t extent_of(const struct view *view, struct shape shape) {
  int64_t last = 0;
  for (int i = 0; i < shape.rank; i++) last += (shape.dim[i] - 1) * view->strides[i];
  return last + 1;
}

static struct kernel_operand operand_of(struct arena *arena, const struct node *node, bool output, int index,
                                        const struct view *view, bool accumulate) {
  const struct value *value = output ? node->outputs[index] : node->inputs[index];
  struct kernel_operand operand = {.name = operand_name(arena, node, output, index),
                                   .shape = value->shape,
                                   .dtype = value->dtype,
                                   .extent = extent_of(view, value->shape),
                                   .dense = view_is_dense(view, value->shape),
                                   .accumulate = accumulate};
  memcpy(operand.strides, view->strides, sizeof operand.strides);
  for (int i = 0; i < value->shape.rank; i++)
    if (value->shape.dim[i] == 1) operand.strides[i] = 0; /* never indexed; one text for all */
  if (operand.dense) shape_dense_strides(value->shape, operand.strides);
  return operand;
}

/* ---- Loop nests of fused kernels ---- */

/* The operand's stride along dimension `d` of the domain; 0 where it is broadcast. */
static int64_t domain_stride(const struct kernel_operand *operand, struct shape domain, int d) {
  int own = d - (domain.rank - operand->shape.rank);
  return own < 0 || operand->shape.dim[own] == 1 ? 0 : operand->strides[own];
}

static int n_operands(const struct kernel *kernel) {
  return kernel->node->n_outputs + kernel->node->n_inputs;
}

static struct kernel_operand *operand_at(struct kernel *kernel, int i) {
  return i < kernel->node->n_outputs ? &kernel->outputs[i] : &kernel->inputs[i - kernel->node->n_outputs];
}

/* The shape over which the parts run: that of the body's last node. */
static struct shape domain_of(const struct node *node) {
  return node->body.items[node->body.count - 1]->outputs[0]->shape;
}

/* Merges neighbouring dimensions along which every operand is contiguous into one loop. */
static void make_loops(struct kernel *kernel) {
  struct shape domain = domain_of(kernel->node);
  kernel->n_loops = 0;
  for (int d = 0; d < domain.rank; d++) {
    if (domain.dim[d] == 1) continue;
    int l = kernel->n_loops - 1;
    bool merges = l >= 0;
    for (int i = 0; i < n_operands(kernel) && merges; i++) {
      const struct kernel_operand *operand = operand_at(kernel, i);
      merges = operand->loop_strides[l] == domain_stride(operand, domain, d) * domain.dim[d];
    }
    if (!merges) kernel->loops[l = kernel->n_loops++] = 1;
    kernel->loops[l] *= domain.dim[d];
    for (int i = 0; i < n_operands(kernel); i++)
      operand_at(kernel, i)->loop_strides[l] = domain_stride(operand_at(kernel, i), domain, d);
  }
}

/* ---- Equality ---- */

static void describe_operand(struct text *text, const struct kernel_operand *operand) {
  text_printf(text, " %s%s%s", dtype_name(operand->dtype), shape_text(text->arena, operand->shape),
              operand->accumulate ? "+" : "");
  for (int i = 0; i < operand->shape.rank; i++) text_printf(text, ",%lld", (long long)operand->strides[i]);
}

static void describe_node(struct text *text, const struct node *node) {
  text_printf(text, "%s", node->kind->name);
  for (int i = 0; i < node->n_attributes; i++) text_puts(text, attribute_text(text->arena, &node->attributes[i]));
}

static int value_index(struct value *const *values, int count, const struct value *value) {
  for (int i = 0; i < count; i++)
    if (values[i] == value) return i;
  return -1;
}

/* Parts are described by where their operands come from: inputs of the node, or earlier parts. */
static void describe_body(struct text *text, const struct node *node) {
  for (int i = 0; i < node->body.count; i++) {
    const struct node *part = node->body.items[i];
    text_puts(text, "; ");
    describe_node(text, part);
    for (int k = 0; k < part->n_inputs; k++) {
      int outside = value_index(node->inputs, node->n_inputs, part->inputs[k]), inside = -1;
      for (int m = 0; m < i; m++)
        if (node->body.items[m]->outputs[0] == part->inputs[k]) inside = m;
      text_printf(text, " %c%d", inside >= 0 ? 'p' : 'i', inside >= 0 ? inside : outside);
    }
    text_printf(text, " -> %d", value_index(node->outputs, node->n_outputs, part->outputs[0]));
  }
}

/* Everything that the kernel's text depends on. */
static const char *describe(struct arena *arena, struct kernel *kernel) {
  struct text text = text_in(arena);
  describe_node(&text, kernel->node);
  describe_body(&text, kernel->node);
  for (int i = 0; i < n_operands(kernel); i++) describe_operand(&text, operand_at(kernel, i));
  if (kernel->packs) text_puts(&text, " of a weight");
  return text_string(&text);
}

/* ---- Names ---- */

static void name_body(struct text *text, const struct node *node) {
  int named = 0;
  for (int i = 0; i < node->body.count; i++) {
    const struct node *part = node->body.items[i];
    if (part->n_inputs == 0 && node->body.count > 1) continue; /* a constant */
    if (named++ == 4) {
      text_puts(text, "_etc");
      return;
    }
    text_printf(text, "%s%s", named > 1 ? "_" : "", part->kind->name);
  }
}

static bool is_kernel(const void *context, const char *name) {
  const struct program *program = context;
  for (int i = 0; i < program->kernels.count; i++)
    if (strcmp(program->kernels.items[i]->name, name) == 0) return true;
  return false;
}

/* n or t: whether the columns of a matmul's factor follow each other or, of a transpose, its rows. */
static char letter_of(const struct kernel_operand *factor) {
  int last = factor->shape.rank - 1;
  return factor->shape.dim[last] > 1 && factor->strides[last] != 1 ? 't' : 'n';
}

static void name_transposes(struct text *text, const struct kernel *kernel) {
  char a = letter_of(&kernel->inputs[0]), b = letter_of(&kernel->inputs[1]);
  if (a == 't' || b == 't') text_printf(text, "_%c%c", a, b);
}

/* "layer_norm_768x128": the operation and the dimensions that say most: rows and columns, and for matmuls the inner
 * one; "matmul_nt_768x128x512" where the second factor is a transpose. */
static const char *kernel_name(struct program *program, struct kernel *kernel) {
  struct text text = text_in(program->arena);
  const struct node *node = kernel->node;
  if (node->body.count > 0)
    name_body(&text, node);
  else
    text_puts(&text, node->kind->name);
  if (node->kind->library.matmul || node->kind->library.epilogues != 0) name_transposes(&text, kernel);
  bool any_accumulates = false;
  for (int i = 0; i < node->n_outputs; i++) any_accumulates |= kernel->outputs[i].accumulate;
  if (any_accumulates) text_puts(&text, "_add");
  for (int i = 0; i < n_operands(kernel); i++) {
    enum dtype dtype = operand_at(kernel, i)->dtype;
    if (!dtype_is_bits16(dtype)) continue;
    text_printf(&text, "_%s", dtype_short_name(dtype));
    break;
  }
  const struct kernel_operand *main = node->n_inputs > 0 ? &kernel->inputs[0] : &kernel->outputs[0];
  struct shape shape = node->body.count > 0 ? domain_of(node) : main->shape;
  const char *separator = "_";
  int last = shape.rank - 1;
  if (shape.rank > 4) {
    text_printf(&text, "_%lldx%lld", (long long)shape_product(shape, 0, last), (long long)shape.dim[last]);
  } else {
    for (int i = 0; i < shape.rank; i++, separator = "x")
      text_printf(&text, "%s%lld", separator, (long long)shape.dim[i]);
  }
  if (shape.rank == 0) text_puts(&text, "_1"); /* a number, so that no variable has the name */
  const struct shape *result = &kernel->outputs[0].shape;
  if (node->body.count == 0 && result->rank > 0 && last >= 0 && result->dim[result->rank - 1] != shape.dim[last])
    text_printf(&text, "x%lld", (long long)result->dim[result->rank - 1]);
  return free_name(program->arena, text_string(&text), is_kernel, program);
}

static struct kernel *make_kernel(struct program *program, const struct step *step) {
  struct arena *arena = program->arena;
  struct kernel *kernel = arena_alloc(arena, sizeof *kernel);
  const struct node *node = step->node;
  kernel->node = node;
  kernel->outputs = arena_alloc(arena, ((size_t)node->n_outputs + 1) * sizeof *kernel->outputs);
  kernel->inputs = arena_alloc(arena, ((size_t)node->n_inputs + 1) * sizeof *kernel->inputs);
  for (int i = 0; i < node->n_outputs; i++)
    kernel->outputs[i] = operand_of(arena, node, true, i, &step->outputs[i], step->accumulate[i]);
  for (int i = 0; i < node->n_inputs; i++)
    kernel->inputs[i] = operand_of(arena, node, false, i, &step->inputs[i], false);
  if (node->body.count > 0) make_loops(kernel);
  kernel->packs = can_pack(program, step, kernel);
  return kernel;
}

static int deterministic_variants(const struct op_kind *kind, const char **variants, int n_variants) {
  int count = 0;
  for (int i = 0; i < n_variants && kind->choice.deterministic != NULL; i++)
    for (int k = 0; kind->choice.deterministic[k] != NULL; k++)
      if (strcmp(variants[i], kind->choice.deterministic[k]) == 0) variants[count++] = variants[i];
  return kind->choice.deterministic != NULL ? count : n_variants;
}

/* Selects its variant among those of its kind. */
static const char *choose_variant(struct program *program, struct kernel *kernel) {
  const struct op_kind *kind = kernel->node->kind;
  const char *variants[MAX_VARIANTS];
  int count = n_operands(kernel);
  if (kind->choice.variants == NULL || !program->target->kernels.has_variants) return "";
  const int64_t **strides = arena_alloc(program->arena, (size_t)count * sizeof *strides);
  for (int i = 0; i < count; i++) strides[i] = operand_at(kernel, i)->strides;
  int n_variants = kernel->packs ? 1 : 0;
  variants[0] = packed_variant;
  n_variants += kind->choice.variants(kernel->node, strides, variants + n_variants);
  if (program->job->training.deterministic) n_variants = deterministic_variants(kind, variants, n_variants);
  return choose(program, kernel->subject, kind->choice.what, variants, n_variants);
}

void choose_kernels(struct program *program) {
  for (int f = 0; f < program->functions.count; f++) {
    struct function *function = program->functions.items[f];
    for (int s = 0; s < function->n_steps; s++) {
      struct step *step = &function->steps[s];
      if (step->callee != NULL) continue;
      struct kernel *kernel = make_kernel(program, step);
      if (step->node->kind->kernel.updates) {
        kernel->name = step->node->kind->name;
        step->kernel = kernel;
        continue;
      }
      kernel->subject = describe(program->arena, kernel);
      for (int i = 0; i < program->kernels.count && step->kernel == NULL; i++)
        if (strcmp(program->kernels.items[i]->subject, kernel->subject) == 0) step->kernel = program->kernels.items[i];
      if (step->kernel != NULL) continue;
      kernel->name = kernel_name(program, kernel);
      kernel->variant = choose_variant(program, kernel);
      program->kernels.items = arena_grow(program->arena, program->kernels.items, program->kernels.count,
                                          &program->kernels.capacity, sizeof kernel);
      program->kernels.items[program->kernels.count++] = step->kernel = kernel;
    }
  }
}

static bool is_called(const struct program *program, const struct kernel *kernel) {
  for (int f = 0; f < program->functions.count; f++)
    for (int s = 0; s < program->functions.items[f]->n_steps; s++)
      if (program->functions.items[f]->steps[s].kernel == kernel && program->functions.items[f]->steps[s].stages != 0)
        return true;
  return false;
}

void drop_unused_kernels(struct program *program) {
  struct program_kernels *kernels = &program->kernels;
  int left = 0;
  for (int i = 0; i < kernels->count; i++)
    if (is_called(program, kernels->items[i])) kernels->items[left++] = kernels->items[i];
  kernels->count = left;
}
