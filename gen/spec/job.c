#include "gen/spec/job.h"

#include <stdlib.h>
#include <string.h>

#include "gen/base/sha256.h"
#include "gen/spec/node.h"
#include "gen/spec/override.h"
#include "gen/spec/resolve.h"
#include "gen/spec/rules.h"
#include "gen/spec/schema.h"
#include "gen/spec/yaml.h"

/* The values of the resolved tree by their keys; the schema has seen to their types. What a condition keeps away (betas
 * of sgd) is 0, NULL or false. */
static int64_t integer(const struct job *job, const char *key) {
  const struct spec_node *node = spec_find(job->tree, key);
  return node == NULL ? 0 : node->integer;
}

static double real(const struct job *job, const char *key) {
  const struct spec_node *node = spec_find(job->tree, key);
  return node == NULL ? 0 : node->real;
}

static const char *string(const struct job *job, const char *key) {
  const struct spec_node *node = spec_find(job->tree, key);
  return node == NULL ? NULL : node->text;
}

/* The position of a word among those of its enumeration, which is the enumerator; the first when the key is away. */
static int choice(const struct job *job, const char *key, const char *const *words) {
  const char *word = string(job, key);
  for (int i = 0; word != NULL && words[i] != NULL; i++)
    if (strcmp(words[i], word) == 0) return i;
  return 0;
}

static const char *beside(struct arena *arena, const char *file, const char *path) {
  const char *slash = strrchr(file, '/');
  if (path[0] == '/' || slash == NULL) return path;
  return arena_printf(arena, "%.*s%s", (int)(slash + 1 - file), file, path);
}

static struct config_value config_value(const struct spec_entry *entry) {
  const struct spec_node *node = entry->value;
  static const enum config_kind kinds[] = {
      [SPEC_INT] = CONFIG_INT, [SPEC_REAL] = CONFIG_REAL, [SPEC_BOOL] = CONFIG_BOOL, [SPEC_STRING] = CONFIG_STRING};
  return (struct config_value){.name = entry->key,
                               .kind = kinds[node->kind],
                               .integer = node->integer,
                               .real = node->real,
                               .string = node->kind == SPEC_STRING ? node->text : NULL,
                               .where = node->where,
                               .name_where = entry->key_where};
}

static void bind_model(struct arena *arena, struct job *job, struct diagnostics *diags) {
  const struct spec_node *config = spec_find(job->tree, "model.config");
  job->model.source = beside(arena, job->file, string(job, "model.source"));
  job->model.weights = string(job, "model.weights");
  job->model.n_config = config->count;
  job->model.config = arena_alloc(arena, ((size_t)config->count + 1) * sizeof *job->model.config);
  for (int i = 0; i < config->count; i++) {
    job->model.config[i] = config_value(&config->entries[i]);
    if (config->entries[i].value->wide)
      diag_error(diags, config->entries[i].value->where, "'%s' does not fit 64 bits", config->entries[i].key);
  }
}

static void bind_freeze(struct arena *arena, struct job *job) {
  const struct spec_node *list = spec_find(job->tree, "model.freeze");
  job->model.n_freeze = list == NULL ? 0 : list->count;
  job->model.freeze = arena_alloc(arena, ((size_t)job->model.n_freeze + 1) * sizeof *job->model.freeze);
  for (int i = 0; i < job->model.n_freeze; i++)
    job->model.freeze[i] = (struct name_pattern){list->entries[i].value->text, list->entries[i].value->where};
}

static void bind_data(struct job *job) {
  static const char *const formats[] = {"bytes", "nanogpt", "llmc", "csv", "tokens", NULL};
  static const char *const labels[] = {"class", "value", NULL};
  job->data.train.path = string(job, "data.train.path");
  job->data.train.format = (enum data_format)choice(job, "data.train.format", formats);
  job->data.eval.path = string(job, "data.eval.path");
  job->data.eval.format = (enum data_format)choice(job, "data.eval.format", formats);
  job->data.eval_fraction = real(job, "data.eval_fraction");
  job->data.batch_size = (int)integer(job, "data.batch_size");
  job->data.sequence_length = (int)integer(job, "data.sequence_length");
  job->data.features = (int)integer(job, "data.features");
  job->data.label = (enum data_label)choice(job, "data.label", labels);
  job->data.shuffle = integer(job, "data.shuffle") != 0;
  job->data.keep_last = integer(job, "data.drop_last") == 0;
  job->data.even_batches = integer(job, "data.even_batches") != 0;
  job->data.dispatch_batches = integer(job, "data.dispatch_batches") != 0;
  job->data.masking.on = spec_find(job->tree, "data.masking") != NULL;
  if (!job->data.masking.on) return;
  job->data.masking.mask_token = (int)integer(job, "data.masking.mask_token");
  job->data.masking.probability = real(job, "data.masking.probability");
  job->data.masking.random = real(job, "data.masking.random");
  job->data.masking.keep = real(job, "data.masking.keep");
}

/* A group's numbers: those that `node` has, else those of `fallback`. */
static struct optimizer_numbers numbers_of(const struct spec_node *node, struct optimizer_numbers fallback, double lr) {
  const struct spec_node *rate = spec_find(node, "lr"), *scale = spec_find(node, "lr_scale");
  const struct spec_node *decay = spec_find(node, "weight_decay"), *betas = spec_find(node, "betas");
  const struct spec_node *eps = spec_find(node, "eps"), *momentum = spec_find(node, "momentum");
  struct optimizer_numbers numbers = fallback;
  if (scale != NULL) numbers.lr_scale = fallback.lr_scale * scale->real;
  if (rate != NULL) numbers.lr_scale = rate->real / lr;
  if (decay != NULL) numbers.weight_decay = decay->real;
  if (betas != NULL) numbers.beta1 = betas->entries[0].value->real;
  if (betas != NULL) numbers.beta2 = betas->entries[1].value->real;
  if (eps != NULL) numbers.eps = eps->real;
  if (momentum != NULL) numbers.momentum = momentum->real;
  return numbers;
}

static struct param_group param_group(const struct job *job, const struct spec_node *node) {
  const struct spec_node *match = spec_find(node, "match"), *adamw = spec_find(node, "adamw");
  struct param_group group = {.match = match->text, .where = match->where, .adamw = adamw != NULL && adamw->integer};
  group.numbers = numbers_of(node, job->optimizer.numbers, job->optimizer.lr);
  group.adamw_numbers = numbers_of(node, job->optimizer.adamw, job->optimizer.lr);
  group.adamw_numbers.momentum = 0; /* it has none */
  return group;
}

static void bind_groups(struct arena *arena, struct job *job) {
  const struct spec_node *list = spec_find(job->tree, "optimizer.param_groups");
  job->optimizer.n_groups = list == NULL ? 0 : list->count;
  job->optimizer.groups = arena_alloc(arena, ((size_t)job->optimizer.n_groups + 1) * sizeof *job->optimizer.groups);
  for (int i = 0; i < job->optimizer.n_groups; i++) job->optimizer.groups[i] = param_group(job, list->entries[i].value);
}

static void bind_muon(struct job *job) {
  static const char *const adjustments[] = {"original", "match_rms_adamw", "spectral_unclamped", NULL};
  const struct spec_node *coefficients = spec_find(job->tree, "optimizer.ns_coefficients");
  const struct spec_node *adamw = spec_find(job->tree, "optimizer.adamw");
  for (int i = 0; coefficients != NULL && i < 3; i++)
    job->optimizer.ns_coefficients[i] = coefficients->entries[i].value->real;
  job->optimizer.ns_steps = integer(job, "optimizer.ns_steps");
  job->optimizer.adjust_lr_fn = (enum adjust_lr)choice(job, "optimizer.adjust_lr_fn", adjustments);
  if (adamw != NULL) job->optimizer.adamw = numbers_of(adamw, (struct optimizer_numbers){0}, job->optimizer.lr);
}

static void bind_memory(struct arena *arena, struct job *job) {
  static const char *const words[] = {"none", "all", "every", "layers", "functions", "auto", NULL};
  const struct spec_node *list = spec_find(job->tree, "memory.checkpoint_functions");
  job->memory.activation_checkpointing = (enum checkpointing)choice(job, "memory.activation_checkpointing", words);
  job->memory.checkpoint_every = (int)integer(job, "memory.checkpoint_every");
  job->memory.checkpoint_layers = (int)integer(job, "memory.checkpoint_layers");
  const struct spec_node *chunk = spec_find(job->tree, "memory.cross_entropy_chunk");
  job->memory.cross_entropy_chunk = chunk->kind == SPEC_STRING ? CHUNK_AUTO : chunk->integer;
  job->memory.n_functions = list == NULL ? 0 : list->count;
  job->memory.functions = arena_alloc(arena, ((size_t)job->memory.n_functions + 1) * sizeof *job->memory.functions);
  for (int i = 0; i < job->memory.n_functions; i++)
    job->memory.functions[i] = (struct named){list->entries[i].value->text, list->entries[i].value->where};
}

static void bind_optimizer(struct job *job) {
  static const char *const names[] = {"sgd",
                                      "adam",
                                      "adamw",
                                      "adamax",
                                      "nadam",
                                      "radam",
                                      "adagrad",
                                      "rmsprop",
                                      "lion",
                                      "lamb",
                                      "adafactor",
                                      "muon",
                                      "schedule_free_adamw",
                                      "lomo",
                                      NULL};
  static const char *const dtypes[] = {"float32", "bf16", "8bit", NULL};
  static const char *const norms[] = {"2", "inf", NULL};
  const struct optimizer_numbers none = {0};
  job->optimizer.name = (enum optimizer_name)choice(job, "optimizer.name", names);
  job->optimizer.lr = real(job, "optimizer.lr");
  job->optimizer.numbers = numbers_of(spec_find(job->tree, "optimizer"), none, job->optimizer.lr);
  job->optimizer.dampening = real(job, "optimizer.dampening");
  job->optimizer.nesterov = integer(job, "optimizer.nesterov") != 0;
  job->optimizer.alpha = real(job, "optimizer.alpha");
  job->optimizer.centered = integer(job, "optimizer.centered") != 0;
  job->optimizer.momentum_decay = real(job, "optimizer.momentum_decay");
  job->optimizer.r = real(job, "optimizer.r");
  job->optimizer.weight_lr_power = real(job, "optimizer.weight_lr_power");
  job->optimizer.beta2_decay = real(job, "optimizer.beta2_decay");
  job->optimizer.least_scale = real(job, "optimizer.least_scale");
  job->optimizer.clip_threshold = real(job, "optimizer.clip_threshold");
  job->optimizer.clip_grad_norm = real(job, "optimizer.clip_grad_norm");
  job->optimizer.norm_type = (enum norm_type)choice(job, "optimizer.norm_type", norms);
  job->optimizer.state_dtype = (enum state_dtype)choice(job, "optimizer.state_dtype", dtypes);
  job->optimizer.clip_grad_value = real(job, "optimizer.clip_grad_value");
  bind_muon(job);
}

static void bind_schedule(struct job *job) {
  static const char *const names[] = {"constant",   "linear",       "cosine",      "cosine_with_restarts",
                                      "polynomial", "inverse_sqrt", "exponential", "step",
                                      "one_cycle",  "wsd",          NULL};
  static const char *const growths[] = {"constant", "linear", "cosine", NULL};
  static const char *const anneals[] = {"cosine", "linear", NULL}, *const decays[] = {"linear", "cosine", "sqrt", NULL};
  job->schedule.name = (enum schedule_name)choice(job, "schedule.name", names);
  job->schedule.warmup_steps = integer(job, "schedule.warmup_steps");
  job->schedule.warmup_samples = integer(job, "schedule.warmup_samples");
  job->schedule.decay_samples = integer(job, "schedule.decay_samples");
  job->schedule.wd_incr_style = (enum growth)choice(job, "schedule.wd_incr_style", growths);
  job->schedule.start_weight_decay = real(job, "schedule.start_weight_decay");
  job->schedule.warmup_fraction = real(job, "schedule.warmup_fraction");
  job->schedule.decay_steps = integer(job, "schedule.decay_steps");
  job->schedule.min_lr = real(job, "schedule.min_lr");
  job->schedule.cycles = integer(job, "schedule.cycles");
  job->schedule.power = real(job, "schedule.power");
  job->schedule.timescale = integer(job, "schedule.timescale");
  job->schedule.gamma = real(job, "schedule.gamma");
  job->schedule.step_size = integer(job, "schedule.step_size");
  job->schedule.anneal = (enum anneal_form)choice(job, "schedule.anneal", anneals);
  job->schedule.pct_start = real(job, "schedule.pct_start");
  job->schedule.div_factor = real(job, "schedule.div_factor");
  job->schedule.final_div_factor = real(job, "schedule.final_div_factor");
  job->schedule.decay_type = (enum decay_type)choice(job, "schedule.decay_type", decays);
  job->schedule.decay_fraction = real(job, "schedule.decay_fraction");
  bool stable = spec_find(job->tree, "schedule.stable_steps") != NULL;
  job->schedule.stable_steps = stable ? integer(job, "schedule.stable_steps") : -1;
}

/* Without a word about it, the scaler is there for the format whose range needs it. */
static void bind_precision(struct arena *arena, struct job *job) {
  static const char *const types[] = {"fp32", "bf16", "fp16", NULL};
  const struct spec_node *autocast = spec_find(job->tree, "precision.autocast.enabled");
  const struct spec_node *keep = spec_find(job->tree, "precision.keep_in_fp32");
  const struct spec_node *enabled = spec_find(job->tree, "precision.grad_scaler.enabled");
  static const char *const modes[] = {"no", "bf16", "fp16", NULL};
  job->precision.mixed = (enum mixed_precision)choice(job, "precision.mixed_precision", modes);
  job->precision.autocast = job->precision.mixed != PRECISION_NO && (autocast == NULL || autocast->integer != 0);
  job->precision.param = (enum mixed_precision)choice(job, "precision.param_dtype", types);
  job->precision.n_keep_in_fp32 = keep == NULL ? 0 : keep->count;
  job->precision.keep_in_fp32 =
      arena_alloc(arena, ((size_t)job->precision.n_keep_in_fp32 + 1) * sizeof *job->precision.keep_in_fp32);
  for (int i = 0; i < job->precision.n_keep_in_fp32; i++)
    job->precision.keep_in_fp32[i] = (struct named){keep->entries[i].value->text, keep->entries[i].value->where};
  job->precision.grad_scaler.enabled = enabled != NULL ? enabled->integer != 0 : job->precision.mixed == PRECISION_FP16;
  job->precision.grad_scaler.init_scale = real(job, "precision.grad_scaler.init_scale");
  job->precision.grad_scaler.growth_factor = real(job, "precision.grad_scaler.growth_factor");
  job->precision.grad_scaler.backoff_factor = real(job, "precision.grad_scaler.backoff_factor");
  job->precision.grad_scaler.growth_interval = integer(job, "precision.grad_scaler.growth_interval");
}

const char *const job_metric_names[] = {"accuracy", "perplexity", "f1_macro", "f1_binary", NULL};

bool job_wants_predictions(const struct job *job) {
  bool wants = false;
  for (int i = 0; i < METRICS; i++) wants |= job->training.metrics[i] && i != METRIC_PERPLEXITY;
  return wants;
}

static void bind_metrics(struct job *job) {
  const struct spec_node *list = spec_find(job->tree, "training.metrics");
  for (int i = 0; list != NULL && i < list->count; i++)
    for (int m = 0; m < METRICS; m++)
      if (strcmp(job_metric_names[m], list->entries[i].value->text) == 0) job->training.metrics[m] = true;
}

/* The metric that decides is one of the evaluation, whether or not the job lists it. */
static void bind_stopping(struct job *job) {
  static const char *const modes[] = {"min", "max", NULL};
  const char *metric = string(job, "training.early_stopping.metric");
  job->training.early_stopping.patience = integer(job, "training.early_stopping.patience");
  job->training.early_stopping.threshold = real(job, "training.early_stopping.threshold");
  job->training.early_stopping.restore_best = integer(job, "training.early_stopping.restore_best") != 0;
  job->training.early_stopping.metric = -1;
  for (int m = 0; metric != NULL && m < METRICS; m++)
    if (strcmp(job_metric_names[m], metric) == 0) job->training.early_stopping.metric = m;
  int decides = job->training.early_stopping.metric;
  bool greater = decides >= 0 && decides != METRIC_PERPLEXITY;
  if (string(job, "training.early_stopping.mode") != NULL)
    greater = choice(job, "training.early_stopping.mode", modes) == 1;
  job->training.early_stopping.greater = greater;
  if (decides >= 0) job->training.metrics[decides] = true;
}

const char *const job_hook_keys[HOOKS] = {"on_start", "on_step",     "on_eval",    "on_save",
                                          "on_end",   "on_pre_save", "on_pre_load"};

static void bind_hooks(struct arena *arena, struct job *job) {
  const char *source = string(job, "hooks.source");
  if (source == NULL) return;
  job->hooks.source = beside(arena, job->file, source);
  /* Compilers must see a path in it, whatever it begins with. */
  if (job->hooks.source[0] != '/') job->hooks.source = arena_printf(arena, "./%s", job->hooks.source);
  for (int i = 0; i < HOOKS; i++) {
    const struct spec_node *name = spec_find(spec_find(job->tree, "hooks"), job_hook_keys[i]);
    job->hooks.names[i] = name != NULL ? name->text : NULL;
  }
}

static void bind_average(struct job *job) {
  job->training.ema.decay = real(job, "training.ema.decay");
  job->training.ema.every = integer(job, "training.ema.every");
  job->training.ema.inv_gamma = real(job, "training.ema.inv_gamma");
  job->training.ema.power = real(job, "training.ema.power");
  job->training.ema.evaluate = integer(job, "training.ema.evaluate") != 0;
}

/* A size such as 16GiB; a number is bytes. 0 where the key is away. */
static int64_t size_in_bytes(const struct job *job, const char *key, struct diagnostics *diags) {
  static const struct {
    const char *name;
    double bytes;
  } units[] = {{"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40},
               {"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12}};
  const struct spec_node *node = spec_find(job->tree, key);
  if (node == NULL) return 0;
  if (node->kind != SPEC_STRING) return node->integer;
  char *unit;
  double number = strtod(node->text, &unit);
  for (size_t i = 0; i < sizeof units / sizeof *units; i++)
    if (strcmp(units[i].name, unit) == 0 && number * units[i].bytes < 0x1p60) return (int64_t)(number * units[i].bytes);
  diag_error(diags, node->where, "'%s' is no size: write a number with KiB, MiB, GiB, TiB, KB, MB, GB or TB",
             node->text);
  return 0;
}

static void bind_run(struct job *job, struct diagnostics *diags) {
  static const char *const kinds[] = {"cpu", NULL}, *const nonfinite[] = {"stop", "skip", NULL};
  static const char *const told[] = {"global", "per_layer", NULL};
  static const char *const normalize[] = {"batches", "tokens", NULL};
  job->accumulation.num_steps = (int)integer(job, "accumulation.num_steps");
  job->accumulation.normalize = (enum normalize)choice(job, "accumulation.normalize", normalize);
  job->accumulation.sync_with_dataloader = integer(job, "accumulation.sync_with_dataloader") != 0;
  job->devices.kind = (enum device_kind)choice(job, "devices.kind", kinds);
  job->accumulation.train_batch_size = integer(job, "accumulation.train_batch_size");
  job->devices.memory = size_in_bytes(job, "devices.memory", diags);
  job->devices.threads = (int)integer(job, "devices.threads");
  job->training.steps = integer(job, "training.steps");
  job->training.samples = integer(job, "training.samples");
  job->training.epochs = integer(job, "training.epochs");
  job->training.seed = (uint64_t)integer(job, "training.seed");
  job->training.eval_interval = integer(job, "training.eval_interval");
  job->training.on_nonfinite = (enum on_nonfinite)choice(job, "training.on_nonfinite", nonfinite);
  job->training.eval_iters = integer(job, "training.eval_iters"); /* a word, "all", is 0 */
  job->training.deterministic = integer(job, "training.deterministic") != 0;
  bind_metrics(job);
  bind_stopping(job);
  bind_average(job);
  bool seeded = spec_find(job->tree, "data.data_seed") != NULL;
  job->data.data_seed = seeded ? (uint64_t)integer(job, "data.data_seed") : job->training.seed;
  job->tracking.every = integer(job, "tracking.every");
  job->tracking.layer_norms = choice(job, "tracking.grad_norms", told) == 1;
  job->tracking.noise_scale = integer(job, "tracking.noise_scale") != 0;
  job->tracking.noise_decay = real(job, "tracking.noise_decay");
}

/* Steps, minutes, or a group of both. */
static void bind_cadence(struct job *job) {
  const struct spec_node *every = spec_find(job->tree, "checkpoint.every");
  job->checkpoint.every = every->kind == SPEC_INT ? every->integer : integer(job, "checkpoint.every.steps");
  job->checkpoint.minutes =
      every->kind == SPEC_STRING ? strtod(every->text, NULL) : real(job, "checkpoint.every.minutes");
}

static void bind_checkpoint(struct job *job, struct diagnostics *diags) {
  job->checkpoint.project_dir = string(job, "checkpoint.project_dir");
  bind_cadence(job);
  job->checkpoint.automatic_checkpoint_naming = integer(job, "checkpoint.automatic_checkpoint_naming") != 0;
  job->checkpoint.iteration = integer(job, "checkpoint.iteration");
  job->checkpoint.total_limit = integer(job, "checkpoint.total_limit");
  job->checkpoint.max_shard_bytes = size_in_bytes(job, "checkpoint.max_shard_size", diags);
  job->checkpoint.background = integer(job, "checkpoint.background") != 0;
  job->checkpoint.resume = string(job, "checkpoint.resume");
  job->checkpoint.saves_on_signal = strcmp(string(job, "checkpoint.on_signal"), "save") == 0;
  job->checkpoint.outlives_errors = strcmp(string(job, "checkpoint.on_save_error"), "continue") == 0;
}

static struct job *bind(struct arena *arena, const char *file, const struct spec_node *tree,
                        struct diagnostics *diags) {
  struct job *job = arena_alloc(arena, sizeof *job);
  job->file = arena_string(arena, file);
  job->tree = tree;
  bind_model(arena, job, diags);
  bind_data(job);
  bind_memory(arena, job);
  bind_optimizer(job);
  bind_groups(arena, job);
  bind_freeze(arena, job);
  bind_schedule(job);
  bind_precision(arena, job);
  bind_run(job, diags);
  bind_checkpoint(job, diags);
  bind_hooks(arena, job);
  return job;
}

/* Of the resolved job, not of the file: comments, order and spelling make no other job. */
static const char *digest(struct arena *arena, const struct job *job) {
  const char *text = job_resolved(arena, job);
  char hex[65];
  struct sha256 sum = sha256_start();
  sha256_add(&sum, text, strlen(text));
  sha256_hex(&sum, hex);
  return arena_string(arena, hex);
}

/* The document with the overrides; NULL when there is none to validate. */
static const struct spec_node *read_document(struct arena *arena, const struct spec_source *source,
                                             const struct job_override *overrides, int n_overrides,
                                             struct diagnostics *diags) {
  const struct spec_node *document = source == NULL ? NULL : yaml_parse(arena, source, diags);
  for (int i = 0; document != NULL && i < n_overrides; i++)
    document = override_apply(arena, document, &overrides[i], diags);
  return document;
}

struct job *job_parse(struct arena *arena, const char *file, const char *text, size_t length,
                      const struct job_override *overrides, int n_overrides, struct diagnostics *diags) {
  int before = diags->errors;
  file = arena_string(arena, file);
  diag_add_source(diags, file, text);
  const struct spec_source *source = source_of(arena, file, text, length, false, diags);
  const struct spec_node *document = read_document(arena, source, overrides, n_overrides, diags);
  if (document == NULL) return NULL;
  json_t *schema = schema_of_job();
  struct job *job = NULL;
  if (schema_validate(arena, schema, document, diags) && diags->errors == before) {
    const struct spec_node *resolved = spec_resolve(arena, schema, document);
    rules_check(arena, resolved, diags);
    job = bind(arena, file, resolved, diags);
    job->digest = digest(arena, job);
  }
  json_decref(schema);
  return diags->errors > before ? NULL : job;
}

struct job *job_read(struct arena *arena, const char *file, const struct job_override *overrides, int n_overrides,
                     struct diagnostics *diags) {
  size_t length = 0;
  const char *text = source_read(arena, file, &length, diags);
  return text == NULL ? NULL : job_parse(arena, file, text, length, overrides, n_overrides, diags);
}

struct location job_where(const struct job *job, const char *key) {
  const struct spec_node *node = job->tree;
  struct location where = {.file = job->file};
  if (node != NULL) where = node->where;
  while (node != NULL && *key != '\0') {
    size_t length = strcspn(key, ".");
    char name[64];
    if (length >= sizeof name) break;
    memcpy(name, key, length);
    name[length] = '\0';
    node = spec_find(node, name);
    if (node != NULL) where = node->where;
    key += length;
    if (*key == '.') key++;
  }
  return where;
}

const char *job_resolved(struct arena *arena, const struct job *job) {
  struct text out = text_in(arena);
  spec_write(&out, job->tree);
  return text_string(&out);
}
