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
  if (value == node->outputs[0]) return;
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

static bool wants(const struct program *program, enum metric metric) {
  return program->job->training.metrics[metric];
}

/* A metric of the job that is not one of those; METRICS: all are. */
static enum metric other_metric(const struct program *program, const enum metric *those, int count) {
  for (int m = 0; m < METRICS; m++) {
    bool is_one = !wants(program, m) || m == METRIC_PERPLEXITY;
    for (int i = 0; i < count; i++) is_one |= those[i] == (enum metric)m;
    if (!is_one) return m;
  }
  return METRICS;
}

static bool check_shapes(const struct program *program, const struct value *logits, const struct value *labels,
                         struct diagnostics *diags) {
  struct location where = job_where(program->job, "training.metrics");
  if (labels == NULL) {
    diag_error(diags, where, "these metrics compare predictions with labels, which the model does not take");
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

/* What the labels are compared with: of whole numbers classes, or scores where a metric needs an order; of others a
 * row of labels that hold or not, or values. */
static enum prediction_kind kind_of(const struct program *program, const struct value *labels) {
  bool values = wants(program, METRIC_PEARSON) || wants(program, METRIC_SPEARMAN);
  bool scores = wants(program, METRIC_AUC) || wants(program, METRIC_MARGIN);
  if (labels->dtype == DTYPE_INT32) return scores ? PREDICTS_SCORES : PREDICTS_CLASSES;
  return labels->shape.rank == 2 && !values ? PREDICTS_LABELS : PREDICTS_VALUES;
}

/* The metrics that each kind has; classes count below 0 or as many. */
static bool check_metrics(const struct program *program, enum prediction_kind kind, int64_t classes,
                          struct diagnostics *diags) {
  static const enum metric of_classes[] = {METRIC_ACCURACY, METRIC_F1_MACRO, METRIC_F1_BINARY,
                                           METRIC_F1_MICRO, METRIC_MATTHEWS, METRIC_EXACT_MATCH,
                                           METRIC_TOKEN_F1, METRIC_AUC,      METRIC_MARGIN};
  static const enum metric of_labels[] = {METRIC_ACCURACY, METRIC_F1_MACRO, METRIC_F1_MICRO, METRIC_EXACT_MATCH};
  static const enum metric of_values[] = {METRIC_PEARSON, METRIC_SPEARMAN};
  struct location where = job_where(program->job, "training.metrics");
  enum metric other = kind == PREDICTS_LABELS   ? other_metric(program, of_labels, 4)
                      : kind == PREDICTS_VALUES ? other_metric(program, of_values, 2)
                                                : other_metric(program, of_classes, 9);
  if (other < METRICS && kind == PREDICTS_LABELS) {
    diag_error(diags, where, "%s is of one label for each sample, and this model has several", job_metric_names[other]);
    diag_help(diags, "accuracy, f1_macro, f1_micro and exact_match are of several, too");
  } else if (other < METRICS && kind == PREDICTS_VALUES) {
    diag_error(diags, where, "%s compares classes, and the labels of this model are float32", job_metric_names[other]);
    diag_help(diags, "pearson and spearman are of values; classes are int32 (data.label, or data.inputs.labels.dtype)");
  } else if (other < METRICS) {
    diag_error(diags, where, "%s compares values, and the labels of this model are classes", job_metric_names[other]);
    diag_help(diags, "values are float32 (data.label, or data.inputs.labels.dtype)");
  }
  if (other < METRICS) return false;
  const char *binary = wants(program, METRIC_F1_BINARY) ? "f1_binary"
                       : wants(program, METRIC_AUC)     ? "auc"
                       : wants(program, METRIC_MARGIN)  ? "margin"
                                                        : NULL;
  if (binary == NULL || classes == 2) return true;
  diag_error(diags, where, "%s is of two classes; 'predict' gives %lld", binary, (long long)classes);
  diag_help(diags, "f1_macro takes any number");
  return false;
}

/* A span is two labels of classes, which are positions. */
static bool check_spans(const struct program *program, enum prediction_kind kind, const struct value *labels,
                        struct diagnostics *diags) {
  if (!wants(program, METRIC_TOKEN_F1)) return true;
  const bool spans = labels->shape.rank == 2 && labels->shape.dim[1] == 2;
  if (spans && kind == PREDICTS_CLASSES) return true;
  struct location where = job_where(program->job, "training.metrics");
  if (spans)
    diag_error(diags, where, "token_f1 is of positions, and auc and margin are of two classes");
  else
    diag_error(diags, where, "token_f1 is of spans, and the labels of this model are %s",
               shape_text(program->arena, labels->shape));
  diag_help(diags, spans ? "leave out one or the other"
                         : "the labels of spans are [batch][2]: the first and the last position");
  return false;
}

/* Ranks that have a part of a sample's labels do not know whether all of them are predicted, and pairs of scores are
 * gathered over ranks with samples of their own alone. */
static bool check_ranks(const struct program *program, enum prediction_kind kind, const struct value *labels,
                        struct diagnostics *diags) {
  bool pairs = kind == PREDICTS_SCORES || kind == PREDICTS_VALUES;
  bool spans = wants(program, METRIC_TOKEN_F1);
  bool exact = spans || (wants(program, METRIC_EXACT_MATCH) && labels->shape.rank > 1);
  for (int axis = 0; axis < AXES; axis++) {
    const enum sharded sharded = program->mesh.axes[axis].sharded;
    const bool parts = sharded == SHARDED_KEYS || sharded == SHARDED_HEADS;
    const bool whole = sharded == SHARDED_BATCHES || !(pairs || (exact && parts));
    if (whole || ranks_along(program, (enum axis)axis) <= 1) continue;
    diag_error(diags, job_where(program->job, "training.metrics"), "%s needs ranks that have whole samples",
               pairs   ? "auc, margin, pearson or spearman"
               : spans ? "token_f1"
                       : "exact_match");
    diag_help(diags, "leave parallelism.%s out, or the metric", job_axis_names[axis]);
    return false;
  }
  return true;
}

/* A float32 for each label: its logit; of two logits, by how much the second is larger. */
static struct value *scores_of(struct builder *builder, struct value *logits, struct shape labels, int64_t columns) {
  logits = builder_cast(builder, logits, DTYPE_FLOAT32);
  if (columns == 2) {
    int last = logits->shape.rank - 1;
    logits = op_sub(builder, op_slice(builder, logits, last, 1, 1), op_slice(builder, logits, last, 0, 1));
  } else {
    logits = op_copied(builder, logits); /* a result is no part of another value's memory */
  }
  return op_reshape(builder, logits, labels);
}

/* Classes and labels that hold: so that logits are not stored. */
static struct value *classes_of(struct builder *builder, struct value *logits, struct shape labels) {
  if (logits->shape.rank == labels.rank) { /* one logit a label */
    labels.dim[labels.rank++] = 1;
    logits = op_reshape(builder, logits, labels);
  }
  return op_predict_class(builder, logits);
}

/* The logits of what is evaluated become what the metrics compare. */
static bool make_predictions(struct program *program, struct builder *builder, struct region *entry,
                             struct diagnostics *diags) {
  struct value *logits = entry->results.items[1], *labels = label_input(program, entry);
  if (!check_shapes(program, logits, labels, diags)) return false;
  const struct shape shape = labels->shape;
  int64_t columns = logits->shape.rank == shape.rank ? 1 : logits->shape.dim[logits->shape.rank - 1];
  enum prediction_kind kind = kind_of(program, labels);
  struct program_evaluation *evaluation = &program->evaluation;
  evaluation->kind = kind;
  evaluation->labels = labels;
  evaluation->classes = kind == PREDICTS_VALUES   ? 0
                        : kind == PREDICTS_LABELS ? shape.dim[1]
                        : columns == 1            ? 2
                                                  : columns;
  if (!check_metrics(program, kind, evaluation->classes, diags) || !check_spans(program, kind, labels, diags) ||
      !check_ranks(program, kind, labels, diags))
    return false;
  if (columns > 1 && (kind == PREDICTS_VALUES || kind == PREDICTS_LABELS)) {
    diag_error(diags, job_where(program->job, "training.metrics"),
               "these metrics compare one value with each label; 'predict' gives %lld", (long long)columns);
    diag_help(diags, "let 'predict' return the labels' shape, or it with one number after it");
    return false;
  }
  bool scores = kind == PREDICTS_SCORES || kind == PREDICTS_VALUES;
  builder_enter(builder, entry);
  builder_at(builder, entry->where);
  evaluation->predicted = scores ? scores_of(builder, logits, shape, columns) : classes_of(builder, logits, shape);
  entry->results.items[1] = evaluation->predicted;
  builder_leave(builder);
  builder_name(builder, evaluation->predicted, "predictions");
  name_values(program->arena, entry);
  return true;
}

/* Copies of the regions of a graph, the program's own or another one, as they are evaluated. */
static void copy_evaluated(struct program *program, const struct graph *from, struct builder *builder) {
  struct graph *graph = program->graph;
  int n = from->n_regions;
  struct copying copying = {.graph = graph};
  copying.callees = arena_alloc(graph->arena, (size_t)n * sizeof(struct region *));
  copying.values = arena_alloc(graph->arena, ((size_t)from->next_value + 1) * sizeof(struct value *));
  for (int i = 0; i < n; i++) {
    copying.callees[i] = copy_region(&copying, from->regions[i], "evaluation");
    substitute_in_region(graph, builder, copying.callees[i]);
  }
  program->entry.second_region = copying.callees[from->entry->id];
}

void part_evaluation(struct program *program, struct builder *builder) {
  copy_evaluated(program, program->graph, builder);
}

/* The entry is trained by its loss alone; what it predicts is a result of the evaluation. */
static bool predict(struct program *program, struct builder *builder, struct diagnostics *diags) {
  struct graph *graph = program->graph;
  if (graph->entry->results.count == 1) return true;
  graph->entry->results.count = 1;
  return make_predictions(program, builder, program->entry.second_region, diags);
}

bool join_evaluation(struct program *program, const struct graph *evaluated, struct builder *builder,
                     struct diagnostics *diags) {
  copy_evaluated(program, evaluated, builder);
  return predict(program, builder, diags);
}

bool add_evaluation(struct program *program, struct builder *builder, struct diagnostics *diags) {
  if (!differs(program->graph) && program->graph->entry->results.count == 1) return true;
  part_evaluation(program, builder);
  return predict(program, builder, diags);
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
  return graph->entry->results.count == 1 || make_predictions(program, builder, graph->entry, diags);
}

/* ---- What its loss is a mean over ---- */

/* Whether a sum has the factor 1 / samples, and so is a mean over these. */
static bool is_mean_of_samples(const struct job *job, struct mean sum) {
  return fabs(sum.most * (double)job_eval_batch(job) / sum.terms - 1) < 1e-9;
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
  if (drawn != NULL && job->training.eval_iters == 0 && job_eval_batch(job) > 1)
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
