#include "gen/spec/sharding.h"

#include "gen/spec/mesh.h"

static const struct spec_node *key(const struct spec_node *job, const char *name) {
  return spec_find(spec_find(job, "parallelism"), name);
}

/* What divides: zero_stage, or the strategy of fsdp in either version's words; NULL: nothing says. */
static const struct spec_node *cause_of(const struct spec_node *job) {
  const struct spec_node *stage = key(job, "zero_stage"), *fsdp = key(job, "fsdp");
  if (stage != NULL || fsdp == NULL) return stage;
  const struct spec_node *reshard = spec_find(fsdp, "reshard_after_forward");
  return reshard != NULL ? reshard : spec_find(fsdp, "sharding_strategy");
}

static const struct {
  const char *name;
  int64_t stage;
  bool by_node;
} strategies[] = {{"full_shard", 3, false},
                  {"shard_grad_op", 2, false},
                  {"no_shard", 0, false},
                  {"hybrid_shard", 3, true},
                  {"hybrid_shard_zero2", 2, true}};

struct data_grid data_grid_of(const struct spec_node *job, int64_t ranks) {
  const struct spec_node *replicas = key(job, "dp_replicate"), *shards = key(job, "dp_shard");
  const struct spec_node *cause = cause_of(job);
  struct data_grid grid = {.replicas = 1, .shards = 1};
  bool by_node = false;
  if (cause != NULL && cause->kind == SPEC_INT) grid.stage = cause->integer;
  if (cause != NULL && cause->kind == SPEC_BOOL) grid.stage = cause->integer != 0 ? 3 : 2;
  for (size_t i = 0; i < sizeof strategies / sizeof *strategies && cause != NULL; i++) {
    if (cause->kind != SPEC_STRING || !spec_is(cause, strategies[i].name)) continue;
    grid.stage = strategies[i].stage;
    by_node = strategies[i].by_node;
  }
  if (replicas != NULL) grid.replicas = replicas->integer;
  if (shards != NULL)
    grid.shards = shards->integer;
  else if (by_node && replicas == NULL && ranks >= spec_find(job, "devices.nodes")->integer)
    grid.shards = ranks / spec_find(job, "devices.nodes")->integer;
  else if (grid.stage > 0)
    grid.shards = ranks / grid.replicas;
  if (replicas == NULL) grid.replicas = ranks / grid.shards;
  grid.parts = grid.stage > 0 ? grid.shards * axis_length(job, AXIS_CP) * axis_length(job, AXIS_SP) : 1;
  return grid;
}

/* Where other axes take some of the ranks. */
static void note_other_ranks(const struct spec_node *job, struct diagnostics *diags) {
  static const struct {
    const char *axis, *what;
  } others[] = {{"tp", "train on the same batches"},
                {"cp", "train on the same batches"},
                {"sp", "train on the same batches"},
                {"pp", "train on the same batches"},
                {"ep", "divide the experts"}};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    const struct spec_node *ranks = key(job, others[i].axis);
    if (ranks != NULL && ranks->integer > 1)
      diag_note(diags, ranks->where, "parallelism.%s is %lld: so many ranks %s and count as one here", others[i].axis,
                (long long)ranks->integer, others[i].what);
  }
}

static void check_product(const struct spec_node *job, int64_t ranks, struct diagnostics *diags) {
  const struct spec_node *replicas = key(job, "dp_replicate"), *shards = key(job, "dp_shard");
  const struct spec_node *first = replicas != NULL ? replicas : shards;
  struct data_grid grid = data_grid_of(job, ranks);
  if (first == NULL || grid.replicas * grid.shards == ranks) return;
  const char *plural = ranks > 1 ? "ranks" : "rank";
  if (replicas != NULL && shards != NULL) {
    diag_error(diags, first->where,
               "'parallelism.dp_replicate' times 'parallelism.dp_shard' is %lld, but the job has %lld %s",
               (long long)(grid.replicas * grid.shards), (long long)ranks, plural);
    note_other_ranks(job, diags);
    diag_help(diags, "leave one of them out, or let devices.nodes times devices.per_node be %lld",
              (long long)(grid.replicas * grid.shards));
    return;
  }
  const char *name = replicas != NULL ? "dp_replicate" : "dp_shard";
  diag_error(diags, first->where, "'parallelism.%s' is %lld, but the job has %lld %s", name, (long long)first->integer,
             (long long)ranks, plural);
  note_other_ranks(job, diags);
  diag_help(diags, "leave it out, or let devices.nodes times devices.per_node be %lld", (long long)first->integer);
}

static void check_stage(const struct spec_node *job, int64_t ranks, struct diagnostics *diags) {
  const struct spec_node *shards = key(job, "dp_shard"), *stage = key(job, "zero_stage"), *fsdp = key(job, "fsdp");
  if (stage != NULL && fsdp != NULL) {
    diag_error(diags, stage->where, "'parallelism.zero_stage' and 'parallelism.fsdp' both set what ranks shard");
    diag_note(diags, fsdp->where, "the other one is here");
    diag_help(diags, "leave one of them out");
  }
  if (shards == NULL || shards->integer == 1 || data_grid_of(job, ranks).stage > 0) return;
  const struct spec_node *cause = cause_of(job);
  diag_error(diags, shards->where, "no key sets what the ranks along 'parallelism.dp_shard' shard");
  if (cause != NULL) diag_note(diags, cause->where, "this key says that they shard nothing");
  diag_help(diags, "add zero_stage: 1, and they shard the optimizer's states; 2: gradients too; 3: weights too");
}

/* What is only said of what ranks divide. */
static void check_divided(const struct spec_node *job, int64_t ranks, struct diagnostics *diags) {
  static const char *const keys[] = {"transformer_cls_names_to_wrap", "min_num_params", "ignored_modules",
                                     "state_dict_type"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    const struct spec_node *node = spec_find(key(job, "fsdp"), keys[i]);
    if (node == NULL || node->is_default || data_grid_of(job, ranks).stage > 0) continue;
    diag_error(diags, node->where, "'parallelism.fsdp.%s' is about what ranks shard, but they shard nothing", keys[i]);
    diag_note(diags, cause_of(job)->where, "'sharding_strategy' is no_shard here");
    diag_help(diags, "leave it out, or use sharding_strategy: full_shard");
  }
}

/* ---- What does not go with it ---- */

static const char whole[] = "it looks at whole parameters, and a rank has the states of a part of them";

static const struct {
  const char *key, *value; /* a value that is refused; NULL: all */
  const char *why, *remedy;
  int64_t from; /* the stage */
} unsharded[] = {
    {"optimizer.name", "lamb", whole, "optimizer.name: adamw", 1},
    {"optimizer.name", "adafactor", whole, "optimizer.name: adamw", 1},
    {"optimizer.name", "muon", whole, "optimizer.name: adamw", 1},
    {"optimizer.state_dtype", "bf16_stochastic", "chance is drawn by an element's index among all weights",
     "optimizer.state_dtype: bf16", 3},
    {"tracking.grad_norms", "per_layer", "a rank has a part of the gradient", "tracking.grad_norms: global", 1},
    {"accumulation.sync_each_batch", "true", "a rank stores its shard of the accumulated gradients, and no more",
     "accumulation.sync_each_batch: false", 1},
    {"parallelism.local_sgd_steps", NULL, "ranks that part for some steps have states of their own",
     "a job without parallelism.local_sgd_steps", 1},
    {"parallelism.ddp.comm_hook", "power_sgd", "it is of gradients that all ranks get", "parallelism.ddp.comm_hook: no",
     1},
    {"parallelism.ddp.comm_hook", "batched_power_sgd", "it is of gradients that all ranks get",
     "parallelism.ddp.comm_hook: no", 1},
    {"parallelism.ddp.comm_hook", "fp16", "it is of gradients that all ranks get", "parallelism.ddp.comm_hook: no", 1},
    {"parallelism.ddp.comm_hook", "bf16", "it is of gradients that all ranks get", "parallelism.ddp.comm_hook: no", 1},
    {"hooks.on_bucket", NULL, "it is of gradients that all ranks get", "a job without hooks.on_bucket", 1},
};

static void check_sharded(const struct spec_node *job, int64_t ranks, struct diagnostics *diags) {
  const struct spec_node *cause = cause_of(job);
  struct data_grid grid = data_grid_of(job, ranks);
  if (grid.parts == 1) return;
  bool by_stage = cause == key(job, "zero_stage");
  bool by_reshard = cause->kind == SPEC_BOOL;
  const char *name = by_stage ? "zero_stage" : "fsdp";
  const char *less = by_stage ? "zero_stage: 2" : by_reshard ? "reshard_after_forward: false" : "shard_grad_op";
  for (size_t i = 0; i < sizeof unsharded / sizeof *unsharded; i++) {
    const struct spec_node *node = spec_find(job, unsharded[i].key);
    if (node == NULL || grid.stage < unsharded[i].from) continue;
    if (unsharded[i].value != NULL && !spec_is(node, unsharded[i].value)) continue;
    diag_error(diags, node->where, "'%s' does not go with 'parallelism.%s': %s", unsharded[i].key, name,
               unsharded[i].why);
    diag_note(diags, cause->where, "ranks shard by this key");
    diag_help(diags, "use %s, or %s", unsharded[i].remedy,
              unsharded[i].from > 1 ? less
              : by_stage            ? "zero_stage: 0"
              : by_reshard          ? "no parallelism.fsdp"
                                    : "no_shard");
  }
}

void sharding_check(const struct spec_node *job, int64_t ranks, struct diagnostics *diags) {
  check_product(job, ranks, diags);
  check_stage(job, ranks, diags);
  check_divided(job, ranks, diags);
  check_sharded(job, ranks, diags);
}
