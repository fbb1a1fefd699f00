#include "gen/spec/parallel.h"

#include <string.h>

#include "gen/spec/compression.h"
#include "gen/spec/mesh.h"
#include "gen/spec/refusals.h"
#include "gen/spec/sharding.h"
#include "gen/spec/tensor_plan.h"

int64_t job_sequence_ranks(const struct job *job) {
  int64_t ranks = job->parallelism.axes[AXIS_CP] * job->parallelism.axes[AXIS_SP];
  return ranks > 1 ? ranks : 1;
}

int64_t job_batch_ranks(const struct job *job) {
  return job_data_ranks(job) / job_sequence_ranks(job);
}

int64_t job_axis_stride(const struct job *job, enum axis axis) {
  int64_t stride = 1;
  for (int i = AXES - 1; i > (int)axis; i--)
    if (axis >= AXIS_CP || (i != AXIS_CP && i != AXIS_SP)) stride *= job->parallelism.axes[i];
  return stride;
}

int64_t job_data_ranks(const struct job *job) {
  const int64_t *axes = job->parallelism.axes;
  int64_t ranks = axes[AXIS_DP_REPLICATE] * axes[AXIS_DP_SHARD] * axes[AXIS_EP];
  return ranks > 1 ? ranks : 1;
}

bool job_has_tree(const struct job *job) {
  return job->parallelism.reproducible == REPRODUCIBLE_TOPOLOGY;
}

bool job_accumulates(const struct job *job) {
  return job->accumulation.num_steps > 1 && !job_has_tree(job);
}

int64_t job_round(const struct job *job) {
  return job_batch_ranks(job) * (job_has_tree(job) ? job->accumulation.num_steps : 1);
}

bool job_sends_fp8(const struct job *job) {
  return job->precision.fp8.on && job->precision.fp8.backend == FP8_MSAMP && job_data_ranks(job) > 1;
}

bool job_exchanges_means(const struct job *job) {
  return job->parallelism.power_sgd.on || job->parallelism.by_hook || job_sends_fp8(job);
}

int64_t job_adding_ranks(const struct job *job) {
  return job->parallelism.local_steps > 0 || job_exchanges_means(job) ? 1 : job_data_ranks(job);
}

int64_t parallel_ranks(const struct spec_node *job) {
  const struct spec_node *nodes = spec_find(job, "devices.nodes"), *each = spec_find(job, "devices.per_node");
  return nodes->integer * each->integer;
}

/* Ranks that divide each sequence. */
static int64_t sequence_ranks(const struct spec_node *job) {
  return axis_length(job, AXIS_CP) * axis_length(job, AXIS_SP);
}

int64_t parallel_data_ranks(const struct spec_node *job) {
  int64_t ranks = parallel_ranks(job) / axis_length(job, AXIS_TP) / sequence_ranks(job) / axis_length(job, AXIS_PP);
  return ranks > 1 ? ranks : 1;
}

/* ---- What does not go together ---- */

/* Of several ranks. */
static const struct refusal alone[] = {
    {"optimizer.name", "lomo", "gradients are freed before ranks could exchange them", "optimizer.name: sgd"},
    {"optimizer.name", "adalomo", "gradients are freed before ranks could exchange them", "optimizer.name: adafactor"},
    {"tracking.noise_scale", "true", "it compares a micro-batch's gradient with the step's of one process",
     "tracking.noise_scale: false"},
};

/* Of gradients that add up in one order, whoever has them. */
static const struct refusal ordered[] = {
    {"optimizer.name", "lomo", "gradients are freed before they could be added", "optimizer.name: sgd"},
    {"optimizer.name", "adalomo", "gradients are freed before they could be added", "optimizer.name: adafactor"},
    {"accumulation.sync_each_batch", "true", "ranks exchange what their micro-batches add up to",
     "accumulation.sync_each_batch: false"},
    {"parallelism.ddp.comm_hook", "power_sgd", "factors are of what a rank has added up",
     "parallelism.ddp.comm_hook: no"},
    {"parallelism.ddp.comm_hook", "batched_power_sgd", "factors are of what a rank has added up",
     "parallelism.ddp.comm_hook: no"},
    {"parallelism.ddp.comm_hook", "bf16", "sums within a rank are not rounded to 16 bits, and those between ranks are",
     "parallelism.ddp.comm_hook: no"},
    {"parallelism.ddp.comm_hook", "fp16", "sums within a rank are not rounded to 16 bits, and those between ranks are",
     "parallelism.ddp.comm_hook: no"},
    {"tracking.noise_scale", "true", "it compares the first micro-batch of a process with the step",
     "tracking.noise_scale: false"},
    {"hooks.on_bucket", NULL, "the function decides how ranks add up", "a job without hooks.on_bucket"},
};

/* Of ranks that step alone. */
static const struct refusal local[] = {
    {"parallelism.reproducible", "topology", "no gradients add up over ranks", "parallelism.reproducible: run"},
    {"accumulation.sync_each_batch", "true", "no gradients are exchanged", "accumulation.sync_each_batch: false"},
    {"parallelism.ddp.comm_hook", "!no", "no gradients are exchanged", "parallelism.ddp.comm_hook: no"},
    {"hooks.on_bucket", NULL, "no gradients are exchanged", "a job without hooks.on_bucket"},
    {"training.ema", NULL, "each rank would have averages of its own weights", "a job without an average"},
    {"optimizer.name", "schedule_free_adamw", "each rank would have averages of its own weights",
     "optimizer.name: adamw"},
};

/* Of ranks that run out of samples. */
static const struct refusal uneven[] = {
    {"data.drop_last", "true", "an epoch drops an incomplete round", "data.drop_last: false"},
    {"data.even_batches", "true", "the last round is filled up for all of them", "data.even_batches: false"},
    {"data.dispatch_batches", "true", "all of them get equal parts of the last round", "data.dispatch_batches: false"},
    {"accumulation.normalize", "tokens", "all targets have the same weight, on any rank",
     "accumulation.normalize: batches"},
    {"parallelism.sync_batch_norm", "true", "a batch's statistics are of all of them",
     "parallelism.sync_batch_norm: false"},
    {"parallelism.reproducible", "topology", "its tree of sums is of whole rounds", "parallelism.reproducible: run"},
    {"parallelism.local_sgd_steps", NULL, "no gradients are exchanged", "a job without parallelism.local_sgd_steps"},
    {"hooks.on_bucket", NULL, "the function would count ranks that have none", "a job without hooks.on_bucket"},
};

/* Of nodes that each save: what only the first rank has, and what no test has run. */
static const struct refusal each_node[] = {
    {"parallelism.local_sgd_steps", NULL, "each rank has states of its own",
     "a job without parallelism.local_sgd_steps"},
    {"hooks.source", NULL, "what user code saves is that of the main process", "a job without hooks"},
    {"devices.kind", "cuda", "no run of it on GPUs was tried", "devices.kind: cpu"},
};

/* A rank that is alone on its machine needs no binding of threads. */
static void check_affinity(const struct spec_node *job, struct diagnostics *diags) {
  const struct spec_node *affinity = spec_find(job, "devices.numa_affinity");
  const struct spec_node *each = spec_find(job, "devices.per_node");
  if (affinity->integer == 0 || each->integer > 1) return;
  diag_error(diags, affinity->where,
             "'devices.numa_affinity' divides a machine among its ranks, and here each machine has one rank");
  diag_help(diags, "leave it out, or set devices.per_node to a rank for each node of memory");
}

static void check_alone(const struct spec_node *job, struct diagnostics *diags) {
  const struct spec_node *each = spec_find(job, "devices.per_node");
  const struct spec_node *cause = each->integer > 1 ? each : spec_find(job, "devices.nodes");
  if (parallel_ranks(job) > 1) check_refusals(job, alone, COUNT(alone), "several ranks", cause, "one rank", diags);
}

static void check_spread(const struct spec_node *job, struct diagnostics *diags) {
  const struct spec_node *nodes = spec_find(job, "devices.nodes");
  const struct spec_node *each = spec_find(job, "checkpoint.save_on_each_node");
  if (nodes->integer == 1 || each->integer == 0) return;
  check_refusals(job, each_node, COUNT(each_node), "nodes that each save", each, "checkpoint.save_on_each_node: false",
                 diags);
  const int64_t experts = axis_length(job, AXIS_EP), ranks = parallel_data_ranks(job);
  if (experts == 1 && ranks == parallel_ranks(job) && data_grid_of(job, ranks).parts == 1) return;
  diag_error(diags, each->where,
             "'checkpoint.save_on_each_node' does not go with ranks that divide more than batches: "
             "the first rank collects for a checkpoint what they have");
  diag_help(diags, "use checkpoint.save_on_each_node: false, or a job without zero_stage, fsdp, tp, cp, sp, ep and pp");
}

static void check_ordered(const struct spec_node *job, struct diagnostics *diags) {
  const struct spec_node *order = spec_find(job, "parallelism.reproducible");
  if (spec_is(order, "topology"))
    check_refusals(job, ordered, COUNT(ordered), "one order of all sums", order, "parallelism.reproducible: run",
                   diags);
}

/* What is evaluated and saved is what all ranks have. A time makes it so; an epoch's end need not be such a step. */
static void check_cadence(const struct spec_node *job, const char *key, const struct spec_node *local,
                          struct diagnostics *diags) {
  const struct spec_node *every = spec_find(job, key);
  if (every == NULL) return;
  const bool in_epochs = strstr(every->kind == SPEC_STRING ? every->text : key, "epoch") != NULL;
  if (!in_epochs && (every->kind != SPEC_INT || every->integer % local->integer == 0)) return;
  diag_error(diags, every->where, "'%s' must be a multiple of the %lld steps that each rank takes alone", key,
             (long long)local->integer);
  diag_note(diags, local->where, "'parallelism.local_sgd_steps' is %lld here", (long long)local->integer);
  const long long number = in_epochs ? 0 : every->integer;
  diag_help(diags, "between, ranks have different weights: use %lld",
            (number / (long long)local->integer + 1) * (long long)local->integer);
}

static void check_local(const struct spec_node *job, struct diagnostics *diags) {
  const struct spec_node *steps = spec_find(job, "parallelism.local_sgd_steps");
  if (steps == NULL || parallel_ranks(job) == 1) return;
  check_refusals(job, local, COUNT(local), "ranks that step alone", steps, "a job without parallelism.local_sgd_steps",
                 diags);
  check_cadence(job, "training.eval_interval", steps, diags);
  check_cadence(job, "checkpoint.every", steps, diags);
  check_cadence(job, "checkpoint.every.steps", steps, diags);
  check_cadence(job, "checkpoint.every.epochs", steps, diags);
}

/* ---- Batches ---- */

static bool is_set(const struct spec_node *job, const char *key) {
  const struct spec_node *node = spec_find(job, key);
  return node != NULL && node->integer != 0;
}

/* One batch for all ranks together. */
static void check_split(const struct spec_node *job, const char *key, struct diagnostics *diags) {
  const struct spec_node *batch = spec_find(job, key);
  long long ranks = parallel_data_ranks(job);
  if (batch == NULL || ranks == 1 || !is_set(job, "data.split_batches")) return;
  if (batch->kind != SPEC_STRING && batch->integer % ranks == 0) return;
  diag_error(diags, batch->where, "'%s' must be a multiple of the %lld ranks that it is split among", key, ranks);
  diag_note(diags, spec_find(job, "data.split_batches")->where, "'data.split_batches' is true here");
  diag_help(diags, "give the samples of all ranks together, or of each with data.split_batches: false");
}

/* Whether an epoch is distributed in rounds of several batches. */
static bool deals_rounds(const struct spec_node *job) {
  const struct spec_node *steps = spec_find(job, "accumulation.num_steps");
  bool whole_steps = spec_is(spec_find(job, "parallelism.reproducible"), "topology");
  return parallel_data_ranks(job) > 1 || (whole_steps && !spec_is(steps, "1"));
}

/* A rank without samples has no mean. */
static void check_rest(const struct spec_node *job, struct diagnostics *diags) {
  const struct spec_node *last = spec_find(job, "data.drop_last"), *even = spec_find(job, "data.even_batches");
  const struct spec_node *dispatch = spec_find(job, "data.dispatch_batches");
  if (!deals_rounds(job) || last->integer != 0 || (even->integer != 0 && dispatch->integer == 0)) return;
  if (strcmp(spec_find(job, "accumulation.normalize")->text, "tokens") == 0) return;
  if (is_set(job, "data.join_uneven_inputs")) return;
  diag_error(diags, (dispatch->integer != 0 ? dispatch : even)->where,
             "the last round of an epoch may leave a rank without samples, and a mean over nothing is not a number");
  diag_note(diags, last->where, "'data.drop_last' is false here");
  diag_help(diags, "set accumulation.normalize: tokens, or without data.dispatch_batches either data.even_batches or "
                   "data.join_uneven_inputs: true");
}

static void check_joined(const struct spec_node *job, struct diagnostics *diags) {
  const struct spec_node *join = spec_find(job, "data.join_uneven_inputs");
  const struct spec_node *by_all = spec_find(job, "parallelism.ddp.divide_by_initial_world_size");
  if (join->integer != 0)
    check_refusals(job, uneven, COUNT(uneven), "ranks that run out of samples", join, "data.join_uneven_inputs: false",
                   diags);
  if (join->integer != 0 || by_all->integer != 0) return;
  diag_error(diags, by_all->where, "no rank runs out of samples without 'data.join_uneven_inputs'");
  diag_help(diags, "leave it out, or set data.join_uneven_inputs: true");
}

void parallel_check(const struct spec_node *job, struct diagnostics *diags) {
  mesh_check(job, diags);
  tensor_plan_check(job, diags);
  sharding_check(job, parallel_data_ranks(job) / axis_length(job, AXIS_EP), diags);
  check_alone(job, diags);
  check_affinity(job, diags);
  check_spread(job, diags);
  check_ordered(job, diags);
  check_local(job, diags);
  compression_check(job, diags);
  check_split(job, "data.batch_size", diags);
  check_split(job, "data.eval_batch_size", diags);
  check_rest(job, diags);
  check_joined(job, diags);
}

/* ---- The job's members ---- */

/* The mesh, and what follows from it. */
static void bind_axes(struct job *job, int64_t data_ranks) {
  for (int i = 0; i < AXES; i++) job->parallelism.axes[i] = 1;
  int64_t expert = axis_length(job->tree, AXIS_EP);
  struct data_grid grid = data_grid_of(job->tree, data_ranks / expert);
  job->parallelism.axes[AXIS_PP] = axis_length(job->tree, AXIS_PP);
  job->parallelism.axes[AXIS_TP] = axis_length(job->tree, AXIS_TP);
  job->parallelism.axes[AXIS_CP] = axis_length(job->tree, AXIS_CP);
  job->parallelism.axes[AXIS_SP] = axis_length(job->tree, AXIS_SP);
  job->parallelism.axes[AXIS_EP] = expert;
  job->parallelism.axes[AXIS_DP_REPLICATE] = grid.parts > 1 ? grid.replicas : grid.replicas * job_sequence_ranks(job);
  job->parallelism.axes[AXIS_DP_SHARD] = grid.parts;
  const struct spec_node *least = spec_find(job->tree, "parallelism.fsdp.min_num_params");
  job->parallelism.least_params = least != NULL ? least->integer : 0;
  job->parallelism.zero_stage = grid.parts > 1 ? (int)grid.stage : 0;
  const struct spec_node *type = spec_find(job->tree, "parallelism.fsdp.state_dict_type");
  job->checkpoint.by_rank = job->parallelism.zero_stage > 0 && type != NULL && spec_is(type, "sharded_state_dict");
}

static void bind_megatron(struct job *job) {
  job->parallelism.splits_sequence = is_set(job->tree, "parallelism.megatron.sequence_parallelism");
  const struct spec_node *split = spec_find(job->tree, "parallelism.megatron.pipeline_model_parallel_split_rank");
  job->parallelism.split_rank = split != NULL && job->parallelism.axes[AXIS_PP] > 1 ? split->integer : 0;
  const struct spec_node *chunk = spec_find(job->tree, "parallelism.megatron.num_layers_per_virtual_pipeline_stage");
  job->parallelism.chunk_layers = chunk != NULL && job->parallelism.axes[AXIS_PP] > 1 ? chunk->integer : 0;
}

static void bind_data(struct job *job, int64_t data_ranks) {
  job->data.uneven_inputs = data_ranks > 1 && is_set(job->tree, "data.join_uneven_inputs");
  job->data.divide_by_initial_world_size = is_set(job->tree, "parallelism.ddp.divide_by_initial_world_size");
  job->data.split_batches = is_set(job->tree, "data.split_batches");
  if (job->data.split_batches) job->data.batch_size /= (int)data_ranks;
  if (job->data.split_batches) job->data.eval_batch_size /= (int)data_ranks;
}

void parallel_bind(struct job *job) {
  const struct spec_node *each = spec_find(job->tree, "accumulation.sync_each_batch");
  const struct spec_node *bucket = spec_find(job->tree, "parallelism.ddp.bucket_cap_mb");
  job->devices.ranks = parallel_ranks(job->tree);
  job->devices.nodes = spec_find(job->tree, "devices.nodes")->integer;
  job->devices.timeout = spec_find(job->tree, "devices.timeout")->integer;
  const int64_t data_ranks = parallel_data_ranks(job->tree);
  bind_axes(job, data_ranks);
  compression_bind(job);
  job->checkpoint.each_node = job->devices.nodes > 1 && is_set(job->tree, "checkpoint.save_on_each_node");
  job->parallelism.bucket_bytes = (int64_t)(bucket->real * (1 << 20));
  job->parallelism.sync_each_batch = each->integer != 0;
  bind_megatron(job);
  job->parallelism.sync_batch_norm = is_set(job->tree, "parallelism.sync_batch_norm");
  if (job->parallelism.reproducible != REPRODUCIBLE_OFF) job->training.deterministic = true;
  const struct spec_node *local = spec_find(job->tree, "parallelism.local_sgd_steps");
  job->parallelism.local_steps = local != NULL && data_ranks > 1 ? local->integer : 0;
  bind_data(job, data_ranks);
}

int64_t job_training_ranks(const struct job *job) {
  return parallel_data_ranks(job->tree);
}

void job_leave_ranks(struct job *job) {
  int64_t each = job->devices.ranks / job->devices.nodes, ranks = 1;
  for (int i = 0; i < AXES; i++) {
    if (i != AXIS_TP && i != AXIS_PP) job->parallelism.axes[i] = 1;
    ranks *= job->parallelism.axes[i];
  }
  job->parallelism.zero_stage = 0;
  job->devices.ranks = ranks;
  job->devices.nodes = (ranks + each - 1) / each;
}
