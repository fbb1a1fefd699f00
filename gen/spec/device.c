#include "gen/spec/device.h"

#include "gen/spec/sharding.h"

#include <string.h>

/* A key of which a device's programs take these values alone; none: the key must be away. */
struct limit {
  const char *key, *values[16];
  const char *why; /* they take no others; NULL: yet */
  const char *remedy;
};

/* Of CUDA, what its templates do not write. */
static const struct limit cuda[] = {
    {"hooks.on_bucket",
     {NULL},
     "the function would have gradients on the host",
     "a job without hooks.on_bucket, or devices.kind: cpu"},
    {"devices.arch", {"native"}, NULL, "no devices.arch; TARGETS of the bundle's build.sh names GPUs"},
    {"parallelism.offload.optimizer",
     {"none", "cpu"},
     "its states are on the device or on the host",
     "cpu, or devices.kind: cpu"},
    {"parallelism.offload.param",
     {"none", "cpu"},
     "its weights are on the device or on the host",
     "cpu, or devices.kind: cpu"},
    {.key = NULL},
};

/* Of HIP, what its runtime and libraries lack, and what no test has run. */
static const struct limit hip[] = {
    {"hooks.on_bucket",
     {NULL},
     "the function would have gradients on the host",
     "a job without hooks.on_bucket, or devices.kind: cpu"},
    {"devices.arch", {"native"}, NULL, "no devices.arch; TARGETS of the bundle's build.sh names GPUs"},
    {"devices.nodes", {"1"}, "ranks have nothing to exchange through", "one process, or devices.kind: cuda"},
    {"devices.per_node", {"1"}, "ranks have nothing to exchange through", "one process, or devices.kind: cuda"},
    {"devices.attention", {"own"}, "no library computes attention", "own, or no devices.attention"},
    {"devices.convolution", {"own"}, "no library computes convolutions", "own, or no devices.convolution"},
    {"devices.tuning", {NULL}, "algorithms of hipBLASLt have no names that last", "no devices.tuning"},
    {"precision.mixed_precision", {"no"}, "its kernels are of float32", "precision.mixed_precision: no"},
    {"precision.tf32", {"false"}, "its GPUs have no such type", "no precision.tf32"},
    {"training.deterministic",
     {"false"},
     "hipBLASLt cannot be limited to algorithms whose results never vary",
     "training.deterministic: false"},
    {"parallelism.offload.optimizer", {"none"}, "states are on the device", "no parallelism.offload"},
    {"parallelism.offload.param", {"none"}, "weights are on the device", "no parallelism.offload"},
    {"profile.schedule.active", {NULL}, "a profile is made of what NVIDIA's CUPTI sees", "no profile"},
    {.key = NULL},
};

/* Of XLA, what no module says yet, and what its compiler decides. */
#define ONE_MACHINE "one node, whose devices a process has"
static const struct limit xla[] = {
    {"hooks.source", {NULL}, NULL, "a job without hooks, or devices.kind: cpu"},
    {"devices.nodes", {"1"}, "one process runs a module", ONE_MACHINE},
    {"devices.numa_affinity", {"false"}, "one process has all devices", "no devices.numa_affinity"},
    {"parallelism.tp", {"1"}, NULL, "no parallelism.tp, or devices.kind: cpu"},
    {"parallelism.pp", {"1"}, NULL, "no parallelism.pp, or devices.kind: cpu"},
    {"parallelism.cp", {"1"}, NULL, "no parallelism.cp, or devices.kind: cpu"},
    {"parallelism.sp", {"1"}, NULL, "no parallelism.sp, or devices.kind: cpu"},
    {"parallelism.ep", {"1"}, NULL, "no parallelism.ep, or devices.kind: cpu"},
    {"parallelism.fsdp.state_dict_type",
     {"full_state_dict"},
     "one process writes files",
     "parallelism.fsdp.state_dict_type: full_state_dict"},
    {"parallelism.fsdp.transformer_cls_names_to_wrap",
     {NULL},
     "weights are gathered together",
     "no parallelism.fsdp.transformer_cls_names_to_wrap"},
    {"parallelism.fsdp.min_num_params", {NULL}, "weights are gathered together", "no parallelism.fsdp.min_num_params"},
    {"parallelism.fsdp.ignored_modules",
     {NULL},
     "weights are gathered together",
     "no parallelism.fsdp.ignored_modules"},
    {"parallelism.ddp.comm_hook", {"no"}, "XLA sends gradients", "no parallelism.ddp.comm_hook"},
    {"parallelism.ddp.comm_wrapper", {"no"}, "XLA sends gradients", "no parallelism.ddp.comm_wrapper"},
    {"parallelism.local_sgd_steps", {NULL}, NULL, "no parallelism.local_sgd_steps, or devices.kind: cpu"},
    {"parallelism.sync_batch_norm", {"false"}, NULL, "no parallelism.sync_batch_norm, or devices.kind: cpu"},
    {"accumulation.sync_each_batch", {"false"}, "a step exchanges gradients once", "no accumulation.sync_each_batch"},
    {"devices.attention", {NULL}, "XLA chooses what computes it", "no devices.attention"},
    {"devices.convolution", {NULL}, "XLA chooses what computes it", "no devices.convolution"},
    {"devices.arch", {"native"}, "XLA's plugin knows the device", "no devices.arch"},
    {"devices.memory", {NULL}, "XLA decides what a step takes", "no devices.memory"},
    {"devices.tuning", {NULL}, "XLA chooses kernels", "no devices.tuning"},
    {"precision.mixed_precision", {"no", "bf16"}, NULL, "precision.mixed_precision: bf16 or no, or devices.kind: cpu"},
    {"precision.param_dtype", {"fp32", "bf16"}, NULL, "precision.param_dtype: bf16 or fp32, or devices.kind: cpu"},
    {"precision.grad_scaler.enabled", {"false"}, "a step is never skipped", "no precision.grad_scaler"},
    {"precision.tf32", {"false"}, "XLA chooses it", "no precision.tf32"},
    {"memory.activation_checkpointing",
     {"none"},
     "XLA decides what is computed again",
     "memory.activation_checkpointing: none"},
    {"memory.cross_entropy_chunk", {NULL}, "XLA decides what is in memory", "no memory.cross_entropy_chunk"},
    {"memory.device_map", {NULL}, "a module is on one device", "no memory.device_map"},
    {"parallelism.offload.optimizer", {"none"}, "states are on the device", "no parallelism.offload"},
    {"parallelism.offload.param", {"none"}, "weights are on the device", "no parallelism.offload"},
    {"parallelism.reproducible",
     {"off"},
     "XLA chooses in which order numbers are added",
     "no parallelism.reproducible"},
    {"model.quantize.load_in_4bit", {"false"}, NULL, "a job without model.quantize, or devices.kind: cpu"},
    {"model.quantize.load_in_8bit", {"false"}, NULL, "a job without model.quantize, or devices.kind: cpu"},
    {"data.packing", {"none"}, NULL, "data.packing: none, or devices.kind: cpu"},
    {"data.drop_last", {"true"}, "a module has one number of samples", "data.drop_last: true"},
    {"accumulation.normalize", {"batches"}, NULL, "accumulation.normalize: batches, or devices.kind: cpu"},
    {"optimizer.name",
     {"adamw", "adam", "sgd", "adamax", "nadam", "radam", "adagrad", "adadelta", "rmsprop", "lion", "lamb", "adafactor",
      "muon", "lomo", "adalomo"},
     "its model is an average of what is trained",
     "another one, such as adamw, or devices.kind: cpu"},
    {"optimizer.state_dtype",
     {"float32", "bf16"},
     NULL,
     "optimizer.state_dtype: float32 or bf16, or devices.kind: cpu"},
    {"optimizer.norm_type", {"2"}, NULL, "optimizer.norm_type: 2, or devices.kind: cpu"},
    {"training.deterministic",
     {"false"},
     "XLA chooses in which order numbers are added",
     "training.deterministic: false"},
    {"training.on_nonfinite", {"stop"}, NULL, "training.on_nonfinite: stop, or devices.kind: cpu"},
    {"tracking.grad_norms", {"global"}, NULL, "tracking.grad_norms: global, or devices.kind: cpu"},
    {"tracking.noise_scale", {"false"}, NULL, "tracking.noise_scale: false, or devices.kind: cpu"},
    {"profile.schedule.active", {NULL}, "XLA runs a step as one piece", "no profile"},
    {.key = NULL},
};

static bool allows(const struct limit *limit, const struct spec_node *value) {
  for (int i = 0; limit->values[i] != NULL; i++)
    if (spec_is(value, limit->values[i])) return true;
  return false;
}

/* What is nowhere but in the processor's memory or on a disk. */
static bool is_of_processor(const struct spec_node *value, const char *key) {
  return strncmp(key, "parallelism.offload.", strlen("parallelism.offload.")) == 0 &&
         (spec_is(value, "nvme") || spec_is(value, "none"));
}

/* What speaks of GPUs alone. */
static void check_processor(const struct spec_node *job, const struct spec_node *kind, struct diagnostics *diags) {
  static const char *const keys[] = {
      "devices.attention",         "devices.convolution", "precision.tf32", "parallelism.offload.optimizer",
      "parallelism.offload.param", "profile.nvtx"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    const struct spec_node *value = spec_find(job, keys[i]);
    if (value == NULL || is_of_processor(value, keys[i])) continue;
    diag_error(diags, value->where, "'%s' is for devices.kind 'cuda', which is '%s'%s", keys[i], kind->text,
               kind->is_default ? " by default" : "");
    diag_help(diags, "leave it out, or use devices.kind: cuda");
  }
}

/* A program is made where its GPU may not be, so a table's file is named. */
static void check_tuning(const struct spec_node *job, struct diagnostics *diags) {
  const struct spec_node *tuning = spec_find(job, "devices.tuning");
  if (tuning == NULL || !spec_is(tuning, "machine")) return;
  diag_error(diags, tuning->where, "'machine' is the table of the processor at hand, and devices.kind is 'cuda'");
  diag_help(diags, "name the file that accel-gen tune JOB -o FILE has written of the GPU");
}

/* An optimizer whose model is an average. */
static void check_offloaded_average(const struct spec_node *job, const struct spec_node *offload, const char *what,
                                    const char *why, struct diagnostics *diags) {
  const struct spec_node *name = spec_find(job, "optimizer.name");
  if (offload == NULL || name == NULL || !spec_is(offload, "cpu") || !spec_is(name, "schedule_free_adamw")) return;
  diag_error(diags, offload->where,
             "'parallelism.offload.%s' does not go with optimizer.name 'schedule_free_adamw': %s", what, why);
  diag_note(diags, name->where, "'optimizer.name' is '%s' here", name->text);
  diag_help(diags, "use optimizer.name: adamw, or leave it out");
}

/* What is on the host must be read from there piece by piece. The average of training.ema is where the weights are. */
static void check_offload(const struct spec_node *job, struct diagnostics *diags) {
  const struct spec_node *param = spec_find(job, "parallelism.offload.param");
  const struct spec_node *optimizer = spec_find(job, "parallelism.offload.optimizer");
  int64_t ranks = spec_find(job, "devices.nodes")->integer * spec_find(job, "devices.per_node")->integer;
  struct data_grid grid = data_grid_of(job, ranks);
  if (param != NULL && spec_is(param, "cpu") && (grid.stage < 3 || grid.shards == 1)) {
    diag_error(diags, param->where,
               "'parallelism.offload.param' is of weights of which each rank has a part, but here "
               "each has all of them");
    diag_help(diags, "add zero_stage: 3, and ranks among which it divides; or leave it out");
  }
  check_offloaded_average(job, param, "param", "layers come from the host, and its model is on the device", diags);
  check_offloaded_average(job, optimizer, "optimizer", "its model is made of a state", diags);
}

static void check_limit(const struct spec_node *job, const struct limit *limit, const struct spec_node *kind,
                        struct diagnostics *diags) {
  const struct spec_node *value = spec_find(job, limit->key);
  if (value == NULL || value->kind == SPEC_NULL || allows(limit, value)) return;
  bool given = !value->is_default;
  diag_error(diags, given ? value->where : kind->where, "'%s' does not go with devices.kind '%s'%s%s", limit->key,
             kind->text, limit->why != NULL ? ": " : " yet", limit->why != NULL ? limit->why : "");
  if (given) diag_note(diags, kind->where, "'devices.kind' is '%s' here", kind->text);
  diag_help(diags, "use %s", limit->remedy);
}

/* What is saved while steps continue is a copy in memory. */
static void check_disk(const struct spec_node *job, struct diagnostics *diags) {
  const struct spec_node *optimizer = spec_find(job, "parallelism.offload.optimizer");
  const struct spec_node *background = spec_find(job, "checkpoint.background");
  if (optimizer == NULL || !spec_is(optimizer, "nvme")) return;
  if (background == NULL || background->is_default || background->integer == 0) return;
  diag_error(diags, background->where,
             "'checkpoint.background: true' does not go with 'parallelism.offload.optimizer: nvme': a save in the "
             "background needs a copy of the states in memory");
  diag_note(diags, optimizer->where, "'parallelism.offload.optimizer' is 'nvme' here");
  diag_help(diags, "leave out checkpoint.background: steps wait for a save then");
}

void device_check(const struct spec_node *job, struct diagnostics *diags) {
  const struct spec_node *kind = spec_find(job, "devices.kind");
  if (spec_is(kind, "cpu")) {
    check_processor(job, kind, diags);
    check_disk(job, diags);
    return;
  }
  bool is_cuda = spec_is(kind, "cuda");
  for (const struct limit *limit = is_cuda ? cuda : spec_is(kind, "hip") ? hip : xla; limit->key != NULL; limit++)
    check_limit(job, limit, kind, diags);
  if (!is_cuda) return;
  check_offload(job, diags);
  check_tuning(job, diags);
}
