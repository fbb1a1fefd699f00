#include "gen/spec/mesh.h"

#include "gen/spec/parallel.h"
#include "gen/spec/refusals.h"

const char *const job_axis_names[AXES] = {"dp_replicate", "dp_shard", "cp", "sp", "pp", "tp", "ep"};

static const struct spec_node *axis_of(const struct spec_node *job, enum axis axis) {
  return spec_find(spec_find(job, "parallelism"), job_axis_names[axis]);
}

int64_t axis_length(const struct spec_node *job, enum axis axis) {
  const struct spec_node *node = axis_of(job, axis);
  return node != NULL ? node->integer : 1;
}

/* ---- Keys that do not go with an axis ---- */

/* Of ranks that divide matmuls. */
static const char own_part[] = "it looks at whole parameters, and a rank has a part of some";
static const char untried[] = "no program with both has been measured against one rank";
static const struct refusal dividing[] = {
    {"devices.kind", "hip", "programs for AMD's GPUs divide no tensors so far", "devices.kind: cpu"},
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

/* Of ranks along cp round which keys and values go. */
static const struct refusal ring[] = {
    {"devices.kind", "hip", "programs for AMD's GPUs have no kernel of ring attention so far", "devices.kind: cpu"},
};

/* Of ranks that divide sequences. */
static const struct refusal sequences[] = {
    {"devices.kind", "hip", "programs for AMD's GPUs divide no sequences so far", "devices.kind: cpu"},
    {"hooks.source", NULL, untried, "a job without hooks"},
    {"data.join_uneven_inputs", "true", untried, "data.join_uneven_inputs: false"},
    {"data.packing", "pad", untried, "data.packing: none"},
    {"parallelism.sync_batch_norm", "true", untried, "parallelism.sync_batch_norm: false"},
    {"parallelism.local_sgd_steps", NULL, "ranks along it add up gradients with those of other batches alone",
     "a job without parallelism.local_sgd_steps"},
    {"parallelism.reproducible", "topology", "its tree of sums is of whole samples", "parallelism.reproducible: run"},
    {"parallelism.ddp.comm_hook", "power_sgd", untried, "parallelism.ddp.comm_hook: no"},
    {"parallelism.ddp.comm_hook", "batched_power_sgd", untried, "parallelism.ddp.comm_hook: no"},
};

/* Of ranks that divide experts. */
static const char named_experts[] = "a rank's program names its own experts alone";
static const char other_experts[] = "it looks at all parameters together, and ranks have experts of their own";
static const struct refusal dealing[] = {
    {"devices.kind", "hip", "programs for AMD's GPUs divide no experts so far", "devices.kind: cpu"},
    {"optimizer.name", "schedule_free_adamw", other_experts, "optimizer.name: adamw"},
    {"model.fresh", NULL, named_experts, "a job without model.fresh"},
    {"model.lora", NULL, untried, "a job without model.lora"},
    {"training.ema", NULL, other_experts, "a job without training.ema"},
    {"training.early_stopping.restore_best", "true", other_experts, "training.early_stopping.restore_best: false"},
    {"precision.param_dtype", "fp16", untried, "precision.param_dtype: float32"},
    {"precision.param_dtype", "bf16", untried, "precision.mixed_precision: bf16"},
    {"optimizer.state_dtype", "bf16_stochastic", "chance is drawn by an element's index among all weights",
     "optimizer.state_dtype: bf16"},
    {"hooks.source", NULL, "user code would see a rank's experts alone", "a job without hooks"},
    {"tracking.grad_norms", "per_layer", "a rank has gradients of its own experts alone",
     "tracking.grad_norms: global"},
    {"data.join_uneven_inputs", "true", untried, "data.join_uneven_inputs: false"},
    {"accumulation.sync_each_batch", "true", untried, "accumulation.sync_each_batch: false"},
    {"parallelism.fsdp.state_dict_type", "sharded_state_dict", named_experts,
     "parallelism.fsdp.state_dict_type: full_state_dict"},
    {"parallelism.sync_batch_norm", "true", untried, "parallelism.sync_batch_norm: false"},
    {"parallelism.local_sgd_steps", NULL, "ranks that step alone would have experts that others have not seen",
     "a job without parallelism.local_sgd_steps"},
    {"parallelism.reproducible", "topology", "its tree of sums is of whole gradients", "parallelism.reproducible: run"},
    {"parallelism.ddp.comm_hook", "power_sgd", untried, "parallelism.ddp.comm_hook: no"},
    {"parallelism.ddp.comm_hook", "batched_power_sgd", untried, "parallelism.ddp.comm_hook: no"},
    {"parallelism.ddp.comm_hook", "bf16", untried, "parallelism.ddp.comm_hook: no"},
    {"parallelism.ddp.comm_hook", "fp16", untried, "parallelism.ddp.comm_hook: no"},
};

/* Of those in programs for GPUs. */
static const struct refusal dealing_on_gpus[] = {
    {"optimizer.name", "lamb", untried, "optimizer.name: adamw"},
    {"optimizer.name", "adafactor", untried, "optimizer.name: adamw"},
    {"optimizer.name", "muon", untried, "optimizer.name: adamw"},
    {"optimizer.param_groups", NULL, untried, "a job without optimizer.param_groups"},
    {"optimizer.state_dtype", "8bit", untried, "optimizer.state_dtype: bf16"},
    {"model.freeze", NULL, untried, "a job without model.freeze"},
    {"precision.mixed_precision", "fp16", untried, "precision.mixed_precision: bf16"},
    {"parallelism.zero_stage", NULL, untried, "a job without parallelism.zero_stage"},
    {"parallelism.fsdp", NULL, untried, "a job without parallelism.fsdp"},
};

/* Of ranks that divide sequences. */
static const struct refusal sequences_on_gpus[] = {
    {"precision.mixed_precision", "fp16", untried, "precision.mixed_precision: bf16"},
    {"precision.param_dtype", "fp16", untried, "precision.param_dtype: bf16"},
    {"model.lora", NULL, untried, "a job without model.lora"},
};

/* Of the residual, split over positions. */
static const struct refusal residual_on_gpus[] = {
    {"precision.mixed_precision", "fp16", untried, "precision.mixed_precision: bf16"},
    {"precision.param_dtype", "fp16", untried, "precision.param_dtype: bf16"},
    {"model.lora", NULL, untried, "a job without model.lora"},
    {"parallelism.local_sgd_steps", NULL, untried, "a job without parallelism.local_sgd_steps"},
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
    {"optimizer.name", "lomo", "gradients add up over micro-batches", "optimizer.name: sgd"},
    {"optimizer.name", "adalomo", "gradients add up over micro-batches", "optimizer.name: adamw"},
    {"optimizer.name", "schedule_free_adamw", own_stage, "optimizer.name: adamw"},
    {"hooks.source", NULL, own_stage, "a job without hooks"},
    {"profile", NULL, "its parts are those of a rank with all layers", "a job without profile"},
    {"tracking.grad_norms", "per_layer", own_stage, "tracking.grad_norms: global"},
    {"data.join_uneven_inputs", "true", untried, "data.join_uneven_inputs: false"},
    {"parallelism.zero_stage", "2", untried, "parallelism.zero_stage: 1"},
    {"parallelism.zero_stage", "3", untried, "parallelism.zero_stage: 1"},
    {"parallelism.fsdp", NULL, untried, "parallelism.zero_stage: 1"},
    {"parallelism.sync_batch_norm", "true", untried, "parallelism.sync_batch_norm: false"},
    {"parallelism.local_sgd_steps", NULL, untried, "a job without parallelism.local_sgd_steps"},
    {"parallelism.ddp.comm_hook", "power_sgd", untried, "parallelism.ddp.comm_hook: no"},
    {"parallelism.ddp.comm_hook", "batched_power_sgd", untried, "parallelism.ddp.comm_hook: no"},
    {"parallelism.reproducible", "topology", "its tree of sums is of whole gradients", "parallelism.reproducible: run"},
};

/* Of the residual, split over positions. */
static const struct refusal residual[] = {
    {"parallelism.ddp.comm_hook", "power_sgd", untried, "parallelism.ddp.comm_hook: no"},
    {"parallelism.ddp.comm_hook", "batched_power_sgd", untried, "parallelism.ddp.comm_hook: no"},
};

/* Of gradients of weights that come later. */
static const char again[] = "what is computed again would be kept for the gradients of weights that come later";
static const struct refusal deferring[] = {
    {"memory.activation_checkpointing", "all", again, "memory.activation_checkpointing: none"},
    {"memory.activation_checkpointing", "every", again, "memory.activation_checkpointing: none"},
    {"memory.activation_checkpointing", "layers", again, "memory.activation_checkpointing: none"},
    {"memory.activation_checkpointing", "functions", again, "memory.activation_checkpointing: none"},
    {"memory.activation_checkpointing", "auto", again, "memory.activation_checkpointing: none"},
    {"parallelism.zero_stage", NULL, untried, "a job without parallelism.zero_stage"},
    {"parallelism.fsdp", NULL, untried, "a job without parallelism.fsdp"},
    {"parallelism.tp_plan", NULL, untried, "a job without parallelism.tp_plan"},
    {"parallelism.megatron.sequence_parallelism", "true", untried, "parallelism.megatron.sequence_parallelism: false"},
};

/* ---- Axes ---- */

/* What an axis of several ranks does not go with. */
struct axis_rule {
  enum axis axis;
  const char *does, *without; /* "ranks that divide matmuls", "a job without parallelism.tp" */
  const struct refusal *refusals;
  size_t n_refusals;
  unsigned others; /* axes that it does not go with, as bits */
};

#define BIT(axis) (1u << (axis))
static const struct axis_rule rules[] = {
    {AXIS_TP, "ranks that divide matmuls", "a job without parallelism.tp", dividing, COUNT(dividing), 0},
    {AXIS_CP, "ranks that divide sequences", "a job without parallelism.cp", sequences, COUNT(sequences), 0},
    {AXIS_SP, "ranks that divide sequences", "a job without parallelism.sp", sequences, COUNT(sequences), 0},
    {AXIS_PP, "ranks that divide the layers", "a job without parallelism.pp", staged, COUNT(staged), 0},
    {AXIS_EP, "ranks that divide experts", "a job without parallelism.ep", dealing, COUNT(dealing), BIT(AXIS_PP)},
};

static void check_others(const struct spec_node *job, const struct axis_rule *rule, struct diagnostics *diags) {
  for (int i = 0; i < AXES; i++) {
    const enum axis other = (enum axis)i;
    if (!(rule->others & BIT(other)) || axis_length(job, other) == 1) continue;
    diag_error(diags, axis_of(job, rule->axis)->where, "'parallelism.%s' does not go with 'parallelism.%s': %s",
               job_axis_names[rule->axis], job_axis_names[other], untried);
    diag_note(diags, axis_of(job, other)->where, "'parallelism.%s' is %lld here", job_axis_names[other],
              (long long)axis_length(job, other));
    diag_help(diags, "leave one of them out");
  }
}

/* `ranks`: those that the axes before this one leave. */
static void check_axis(const struct spec_node *job, const struct axis_rule *rule, int64_t ranks,
                       struct diagnostics *diags) {
  const struct spec_node *axis = axis_of(job, rule->axis);
  if (axis_length(job, rule->axis) == 1) return;
  if (ranks % axis->integer != 0) {
    diag_error(diags, axis->where, "'parallelism.%s' is %lld, which does not divide the job's %lld rank%s",
               job_axis_names[rule->axis], (long long)axis->integer, (long long)ranks, ranks > 1 ? "s" : "");
    diag_help(diags, "let devices.nodes times devices.per_node be a multiple of it");
  }
  check_others(job, rule, diags);
  check_refusals(job, rule->refusals, rule->n_refusals, rule->does, axis, rule->without, diags);
}

/* What ranks along an axis do on GPUs. */
static void check_on_gpus(const struct spec_node *job, enum axis axis, const char *does, const struct refusal *refusals,
                          size_t count, struct diagnostics *diags) {
  if (axis_length(job, axis) == 1 || spec_is(spec_find(job, "devices.kind"), "cpu")) return;
  check_refusals(job, refusals, count, does, axis_of(job, axis), "devices.kind: cpu", diags);
}

static void check_ring(const struct spec_node *job, struct diagnostics *diags) {
  const struct spec_node *comm = spec_find(job, "parallelism.cp_comm");
  if (axis_length(job, AXIS_CP) == 1 || comm == NULL || !spec_is(comm, "ring")) return;
  check_refusals(job, ring, COUNT(ring), "parallelism.cp_comm: ring", comm, "parallelism.cp_comm: allgather", diags);
}

/* Positions are split between matmuls that ranks divide. */
static void check_residual(const struct spec_node *job, struct diagnostics *diags) {
  const struct spec_node *split = spec_find(job, "parallelism.megatron.sequence_parallelism");
  if (split == NULL || split->integer == 0) return;
  check_refusals(job, residual, COUNT(residual), "parallelism.megatron.sequence_parallelism", split,
                 "parallelism.tp without it", diags);
  if (!spec_is(spec_find(job, "devices.kind"), "cpu"))
    check_refusals(job, residual_on_gpus, COUNT(residual_on_gpus), "parallelism.megatron.sequence_parallelism on GPUs",
                   split, "devices.kind: cpu", diags);
  if (axis_length(job, AXIS_TP) > 1) return;
  diag_error(
      diags, split->where,
      "'parallelism.megatron.sequence_parallelism' splits tensors between the matmuls that ranks along tp divide, "
      "and there are no such ranks");
  diag_help(diags, "set parallelism.tp, or leave it out");
}

/* ---- Pipelines ---- */

/* A schedule is of stages. */
static void check_schedule(const struct spec_node *job, struct diagnostics *diags) {
  const struct spec_node *schedule = spec_find(job, "parallelism.pp_schedule");
  if (schedule == NULL || axis_length(job, AXIS_PP) > 1) return;
  diag_error(diags, schedule->where,
             "'parallelism.pp_schedule' is the order of stages that ranks along pp have, and there are no such ranks");
  diag_help(diags, "set parallelism.pp, or leave it out");
}

/* Several stages of each rank are what the schedule interleaves. */
static void check_interleaved(const struct spec_node *job, struct diagnostics *diags) {
  const struct spec_node *schedule = spec_find(job, "parallelism.pp_schedule"), *pp = axis_of(job, AXIS_PP);
  const struct spec_node *each = spec_find(job, "parallelism.megatron.num_layers_per_virtual_pipeline_stage");
  const struct spec_node *steps = spec_find(job, "accumulation.num_steps");
  const bool interleaves = schedule != NULL && spec_is(schedule, "interleaved");
  if (interleaves && each == NULL) {
    diag_error(diags, schedule->where, "'parallelism.pp_schedule' is interleaved, and each rank has one stage");
    diag_help(diags, "set parallelism.megatron.num_layers_per_virtual_pipeline_stage to the layers of a stage, or the "
                     "schedule to 1f1b");
  }
  if (!interleaves && each != NULL) {
    diag_error(diags, each->where,
               "'parallelism.megatron.num_layers_per_virtual_pipeline_stage' is of the schedule that interleaves "
               "several stages of a rank");
    diag_help(diags, "set parallelism.pp_schedule: interleaved, or leave it out");
  }
  if (!interleaves || axis_length(job, AXIS_PP) == 1 || steps->integer % pp->integer == 0) return;
  diag_error(diags, steps->where,
             "'accumulation.num_steps' is %lld, and the schedule takes the micro-batches in groups of the %lld ranks "
             "along pp",
             (long long)steps->integer, (long long)pp->integer);
  diag_note(diags, schedule->where, "'parallelism.pp_schedule' is interleaved here");
  diag_help(diags, "set accumulation.num_steps to a multiple of parallelism.pp");
}

static void check_deferring(const struct spec_node *job, struct diagnostics *diags) {
  const struct spec_node *schedule = spec_find(job, "parallelism.pp_schedule");
  if (axis_length(job, AXIS_PP) == 1 || schedule == NULL || !spec_is(schedule, "zero_bubble")) return;
  check_refusals(job, deferring, COUNT(deferring), "parallelism.pp_schedule: zero_bubble", schedule,
                 "parallelism.pp_schedule: 1f1b", diags);
  static const enum axis others[] = {AXIS_CP, AXIS_SP, AXIS_EP};
  for (size_t i = 0; i < COUNT(others); i++) {
    if (axis_length(job, others[i]) == 1) continue;
    diag_error(diags, axis_of(job, others[i])->where,
               "'parallelism.%s' does not go with parallelism.pp_schedule: zero_bubble: %s", job_axis_names[others[i]],
               untried);
    diag_help(diags, "leave it out, or use parallelism.pp_schedule: 1f1b");
  }
}

/* Both an encoder and a decoder have stages. */
static void check_split(const struct spec_node *job, struct diagnostics *diags) {
  const struct spec_node *split = spec_find(job, "parallelism.megatron.pipeline_model_parallel_split_rank");
  if (split == NULL || split->integer < axis_length(job, AXIS_PP)) return;
  diag_error(diags, split->where,
             "'parallelism.megatron.pipeline_model_parallel_split_rank' is %lld, and the decoder has none of the %lld "
             "ranks along pp",
             (long long)split->integer, (long long)axis_length(job, AXIS_PP));
  diag_help(diags, "set it below parallelism.pp, or leave it out");
}

static void check_stages(const struct spec_node *job, struct diagnostics *diags) {
  enum { MOST = 32 };
  const struct spec_node *pp = axis_of(job, AXIS_PP);
  check_schedule(job, diags);
  check_interleaved(job, diags);
  check_deferring(job, diags);
  check_split(job, diags);
  if (axis_length(job, AXIS_PP) == 1) return;
  if (pp->integer > MOST) {
    diag_error(diags, pp->where, "'parallelism.pp' can be %d at most", MOST);
    diag_help(diags, "divide the other ranks' batches: leave them to parallelism.dp_replicate");
  }
}

void mesh_check(const struct spec_node *job, struct diagnostics *diags) {
  int64_t ranks = parallel_ranks(job);
  for (size_t i = 0; i < COUNT(rules); i++) {
    check_axis(job, &rules[i], ranks, diags);
    ranks /= axis_length(job, rules[i].axis);
    if (ranks == 0) ranks = 1;
  }
  check_on_gpus(job, AXIS_EP, "ranks that divide experts on GPUs", dealing_on_gpus, COUNT(dealing_on_gpus), diags);
  check_on_gpus(job, axis_length(job, AXIS_CP) > 1 ? AXIS_CP : AXIS_SP, "ranks that divide sequences on GPUs",
                sequences_on_gpus, COUNT(sequences_on_gpus), diags);
  check_ring(job, diags);
  check_residual(job, diags);
  check_stages(job, diags);
}
