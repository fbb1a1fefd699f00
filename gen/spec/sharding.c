#include "gen/spec/sharding.h"

static const struct spec_node *key(const struct spec_node *job, const char *name) {
  return spec_find(spec_find(job, "parallelism"), name);
}

struct data_grid data_grid_of(const struct spec_node *job, int64_t ranks) {
  const struct spec_node *replicas = key(job, "dp_replicate"), *shards = key(job, "dp_shard");
  const struct spec_node *stage = key(job, "zero_stage");
  struct data_grid grid = {.replicas = 1, .shards = 1, .stage = stage != NULL ? stage->integer : 0};
  if (replicas != NULL) grid.replicas = replicas->integer;
  if (shards != NULL)
    grid.shards = shards->integer;
  else if (grid.stage > 0)
    grid.shards = ranks / grid.replicas;
  if (replicas == NULL) grid.replicas = ranks / grid.shards;
  return grid;
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
    diag_help(diags, "leave one of them out, or let devices.nodes times devices.per_node be %lld",
              (long long)(grid.replicas * grid.shards));
    return;
  }
  const char *name = replicas != NULL ? "dp_replicate" : "dp_shard";
  diag_error(diags, first->where, "'parallelism.%s' is %lld, but the job has %lld %s", name, (long long)first->integer,
             (long long)ranks, plural);
  diag_help(diags, "leave it out, or let devices.nodes times devices.per_node be %lld", (long long)first->integer);
}

static void check_stage(const struct spec_node *job, struct diagnostics *diags) {
  const struct spec_node *shards = key(job, "dp_shard"), *stage = key(job, "zero_stage");
  if (shards == NULL || shards->integer == 1 || (stage != NULL && stage->integer > 0)) return;
  diag_error(diags, shards->where, "nothing says what the ranks along 'parallelism.dp_shard' divide");
  if (stage != NULL) diag_note(diags, stage->where, "'parallelism.zero_stage' is 0 here");
  diag_help(diags, "add zero_stage: 1, and they divide the optimizer's states; 2: gradients too; 3: weights too");
}

/* ---- What does not go with it ---- */

static const char whole[] = "it looks at whole parameters, and a rank has the states of a part of them";

static const struct {
  const char *key, *value; /* a value that is refused; NULL: all */
  const char *why, *cure;
  int64_t from; /* the stage */
} undivided[] = {
    {"optimizer.name", "lamb", whole, "optimizer.name: adamw", 1},
    {"optimizer.name", "adafactor", whole, "optimizer.name: adamw", 1},
    {"optimizer.name", "muon", whole, "optimizer.name: adamw", 1},
    {"optimizer.name", "schedule_free_adamw", "its model is an average that each rank would have a part of",
     "optimizer.name: adamw", 1},
    {"optimizer.state_dtype", "8bit", "its scales are of blocks that ranks would cut", "optimizer.state_dtype: bf16",
     1},
    {"training.ema", NULL, "each rank would have a part of the average", "a job without training.ema", 1},
    {"tracking.grad_norms", "per_layer", "a rank has a part of the gradient", "tracking.grad_norms: global", 1},
    {"accumulation.sync_each_batch", "true", "a rank keeps its part of what was added up, and no more",
     "accumulation.sync_each_batch: false", 1},
    {"parallelism.reproducible", "topology", "its tree of sums ends with whole gradients on all ranks",
     "parallelism.reproducible: run", 1},
    {"parallelism.local_sgd_steps", NULL, "ranks that part for some steps have states of their own",
     "a job without parallelism.local_sgd_steps", 1},
    {"parallelism.ddp.comm_hook", "fp16", "it is of gradients that all ranks get", "parallelism.ddp.comm_hook: no", 1},
    {"parallelism.ddp.comm_hook", "bf16", "it is of gradients that all ranks get", "parallelism.ddp.comm_hook: no", 1},
    {"training.eval_iters", "all", "ranks with fewer samples would not come to what makes weights whole",
     "training.eval_iters: 100", 3},
    {"training.early_stopping.restore_best", "true", "each rank has a part of the best weights",
     "training.early_stopping.restore_best: false", 3},
};

static void check_undivided(const struct spec_node *job, int64_t ranks, struct diagnostics *diags) {
  const struct spec_node *stage = key(job, "zero_stage");
  if (stage == NULL || stage->integer == 0 || data_grid_of(job, ranks).shards == 1) return;
  for (size_t i = 0; i < sizeof undivided / sizeof *undivided; i++) {
    const struct spec_node *node = spec_find(job, undivided[i].key);
    if (node == NULL || stage->integer < undivided[i].from) continue;
    if (undivided[i].value != NULL && !spec_is(node, undivided[i].value)) continue;
    diag_error(diags, node->where, "'%s' does not go with 'parallelism.zero_stage': %s", undivided[i].key,
               undivided[i].why);
    diag_note(diags, stage->where, "'parallelism.zero_stage' is %lld here", (long long)stage->integer);
    diag_help(diags, "use %s, or zero_stage: %d", undivided[i].cure, undivided[i].from > 1 ? 2 : 0);
  }
}

void sharding_check(const struct spec_node *job, int64_t ranks, struct diagnostics *diags) {
  check_product(job, ranks, diags);
  check_stage(job, diags);
  check_undivided(job, ranks, diags);
}
