#include "gen/plan/graph/evaluation.h"

#include <math.h>
#include <string.h>

#include "gen/ir/copy.h"
#include "gen/ir/names.h"
#include "gen/ir/op.h"
#include "gen/ir/region.h"
#include "gen/ops/support/nodes.h"
#include "gen/plan/graph/normalize.h"
#include "gen/plan/graph/step_end.h"

/* Whether some node is replaced where the model is evaluated. */
static bool differs(const struct graph *graph) {
  for (int r = 0; r < graph->n_regions; r++)
    for (int i = 0; i < graph->regions[r]->nodes.count; i++)
      if (graph->regions[r]->nodes.items[i]->kind->evaluation.substitute != NULL) return true;
  return false;
}

/* A value in the type of the result that it replaces, which may be another where a kernel writes what is cast: by the
 * cast of it that the region has before node `index`, else by one more. */
static struct value *in_type(struct builder *builder, const struct region *region, int index, struct value *value,
                             enum dtype dtype) {
  for (int i = 0; i < index && value->dtype != dtype; i++) {
    const struct node *node = region->nodes.items[i];
    if (node->kind->types.converts && node->inputs[0] == value && node->outputs[0]->dtype == dtype)
      return node->outputs[0];
  }
  return builder_cast(builder, value, dtype);
}

/* Replaces the node by its substitute for evaluation. */
static void substitute_in_node(struct graph *graph, struct builder *builder, struct region *region, int index) {
  struct node *node = region->nodes.items[index];
  int before = region->nodes.count;
  builder_at(builder, node->where);
  struct value *value = node->kind->evaluation.substitute(builder, node);
  value = in_type(builder, region, index, value, node->outputs[0]->dtype);
  for (int i = before; i < region->nodes.count; i++) {
    struct node *made = region->nodes.items[region->nodes.count - 1];
    region->nodes.count--;
    region_insert(graph, region, index, made);
  }
  if (value->kind == VALUE_RESULT && node->outputs[0]->name != NULL)
    builder_name(builder, value, node->outputs[0]->name);
  region_replace(region, node->outputs[0], value);
  region_remove(region, node);
}

static void substitute_in_region(struct graph *graph, struct builder *builder, struct region *region) {
  int last = graph->next_node;
  builder_enter(builder, region);
  for (int i = region->nodes.count - 1; i >= 0; i--)
    if (region->nodes.items[i]->kind->evaluation.substitute != NULL) substitute_in_node(graph, builder, region, i);
  builder_leave(builder);
  if (graph->next_node > last) name_values(graph->arena, region);
}

/* The input that predictions are compared with, as the data names it; NULL where the model does not take it. */
static struct value *label_input(const struct program *program, const struct region *entry) {
  const char *name = job_has_rows(program->job) ? "labels" : "targets";
  for (int i = 0; i < entry->inputs.count; i++)
    if (strcmp(entry->inputs.items[i]->name, name) == 0) return entry->inputs.items[i];
  return NULL;
}

static bool check_predictions(const struct program *program, const struct value *logits, const struct value *labels,
                              struct diagnostics *diags) {
  struct location where = job_where(program->job, "training.metrics");
  if (labels == NULL || labels->dtype != DTYPE_INT32) {
    diag_error(diags, where, "these metrics compare predictions with classes, which the model does not take");
    diag_help(diags, "perplexity is a metric of the loss alone");
    return false;
  }
  struct shape rows = logits->shape;
  if (rows.rank > labels->shape.rank) rows.rank = labels->shape.rank;
  bool each = logits->shape.rank - rows.rank <= 1 && shape_equal(rows, labels->shape);
  if (each) return true;
  diag_error(diags, where, "these metrics need a prediction for each label: 'predict' gives %s, and %s is %s",
             shape_text(program->arena, logits->shape), labels->name, shape_text(program->arena, labels->shape));
  diag_help(diags, "let 'predict' return logits: the labels' shape with the number of classes after it");
  return false;
}

static bool check_classes(const struct program *program, int64_t classes, struct diagnostics *diags) {
  if (!program->job->training.metrics[METRIC_F1_BINARY] || classes == 2) return true;
  diag_error(diags, job_where(program->job, "training.metrics"), "f1_binary is of two classes; 'predict' gives %lld",
             (long long)classes);
  diag_help(diags, "f1_macro takes any number");
  return false;
}

/* The logits of what is evaluated become classes, so that they are not stored. */
static bool predict_classes(struct program *program, struct builder *builder, struct region *entry,
                            struct diagnostics *diags) {
  struct value *logits = entry->results.items[1], *labels = label_input(program, entry);
  if (!check_predictions(program, logits, labels, diags)) return false;
  bool single = logits->shape.rank == labels->shape.rank; /* one logit a label */
  int64_t last = single ? 1 : logits->shape.dim[logits->shape.rank - 1];
  builder_enter(builder, entry);
  builder_at(builder, entry->where);
  if (single) {
    struct shape columns = labels->shape;
    columns.dim[columns.rank++] = 1;
    logits = op_reshape(builder, logits, columns);
  }
  entry->results.items[1] = op_predict_class(builder, logits);
  builder_leave(builder);
  builder_name(builder, entry->results.items[1], "predictions");
  name_values(program->arena, entry);
  program->evaluation.predicted = entry->results.items[1];
  program->evaluation.labels = labels;
  program->evaluation.classes = last == 1 ? 2 : last;
  return check_classes(program, program->evaluation.classes, diags);
}

void part_evaluation(struct program *program, struct builder *builder) {
  struct graph *graph = program->graph;
  int n = graph->n_regions;
  struct copying copying = {.graph = graph};
  copying.callees = arena_alloc(graph->arena, (size_t)n * sizeof(struct region *));
  copying.values = arena_alloc(graph->arena, ((size_t)graph->next_value + 1) * sizeof(struct value *));
  for (int i = 0; i < n; i++) {
    copying.callees[i] = copy_region(&copying, graph->regions[i], "evaluation");
    substitute_in_region(graph, builder, copying.callees[i]);
  }
  program->entry.second_region = copying.callees[graph->entry->id];
}

bool add_evaluation(struct program *program, struct builder *builder, struct diagnostics *diags) {
  struct graph *graph = program->graph;
  bool predicts = graph->entry->results.count > 1;
  if (!differs(graph) && !predicts) return true;
  part_evaluation(program, builder);
  if (!predicts) return true;
  graph->entry->results.count = 1;
  return predict_classes(program, builder, program->entry.second_region, diags);
}

/* A node of the region, or of what it calls, that draws random numbers; NULL: there is none. */
static const struct node *drawing(const struct region *region) {
  for (int i = 0; i < region->nodes.count; i++) {
    const struct node *node = region->nodes.items[i];
    const struct node *inner = node->call != NULL          ? drawing(node->call->callee)
                               : node->kind->kernel.random ? node
                                                           : NULL;
    if (inner != NULL) return inner;
  }
  return NULL;
}

static bool refuse_draws(const struct node *node, struct diagnostics *diags) {
  diag_error(diags, node->where, "%s draws random numbers, which only a program that trains gives a model",
             node->kind->name);
  diag_help(diags, "let the model take what it needs from its inputs");
  return false;
}

bool become_evaluation(struct program *program, struct builder *builder, struct diagnostics *diags) {
  struct graph *graph = program->graph;
  for (int r = 0; r < graph->n_regions; r++) substitute_in_region(graph, builder, graph->regions[r]);
  const struct node *draws = drawing(graph->entry);
  if (draws != NULL) return refuse_draws(draws, diags);
  return graph->entry->results.count == 1 || predict_classes(program, builder, graph->entry, diags);
}

/* ---- What its loss is a mean over ---- */

/* Whether a sum has the factor 1 / samples, and so is a mean over these. */
static bool is_mean_of_samples(const struct job *job, struct mean sum) {
  return fabs(sum.most * (double)job->data.batch_size / sum.terms - 1) < 1e-9;
}

static bool refuse_sum(const struct program *program, const struct value *sum, struct diagnostics *diags) {
  while (sum->producer->call != NULL) sum = sum->producer->call->callee->results.items[sum->index];
  diag_error(diags, sum->producer->where,
             "a loss must be a mean over samples to be evaluated over all of them; this one is a sum over a batch");
  diag_note(diags, job_where(program->job, "training.eval_iters"), "'training.eval_iters' is all here");
  diag_help(diags, "divide the sum by the number of samples, or take mean_all; or set training.eval_iters to a number");
  return false;
}

/* The last batch is filled up with copies of a sample, which would get other numbers than the sample. */
static bool refuse_drawing(const struct program *program, const struct node *node, struct diagnostics *diags) {
  diag_error(diags, node->where, "%s draws random numbers, so an evaluation cannot take each sample once",
             node->kind->name);
  diag_note(diags, job_where(program->job, "training.eval_iters"), "'training.eval_iters' is all here");
  diag_help(diags, "set training.eval_iters to a number of batches");
  return false;
}

bool plan_evaluation_mean(struct program *program, struct builder *builder, struct diagnostics *diags) {
  const struct job *job = program->job;
  struct region *entry = program->entry.second_region != NULL ? program->entry.second_region : program->graph->entry;
  bool known = program->entry.second_region == NULL && program->step_end.mean.form != MEAN_NONE;
  const struct node *drawn = drawing(entry), *cause;
  if (drawn != NULL && job->training.eval_iters == 0 && job->data.batch_size > 1)
    return refuse_drawing(program, drawn, diags);
  struct mean mean = known ? program->step_end.mean : loss_mean(builder, entry, &cause);
  bool packed = job->data.packing != PACKING_NONE;
  if (program->kind == PROGRAM_EVALUATE && packed && !leave_targets_out(program, entry, &mean, diags)) return false;
  if (program->kind == PROGRAM_EVALUATE) count_targets(program, entry, &mean);
  if (mean.form == MEAN_SUM && job->training.eval_iters == 0 && !is_mean_of_samples(job, mean))
    return refuse_sum(program, mean.count, diags);
  if (mean.form == MEAN_COUNTED && target_occurs(job, mean.without))
    program->evaluation.count = known && program->step_end.counts ? mean.count : give_count(builder, entry, mean);
  return true;
}
