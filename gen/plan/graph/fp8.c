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
  struct diagnostics *diags;
  struct name_list layers, unfit; /* the weights of products, in their order; those that no layer of 8 bits has */
  const char *twice;              /* one of several products; NULL: none */
  struct name_list shared;        /* the weights of products that are read otherwise, too */
  bool *used;                     /* of precision.fp8.skip_modules */
  /* The tensor that was rounded last, which several layers may read, with no history. */
  const struct value *read;
  const struct node *rounded;
};

static bool has_name(const struct name_list *list, const char *name) {
  for (int i = 0; i < list->count; i++)
    if (strcmp(list->items[i], name) == 0) return true;
  return false;
}

enum { BLOCK = 32 }; /* of an MX format */

/* What extents are multiples of: cuBLASLt and torch._scaled_mm need 16, and MS-AMP adds zeros up to there. */
static int least_extent(const struct job *job) {
  if (job->precision.fp8.backend == FP8_MSAMP) return 1;
  return job->precision.fp8.recipe == FP8_MXFP8 ? BLOCK : 16;
}

static bool fits(const struct job *job, struct shape shape) {
  return shape.dim[0] % least_extent(job) == 0 && shape.dim[1] % least_extent(job) == 0;
}

/* How many nodes of a region read a matrix, in one layout or another. */
static int reads(const struct region *region, const struct value *matrix) {
  int count = 0;
  for (int i = 0; i < region->nodes.count; i++) {
    const struct node *node = region->nodes.items[i];
    const bool looks = node->call == NULL && node->kind->class == OP_VIEW;
    for (int k = 0; k < node->n_inputs && !looks; k++) count += viewed_value(node->inputs[k]) == viewed_value(matrix);
  }
  return count;
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
  if (!fits(rounding->job, p->shape) && !has_name(&rounding->unfit, name)) ARENA_PUSH(arena, rounding->unfit, name);
  if (reads(region, after->inputs[1]) > 1 && !has_name(&rounding->shared, name))
    ARENA_PUSH(arena, rounding->shared, name);
  if (!has_name(&rounding->layers, name))
    ARENA_PUSH(arena, rounding->layers, name);
  else if (rounding->twice == NULL)
    rounding->twice = name;
}

/* Whether the job leaves the layer out by its name, or by its place, as Accelerate's filter for torchao does. */
static bool is_skipped(const struct rounding *rounding, const char *name) {
  const struct name_list *layers = &rounding->layers;
  const struct job *job = rounding->job;
  const char *module = without_ending(rounding->program->arena, name, ".weight");
  bool skipped = job->precision.fp8.skip_first_and_last &&
                 (strcmp(name, layers->items[0]) == 0 || strcmp(name, layers->items[layers->count - 1]) == 0);
  for (int i = 0; i < job->precision.fp8.n_skip; i++)
    if (names_module(job->precision.fp8.skip[i].name, module)) skipped = rounding->used[i] = true;
  return skipped;
}

static bool is_rounded(const struct rounding *rounding, const char *name) {
  return has_name(&rounding->layers, name) && !has_name(&rounding->unfit, name) && !is_skipped(rounding, name);
}

static bool check_names(const struct rounding *rounding, struct diagnostics *diags) {
  const struct job *job = rounding->job;
  for (int i = 0; i < job->precision.fp8.n_skip; i++) {
    const struct named *skip = &job->precision.fp8.skip[i];
    if (rounding->used[i]) continue;
    diag_error(diags, skip->where, "'%s' names no linear layer", skip->name);
    if (rounding->layers.count > 0)
      diag_help(diags, "linear layers are such as %s",
                without_ending(rounding->program->arena, rounding->layers.items[0], ".weight"));
  }
  return diags->errors == 0;
}

/* What MS-AMP's layer makes of its weight is its own: a tied one becomes another parameter. */
static bool check_shared(const struct rounding *rounding, struct diagnostics *diags) {
  for (int i = 0; i < rounding->shared.count; i++) {
    const char *name = rounding->shared.items[i];
    if (!is_rounded(rounding, name)) continue;
    diag_error(
        diags, job_where(rounding->job, "precision.fp8.backend"),
        "'%s' is a layer's weight and is read otherwise, too, and backend: msamp rounds a layer's weight to fp16",
        name);
    diag_help(diags, "add precision.fp8.skip_modules: [%s]", without_ending(rounding->program->arena, name, ".weight"));
    return false;
  }
  return true;
}

static bool choose(struct rounding *rounding, struct diagnostics *diags) {
  const struct job *job = rounding->job;
  struct weight_visitor visitor = {
      .program = rounding->program, .diags = diags, .ok = true, .visit = collect, .context = rounding};
  rounding->used = arena_alloc(rounding->program->arena, (size_t)job->precision.fp8.n_skip + 1);
  for (int i = 0; i < job->precision.fp8.n_skip; i++)
    name_pattern_check(job->precision.fp8.skip[i].name, job->precision.fp8.skip[i].where, diags);
  if (diags->errors > 0) return false;
  weight_visit_from(&visitor, rounding->program->graph->entry);
  bool any = false;
  for (int i = 0; i < rounding->layers.count; i++) any |= is_rounded(rounding, rounding->layers.items[i]);
  if (!check_names(rounding, diags)) return false;
  if (job->precision.fp8.backend == FP8_MSAMP && any) return check_shared(rounding, diags);
  const bool te = job->precision.fp8.backend == FP8_TE;
  if (!any) {
    diag_error(diags, job_where(job, "precision.mixed_precision"), "no linear layer of the model is left for fp8");
    diag_help(diags, "a layer has a weight whose extents are multiples of %d%s; or use mixed_precision: bf16",
              least_extent(job),
              job->precision.fp8.skip_first_and_last
                  ? ", and is not the first or the last one (precision.fp8.skip_first_and_last: false has these, too)"
                  : "");
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
  static const char *const roles[] = {"input", "weight", fp8_gradient};
  struct arena *arena = rounding->program->arena;
  const char *module = without_ending(arena, weight->path, ".weight");
  struct scope scope = {.region = weight->value->region, .formal = weight->scope, .path = module != NULL ? module : ""};
  const struct shape length = shape_of(1, fp8_history_length(rounding->job));
  const bool at_hand = rounding->job->precision.fp8.backend == FP8_MSAMP; /* first scales are of the tensors */
  buffers[0] = builder_buffer(rounding->builder, &scope, arena_printf(arena, "%s%s", fp8_scale_beginning, roles[role]),
                              shape_of(1, INT64_C(1)), DTYPE_FLOAT32, at_hand ? INIT_ZEROS : INIT_ONES);
  buffers[1] =
      builder_buffer(rounding->builder, &scope, arena_printf(arena, "%s%s", fp8_history_beginning, roles[role]), length,
                     DTYPE_FLOAT32, INIT_ZEROS);
}

static struct op_fp8 rounded_as(const struct job *job, bool e5m2) {
  const bool msamp = job->precision.fp8.backend == FP8_MSAMP;
  return (struct op_fp8){.bf16 = job->precision.autocast,
                         .e5m2 = e5m2,
                         .powers = msamp,
                         .evaluates = msamp || job->precision.fp8.in_evaluation};
}

static const struct node *quantize(struct rounding *rounding, const struct parameter *weight, enum role role,
                                   struct value *x) {
  struct value *buffers[2] = {NULL};
  const enum fp8_backend backend = rounding->job->precision.fp8.backend;
  if (backend == FP8_TE || (backend == FP8_MSAMP && role != WEIGHT)) add_buffers(rounding, weight, role, buffers);
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

/* What the product is of: of the gradient of the weight, rows are what is added up. A rank has those of its positions.
 */
static void check_rows(struct rounding *rounding, const struct node *node, const char *what, const char *otherwise) {
  const struct shape x = node->inputs[0]->shape;
  const int64_t *axes = rounding->job->parallelism.axes, least = least_extent(rounding->job);
  const int64_t ranks = rounding->program->kind == PROGRAM_TRAIN ? axes[AXIS_SP] * axes[AXIS_CP] : 1;
  const int64_t rows = shape_count(x) / x.dim[x.rank - 1] / ranks;
  if (rows % least == 0) return;
  diag_error(rounding->diags, job_where(rounding->job, "precision.fp8"), "%s %lld rows, and a layer has %lld here",
             what, (long long)least, (long long)rows);
  diag_note(rounding->diags, node->where, "in this product");
  diag_help(rounding->diags, "let data.batch_size times the positions%s be a multiple of %lld, or use %s",
            ranks > 1 ? " of a rank" : "", (long long)least, otherwise);
}

/* The product whose scales are powers of two, of rows or of blocks. */
static struct value *multiply_groups(struct rounding *rounding, const struct node *node) {
  const struct job *job = rounding->job;
  const bool blocks = job->precision.fp8.recipe == FP8_MXFP8, bf16 = job->precision.autocast;
  const bool floor = job->precision.fp8.mx_scale == MX_SCALE_FLOOR;
  const struct op_fp8_groups how = {.bf16 = bf16,
                                    .block = blocks ? BLOCK : 0,
                                    .scaling = !blocks ? FP8_SCALE_ROW
                                               : floor ? FP8_SCALE_FLOOR
                                                       : FP8_SCALE_CEILING,
                                    .wide_weight_gradient = job->precision.fp8.recipe == FP8_ROWWISE_WITH_GW_HP};
  struct value *x = builder_cast(rounding->builder, node->inputs[0], bf16 ? DTYPE_BFLOAT16 : DTYPE_FLOAT32);
  if (blocks) check_rows(rounding, node, "mxfp8 rounds blocks of", "recipe: rowwise");
  return op_fp8_group_matmul_with(rounding->builder, x, node->inputs[1], how);
}

static struct value *multiply_tensors(struct rounding *rounding, const struct node *node,
                                      const struct parameter *weight) {
  struct builder *builder = rounding->builder;
  const struct job *job = rounding->job;
  if (fp8_has_codes(rounding->program))
    check_rows(rounding, node, "cuBLASLt adds up numbers of 8 bits of", "precision.fp8.emulate: true");
  const struct node *x = quantize_input(rounding, weight, node->inputs[0]);
  const struct node *w = quantize(rounding, weight, WEIGHT, weight->value);
  const bool by_rows = node->inputs[1]->kind == VALUE_PARAMETER;
  struct value *right = by_rows ? w->outputs[0] : op_matrix_transpose(builder, w->outputs[0]);
  struct value *const factors[] = {x->outputs[0], right, x->outputs[1], w->outputs[1]};
  struct value *buffers[2] = {NULL};
  if (job->precision.fp8.backend != FP8_AO) add_buffers(rounding, weight, GRAD_OUTPUT, buffers);
  struct value *wide = job->precision.fp8.override == OVERRIDE_WGRAD ? x->inputs[0] : NULL;
  return op_fp8_product(builder, factors, buffers[0], buffers[1], wide,
                        rounded_as(job, job->precision.fp8.format == FP8_HYBRID));
}

/* Puts the product in 8 bits after the matmul, which has no use then. */
static struct value *extend(void *context, const struct node *node, const char *marks) {
  struct rounding *rounding = context;
  const int index = matmul_weight(node);
  if (index < 0 || marks[index] != '8') return NULL;
  const struct parameter weight = node->region->parameters.items[index];
  builder_enter(rounding->builder, node->region);
  builder_at(rounding->builder, node->where);
  struct value *y = rounding->job->precision.fp8.recipe == FP8_TENSORWISE ? multiply_tensors(rounding, node, &weight)
                                                                          : multiply_groups(rounding, node);
  builder_leave(rounding->builder);
  return y;
}

bool round_to_fp8(struct program *program, struct builder *builder, struct diagnostics *diags) {
  const struct job *job = program->job;
  struct rounding rounding = {.program = program, .builder = builder, .job = job, .diags = diags};
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
