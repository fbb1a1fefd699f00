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

/* ---- Divisions, and the keys that do not go with them ---- */

/* What ranks divide among them, a bit each. */
enum {
  TENSORS = 1 << 0,
  SEQUENCES = 1 << 1,
  LAYERS = 1 << 2,
  EXPERTS = 1 << 3,
  RESIDUAL = 1 << 4,    /* between the matmuls that they divide, over positions */
  ZERO_BUBBLE = 1 << 5, /* layers, with gradients of weights that come later */
  ON_GPUS = 1 << 6      /* of the rows for it, only in programs for GPUs */
};

static const char own_part[] = "it looks at whole parameters, and a rank has a part of some";
static const char own_stage[] = "a rank has some of the parameters";
static const char untried[] = "no program with both has been measured against one rank";
static const char untried_on_gpus[] = "no program for GPUs with both has been measured against one rank";
static const char added_up[] = "gradients add up over micro-batches";
static const char whole_sums[] = "its tree of sums is of whole gradients";
static const char by_index[] = "chance is drawn by an element's index among all weights";
static const char fewer_ranks[] = "fewer ranks add up an expert's gradients than those of all else";
static const char factors[] = "its factors are of whole matrices";

static const struct mesh_refusal {
  unsigned divisions; /* that the key, or a value of it, does not go with */
  struct refusal refused;
} refusals[] = {
    {TENSORS | SEQUENCES | LAYERS | EXPERTS,
     {"devices.kind", "hip", "programs for AMD's GPUs have no such ranks so far", "devices.kind: cpu"}},
    {LAYERS,
     {"accumulation.num_steps", "1", "with one micro-batch a step, ranks would wait for each other",
      "accumulation.num_steps: 4 or more"}},
    {LAYERS,
     {"accumulation.sync_with_dataloader", "true", "the schedule has as many micro-batches in each step",
      "accumulation.sync_with_dataloader: false"}},
    {LAYERS,
     {"accumulation.sync_each_batch", "true", "gradients of other ranks come after all backwards",
      "accumulation.sync_each_batch: false"}},
    {EXPERTS, {"accumulation.sync_each_batch", "true", untried, "accumulation.sync_each_batch: false"}},
    {TENSORS, {"optimizer.name", "lamb", own_part, "optimizer.name: adamw"}},
    {TENSORS, {"optimizer.name", "adafactor", own_part, "optimizer.name: adamw"}},
    {TENSORS, {"optimizer.name", "muon", own_part, "optimizer.name: adamw"}},
    {TENSORS, {"optimizer.name", "lomo", own_part, "optimizer.name: sgd"}},
    {TENSORS, {"optimizer.name", "adalomo", own_part, "optimizer.name: adamw"}},
    {LAYERS, {"optimizer.name", "lomo", added_up, "optimizer.name: sgd"}},
    {LAYERS, {"optimizer.name", "adalomo", added_up, "optimizer.name: adamw"}},
    {TENSORS | EXPERTS, {"optimizer.state_dtype", "bf16_stochastic", by_index, "optimizer.state_dtype: bf16"}},
    {EXPERTS | ON_GPUS, {"model.fresh", NULL, untried_on_gpus, "a job without model.fresh"}},
    {SEQUENCES | RESIDUAL | EXPERTS | ON_GPUS,
     {"precision.param_dtype", "fp16", untried_on_gpus, "precision.mixed_precision: bf16"}},
    {TENSORS, {"hooks.source", NULL, "user code would see a part of each parameter", "a job without hooks"}},
    {SEQUENCES, {"hooks.source", NULL, untried, "a job without hooks"}},
    {LAYERS, {"hooks.source", NULL, own_stage, "a job without hooks"}},
    {EXPERTS, {"hooks.source", NULL, "user code would see a rank's experts alone", "a job without hooks"}},
    {LAYERS, {"profile", NULL, "its parts are those of a rank with all layers", "a job without profile"}},
    {TENSORS, {"tracking.grad_norms", "per_layer", "a rank has a part of the gradient", "tracking.grad_norms: global"}},
    {LAYERS, {"tracking.grad_norms", "per_layer", own_stage, "tracking.grad_norms: global"}},
    {EXPERTS,
     {"tracking.grad_norms", "per_layer", "a rank has gradients of its own experts alone",
      "tracking.grad_norms: global"}},
    {TENSORS | SEQUENCES | LAYERS | EXPERTS,
     {"data.join_uneven_inputs", "true", untried, "data.join_uneven_inputs: false"}},
    {SEQUENCES, {"data.packing", "pad", untried, "data.packing: none"}},
    {ZERO_BUBBLE,
     {"memory.activation_checkpointing", "auto", "it chooses among layers, of which the schedule may keep all",
      "memory.activation_checkpointing: functions"}},
    {TENSORS,
     {"parallelism.fsdp.state_dict_type", "sharded_state_dict", "a rank's part of a tensor is not a range of it",
      "parallelism.fsdp.state_dict_type: full_state_dict"}},
    {TENSORS | SEQUENCES | LAYERS | EXPERTS,
     {"parallelism.sync_batch_norm", "true", untried, "parallelism.sync_batch_norm: false"}},
    {SEQUENCES,
     {"parallelism.local_sgd_steps", NULL, "ranks along it add up gradients with those of other batches alone",
      "a job without parallelism.local_sgd_steps"}},
    {LAYERS, {"parallelism.local_sgd_steps", NULL, untried, "a job without parallelism.local_sgd_steps"}},
    {EXPERTS,
     {"parallelism.local_sgd_steps", NULL, "ranks that step alone would have experts that others have not seen",
      "a job without parallelism.local_sgd_steps"}},
    {RESIDUAL | ON_GPUS,
     {"parallelism.local_sgd_steps", NULL, untried_on_gpus, "a job without parallelism.local_sgd_steps"}},
    {TENSORS | LAYERS | EXPERTS, {"parallelism.reproducible", "topology", whole_sums, "parallelism.reproducible: run"}},
    {SEQUENCES,
     {"parallelism.reproducible", "topology", "its tree of sums is of whole samples", "parallelism.reproducible: run"}},
    {TENSORS, {"parallelism.ddp.comm_hook", "power_sgd", factors, "parallelism.ddp.comm_hook: no"}},
    {TENSORS, {"parallelism.ddp.comm_hook", "batched_power_sgd", factors, "parallelism.ddp.comm_hook: no"}},
    {EXPERTS, {"parallelism.ddp.comm_hook", "power_sgd", fewer_ranks, "parallelism.ddp.comm_hook: no"}},
    {EXPERTS, {"parallelism.ddp.comm_hook", "batched_power_sgd", fewer_ranks, "parallelism.ddp.comm_hook: no"}},
    {LAYERS,
     {"parallelism.ddp.comm_hook", "batched_power_sgd",
      "its squares are of neighbours in memory, which stages share out", "parallelism.ddp.comm_hook: power_sgd"}},
    {EXPERTS, {"parallelism.ddp.comm_hook", "bf16", untried, "parallelism.ddp.comm_hook: no"}},
    {EXPERTS, {"parallelism.ddp.comm_hook", "fp16", untried, "parallelism.ddp.comm_hook: no"}},
};

/* Who divides: ranks along an axis, in the order in which they take theirs of a job's. */
static const struct division {
  unsigned division;
  enum axis axis;
  const char *key, *value;    /* of the axis's ranks those of a job with this value; NULL: all */
  const char *does, *without; /* "ranks that divide matmuls", "a job without parallelism.tp" */
} divisions[] = {
    {TENSORS, AXIS_TP, NULL, NULL, "ranks that divide matmuls", "a job without parallelism.tp"},
    {SEQUENCES, AXIS_CP, NULL, NULL, "ranks that divide sequences", "a job without parallelism.cp"},
    {SEQUENCES, AXIS_SP, NULL, NULL, "ranks that divide sequences", "a job without parallelism.sp"},
    {LAYERS, AXIS_PP, NULL, NULL, "ranks that divide the layers", "a job without parallelism.pp"},
    {EXPERTS, AXIS_EP, NULL, NULL, "ranks that divide experts", "a job without parallelism.ep"},
    {RESIDUAL, AXIS_TP, "parallelism.megatron.sequence_parallelism", "true",
     "parallelism.megatron.sequence_parallelism", "parallelism.tp without it"},
    {ZERO_BUBBLE, AXIS_PP, "parallelism.pp_schedule", "zero_bubble", "parallelism.pp_schedule: zero_bubble",
     "parallelism.pp_schedule: 1f1b"},
};

static void check_division(const struct spec_node *job, const struct division *division, struct diagnostics *diags) {
  const struct spec_node *cause = division->key != NULL ? spec_find(job, division->key) : axis_of(job, division->axis);
  if (axis_length(job, division->axis) == 1 || cause == NULL) return;
  if (division->value != NULL && !spec_is(cause, division->value)) return;
  const bool on_gpus = !spec_is(spec_find(job, "devices.kind"), "cpu");
  for (size_t i = 0; i < COUNT(refusals); i++) {
    const bool for_gpus = (refusals[i].divisions & ON_GPUS) != 0;
    if ((refusals[i].divisions & division->division) == 0 || (for_gpus && !on_gpus)) continue;
    check_refusals(job, &refusals[i].refused, 1, division->does, cause,
                   for_gpus ? "devices.kind: cpu" : division->without, diags);
  }
}

/* `ranks`: those that the axes before this one leave. */
static void check_axis(const struct spec_node *job, enum axis axis, int64_t ranks, struct diagnostics *diags) {
  const struct spec_node *node = axis_of(job, axis);
  if (axis_length(job, axis) == 1 || ranks % node->integer == 0) return;
  diag_error(diags, node->where, "'parallelism.%s' is %lld, which does not divide the job's %lld rank%s",
             job_axis_names[axis], (long long)node->integer, (long long)ranks, ranks > 1 ? "s" : "");
  diag_help(diags, "let devices.nodes times devices.per_node be a multiple of it");
}

/* Positions are split between matmuls that ranks divide. */
static void check_residual(const struct spec_node *job, struct diagnostics *diags) {
  const struct spec_node *split = spec_find(job, "parallelism.megatron.sequence_parallelism");
  if (split == NULL || split->integer == 0 || axis_length(job, AXIS_TP) > 1) return;
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
  check_split(job, diags);
  if (axis_length(job, AXIS_PP) == 1) return;
  if (pp->integer > MOST) {
    diag_error(diags, pp->where, "'parallelism.pp' can be %d at most", MOST);
    diag_help(diags, "divide the other ranks' batches: leave them to parallelism.dp_replicate");
  }
}

void mesh_check(const struct spec_node *job, struct diagnostics *diags) {
  int64_t ranks = parallel_ranks(job);
  for (size_t i = 0; i < COUNT(divisions); i++) {
    if (divisions[i].key == NULL) {
      check_axis(job, divisions[i].axis, ranks, diags);
      ranks /= axis_length(job, divisions[i].axis);
      if (ranks == 0) ranks = 1;
    }
    check_division(job, &divisions[i], diags);
  }
  check_residual(job, diags);
  check_stages(job, diags);
}
