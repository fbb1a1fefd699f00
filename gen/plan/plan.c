#include "gen/plan/plan.h"

#include <string.h>

#include "gen/plan/disk.h"
#include "gen/plan/disk_pieces.h"
#include "gen/plan/graph/adapt.h"
#include "gen/plan/graph/cast.h"
#include "gen/plan/graph/chunk.h"
#include "gen/plan/graph/decode.h"
#include "gen/plan/graph/defer.h"
#include "gen/plan/graph/differentiate.h"
#include "gen/plan/graph/evaluation.h"
#include "gen/plan/graph/fp8.h"
#include "gen/plan/graph/freeze.h"
#include "gen/plan/graph/fuse.h"
#include "gen/plan/graph/fused_loss_backward.h"
#include "gen/plan/graph/indices.h"
#include "gen/plan/graph/keep_in_fp32.h"
#include "gen/plan/graph/library.h"
#include "gen/plan/graph/masking.h"
#include "gen/plan/graph/mesh.h"
#include "gen/plan/graph/packing.h"
#include "gen/plan/graph/part_scopes.h"
#include "gen/plan/graph/partition.h"
#include "gen/plan/graph/positions.h"
#include "gen/plan/graph/prune.h"
#include "gen/plan/graph/quantize.h"
#include "gen/plan/graph/recompute.h"
#include "gen/plan/graph/resident.h"
#include "gen/plan/graph/rewrites.h"
#include "gen/plan/graph/stages.h"
#include "gen/plan/graph/step_end.h"
#include "gen/plan/graph/sums.h"
#include "gen/plan/graph/synchronize.h"
#include "gen/plan/graph/write_out.h"
#include "gen/plan/groups.h"
#include "gen/plan/kernels/algorithms.h"
#include "gen/plan/kernels/kernels.h"
#include "gen/plan/kernels/packs.h"
#include "gen/plan/kernels/update.h"
#include "gen/plan/layers.h"
#include "gen/plan/memory/alias.h"
#include "gen/plan/memory/allocate.h"
#include "gen/plan/memory/gradients.h"
#include "gen/plan/memory/layout.h"
#include "gen/plan/memory/place_modules.h"
#include "gen/plan/memory/signatures.h"
#include "gen/plan/memory/weights.h"
#include "gen/plan/ranks/averaging.h"
#include "gen/plan/ranks/collectives.h"
#include "gen/plan/ranks/compress.h"
#include "gen/plan/ranks/disk_layers.h"
#include "gen/plan/ranks/fsdp_layers.h"
#include "gen/plan/ranks/pipeline.h"
#include "gen/plan/ranks/stage_memory.h"
#include "gen/plan/ranks/streamed_layers.h"
#include "gen/plan/ranks/tree.h"
#include "gen/plan/report/bytes.h"
#include "gen/plan/report/figures.h"
#include "gen/plan/report/print.h"
#include "gen/plan/start.h"
#include "gen/plan/state.h"
#include "gen/program/precision.h"
#include "gen/program/streams.h"
#include "gen/program/target.h"

struct context {
  struct program *program;
  struct builder *builder;
  struct diagnostics *diags;
  const struct plan_request *request;
};

static bool pass_read(struct context *context) {
  write_out(context->program, context->builder, AS_READ);
  part_scopes(context->program);
  context->program->figures.n_layers = count_layers(context->program->graph);
  return find_indices(context->program, context->diags);
}

static bool pass_cast(struct context *context) {
  const struct job *job = context->program->job;
  struct cast_rules rules = {.bits16 = job->precision.autocast ? precision_dtype(job->precision.mixed) : DTYPE_FLOAT32,
                             .storage = precision_dtype(job->precision.param),
                             .codes = precision_dtype(job->model.quantize.compute),
                             .codes_as_x = job->model.quantize.load_in_8bit || job->model.quantize.quant_type != NULL};
  const bool **in_fp32;
  rules.cuda = context->program->target->kernels.cuda_autocast;
  if (!parameters_in_fp32(context->program, context->diags, &in_fp32)) return false;
  rules.in_fp32 = in_fp32;
  context->program->bits16 = cast(context->program->graph, &rules);
  drop_idle_casts(context->program);
  return true;
}

static bool pass_differentiate(struct context *context) {
  if (context->program->kind != PROGRAM_TRAIN) return true;
  if (!check_trained(context->program, context->diags)) return false;
  const struct seed seed = loss_seed(context->program);
  if (differentiate(context->builder, &seed) == NULL) return false;
  widen_gradients(context->program);
  return true;
}

static bool pass_positions(struct context *context) {
  if (!divide_positions(context->program, context->builder, context->diags)) return false;
  write_out(context->program, context->builder, AFTER_POSITIONS);
  return true;
}

static bool pass_partition(struct context *context) {
  return partition(context->program, context->builder, context->diags);
}

static bool run_before_evaluate(struct context *context);

/* The graph with the batch of an evaluation, as far as the program's own graph is. */
static struct graph *prepare_evaluated(const struct context *context) {
  const struct program *program = context->program;
  struct job *job = arena_alloc(program->arena, sizeof *job);
  struct program *second = arena_alloc(program->arena, sizeof *second);
  *job = job_of_evaluation(program->job);
  second->arena = program->arena;
  second->job = job;
  second->kind = program->kind;
  second->target = program->target;
  second->graph = context->request->evaluated;
  lay_mesh(second);
  struct context own = {second, builder_on(second->graph, context->diags), context->diags, context->request};
  if (run_before_evaluate(&own)) return second->graph;
  diag_note(context->diags, job_where(job, "data.eval_batch_size"), "'data.eval_batch_size' is %d here",
            job->data.batch_size);
  return NULL;
}

/* The copy for evaluation is not called from the entry, so it gets no backward. */
static bool pass_evaluate(struct context *context) {
  struct program *program = context->program;
  if (context->request->evaluated != NULL) {
    const struct graph *evaluated = prepare_evaluated(context);
    return evaluated != NULL && join_evaluation(program, evaluated, context->builder, context->diags);
  }
  if (program->kind == PROGRAM_TRAIN && job_evaluates(program->job))
    return add_evaluation(program, context->builder, context->diags);
  if (program->kind == PROGRAM_EVALUATE && program->job->hooks.names[HOOK_BATCH] != NULL) {
    diag_error(context->diags, job_where(program->job, "hooks.on_batch"),
               "'hooks.on_batch' changes batches where a run trains, and this program would evaluate unchanged ones");
    diag_help(context->diags, "evaluate within training (training.eval_interval), or leave the key out");
    return false;
  }
  return program->kind == PROGRAM_TRAIN || become_evaluation(program, context->builder, context->diags);
}

static bool pass_synchronize(struct context *context) {
  return context->program->kind != PROGRAM_TRAIN || synchronize(context->program, context->diags);
}

static bool pass_decode(struct context *context) {
  struct program *program = context->program;
  if (program->kind == PROGRAM_GENERATE && !plan_decoding(program, context->builder, context->diags)) return false;
  if (may_stream(program)) separate_resident(program);
  if (program->kind == PROGRAM_GENERATE) write_out(program, context->builder, AFTER_DECODING);
  return true;
}

static bool pass_chunk(struct context *context) {
  struct program *program = context->program;
  return program->kind == PROGRAM_GENERATE || chunk_losses(program, context->builder, context->diags);
}

static bool pass_step_end(struct context *context) {
  struct program *program = context->program;
  return program->kind != PROGRAM_TRAIN || plan_step_end(program, context->builder, context->diags);
}

static bool pass_evaluation_mean(struct context *context) {
  struct program *program = context->program;
  bool evaluates = program->kind == PROGRAM_TRAIN && job_evaluates(program->job);
  if (!evaluates && program->kind != PROGRAM_EVALUATE) return true;
  return plan_evaluation_mean(program, context->builder, context->diags);
}

static bool pass_recompute(struct context *context) {
  struct program *program = context->program;
  return program->kind != PROGRAM_TRAIN || choose_recomputation(program, context->diags);
}

static bool pass_stages(struct context *context) {
  return divide_layers(context->program, context->diags);
}

static bool pass_peel_loops(struct context *context) {
  peel_loops(context->program->graph, context->request->peeled);
  return true;
}

/* A program that does not train reads what training left: with the adapters in it, in floats, or next to it. */
static bool reads_merged(const struct program *program) {
  return program->kind != PROGRAM_TRAIN && program->job->model.lora.rank > 0 && program->job->model.lora.merge;
}

static bool pass_adapt(struct context *context) {
  return reads_merged(context->program) || adapt(context->program, context->builder, context->diags);
}

static bool pass_freeze(struct context *context) {
  return context->program->kind != PROGRAM_TRAIN || freeze(context->program, context->diags);
}

static bool pass_quantize(struct context *context) {
  return reads_merged(context->program) || quantize(context->program, context->builder, context->diags);
}

static bool pass_fp8(struct context *context) {
  return round_to_fp8(context->program, context->builder, context->diags);
}

static bool pass_fp8_products(struct context *context) {
  write_fp8_products(context->program, context->builder);
  return true;
}

static bool pass_fused_loss_backward(struct context *context) {
  if (context->program->kind == PROGRAM_TRAIN) fuse_loss_backward(context->program, context->builder);
  return true;
}

static bool pass_prune(struct context *context) {
  prune(context->program->graph);
  library_drop_workspaces(context->program);
  return context->program->kind != PROGRAM_TRAIN || check_trained(context->program, context->diags);
}

static bool pass_epilogues(struct context *context) {
  rewrite_graph(context->program->graph, REWRITE_EPILOGUES, context->program->target->library.epilogues);
  return true;
}

static bool pass_sums(struct context *context) {
  if (context->program->target->kernels.adds_rows) fuse_sums(context->builder);
  return true;
}

static bool pass_fuse(struct context *context) {
  fuse(context->program->graph);
  return true;
}

static bool pass_defer(struct context *context) {
  defer_weight_gradients(context->program);
  return true;
}

static bool plan_stored(struct context *context) {
  struct program *program = context->program;
  program->weights = program->gradients = plan_weights(program, false, context->diags);
  if (program->weights == NULL || !plan_start(program, context->diags)) return false;
  if (!place_modules(program, context->request->shows_map, context->diags)) return false;
  plan_gradients(program);
  return plan_trained(program, context->diags);
}

static bool pass_weights(struct context *context) {
  if (!plan_stored(context) || !check_fsdp_names(context->program, context->diags)) return false;
  if (keep_shared_layers_whole(context->program) && !plan_stored(context)) return false;
  if (!plan_streamed_layers(context->program, context->diags)) return false;
  if (!plan_disk_layers(context->program, context->diags)) return false;
  return plan_fsdp_layers(context->program, context->diags);
}

/* Of layers on a disk: once it is known where their states are. */
static bool pass_groups(struct context *context) {
  return layers_are_on_disk(context->program) || plan_groups(context->program, context->diags);
}

static bool pass_layout(struct context *context) {
  struct program *program = context->program;
  layout(program);
  for (int i = 0; i < program->functions.count; i++) {
    if (program->functions.items[i]->region == program->graph->entry)
      program->entry.forward = program->functions.items[i];
    if (program->functions.items[i]->region == program->entry.second_region)
      program->entry.second = program->functions.items[i];
  }
  program->entry.backward = program->entry.forward->backward;
  program->entry.deferred = program->entry.backward != NULL ? program->entry.backward->deferred : NULL;
  return true;
}

static bool pass_allocate(struct context *context) {
  allocate_memory(context->program);
  return true;
}

static bool pass_kernels(struct context *context) {
  choose_kernels(context->program);
  choose_algorithms(context->program);
  plan_packs(context->program);
  plan_signatures(context->program);
  return true;
}

static bool pass_collectives(struct context *context) {
  if (context->program->ranks.pipeline.stages > 0) return plan_pipeline(context->program, context->diags);
  if (context->program->streams) plan_gathers(context->program);
  if (context->program->kind != PROGRAM_TRAIN) {
    plan_collectives(context->program);
    return true;
  }
  if (job_has_tree(context->program->job)) return plan_tree(context->program, context->diags);
  if (context->program->job->parallelism.local_steps > 0) {
    if (!plan_averaging(context->program, context->diags)) return false;
    if (job_data_ranks(context->program->job) < context->program->job->devices.ranks)
      plan_collectives(context->program);
    return true;
  }
  if (context->program->job->parallelism.power_sgd.on || job_sends_fp8(context->program->job))
    plan_compression(context->program);
  else
    plan_collectives(context->program);
  return true;
}

/* Nodes that each save have the same to save. */
static bool check_nodes(const struct program *program, struct diagnostics *diags) {
  const struct job *job = program->job;
  if (program->kind != PROGRAM_TRAIN || !job->checkpoint.each_node || job->parallelism.sync_batch_norm) return true;
  for (int i = 0; i < program->weights->count; i++) {
    if (!program->weights->items[i].parameter->buffer) continue;
    diag_error(diags, job_where(job, "checkpoint.save_on_each_node"),
               "'%s' follows the batches of a rank, and nodes would save different ones",
               program->weights->items[i].path);
    diag_help(diags, "set parallelism.sync_batch_norm: true, or checkpoint.save_on_each_node: false");
    return false;
  }
  return true;
}

static bool pass_state(struct context *context) {
  if (!check_nodes(context->program, context->diags)) return false;
  if (layers_are_on_disk(context->program) &&
      !(plan_disk_pieces(context->program, context->diags) && plan_groups(context->program, context->diags)))
    return false;
  plan_state(context->program);
  plan_layers(context->program);
  return plan_disk(context->program, context->diags);
}

static bool pass_figures(struct context *context) {
  count_figures(context->program);
  choose_update(context->program);
  return check_masking(context->program, context->diags) && check_packing(context->program, context->diags);
}

static bool pass_alias(struct context *context) {
  alias_gradients(context->program);
  if (context->program->aliases.count > 0) count_bytes(context->program);
  plan_disk_ahead(context->program);
  return true;
}

static bool pass_stage_memory(struct context *context) {
  plan_stage_memory(context->program);
  return true;
}

/* Whether a pass is one of every program, or of those whose kernels and memory are not the matter of another compiler:
 * of a module, target.h. */
enum pass_of { ALWAYS, WITH_KERNELS };

/* The whole of planning, in order. */
static const struct pass {
  const char *name;
  bool (*run)(struct context *context);
  enum pass_of of;
} passes[] = {
    {"read", pass_read, ALWAYS},
    {"adapt", pass_adapt, ALWAYS},
    {"freeze", pass_freeze, ALWAYS},
    {"quantize", pass_quantize, ALWAYS},
    {"fp8", pass_fp8, ALWAYS},
    {"cast", pass_cast, ALWAYS},
    {"positions", pass_positions, ALWAYS},
    {"partition", pass_partition, ALWAYS},
    {"evaluate", pass_evaluate, ALWAYS},
    {"synchronize", pass_synchronize, ALWAYS},
    {"decode", pass_decode, ALWAYS},
    {"chunk", pass_chunk, ALWAYS},
    {"step_end", pass_step_end, ALWAYS},
    {"evaluation_mean", pass_evaluation_mean, ALWAYS},
    {"stages", pass_stages, ALWAYS},
    {"recompute", pass_recompute, ALWAYS},
    {"peel_loops", pass_peel_loops, ALWAYS},
    {"differentiate", pass_differentiate, ALWAYS},
    {"fp8_products", pass_fp8_products, WITH_KERNELS},
    {"fused_loss_backward", pass_fused_loss_backward, WITH_KERNELS},
    {"prune", pass_prune, ALWAYS},
    {"epilogues", pass_epilogues, WITH_KERNELS},
    {"sums", pass_sums, WITH_KERNELS},
    {"fuse", pass_fuse, WITH_KERNELS},
    {"defer", pass_defer, WITH_KERNELS},
    {"weights", pass_weights, ALWAYS},
    {"groups", pass_groups, ALWAYS},
    {"layout", pass_layout, WITH_KERNELS},
    {"allocate", pass_allocate, WITH_KERNELS},
    {"kernels", pass_kernels, WITH_KERNELS},
    {"collectives", pass_collectives, WITH_KERNELS},
    {"state", pass_state, ALWAYS},
    {"figures", pass_figures, ALWAYS},
    {"alias", pass_alias, WITH_KERNELS},
    {"stage_memory", pass_stage_memory, WITH_KERNELS},
    {0},
};

static bool run_before_evaluate(struct context *context) {
  bool good = true;
  for (int i = 0; good && passes[i].run != pass_evaluate; i++)
    good = passes[i].run(context) && context->diags->errors == 0;
  return good;
}

const char *pass_name(int index) {
  return passes[index].name;
}

struct program *plan(struct builder *builder, const struct job *job, const struct plan_request *request,
                     struct diagnostics *diags, const char *dump, const char **dumped) {
  struct arena *arena = builder_arena(builder);
  struct program *program = arena_alloc(arena, sizeof *program);
  program->arena = arena;
  program->job = job;
  program->kind = request->kind;
  program->choices.tuning = request->tuning;
  program->target = target_of(job);
  program->graph = builder_graph(builder);
  lay_mesh(program);
  struct context context = {program, builder, diags, request};
  for (int i = 0; passes[i].name != NULL; i++) {
    if (passes[i].of == WITH_KERNELS && program->target->module != NULL) {
      if (dump == NULL || strcmp(dump, passes[i].name) != 0) continue;
      diag_error(diags, job_where(job, "devices.kind"), "a program for devices.kind '%s' has no pass '%s'",
                 program->target->name, dump);
      diag_help(diags, "XLA gives it kernels and memory");
      return NULL;
    }
    if (!passes[i].run(&context) || diags->errors > 0) return NULL;
    if (request->ends_differentiated && passes[i].run == pass_differentiate) {
      prune(program->graph);
      return program;
    }
    if (dump != NULL && strcmp(dump, passes[i].name) == 0)
      *dumped = program->functions.count > 0 ? program_text(arena, program) : graph_text(arena, program->graph);
  }
  return program;
}
