#include "gen/spec/parallel.h"

#include <string.h>

#include "gen/spec/compression.h"
#include "gen/spec/sharding.h"

const char *const job_axis_names[AXES] = {"dp_replicate", "dp_shard", "pp", "cp", "sp", "tp", "ep"};

int64_t job_sequence_ranks(const struct job *job) {
  return job->parallelism.axes[AXIS_CP] * job->parallelism.axes[AXIS_SP];
}

int64_t job_batch_ranks(const struct job *job) {
  return job_data_ranks(job) / job_sequence_ranks(job);
}

int64_t job_axis_stride(const struct job *job, enum axis axis) {
  int64_t stride = 1;
  for (int i = AXES - 1; i > (int)axis; i--)
    if (i != AXIS_CP && i != AXIS_SP) stride *= job->parallelism.axes[i];
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

bool job_adds_gradients(const struct job *job) {
  return job_accumulates(job) && !job_reduces_each(job);
}

/* In a tree a rank's own micro-batches add up first: with several, gradients are needed until the last one. */
bool job_reduces_each(const struct job *job) {
  return job->parallelism.zero_stage >= 2 && !(job_has_tree(job) && job->accumulation.num_steps > 1);
}

bool job_folds(const struct job *job) {
  return job_reduces_each(job) || job->parallelism.zero_stage == 3;
}

int64_t job_adding_ranks(const struct job *job) {
  return job->parallelism.local_steps > 0 || job->parallelism.power_sgd.on ? 1 : job_data_ranks(job);
}

int64_t parallel_ranks(const struct spec_node *job) {
  const struct spec_node *nodes = spec_find(job, "devices.nodes"), *each = spec_find(job, "devices.per_node");
  return nodes->integer * each->integer;
}

static const struct spec_node *axis_of(const struct spec_node *job, const char *axis) {
  return spec_find(spec_find(job, "parallelism"), axis);
}

static int64_t length_of(const struct spec_node *job, const char *axis) {
  const struct spec_node *node = axis_of(job, axis);
  return node != NULL ? node->integer : 1;
}

/* Ranks that divide each matmul. */
static int64_t tensor_ranks(const struct spec_node *job) {
  return length_of(job, "tp");
}

/* Ranks that divide the experts. */
static int64_t expert_ranks(const struct spec_node *job) {
  return length_of(job, "ep");
}

/* Ranks that divide each sequence. */
static int64_t sequence_ranks(const struct spec_node *job) {
  return length_of(job, "cp") * length_of(job, "sp");
}

/* Ranks that each have some of the layers. */
static int64_t stages(const struct spec_node *job) {
  return length_of(job, "pp");
}

int64_t parallel_data_ranks(const struct spec_node *job) {
  int64_t ranks = parallel_ranks(job) / tensor_ranks(job) / sequence_ranks(job) / stages(job);
  return ranks > 1 ? ranks : 1;
}

/* ---- What does not go together ---- */

struct refusal {
  const char *key, *value; /* a value that is refused; NULL: all */
  const char *why, *cure;
};

/* Of ranks that divide matmuls. */
static const char own_part[] = "it looks at whole parameters, and a rank has a part of some";
static const char untried[] = "no program with both has been measured against one rank";
static const struct refusal dividing[] = {
    {"devices.kind", "cuda", "programs for GPUs divide no tensors so far", "devices.kind: cpu"},
    {"devices.kind", "hip", "programs for GPUs divide no tensors so far", "devices.kind: cpu"},
    {"optimizer.name", "lamb", own_part, "optimizer.name: adamw"},
    {"optimizer.name", "adafactor", own_part, "optimizer.name: adamw"},
    {"optimizer.name", "muon", own_part, "optimizer.name: adamw"},
    {"optimizer.name", "lomo", own_part, "optimizer.name: sgd"},
    {"optimizer.name", "adalomo", own_part, "optimizer.name: adamw"},
    {"optimizer.name", "schedule_free_adamw", "its model is an average that each rank would have a part of",
     "optimizer.name: adamw"},
    {"optimizer.state_dtype", "8bit", "its scales are of blocks that ranks would cut", "optimizer.state_dtype: bf16"},
    {"optimizer.state_dtype", "bf16_stochastic", "chance is drawn by an element's index among all weights",
     "optimizer.state_dtype: bf16"},
    {"hooks.source", NULL, "user code would see a part of each parameter", "a job without hooks"},
    {"tracking.grad_norms", "per_layer", "a rank has a part of the gradient", "tracking.grad_norms: global"},
    {"data.join_uneven_inputs", "true", untried, "data.join_uneven_inputs: false"},
    {"parallelism.fsdp.state_dict_type", "sharded_state_dict", "a rank's part of a tensor is no range of it",
     "parallelism.fsdp.state_dict_type: full_state_dict"},
    {"parallelism.sync_batch_norm", "true", untried, "parallelism.sync_batch_norm: false"},
    {"parallelism.reproducible", "topology", "its tree of sums is of whole gradients", "parallelism.reproducible: run"},
    {"parallelism.ddp.comm_hook", "power_sgd", "its factors are of whole matrices", "parallelism.ddp.comm_hook: no"},
    {"parallelism.ddp.comm_hook", "batched_power_sgd", "its factors are of whole matrices",
     "parallelism.ddp.comm_hook: no"},
};

/* Of ranks that divide sequences. */
static const struct refusal sequences[] = {
    {"devices.kind", "cuda", "programs for GPUs divide no sequences so far", "devices.kind: cpu"},
    {"devices.kind", "hip", "programs for GPUs divide no sequences so far", "devices.kind: cpu"},
    {"precision.mixed_precision", "fp16", untried, "precision.mixed_precision: bf16"},
    {"precision.param_dtype", "fp16", untried, "precision.param_dtype: bf16"},
    {"model.lora", NULL, untried, "a job without model.lora"},
    {"hooks.source", NULL, untried, "a job without hooks"},
    {"data.join_uneven_inputs", "true", untried, "data.join_uneven_inputs: false"},
    {"data.packing", "documents", untried, "data.packing: none"},
    {"data.packing", "pad", untried, "data.packing: none"},
    {"parallelism.zero_stage", NULL, untried, "a job without parallelism.zero_stage"},
    {"parallelism.fsdp", NULL, untried, "a job without parallelism.fsdp"},
    {"parallelism.sync_batch_norm", "true", untried, "parallelism.sync_batch_norm: false"},
    {"parallelism.local_sgd_steps", NULL, untried, "a job without parallelism.local_sgd_steps"},
    {"parallelism.reproducible", "topology", "its tree of sums is of whole samples", "parallelism.reproducible: run"},
    {"parallelism.ddp.comm_hook", "power_sgd", untried, "parallelism.ddp.comm_hook: no"},
    {"parallelism.ddp.comm_hook", "batched_power_sgd", untried, "parallelism.ddp.comm_hook: no"},
};

/* Of ranks that divide experts. */
static const char other_experts[] = "it looks at all parameters together, and ranks have experts of their own";
static const char named_experts[] = "a rank's program names its own experts alone";
static const struct refusal dealing[] = {
    {"devices.kind", "cuda", "programs for GPUs divide no experts so far", "devices.kind: cpu"},
    {"devices.kind", "hip", "programs for GPUs divide no experts so far", "devices.kind: cpu"},
    {"optimizer.name", "lamb", untried, "optimizer.name: adamw"},
    {"optimizer.name", "adafactor", untried, "optimizer.name: adamw"},
    {"optimizer.name", "muon", untried, "optimizer.name: adamw"},
    {"optimizer.name", "schedule_free_adamw", other_experts, "optimizer.name: adamw"},
    {"optimizer.param_groups", NULL, named_experts, "a job without optimizer.param_groups"},
    {"optimizer.state_dtype", "8bit", untried, "optimizer.state_dtype: bf16"},
    {"optimizer.state_dtype", "bf16_stochastic", "chance is drawn by an element's index among all weights",
     "optimizer.state_dtype: bf16"},
    {"model.freeze", NULL, named_experts, "a job without model.freeze"},
    {"model.fresh", NULL, named_experts, "a job without model.fresh"},
    {"model.lora", NULL, untried, "a job without model.lora"},
    {"training.ema", NULL, other_experts, "a job without training.ema"},
    {"training.early_stopping.restore_best", "true", other_experts, "training.early_stopping.restore_best: false"},
    {"precision.mixed_precision", "fp16", untried, "precision.mixed_precision: bf16"},
    {"precision.param_dtype", "fp16", untried, "precision.param_dtype: float32"},
    {"precision.param_dtype", "bf16", untried, "precision.mixed_precision: bf16"},
    {"hooks.source", NULL, "user code would see a rank's experts alone", "a job without hooks"},
    {"tracking.grad_norms", "per_layer", "a rank has gradients of its own experts alone",
     "tracking.grad_norms: global"},
    {"data.join_uneven_inputs", "true", untried, "data.join_uneven_inputs: false"},
    {"accumulation.sync_each_batch", "true", untried, "accumulation.sync_each_batch: false"},
    {"parallelism.zero_stage", NULL, untried, "a job without parallelism.zero_stage"},
    {"parallelism.fsdp", NULL, untried, "a job without parallelism.fsdp"},
    {"parallelism.sync_batch_norm", "true", untried, "parallelism.sync_batch_norm: false"},
    {"parallelism.local_sgd_steps", NULL, "ranks that step alone would have experts that others have not seen",
     "a job without parallelism.local_sgd_steps"},
    {"parallelism.reproducible", "topology", "its tree of sums is of whole gradients", "parallelism.reproducible: run"},
    {"parallelism.ddp.comm_hook", "power_sgd", untried, "parallelism.ddp.comm_hook: no"},
    {"parallelism.ddp.comm_hook", "batched_power_sgd", untried, "parallelism.ddp.comm_hook: no"},
    {"parallelism.ddp.comm_hook", "bf16", untried, "parallelism.ddp.comm_hook: no"},
    {"parallelism.ddp.comm_hook", "fp16", untried, "parallelism.ddp.comm_hook: no"},
};

/* Of ranks that have some layers each. */
static const char own_stage[] = "a rank has some of the parameters";
static const struct refusal staged[] = {
    {"devices.kind", "cuda", "programs for GPUs divide no layers so far", "devices.kind: cpu"},
    {"devices.kind", "hip", "programs for GPUs divide no layers so far", "devices.kind: cpu"},
    {"accumulation.num_steps", "1", "with one micro-batch a step, ranks would wait for each other",
     "accumulation.num_steps: 4 or more"},
    {"accumulation.sync_with_dataloader", "true", "the schedule has as many micro-batches in each step",
     "accumulation.sync_with_dataloader: false"},
    {"accumulation.sync_each_batch", "true", "gradients of other ranks come after all backwards",
     "accumulation.sync_each_batch: false"},
    {"accumulation.normalize", "tokens", untried, "accumulation.normalize: batches"},
    {"optimizer.name", "lamb", untried, "optimizer.name: adamw"},
    {"optimizer.name", "adafactor", untried, "optimizer.name: adamw"},
    {"optimizer.name", "muon", untried, "optimizer.name: adamw"},
    {"optimizer.name", "lomo", "gradients add up over micro-batches", "optimizer.name: sgd"},
    {"optimizer.name", "adalomo", "gradients add up over micro-batches", "optimizer.name: adamw"},
    {"optimizer.name", "schedule_free_adamw", own_stage, "optimizer.name: adamw"},
    {"optimizer.state_dtype", "bf16", untried, "optimizer.state_dtype: float32"},
    {"optimizer.state_dtype", "bf16_stochastic", untried, "optimizer.state_dtype: float32"},
    {"optimizer.state_dtype", "8bit", untried, "optimizer.state_dtype: float32"},
    {"precision.mixed_precision", "fp16", untried, "precision.mixed_precision: bf16"},
    {"precision.param_dtype", "fp16", untried, "precision.param_dtype: fp32"},
    {"precision.param_dtype", "bf16", untried, "precision.param_dtype: fp32"},
    {"precision.grad_scaler.enabled", "true", untried, "a job without precision.grad_scaler"},
    {"memory.activation_checkpointing", "all", untried, "memory.activation_checkpointing: none"},
    {"memory.activation_checkpointing", "every", untried, "memory.activation_checkpointing: none"},
    {"memory.activation_checkpointing", "layers", untried, "memory.activation_checkpointing: none"},
    {"memory.activation_checkpointing", "functions", untried, "memory.activation_checkpointing: none"},
    {"memory.activation_checkpointing", "auto", untried, "memory.activation_checkpointing: none"},
    {"model.lora", NULL, untried, "a job without model.lora"},
    {"hooks.source", NULL, own_stage, "a job without hooks"},
    {"profile", NULL, "its parts are those of a rank with all layers", "a job without profile"},
    {"tracking.grad_norms", "per_layer", own_stage, "tracking.grad_norms: global"},
    {"training.ema", NULL, own_stage, "a job without training.ema"},
    {"training.early_stopping", NULL, "it needs evaluations", "a job without training.early_stopping"},
    {"training.on_nonfinite", "skip", untried, "training.on_nonfinite: stop"},
    {"data.join_uneven_inputs", "true", untried, "data.join_uneven_inputs: false"},
    {"parallelism.zero_stage", NULL, untried, "a job without parallelism.zero_stage"},
    {"parallelism.fsdp", NULL, untried, "a job without parallelism.fsdp"},
    {"parallelism.sync_batch_norm", "true", untried, "parallelism.sync_batch_norm: false"},
    {"parallelism.local_sgd_steps", NULL, untried, "a job without parallelism.local_sgd_steps"},
    {"parallelism.reproducible", "topology", "its tree of sums is of whole gradients", "parallelism.reproducible: run"},
    {"parallelism.ddp.comm_hook", "power_sgd", untried, "parallelism.ddp.comm_hook: no"},
    {"parallelism.ddp.comm_hook", "batched_power_sgd", untried, "parallelism.ddp.comm_hook: no"},
    {"parallelism.ddp.comm_hook", "bf16", untried, "parallelism.ddp.comm_hook: no"},
    {"parallelism.ddp.comm_hook", "fp16", untried, "parallelism.ddp.comm_hook: no"},
};

/* Of several ranks. */
static const struct refusal alone[] = {
    {"optimizer.name", "lomo", "gradients are gone before ranks could exchange them", "optimizer.name: sgd"},
    {"optimizer.name", "adalomo", "gradients are gone before ranks could exchange them", "optimizer.name: adafactor"},
    {"tracking.noise_scale", "true", "it compares a micro-batch's gradient with the step's of one process",
     "tracking.noise_scale: false"},
};

/* Of gradients that add up in one order, whoever has them. */
static const struct refusal ordered[] = {
    {"optimizer.name", "lomo", "gradients are gone before they could be added", "optimizer.name: sgd"},
    {"optimizer.name", "adalomo", "gradients are gone before they could be added", "optimizer.name: adafactor"},
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
};

/* Of ranks that step alone. */
static const struct refusal local[] = {
    {"parallelism.reproducible", "topology", "no gradients add up over ranks", "parallelism.reproducible: run"},
    {"accumulation.sync_each_batch", "true", "no gradients are exchanged", "accumulation.sync_each_batch: false"},
    {"parallelism.ddp.comm_hook", "power_sgd", "no gradients are exchanged", "parallelism.ddp.comm_hook: no"},
    {"parallelism.ddp.comm_hook", "batched_power_sgd", "no gradients are exchanged", "parallelism.ddp.comm_hook: no"},
    {"parallelism.ddp.comm_hook", "bf16", "no gradients are exchanged", "parallelism.ddp.comm_hook: no"},
    {"parallelism.ddp.comm_hook", "fp16", "no gradients are exchanged", "parallelism.ddp.comm_hook: no"},
    {"training.ema", NULL, "each rank would have averages of its own weights", "a job without an average"},
    {"optimizer.name", "schedule_free_adamw", "each rank would have averages of its own weights",
     "optimizer.name: adamw"},
};

/* Of ranks that run out of samples. */
static const struct refusal joined[] = {
    {"data.drop_last", "true", "an epoch leaves out what is not a whole round", "data.drop_last: false"},
    {"data.even_batches", "true", "the last round is filled up for all of them", "data.even_batches: false"},
    {"data.dispatch_batches", "true", "all of them get equal parts of the last round", "data.dispatch_batches: false"},
    {"accumulation.normalize", "tokens", "each target counts alike, whoever has it", "accumulation.normalize: batches"},
    {"parallelism.sync_batch_norm", "true", "a batch's statistics are of all of them",
     "parallelism.sync_batch_norm: false"},
    {"parallelism.reproducible", "topology", "its tree of sums is of whole rounds", "parallelism.reproducible: run"},
    {"parallelism.local_sgd_steps", NULL, "no gradients are exchanged", "a job without parallelism.local_sgd_steps"},
};

/* Of ranks on several machines. */
static const struct refusal spread[] = {
    {"checkpoint.save_on_each_node", "true",
     "the first rank writes for all of them, and reads for all when a run resumes",
     "checkpoint.save_on_each_node: false"},
};

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* `conflict` says what the keys do not go with, `otherwise` what that could be in their favour. */
static void check_refusals(const struct spec_node *job, const struct refusal *list, size_t count, const char *conflict,
                           const struct spec_node *cause, const char *otherwise, struct diagnostics *diags) {
  for (size_t i = 0; i < count; i++) {
    const struct spec_node *node = spec_find(job, list[i].key);
    if (node == NULL || (list[i].value != NULL && !spec_is(node, list[i].value))) continue;
    bool given = !node->is_default;
    diag_error(diags, given ? node->where : cause->where, "'%s' does not go with %s: %s", list[i].key, conflict,
               list[i].why);
    if (given) diag_note(diags, cause->where, "%s by this", conflict);
    diag_help(diags, "use %s, or %s", list[i].cure, otherwise);
  }
}

/* A rank that has a machine for itself has nothing to keep apart from. */
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

static void check_dividing(const struct spec_node *job, struct diagnostics *diags) {
  const struct spec_node *tp = axis_of(job, "tp");
  if (tensor_ranks(job) == 1) return;
  if (parallel_ranks(job) % tensor_ranks(job) != 0) {
    diag_error(diags, tp->where, "'parallelism.tp' is %lld, which does not divide the job's %lld rank%s",
               (long long)tp->integer, (long long)parallel_ranks(job), parallel_ranks(job) > 1 ? "s" : "");
    diag_help(diags, "let devices.nodes times devices.per_node be a multiple of it");
  }
  check_refusals(job, dividing, COUNT(dividing), "ranks that divide matmuls", tp, "a job without parallelism.tp",
                 diags);
}

/* `axis` is cp or sp. */
static void check_sequences(const struct spec_node *job, const char *axis, struct diagnostics *diags) {
  static const char *const others[] = {"sp", "tp", "pp"};
  const struct spec_node *ranks = axis_of(job, axis);
  if (length_of(job, axis) == 1) return;
  if (parallel_ranks(job) / tensor_ranks(job) % sequence_ranks(job) != 0) {
    diag_error(diags, ranks->where, "'parallelism.%s' is %lld, which does not divide the job's %lld rank%s", axis,
               (long long)ranks->integer, (long long)parallel_ranks(job), parallel_ranks(job) > 1 ? "s" : "");
    diag_help(diags, "let devices.nodes times devices.per_node be a multiple of it");
  }
  for (size_t i = 0; i < COUNT(others); i++) {
    if (strcmp(others[i], axis) == 0 || length_of(job, others[i]) == 1) continue;
    diag_error(diags, ranks->where, "'parallelism.%s' does not go with 'parallelism.%s': %s", axis, others[i], untried);
    diag_note(diags, axis_of(job, others[i])->where, "'parallelism.%s' is %lld here", others[i],
              (long long)length_of(job, others[i]));
    diag_help(diags, "leave one of them out");
  }
  check_refusals(job, sequences, COUNT(sequences), "ranks that divide sequences", ranks,
                 "a job without parallelism.cp and sp", diags);
}

static void check_dealing(const struct spec_node *job, struct diagnostics *diags) {
  static const char *const others[] = {"tp", "cp", "sp", "pp"};
  const struct spec_node *ep = axis_of(job, "ep");
  int64_t ranks = parallel_data_ranks(job);
  if (expert_ranks(job) == 1) return;
  if (ranks % expert_ranks(job) != 0) {
    diag_error(diags, ep->where, "'parallelism.ep' is %lld, which does not divide the job's %lld rank%s",
               (long long)ep->integer, (long long)ranks, ranks > 1 ? "s" : "");
    diag_help(diags, "let devices.nodes times devices.per_node be a multiple of it");
  }
  for (size_t i = 0; i < COUNT(others); i++) {
    const struct spec_node *other = axis_of(job, others[i]);
    if (other == NULL || other->integer == 1) continue;
    diag_error(diags, ep->where, "'parallelism.ep' does not go with 'parallelism.%s': %s", others[i], untried);
    diag_note(diags, other->where, "'parallelism.%s' is %lld here", others[i], (long long)other->integer);
    diag_help(diags, "leave one of them out");
  }
  check_refusals(job, dealing, COUNT(dealing), "ranks that divide experts", ep, "a job without parallelism.ep", diags);
}

/* An evaluation would need a forward of its own through the stages. */
static void check_no_evaluation(const struct spec_node *job, const struct spec_node *pp, struct diagnostics *diags) {
  const struct spec_node *interval = spec_find(job, "training.eval_interval");
  if (interval == NULL || interval->integer == 0) return;
  diag_error(diags, interval->where,
             "'training.eval_interval' does not go with ranks that divide the layers: no stage evaluates so far");
  diag_note(diags, pp->where, "ranks that divide the layers by this");
  diag_help(diags, "leave it out, and evaluate checkpoints with 'accel-gen build --program evaluate'");
}

static void check_stages(const struct spec_node *job, struct diagnostics *diags) {
  enum { MOST = 32 };
  const struct spec_node *pp = axis_of(job, "pp"), *tp = axis_of(job, "tp");
  if (stages(job) == 1) return;
  if (stages(job) > MOST) {
    diag_error(diags, pp->where, "'parallelism.pp' can be %d at most", MOST);
    diag_help(diags, "divide the other ranks' batches: leave them to parallelism.dp_replicate");
  }
  if (parallel_ranks(job) % stages(job) != 0) {
    diag_error(diags, pp->where, "'parallelism.pp' is %lld, which does not divide the job's %lld rank%s",
               (long long)pp->integer, (long long)parallel_ranks(job), parallel_ranks(job) > 1 ? "s" : "");
    diag_help(diags, "let devices.nodes times devices.per_node be a multiple of it");
  }
  if (tensor_ranks(job) > 1) {
    diag_error(diags, tp->where, "'parallelism.tp' does not go with ranks that divide the layers: %s", untried);
    diag_note(diags, pp->where, "ranks that divide the layers by this");
    diag_help(diags, "leave one of them out");
  }
  const struct spec_node *freeze = spec_find(job, "model.freeze");
  if (freeze != NULL && freeze->count > 0) {
    diag_error(diags, freeze->where, "'model.freeze' does not go with ranks that divide the layers: %s", untried);
    diag_note(diags, pp->where, "ranks that divide the layers by this");
    diag_help(diags, "leave one of them out");
  }
  check_no_evaluation(job, pp, diags);
  check_refusals(job, staged, COUNT(staged), "ranks that divide the layers", pp, "a job without parallelism.pp", diags);
}

static void check_spread(const struct spec_node *job, struct diagnostics *diags) {
  const struct spec_node *nodes = spec_find(job, "devices.nodes");
  if (nodes->integer > 1) check_refusals(job, spread, COUNT(spread), "several nodes", nodes, "devices.nodes: 1", diags);
}

static void check_ordered(const struct spec_node *job, struct diagnostics *diags) {
  const struct spec_node *order = spec_find(job, "parallelism.reproducible");
  if (spec_is(order, "topology"))
    check_refusals(job, ordered, COUNT(ordered), "one order of all sums", order, "parallelism.reproducible: run",
                   diags);
}

/* What is evaluated and saved is what all ranks have. */
static void check_cadence(const struct spec_node *job, const char *key, const struct spec_node *local,
                          struct diagnostics *diags) {
  const struct spec_node *every = spec_find(job, key);
  if (every == NULL || every->kind != SPEC_INT || every->integer % local->integer == 0) return;
  diag_error(diags, every->where, "'%s' must be a multiple of the %lld steps that each rank takes alone", key,
             (long long)local->integer);
  diag_note(diags, local->where, "'parallelism.local_sgd_steps' is %lld here", (long long)local->integer);
  diag_help(diags, "between, ranks have different weights: use %lld",
            (long long)((every->integer / local->integer + 1) * local->integer));
}

static void check_local(const struct spec_node *job, struct diagnostics *diags) {
  const struct spec_node *steps = spec_find(job, "parallelism.local_sgd_steps");
  if (steps == NULL || parallel_ranks(job) == 1) return;
  check_refusals(job, local, COUNT(local), "ranks that step alone", steps, "a job without parallelism.local_sgd_steps",
                 diags);
  check_cadence(job, "training.eval_interval", steps, diags);
  check_cadence(job, "checkpoint.every", steps, diags);
  check_cadence(job, "checkpoint.every.steps", steps, diags);
}

/* ---- Batches ---- */

static bool is_set(const struct spec_node *job, const char *key) {
  const struct spec_node *node = spec_find(job, key);
  return node != NULL && node->integer != 0;
}

/* One batch for all ranks together. */
static void check_split(const struct spec_node *job, struct diagnostics *diags) {
  const struct spec_node *batch = spec_find(job, "data.batch_size");
  long long ranks = parallel_data_ranks(job);
  if (ranks == 1 || !is_set(job, "data.split_batches")) return;
  if (batch->kind != SPEC_STRING && batch->integer % ranks == 0) return;
  diag_error(diags, batch->where, "'data.batch_size' must be a multiple of the %lld ranks that it is split among",
             ranks);
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
             "the last round of an epoch may leave a rank without samples, and a mean over nothing is no number");
  diag_note(diags, last->where, "'data.drop_last' is false here");
  diag_help(diags, "set accumulation.normalize: tokens, or without data.dispatch_batches either data.even_batches or "
                   "data.join_uneven_inputs: true");
}

static void check_joined(const struct spec_node *job, struct diagnostics *diags) {
  const struct spec_node *join = spec_find(job, "data.join_uneven_inputs");
  const struct spec_node *by_all = spec_find(job, "parallelism.ddp.divide_by_initial_world_size");
  if (join->integer != 0)
    check_refusals(job, joined, COUNT(joined), "ranks that run out of samples", join, "data.join_uneven_inputs: false",
                   diags);
  if (join->integer != 0 || by_all->integer != 0) return;
  diag_error(diags, by_all->where, "no rank runs out of samples without 'data.join_uneven_inputs'");
  diag_help(diags, "leave it out, or set data.join_uneven_inputs: true");
}

void parallel_check(const struct spec_node *job, struct diagnostics *diags) {
  check_dividing(job, diags);
  check_sequences(job, "cp", diags);
  check_sequences(job, "sp", diags);
  check_dealing(job, diags);
  check_stages(job, diags);
  sharding_check(job, parallel_data_ranks(job) / expert_ranks(job), diags);
  check_alone(job, diags);
  check_affinity(job, diags);
  check_spread(job, diags);
  check_ordered(job, diags);
  check_local(job, diags);
  compression_check(job, diags);
  check_split(job, diags);
  check_rest(job, diags);
  check_joined(job, diags);
}

/* ---- The job's members ---- */

void parallel_bind(struct job *job) {
  const struct spec_node *each = spec_find(job->tree, "accumulation.sync_each_batch");
  const struct spec_node *bucket = spec_find(job->tree, "parallelism.ddp.bucket_cap_mb");
  job->devices.ranks = parallel_ranks(job->tree);
  job->devices.nodes = spec_find(job->tree, "devices.nodes")->integer;
  job->devices.timeout = spec_find(job->tree, "devices.timeout")->integer;
  for (int i = 0; i < AXES; i++) job->parallelism.axes[i] = 1;
  int64_t data_ranks = parallel_data_ranks(job->tree);
  int64_t expert = expert_ranks(job->tree);
  struct data_grid grid = data_grid_of(job->tree, data_ranks / expert);
  job->parallelism.axes[AXIS_PP] = stages(job->tree);
  job->parallelism.axes[AXIS_TP] = tensor_ranks(job->tree);
  job->parallelism.axes[AXIS_CP] = length_of(job->tree, "cp");
  job->parallelism.axes[AXIS_SP] = length_of(job->tree, "sp");
  job->parallelism.axes[AXIS_EP] = expert;
  job->parallelism.axes[AXIS_DP_REPLICATE] = grid.replicas * job_sequence_ranks(job);
  job->parallelism.axes[AXIS_DP_SHARD] = grid.shards;
  const struct spec_node *least = spec_find(job->tree, "parallelism.fsdp.min_num_params");
  job->parallelism.least_params = least != NULL ? least->integer : 0;
  job->parallelism.zero_stage = grid.shards > 1 ? (int)grid.stage : 0;
  const struct spec_node *type = spec_find(job->tree, "parallelism.fsdp.state_dict_type");
  job->checkpoint.by_rank = job->parallelism.zero_stage > 0 && type != NULL && spec_is(type, "sharded_state_dict");
  compression_bind(job);
  job->parallelism.bucket_bytes = (int64_t)(bucket->real * (1 << 20));
  job->parallelism.sync_each_batch = each->integer != 0;
  job->parallelism.sync_batch_norm = is_set(job->tree, "parallelism.sync_batch_norm");
  if (job->parallelism.reproducible != REPRODUCIBLE_OFF) job->training.deterministic = true;
  const struct spec_node *local = spec_find(job->tree, "parallelism.local_sgd_steps");
  job->parallelism.local_steps = local != NULL && data_ranks > 1 ? local->integer : 0;
  job->data.uneven_inputs = data_ranks > 1 && is_set(job->tree, "data.join_uneven_inputs");
  job->data.divide_by_initial_world_size = is_set(job->tree, "parallelism.ddp.divide_by_initial_world_size");
  job->data.split_batches = is_set(job->tree, "data.split_batches");
  if (job->data.split_batches) job->data.batch_size /= (int)data_ranks;
}
