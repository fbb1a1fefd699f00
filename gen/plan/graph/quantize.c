#include "gen/plan/graph/quantize.h"

#include <string.h>

#include "gen/base/path.h"
#include "gen/ir/op.h"
#include "gen/ir/region.h"
#include "gen/ops/support/nodes.h"
#include "gen/ops/support/quantized.h"
#include "gen/plan/graph/freeze.h"
#include "gen/plan/graph/split.h"
#include "gen/plan/graph/weight_visitor.h"
#include "gen/program/adapters.h"
#include "gen/program/match.h"
#include "gen/program/quantized.h"

/* ---- How a region uses a parameter ---- */

/* The forms in which a matmul takes a weight: [out][in] transposed, or [in][out] as it is; OTHER: it is used otherwise,
 * or not at all. */
enum form { FORM_OTHER, FORM_OUT_IN, FORM_IN_OUT };

static bool is_transposed(const struct value *value) {
  int64_t dense[MAX_RANK], strides[MAX_RANK], offset;
  const struct node *view = value->producer;
  if (!value_is_view(value) || value->shape.rank != 2 || view->inputs[0]->kind != VALUE_PARAMETER) return false;
  shape_dense_strides(view->inputs[0]->shape, dense);
  return view->kind->layout.view(view, dense, &offset, strides) && offset == 0 && strides[0] == 1 &&
         strides[1] == dense[0];
}

/* The form of input `input` of a node, which shows the parameter. */
static enum form form_of_use(const struct node *node, int input) {
  const struct value *value = node->inputs[input];
  if (!node->kind->library.matmul || input != 1) return FORM_OTHER;
  if (value->kind == VALUE_PARAMETER) return FORM_IN_OUT;
  return is_transposed(value) ? FORM_OUT_IN : FORM_OTHER;
}

static enum form form_in(const struct region *region, const struct value *parameter) {
  enum form form = FORM_OTHER;
  for (int i = 0; i < region->results.count; i++)
    if (viewed_value(region->results.items[i]) == parameter) return FORM_OTHER;
  for (int i = 0; i < region->nodes.count; i++) {
    const struct node *node = region->nodes.items[i];
    for (int k = 0; k < node->n_inputs; k++) {
      if (viewed_value(node->inputs[k]) != parameter || node->kind->class == OP_VIEW) continue;
      const enum form use = form_of_use(node, k);
      if (use == FORM_OTHER || (form != FORM_OTHER && use != form)) return FORM_OTHER;
      form = use;
    }
  }
  return form;
}

/* ---- Which parameters ---- */

struct quantizing {
  struct program *program;
  struct builder *builder;
  const struct job *job;
  struct diagnostics *diags;
  struct name_list linear, others; /* weights of linear layers; parameters that something else uses as well */
  struct name_list matrices;       /* all parameters that are matrices, but for adapters */
  const char *last;                /* the weight of the last matmul, which by default stays as it is; NULL: none */
  bool *used;                      /* of skip_modules and keep_in_fp32_modules, one after the other */
};

static bool has_name(const struct name_list *list, const char *name) {
  for (int i = 0; i < list->count; i++)
    if (strcmp(list->items[i], name) == 0) return true;
  return false;
}

/* The module whose weight this is; NULL for other parameters. */
static const char *module_of(const struct quantizing *quantizing, const char *name) {
  return without_ending(quantizing->program->arena, name, ".weight");
}

static const char *name_of(const struct quantizing *quantizing, const struct parameter *parameter,
                           const char *const *prefixes) {
  return weight_path(quantizing->program->arena, prefixes[parameter->scope], parameter->path);
}

/* A weight that a region does not use itself is one of the function that it calls. */
static bool is_used(const struct region *region, const struct value *parameter) {
  for (int i = 0; i < region->nodes.count; i++)
    for (int k = 0; k < region->nodes.items[i]->n_inputs; k++)
      if (region->nodes.items[i]->inputs[k] == parameter) return true;
  return false;
}

/* The weight of the last matmul of all that run once. */
static void follow(struct quantizing *quantizing, const struct region *region, const struct node *node,
                   const char *const *prefixes) {
  if (node->call != NULL && node->call->count > 1) quantizing->last = NULL;
  if (!node->kind->library.matmul) return;
  const struct value *weight = viewed_value(node->inputs[1]);
  if (weight->kind == VALUE_PARAMETER)
    quantizing->last = name_of(quantizing, &region->parameters.items[weight->index], prefixes);
}

static void collect(struct weight_visitor *visitor, const struct region *region, const struct node *after,
                    const char *const *prefixes) {
  struct quantizing *quantizing = visitor->context;
  if (after != NULL) {
    follow(quantizing, region, after, prefixes);
    return;
  }
  for (int i = 0; i < region->parameters.count; i++) {
    const struct parameter *p = &region->parameters.items[i];
    const char *name = name_of(quantizing, p, prefixes);
    if (!is_used(region, p->value)) continue;
    bool linear = p->shape.rank == 2 && p->dtype == DTYPE_FLOAT32 && !p->buffer && !is_adapter(name) &&
                  form_in(region, p->value) != FORM_OTHER && module_of(quantizing, name) != NULL;
    struct name_list *list = linear ? &quantizing->linear : &quantizing->others;
    if (!has_name(list, name)) ARENA_PUSH(visitor->program->arena, *list, name);
    if (p->shape.rank == 2 && !is_adapter(name) && !has_name(&quantizing->matrices, name))
      ARENA_PUSH(visitor->program->arena, quantizing->matrices, name);
  }
}

/* Skips what the job names; without skip_modules the last layer, as bitsandbytes' users skip the head. */
static bool is_skipped(struct quantizing *quantizing, const char *name, const char *module) {
  const struct job *job = quantizing->job;
  bool skipped = job->model.quantize.skip == NULL && quantizing->last != NULL && strcmp(quantizing->last, name) == 0;
  for (int i = 0; i < job->model.quantize.n_skip; i++)
    if (names_module(job->model.quantize.skip[i].name, module)) skipped = quantizing->used[i] = true;
  for (int i = 0; i < job->model.quantize.n_keep; i++)
    if (names_module(job->model.quantize.keep[i].name, module))
      skipped = quantizing->used[job->model.quantize.n_skip + i] = true;
  return skipped;
}

static bool is_quantized(struct quantizing *quantizing, const char *name) {
  return has_name(&quantizing->linear, name) && !has_name(&quantizing->others, name) &&
         !is_skipped(quantizing, name, module_of(quantizing, name));
}

static bool check_names(const struct quantizing *quantizing, const struct named *list, int count, const bool *used) {
  bool good = true;
  for (int i = 0; i < count; i++) {
    if (used[i]) continue;
    diag_error(quantizing->diags, list[i].where, "'%s' names no module that would be quantized", list[i].name);
    if (quantizing->linear.count > 0)
      diag_help(quantizing->diags, "modules are such as %s", module_of(quantizing, quantizing->linear.items[0]));
    good = false;
  }
  return good;
}

/* Codes cannot be trained. */
static bool check_frozen(const struct quantizing *quantizing, const char *name) {
  const struct job *job = quantizing->job;
  if (quantizing->program->kind != PROGRAM_TRAIN || is_frozen(job, name)) return true;
  diag_error(quantizing->diags, job_where(job, "model.quantize"), "'%s' is trained, and a weight of codes is not",
             name);
  diag_help(quantizing->diags, "train adapters (model.lora), freeze it (model.freeze), or name its module in "
                               "model.quantize.skip_modules");
  return false;
}

static struct quantized_form form_for(const struct job *job, int64_t in) {
  static const enum quantized_codes codes[] = {
      [QUANT_NF4] = CODES_NF4,
      [QUANT_FP4] = CODES_FP4,
      [QUANT_INT8] = CODES_INT8,
      [QUANT_INT8_GROUPS] = CODES_INT8_GROUPS,
      [QUANT_INT4_GROUPS] = CODES_INT4_GROUPS,
      [QUANT_Q8_0] = CODES_Q8_0,
      [QUANT_Q4_0] = CODES_Q4_0,
      [QUANT_Q4_K] = CODES_Q4_K,
  };
  const int64_t group = job->model.quantize.group;
  return (struct quantized_form){codes[job->model.quantize.type], group > 0 ? group : in};
}

/* Rows are whole blocks of codes that have such. */
static bool check_rows(const struct quantizing *quantizing) {
  enum { ALIKE = 32 };
  const struct job *job = quantizing->job;
  if (job->model.quantize.quant_type == NULL) return true;
  if (job->model.quantize.group % ALIKE != 0) {
    diag_error(quantizing->diags, job_where(job, "model.quantize.group_size"),
               "'model.quantize.group_size' must be a multiple of %d", ALIKE);
    return false;
  }
  for (int i = 0; i < quantizing->program->quantized.count; i++) {
    const struct quantized *quantized = &quantizing->program->quantized.items[i];
    const int64_t step = quantized_step(form_for(job, quantized->in)), of = step % ALIKE == 0 ? step : ALIKE;
    if (quantized->in % of == 0) continue;
    diag_error(quantizing->diags, job_where(job, "model.quantize.quant_type"),
               "'%s' has rows of %lld elements, and codes of %s are of %lld in a row", quantized->weight,
               (long long)quantized->in, job->model.quantize.quant_type, (long long)of);
    diag_help(quantizing->diags, "name its module in model.quantize.skip_modules, or use other codes");
    return false;
  }
  return true;
}

static bool choose(struct quantizing *quantizing) {
  struct program *program = quantizing->program;
  const struct job *job = quantizing->job;
  const int n_skip = job->model.quantize.n_skip, n_keep = job->model.quantize.n_keep;
  bool any = false;
  struct weight_visitor visitor = {
      .program = program, .diags = quantizing->diags, .ok = true, .visit = collect, .context = quantizing};
  quantizing->used = arena_alloc(program->arena, (size_t)(n_skip + n_keep) + 1);
  for (int i = 0; i < n_skip; i++)
    name_pattern_check(job->model.quantize.skip[i].name, job->model.quantize.skip[i].where, quantizing->diags);
  for (int i = 0; i < n_keep; i++)
    name_pattern_check(job->model.quantize.keep[i].name, job->model.quantize.keep[i].where, quantizing->diags);
  if (quantizing->diags->errors > 0) return false;
  weight_visit_from(&visitor, program->graph->entry);
  for (int i = 0; i < quantizing->linear.count; i++) {
    if (!is_quantized(quantizing, quantizing->linear.items[i])) continue;
    if (!check_frozen(quantizing, quantizing->linear.items[i])) return false;
    any = true;
  }
  bool good = check_names(quantizing, job->model.quantize.skip, n_skip, quantizing->used) &&
              check_names(quantizing, job->model.quantize.keep, n_keep, quantizing->used + n_skip);
  if (!good || any) return good;
  diag_error(quantizing->diags, job_where(job, "model.quantize"), "no linear layer of the model is left to quantize");
  diag_help(quantizing->diags, "a layer is one whose weight is the right factor of matmuls alone; skip fewer modules, "
                               "or leave model.quantize out");
  return false;
}

/* ---- Codes and scales ---- */

static struct treatment treat(void *context, const struct parameter *parameter, const char *name) {
  (void)parameter;
  return (struct treatment){.mark = is_quantized(context, name) ? 'q' : '-', .trains = true};
}

static struct value *buffer(struct quantizing *quantizing, const struct parameter *weight, enum quantized_part part,
                            struct shape shape, enum dtype dtype) {
  const char *module = module_of(quantizing, weight->path);
  struct scope scope = {.region = weight->value->region, .formal = weight->scope, .path = module != NULL ? module : ""};
  return builder_buffer(quantizing->builder, &scope, quantized_name(quantizing->job, part), shape, dtype, INIT_ZEROS);
}

/* What the operation takes after x. */
struct operands {
  struct value *items[5];
  int count;
};

/* The parameter becomes its codes; its scales are buffers next to it. */
static struct operands store(struct quantizing *quantizing, struct region *region, int index, int64_t out, int64_t in) {
  struct operands operands = {.count = 1};
  const struct quantized_form form = form_for(quantizing->job, in);
  const struct parameter weight = region->parameters.items[index];
  const bool nested = quantizing->job->model.quantize.double_quant;
  builder_enter(quantizing->builder, region);
  builder_at(quantizing->builder, weight.where);
  operands.items[operands.count++] = weight.value;
  if (quantized_has_scales(form.codes))
    operands.items[operands.count++] = buffer(quantizing, &weight, QUANTIZED_ABSMAX, quantized_scales(form, out, in),
                                              nested ? DTYPE_UINT8 : DTYPE_FLOAT32);
  if (nested) {
    operands.items[operands.count++] =
        buffer(quantizing, &weight, QUANTIZED_NESTED_ABSMAX, quantized_nested(out, in), DTYPE_FLOAT32);
    operands.items[operands.count++] =
        buffer(quantizing, &weight, QUANTIZED_NESTED_OFFSET, shape_of(1, INT64_C(1)), DTYPE_FLOAT32);
  }
  builder_leave(quantizing->builder);
  struct parameter *codes = &region->parameters.items[index];
  codes->shape = codes->value->shape = quantized_codes(form, out, in);
  codes->dtype = codes->value->dtype = quantized_dtype(form.codes);
  codes->init = (struct initializer){.kind = INIT_ZEROS};
  codes->buffer = true;
  codes->value->differentiable = false;
  return operands;
}

/* Makes a matmul the product with codes, its result staying the value that it is. */
static void replace(struct quantizing *quantizing, struct node *node, const struct operands *operands, int64_t out,
                    int64_t in) {
  struct arena *arena = quantizing->program->arena;
  const struct quantized_form form = form_for(quantizing->job, in);
  const bool int8 = form.codes == CODES_INT8;
  const bool blocks = quantizing->job->model.quantize.activations == QUANT_ACTIVATIONS_Q8_0;
  node->kind = int8 ? &op_int8_matmul : blocks ? &op_gguf_matmul : &op_quantized_matmul;
  struct value **inputs = arena_alloc(arena, (size_t)operands->count * sizeof *inputs);
  inputs[0] = node->inputs[0];
  for (int i = 1; i < operands->count; i++) inputs[i] = operands->items[i];
  node->inputs = inputs;
  node->n_inputs = operands->count;
  const struct attribute attributes[] = {
      attribute_int("out", out), attribute_int("in", in), attribute_int("straight", 0),
      int8 ? attribute_real("threshold", quantizing->job->model.quantize.threshold) : attribute_int("form", form.codes),
      attribute_int("group", form.group)};
  node->n_attributes = int8 ? 4 : 5;
  memcpy(node->attributes, attributes, sizeof attributes);
}

/* The views of the weight have no use any more. */
static void drop_views(struct region *region, const struct value *weight) {
  for (int i = region->nodes.count - 1; i >= 0; i--) {
    const struct node *node = region->nodes.items[i];
    if (node->kind->class == OP_VIEW && viewed_value(node->inputs[0]) == weight) region_remove(region, node);
  }
}

static void quantize_parameter(struct quantizing *quantizing, struct region *region, int index) {
  const struct value *weight = region->parameters.items[index].value;
  const struct shape shape = region->parameters.items[index].shape;
  const bool in_out = form_in(region, weight) == FORM_IN_OUT;
  const int64_t out = shape.dim[in_out], in = shape.dim[!in_out];
  struct node **uses = arena_alloc(quantizing->program->arena, ((size_t)region->nodes.count + 1) * sizeof *uses);
  int n_uses = 0;
  for (int i = 0; i < region->nodes.count; i++) {
    struct node *node = region->nodes.items[i];
    if (node->kind->library.matmul && viewed_value(node->inputs[1]) == weight) uses[n_uses++] = node;
  }
  drop_views(region, weight);
  const struct operands operands = store(quantizing, region, index, out, in);
  for (int i = 0; i < n_uses; i++) replace(quantizing, uses[i], &operands, out, in);
}

/* Lists what a call of a region names, before the region's parameters are what they will be. */
static void list(struct weight_visitor *visitor, const struct region *region, const struct node *after,
                 const char *const *prefixes) {
  struct quantizing *quantizing = visitor->context;
  for (int i = 0; after == NULL && i < region->parameters.count; i++) {
    const struct parameter *p = &region->parameters.items[i];
    const char *name = name_of(quantizing, p, prefixes);
    if (!is_used(region, p->value) || !is_quantized(quantizing, name)) continue;
    const bool in_out = form_in(region, p->value) == FORM_IN_OUT;
    struct quantized quantized = {
        .weight = name, .in_out = in_out, .out = p->shape.dim[in_out], .in = p->shape.dim[!in_out], .init = p->init};
    bool known = false;
    for (int k = 0; k < visitor->program->quantized.count; k++)
      known |= strcmp(visitor->program->quantized.items[k].weight, name) == 0;
    if (!known) ARENA_PUSH(visitor->program->arena, visitor->program->quantized, quantized);
  }
}

static void convert(void *context, struct region *region, const char *marks) {
  const int count = region->parameters.count;
  for (int i = 0; i < count; i++)
    if (marks[i] == 'q' && is_used(region, region->parameters.items[i].value)) quantize_parameter(context, region, i);
}

static void list_unquantized(struct quantizing *quantizing) {
  struct program *program = quantizing->program;
  for (int i = 0; i < quantizing->matrices.count; i++) {
    const char *name = quantizing->matrices.items[i], *module = module_of(quantizing, name);
    if (module != NULL && !is_quantized(quantizing, name)) ARENA_PUSH(program->arena, program->unquantized, module);
  }
}

bool quantize(struct program *program, struct builder *builder, struct diagnostics *diags) {
  struct quantizing quantizing = {.program = program, .builder = builder, .job = program->job, .diags = diags};
  if (!program->job->model.quantize.on) return true;
  if (!choose(&quantizing)) return false;
  list_unquantized(&quantizing);
  struct weight_visitor visitor = {
      .program = program, .diags = diags, .ok = true, .visit = list, .context = &quantizing};
  weight_visit_from(&visitor, program->graph->entry);
  if (!check_rows(&quantizing)) return false;
  split_regions(program->graph, &(struct splitting){.context = &quantizing, .treat = treat, .finish = convert});
  return true;
}
