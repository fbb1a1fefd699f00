#include <stddef.h>
#include <string.h>

#include "gen/spec/bind.h"

/* ---- By type ---- */

struct key {
  const char *name;
  size_t member; /* its offset */
};

/* The compiler refuses a member of another type. */
#define MEMBER(path, type) {#path, _Generic(((struct job *)NULL)->path, type: offsetof(struct job, path))}
#define REAL(path) MEMBER(path, double)
#define WHOLE(path) MEMBER(path, int64_t)
#define INT(path) MEMBER(path, int)
#define FLAG(path) MEMBER(path, bool)
#define STRING(path) MEMBER(path, const char *)
#define CHOICE(path) {#path, offsetof(struct job, path)}

static const struct key reals[] = {
    REAL(model.lora.alpha),
    REAL(model.lora.dropout),
    {"model.quantize.llm_int8_threshold", offsetof(struct job, model.quantize.threshold)},
    REAL(data.eval_fraction),
    REAL(data.masking.probability),
    REAL(data.masking.random),
    REAL(data.masking.keep),
    REAL(precision.grad_scaler.init_scale),
    REAL(precision.grad_scaler.growth_factor),
    REAL(precision.grad_scaler.backoff_factor),
    REAL(precision.grad_scaler.min_loss_scale),
    REAL(optimizer.lr),
    REAL(optimizer.dampening),
    REAL(optimizer.alpha),
    REAL(optimizer.rho),
    REAL(optimizer.momentum_decay),
    REAL(optimizer.r),
    REAL(optimizer.weight_lr_power),
    REAL(optimizer.beta2_decay),
    REAL(optimizer.least_scale),
    REAL(optimizer.clip_threshold),
    REAL(optimizer.clip_grad_norm),
    REAL(optimizer.clip_grad_value),
    REAL(schedule.start_weight_decay),
    REAL(schedule.warmup_fraction),
    REAL(schedule.min_lr),
    REAL(schedule.power),
    REAL(schedule.gamma),
    REAL(schedule.pct_start),
    REAL(schedule.div_factor),
    REAL(schedule.final_div_factor),
    REAL(schedule.decay_fraction),
    REAL(training.early_stopping.threshold),
    REAL(training.ema.decay),
    REAL(training.ema.inv_gamma),
    REAL(training.ema.power),
    REAL(tracking.noise_decay),
    REAL(devices.peak_flops),
    REAL(devices.efficiency),
    REAL(devices.memory_bandwidth),
    REAL(devices.link.latency),
    REAL(devices.link.bandwidth),
    REAL(devices.network.latency),
    REAL(devices.network.bandwidth),
};

/* Of 64 bits. A word instead of the number, such as "all", is 0. */
static const struct key wholes[] = {
    {"model.quantize.group_size", offsetof(struct job, model.quantize.group)},
    WHOLE(precision.grad_scaler.growth_interval),
    WHOLE(precision.grad_scaler.hysteresis),
    WHOLE(accumulation.train_batch_size),
    WHOLE(optimizer.ns_steps),
    WHOLE(schedule.warmup_steps),
    WHOLE(schedule.warmup_samples),
    WHOLE(schedule.decay_samples),
    WHOLE(schedule.decay_steps),
    WHOLE(schedule.cycles),
    WHOLE(schedule.timescale),
    WHOLE(schedule.step_size),
    WHOLE(training.early_stopping.patience),
    WHOLE(training.ema.every),
    WHOLE(training.steps),
    WHOLE(training.samples),
    WHOLE(training.epochs),
    WHOLE(training.eval_interval),
    WHOLE(training.eval_delay),
    FLAG(training.eval_on_start),
    WHOLE(training.eval_iters),
    WHOLE(checkpoint.iteration),
    WHOLE(checkpoint.total_limit),
    WHOLE(data.epoch_samples),
    WHOLE(tracking.every),
    WHOLE(profile.schedule.skip_first),
    WHOLE(profile.schedule.wait),
    WHOLE(profile.schedule.warmup),
    WHOLE(profile.schedule.active),
    WHOLE(profile.schedule.repeat),
};

static const struct key ints[] = {
    INT(model.lora.rank),         INT(data.prefetch),
    INT(data.batch_size),         INT(data.sequence_length),
    INT(data.masking.mask_token), INT(accumulation.num_steps),
    INT(memory.checkpoint_every), INT(memory.checkpoint_layers),
    INT(devices.threads),         INT(data.eval_batch_size),
    INT(precision.fp8.margin),    INT(precision.fp8.amax_history_len),
};

static const struct key flags[] = {
    FLAG(model.lora.use_rslora),
    FLAG(precision.fp8.skip_first_and_last),
    {"precision.fp8.use_autocast_during_eval", offsetof(struct job, precision.fp8.in_evaluation)},
    FLAG(precision.fp8.emulate),
    FLAG(model.lora.merge),
    FLAG(model.quantize.load_in_4bit),
    FLAG(model.quantize.load_in_8bit),
    {"model.quantize.bnb_4bit_use_double_quant", offsetof(struct job, model.quantize.double_quant)},
    FLAG(data.shuffle),
    FLAG(data.even_batches),
    FLAG(data.dispatch_batches),
    FLAG(accumulation.sync_with_dataloader),
    FLAG(optimizer.nesterov),
    FLAG(optimizer.centered),
    FLAG(training.early_stopping.restore_best),
    FLAG(precision.tf32),
    FLAG(precision.grad_scaler.dynamic),
    FLAG(precision.grad_scaler.consecutive_hysteresis),
    FLAG(schedule.step_with_optimizer),
    FLAG(training.ema.evaluate),
    FLAG(training.deterministic),
    FLAG(checkpoint.automatic_checkpoint_naming),
    FLAG(checkpoint.background),
    FLAG(tracking.first_step),
    FLAG(tracking.noise_scale),
    FLAG(devices.numa_affinity),
    FLAG(profile.with_flops),
    FLAG(profile.nvtx),
};

static const struct key strings[] = {
    STRING(model.weights),
    STRING(model.weights_prefix),
    {"model.quantize.quant_type", offsetof(struct job, model.quantize.quant_type)},
    STRING(checkpoint.project_dir),
    STRING(checkpoint.resume),
    STRING(checkpoint.folder_of),
    STRING(profile.output_trace_dir),
    STRING(devices.hardware),
    STRING(tracking.project),
    STRING(tracking.run_name),
    STRING(tracking.logging_dir),
    STRING(parallelism.offload.optimizer_nvme_path),
    STRING(parallelism.offload.param_nvme_path),
};

/* ---- Enumerations ---- */

#define MOST_WORDS 32

/* The position of a word among these is the enumerator. */
struct enumeration {
  struct key key;
  const char *words[MOST_WORDS];
};

static const struct enumeration enumerations[] = {
    {CHOICE(data.train.format), {"bytes", "nanogpt", "llmc", "csv", "tokens", "npy", "npy_tokens", "npz"}},
    {CHOICE(data.eval.format), {"bytes", "nanogpt", "llmc", "csv", "tokens", "npy", "npy_tokens", "npz"}},
    {CHOICE(data.packing), {"none", "documents", "pad"}},
    {{"model.quantize.bnb_4bit_quant_type", offsetof(struct job, model.quantize.type)}, {"nf4", "fp4"}},
    {{"model.quantize.activations", offsetof(struct job, model.quantize.activations)}, {"float", "q8_0"}},
    {{"model.quantize.bnb_4bit_compute_dtype", offsetof(struct job, model.quantize.compute)}, {"fp32", "bf16", "fp16"}},
    {{"precision.mixed_precision", offsetof(struct job, precision.mixed)}, {"no", "bf16", "fp16", "fp8"}},
    {CHOICE(precision.fp8.backend), {"ao", "te", "msamp"}},
    {CHOICE(precision.fp8.opt_level), {"O1", "O2"}},
    {CHOICE(precision.fp8.recipe), {"tensorwise", "rowwise", "rowwise_with_gw_hp", "mxfp8"}},
    {{"precision.fp8.override_linear_precision", offsetof(struct job, precision.fp8.override)}, {"none", "wgrad"}},
    {{"precision.fp8.scale_calculation_mode", offsetof(struct job, precision.fp8.mx_scale)}, {"floor", "rceil"}},
    {{"precision.fp8.fp8_format", offsetof(struct job, precision.fp8.format)}, {"HYBRID", "E4M3"}},
    {CHOICE(precision.fp8.amax_compute_algo), {"most_recent", "max"}},
    {{"precision.param_dtype", offsetof(struct job, precision.param)}, {"fp32", "bf16", "fp16"}},
    {CHOICE(checkpoint.dtype), {"fp32", "bf16", "fp16"}},
    {CHOICE(accumulation.normalize), {"batches", "tokens"}},
    {CHOICE(memory.activation_checkpointing), {"none", "all", "every", "layers", "functions", "auto"}},
    {CHOICE(devices.kind), {"cpu", "cuda", "hip", "xla", "tpu", "neuron", "rocm", "xpu"}},
    {CHOICE(devices.attention), {"library", "own"}},
    {CHOICE(devices.convolution), {"library", "own"}},
    {CHOICE(devices.arch), {"native", "x86-64-v3", "avx512", "avx512-bf16", "amx", "neon", "sve"}},
    {CHOICE(parallelism.cp_comm), {"allgather", "ring"}},
    {CHOICE(parallelism.reproducible), {"off", "run", "topology"}},
    {CHOICE(parallelism.pp_schedule), {"1f1b", "gpipe", "interleaved", "zero_bubble"}},
    {CHOICE(parallelism.offload.optimizer), {"none", "cpu", "nvme"}},
    {CHOICE(parallelism.offload.param), {"none", "cpu", "nvme"}},
    {CHOICE(optimizer.name),
     {"sgd", "adam", "adamw", "adamax", "nadam", "radam", "adagrad", "adadelta", "rmsprop", "lion", "lamb", "adafactor",
      "muon", "schedule_free_adamw", "lomo", "adalomo"}},
    {CHOICE(optimizer.norm_type), {"2", "1", "inf"}},
    {CHOICE(optimizer.state_dtype), {"float32", "bf16", "bf16_stochastic", "8bit"}},
    {CHOICE(optimizer.adjust_lr_fn), {"original", "match_rms_adamw", "spectral_unclamped"}},
    {CHOICE(schedule.name),
     {"constant", "linear", "cosine", "cosine_with_restarts", "polynomial", "inverse_sqrt", "exponential", "step",
      "one_cycle", "wsd"}},
    {CHOICE(schedule.wd_incr_style), {"constant", "linear", "cosine"}},
    {CHOICE(schedule.anneal), {"cosine", "linear"}},
    {CHOICE(schedule.decay_type), {"linear", "cosine", "sqrt"}},
    {CHOICE(training.on_nonfinite), {"stop", "skip"}},
};

/* ---- */

#define COUNT(list) (sizeof(list) / sizeof *(list))

static int position(const struct enumeration *enumeration, const char *word) {
  for (int i = 0; i < MOST_WORDS && enumeration->words[i] != NULL; i++)
    if (strcmp(enumeration->words[i], word) == 0) return i;
  return 0;
}

const char *job_word(const struct job *job, const char *key) {
  int at;
  size_t i = 0;
  while (strcmp(enumerations[i].key.name, key) != 0) i++;
  memcpy(&at, (const char *)job + enumerations[i].key.member, sizeof at);
  return enumerations[i].words[at];
}

void bind_members(struct job *job) {
  char *base = (char *)job;
  for (size_t i = 0; i < COUNT(reals); i++) *(double *)(base + reals[i].member) = spec_real(job, reals[i].name);
  for (size_t i = 0; i < COUNT(wholes); i++) *(int64_t *)(base + wholes[i].member) = spec_integer(job, wholes[i].name);
  for (size_t i = 0; i < COUNT(ints); i++) *(int *)(base + ints[i].member) = (int)spec_integer(job, ints[i].name);
  for (size_t i = 0; i < COUNT(flags); i++) *(bool *)(base + flags[i].member) = spec_integer(job, flags[i].name) != 0;
  for (size_t i = 0; i < COUNT(strings); i++)
    *(const char **)(base + strings[i].member) = spec_string(job, strings[i].name);
  for (size_t i = 0; i < COUNT(enumerations); i++) {
    const char *word = spec_string(job, enumerations[i].key.name);
    int at = word != NULL ? position(&enumerations[i], word) : 0;
    memcpy(base + enumerations[i].key.member, &at, sizeof at); /* enumerations have the size of int */
  }
}
