#include "gen/plan/graph/fp8.h"

#include <string.h>

#include "gen/base/path.h"
#include "gen/ir/names.h"
#include "gen/ir/op.h"
#include "gen/ir/region.h"
#include "gen/ops/support/nodes.h"
#include "gen/plan/graph/split.h"
#include "gen/plan/graph/weight_visitor.h"
#include "gen/program/adapters.h"
#include "gen/program/fp8.h"
#include "gen/program/match.h"

/* ---- Which layers ---- */

/* The parameter whose matrix a matmul's right side is, among those of its region; -1: none. */
static int matmul_weight(const struct node *node) {
  if (!node->kind->library.matmul || node->inputs[1]->shape.rank != 2) return -1;
  const struct value *b = viewed_value(node->inputs[1]);
  return b->kind == VALUE_PARAMETER && b->shape.rank == 2 && b->dtype == DTYPE_FLOAT32 ? b->index : -1;
}

struct rounding {
  struct program *program;
  struct builder *builder;
  const struct job *job;
  struct name_list layers, unfit; /* the weights of products, in their order; those that no layer of 8 bits has */
  const char *twice;              /* one of several products; NULL: none */
  /* The tensor that was rounded last, which several layers may read, with no history. */
  const struct value *read;
  const struct node *rounded;
};

static bool has_name(const struct name_list *list, const char *name) {
  for (int i = 0; i < list->count; i++)
    if (strcmp(list->items[i], name) == 0) return true;
  return false;
}

/* cuBLASLt and torch._scaled_mm need multiples of 16. */
static bool fits(struct shape shape) {
  return shape.dim[0] % 16 == 0 && shape.dim[1] % 16 == 0;
}

static void collect(struct weight_visitor *visitor, const struct region *region, const struct node *after,
                    const char *const *prefixes) {
  struct rounding *rounding = visitor->context;
  struct arena *arena = visitor->program->arena;
  const int index = after != NULL ? matmul_weight(after) : -1;
  if (index < 0) return;
  const struct parameter *p = &region->parameters.items[index];
  const char *name = weight_path(arena, prefixes[p->scope], p->path);
  if (is_adapter(name) || p->buffer || without_ending(arena, name, ".weight") == NULL) return;
  if (!fits(p->shape) && !has_name(&rounding->unfit, name)) ARENA_PUSH(arena, rounding->unfit, name);
  if (!has_name(&rounding->layers, name))
    ARENA_PUSH(arena, rounding->layers, name);
  else if (rounding->twice == NULL)
    rounding->twice = name;
}

/* Accelerate's filters: of torchao all layers but the first and the last, of Transformer Engine all. */
static bool is_rounded(const struct rounding *rounding, const char *name) {
  const struct name_list *layers = &rounding->layers;
  if (!has_name(layers, name) || has_name(&rounding->unfit, name)) return false;
  if (rounding->job->precision.fp8.backend == FP8_TE) return true;
  return strcmp(name, layers->items[0]) != 0 && strcmp(name, layers->items[layers->count - 1]) != 0;
}

static bool choose(struct rounding *rounding, struct diagnostics *diags) {
  const struct job *job = rounding->job;
  struct weight_visitor visitor = {
      .program = rounding->program, .diags = diags, .ok = true, .visit = collect, .context = rounding};
  weight_visit_from(&visitor, rounding->program->graph->entry);
  bool any = false;
  for (int i = 0; i < rounding->layers.count; i++) any |= is_rounded(rounding, rounding->layers.items[i]);
  const bool te = job->precision.fp8.backend == FP8_TE;
  if (!any) {
    diag_error(diags, job_where(job, "precision.mixed_precision"), "no linear layer of the model is left for fp8");
    diag_help(diags, "a layer has a weight whose extents are multiples of 16%s; or use mixed_precision: bf16",
              te ? "" : ", and is not the first or the last one (precision.fp8.backend: te has these, too)");
  } else if (te && rounding->twice != NULL) {
    any = false;
    diag_error(diags, job_where(job, "precision.fp8.backend"),
               "'%s' is the weight of several products, and a history of sizes is of one", rounding->twice);
    diag_help(diags, "use backend: ao, whose scales are of the tensor at hand");
  }
  return any;
}

/* ---- Layers ---- */

static struct treatment treat(void *context, const struct parameter *parameter, const char *name) {
  (void)parameter;
  return (struct treatment){.mark = is_rounded(context, name) ? '8' : '-', .trains = true};
}

enum role { INPUT, WEIGHT, GRAD_OUTPUT };

/* The scale and the sizes of one of a layer's tensors. */
static void add_buffers(struct rounding *rounding, const struct parameter *weight, enum role role,
                        struct value **buffers) {
  static const char *const roles[] = {"input", "weight", "grad_output"};
  struct arena *arena = rounding->program->arena;
  const char *module = without_ending(arena, weight->path, ".weight");
  struct scope scope = {.region = weight->value->region, .formal = weight->scope, .path = module != NULL ? module : ""};
  const struct shape length = shape_of(1, (int64_t)rounding->job->precision.fp8.amax_history_len);
  buffers[0] = builder_buffer(rounding->builder, &scope, arena_printf(arena, "%s%s", fp8_scale_beginning, roles[role]),
                              shape_of(1, INT64_C(1)), DTYPE_FLOAT32, INIT_ONES);
  buffers[1] =
      builder_buffer(rounding->builder, &scope, arena_printf(arena, "%s%s", fp8_history_beginning, roles[role]), length,
                     DTYPE_FLOAT32, INIT_ZEROS);
}

static struct op_fp8 rounded_as(const struct job *job, bool e5m2) {
  return (struct op_fp8){.bf16 = job->precision.autocast, .e5m2 = e5m2};
}

static const struct node *quantize(struct rounding *rounding, const struct parameter *weight, enum role role,
                                   struct value *x) {
  struct value *buffers[2] = {NULL};
  if (rounding->job->precision.fp8.backend == FP8_TE) add_buffers(rounding, weight, role, buffers);
  return op_fp8_quantize_with(rounding->builder, x, buffers[0], buffers[1], rounded_as(rounding->job, false));
}

/* What a layer reads, in the type of the products. */
static const struct node *quantize_input(struct rounding *rounding, const struct parameter *weight, struct value *x) {
  if (x == rounding->read) return rounding->rounded;
  const bool bf16 = rounding->job->precision.autocast;
  const struct node *made =
      quantize(rounding, weight, INPUT, builder_cast(rounding->builder, x, bf16 ? DTYPE_BFLOAT16 : DTYPE_FLOAT32));
  rounding->read = rounding->job->precision.fp8.backend == FP8_AO ? x : NULL;
  return rounding->rounded = made;
}

/* Puts the product in 8 bits after the matmul, which has no use then. */
static struct value *extend(void *context, const struct node *node, const char *marks) {
  struct rounding *rounding = context;
  struct builder *builder = rounding->builder;
  const struct job *job = rounding->job;
  const int index = matmul_weight(node);
  if (index < 0 || marks[index] != '8') return NULL;
  const struct parameter weight = node->region->parameters.items[index];
  builder_enter(builder, node->region);
  builder_at(builder, node->where);
  const struct node *x = quantize_input(rounding, &weight, node->inputs[0]);
  const struct node *w = quantize(rounding, &weight, WEIGHT, weight.value);
  const bool by_rows = node->inputs[1]->kind == VALUE_PARAMETER;
  struct value *right = by_rows ? w->outputs[0] : op_matrix_transpose(builder, w->outputs[0]);
  struct value *const factors[] = {x->outputs[0], right, x->outputs[1], w->outputs[1]};
  struct value *buffers[2] = {NULL};
  if (job->precision.fp8.backend == FP8_TE) add_buffers(rounding, &weight, GRAD_OUTPUT, buffers);
  struct value *y = op_fp8_product(builder, factors, buffers[0], buffers[1],
                                   rounded_as(job, job->precision.fp8.format == FP8_HYBRID));
  builder_leave(builder);
  return y;
}

bool round_to_fp8(struct program *program, struct builder *builder, struct diagnostics *diags) {
  const struct job *job = program->job;
  struct rounding rounding = {.program = program, .builder = builder, .job = job};
  if (!job->precision.fp8.on) return true;
  if (program->kind == PROGRAM_GENERATE) {
    diag_error(diags, job_where(job, "precision.mixed_precision"),
               "no text has been generated in 8 bits and compared with a recipe");
    diag_help(diags, "use --set precision.mixed_precision=bf16, without precision.fp8");
    return false;
  }
  if (!choose(&rounding, diags)) return false;
  split_regions(program->graph, &(struct splitting){.context = &rounding, .treat = treat, .extend = extend});
  return diags->errors == 0;
}

/* ---- Products, once there are gradients ---- */

static bool is_product(const struct node *node) {
  return node->kind == &op_fp8_matmul || node->kind == &op_fp8_matmul_delayed;
}

/* Nodes that were put at the end of a region take the place of one there; the last of them makes its value. */
static void take_place(struct graph *graph, struct region *region, int index, int before) {
  struct node *node = region->nodes.items[index], *last = region->nodes.items[region->nodes.count - 1];
  last->n_outputs = 0;
  node_take_output(graph, last, node->outputs[0]);
  for (int i = before; i < region->nodes.count; i++) {
    struct node *made = region->nodes.items[region->nodes.count - 1];
    made->again = node->again;
    region->nodes.count--;
    region_insert(graph, region, index, made);
  }
  region_remove(region, node);
}

static void write_product(struct builder *builder, struct region *region, int index) {
  const struct node *node = region->nodes.items[index];
  const int before = region->nodes.count;
  builder_at(builder, node->where);
  struct value *scale = op_mul(builder, node->inputs[2], node->inputs[3]);
  struct value *product = op_matmul(builder, node->inputs[0], node->inputs[1]);
  product->dtype = DTYPE_FLOAT32;
  builder_cast(builder, op_mul(builder, product, scale), node->outputs[0]->dtype);
  take_place(builder_graph(builder), region, index, before);
}

/* A cast to the type that a value has by now. */
static bool is_idle_cast(const struct node *node) {
  return node->kind->types.converts && node->inputs[0]->dtype == node->outputs[0]->dtype;
}

void write_fp8_products(struct program *program, struct builder *builder) {
  struct graph *graph = program->graph;
  if (!program->job->precision.fp8.on) return;
  for (int r = 0; r < graph->n_regions; r++) {
    struct region *region = graph->regions[r];
    builder_enter(builder, region);
    for (int i = region->nodes.count - 1; i >= 0; i--) {
      struct node *node = region->nodes.items[i];
      if (node->call != NULL) continue;
      if (is_product(node)) {
        write_product(builder, region, i);
      } else if (is_idle_cast(node)) {
        region_replace(region, node->outputs[0], node->inputs[0]);
        region_remove(region, node);
      }
    }
    builder_leave(builder);
    name_values(graph->arena, region);
  }
}
