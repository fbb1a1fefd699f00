#include "gen/spec/bind.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gen/spec/data_inputs.h"
#include "gen/spec/parallel.h"
#include "gen/spec/tensor_plan.h"

enum { MOST_EPOCHS = 1000000 };

int64_t spec_integer(const struct job *job, const char *key) {
  const struct spec_node *node = spec_find(job->tree, key);
  return node == NULL ? 0 : node->integer;
}

double spec_real(const struct job *job, const char *key) {
  const struct spec_node *node = spec_find(job->tree, key);
  return node == NULL ? 0 : node->real;
}

const char *spec_string(const struct job *job, const char *key) {
  const struct spec_node *node = spec_find(job->tree, key);
  return node == NULL ? NULL : node->text;
}

static const char *relative_to(struct arena *arena, const char *file, const char *path) {
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

/* The texts of a list, with their locations; none where the key is away. */
static struct named *names_of(struct arena *arena, const struct job *job, const char *key, int *count) {
  const struct spec_node *list = spec_find(job->tree, key);
  *count = list == NULL ? 0 : list->count;
  struct named *names = arena_alloc(arena, ((size_t)*count + 1) * sizeof *names);
  for (int i = 0; i < *count; i++)
    names[i] = (struct named){list->entries[i].value->text, list->entries[i].value->where};
  return names;
}

static struct named named_at(const struct spec_node *node, const char *key) {
  const struct spec_node *text = spec_find(node, key);
  return text != NULL ? (struct named){text->text, text->where} : (struct named){0};
}

static void bind_weights_map(struct arena *arena, struct job *job) {
  const struct spec_node *list = spec_find(job->tree, "model.weights_map");
  job->model.n_weights_map = list == NULL ? 0 : list->count;
  job->model.weights_map = arena_alloc(arena, ((size_t)job->model.n_weights_map + 1) * sizeof *job->model.weights_map);
  for (int i = 0; i < job->model.n_weights_map; i++) {
    const struct spec_node *rule = list->entries[i].value;
    job->model.weights_map[i] =
        (struct weights_rule){named_at(rule, "from"), named_at(rule, "to"), named_at(rule, "path")};
  }
}

static void bind_quant_type(struct job *job) {
  static const char *const words[] = {"int8_weight_only", "int4_weight_only", "q8_0", "q4_0", "q4_k"};
  const char *word = job->model.quantize.quant_type;
  const int64_t of_int4 = 128; /* torchao's default */
  job->model.quantize.on = job->model.quantize.load_in_4bit || job->model.quantize.load_in_8bit || word != NULL;
  if (job->model.quantize.load_in_8bit) job->model.quantize.type = QUANT_INT8;
  for (int i = 0; word != NULL && i < (int)(sizeof words / sizeof *words); i++)
    if (strcmp(word, words[i]) == 0) job->model.quantize.type = (enum quant_type)(QUANT_INT8_GROUPS + i);
  if (job->model.quantize.type == QUANT_INT4_GROUPS && job->model.quantize.group == 0)
    job->model.quantize.group = of_int4;
}

static void bind_model(struct arena *arena, struct job *job, struct diagnostics *diags) {
  const struct spec_node *config = spec_find(job->tree, "model.config");
  job->model.source = relative_to(arena, job->file, spec_string(job, "model.source"));
  job->model.freeze = names_of(arena, job, "model.freeze", &job->model.n_freeze);
  job->model.fresh = names_of(arena, job, "model.fresh", &job->model.n_fresh);
  job->model.ignore = names_of(arena, job, "model.ignore", &job->model.n_ignore);
  bind_weights_map(arena, job);
  job->model.lora.targets = names_of(arena, job, "model.lora.targets", &job->model.lora.n_targets);
  job->model.lora.modules_to_save =
      names_of(arena, job, "model.lora.modules_to_save", &job->model.lora.n_modules_to_save);
  job->model.quantize.keep = names_of(arena, job, "model.quantize.keep_in_fp32_modules", &job->model.quantize.n_keep);
  bind_quant_type(job);
  if (spec_find(job->tree, "model.quantize.skip_modules") != NULL)
    job->model.quantize.skip = names_of(arena, job, "model.quantize.skip_modules", &job->model.quantize.n_skip);
  job->model.n_config = config->count;
  job->model.config = arena_alloc(arena, ((size_t)config->count + 1) * sizeof *job->model.config);
  for (int i = 0; i < config->count; i++) {
    job->model.config[i] = config_value(&config->entries[i]);
    if (config->entries[i].value->wide)
      diag_error(diags, config->entries[i].value->where, "'%s' does not fit 64 bits", config->entries[i].key);
  }
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
  const struct spec_node *coefficients = spec_find(job->tree, "optimizer.ns_coefficients");
  const struct spec_node *adamw = spec_find(job->tree, "optimizer.adamw");
  for (int i = 0; coefficients != NULL && i < 3; i++)
    job->optimizer.ns_coefficients[i] = coefficients->entries[i].value->real;
  if (adamw != NULL) job->optimizer.adamw = numbers_of(adamw, (struct optimizer_numbers){0}, job->optimizer.lr);
}

static void bind_map(struct arena *arena, struct job *job) {
  static const char *const ways[] = {"auto", "balanced", "balanced_low_0", "sequential"};
  const struct spec_node *map = spec_find(job->tree, "memory.device_map");
  job->memory.maps = map != NULL;
  if (map == NULL) return;
  for (int i = 0; map->kind != SPEC_MAP && i < (int)(sizeof ways / sizeof *ways); i++)
    if (strcmp(map->text, ways[i]) == 0) job->memory.device_map = (enum device_map_way)i;
  job->memory.n_places = map->kind == SPEC_MAP ? map->count : 0;
  job->memory.places = arena_alloc(arena, ((size_t)job->memory.n_places + 1) * sizeof *job->memory.places);
  for (int i = 0; i < job->memory.n_places; i++)
    job->memory.places[i] =
        (struct place_rule){map->entries[i].key, map->entries[i].value->text, map->entries[i].key_where};
}

static void bind_memory(struct arena *arena, struct job *job) {
  const struct spec_node *chunk = spec_find(job->tree, "memory.cross_entropy_chunk");
  job->memory.cross_entropy_chunk = CHUNK_DEVICE;
  if (chunk != NULL) job->memory.cross_entropy_chunk = chunk->kind == SPEC_STRING ? CHUNK_AUTO : chunk->integer;
  job->memory.functions = names_of(arena, job, "memory.checkpoint_functions", &job->memory.n_functions);
  if (spec_find(job->tree, "memory.no_split") != NULL)
    job->memory.no_split = names_of(arena, job, "memory.no_split", &job->memory.n_no_split);
  bind_map(arena, job);
}

/* Which layers ranks divide; the rest of the group follows from the ranks (parallel_bind). */
static void bind_layers(struct arena *arena, struct job *job) {
  job->parallelism.wrapped =
      names_of(arena, job, "parallelism.fsdp.transformer_cls_names_to_wrap", &job->parallelism.n_wrapped);
  job->parallelism.ignored = names_of(arena, job, "parallelism.fsdp.ignored_modules", &job->parallelism.n_ignored);
  tensor_plan_bind(arena, job);
}

static void bind_optimizer(struct job *job) {
  const struct optimizer_numbers none = {0};
  job->optimizer.numbers = numbers_of(spec_find(job->tree, "optimizer"), none, job->optimizer.lr);
  bind_muon(job);
}

/* Without a word about it, the scaler is there for the format whose range needs it. */
static void bind_precision(struct arena *arena, struct job *job) {
  const struct spec_node *autocast = spec_find(job->tree, "precision.autocast.enabled");
  const struct spec_node *enabled = spec_find(job->tree, "precision.grad_scaler.enabled");
  job->precision.fp8.on = job->precision.mixed == PRECISION_FP8;
  if (job->precision.fp8.on) job->precision.mixed = PRECISION_BF16;
  job->precision.autocast = job->precision.mixed != PRECISION_NO && (autocast == NULL || autocast->integer != 0);
  job->precision.fp8.skip = names_of(arena, job, "precision.fp8.skip_modules", &job->precision.fp8.n_skip);
  job->precision.keep_in_fp32 = names_of(arena, job, "precision.keep_in_fp32", &job->precision.n_keep_in_fp32);
  job->precision.grad_scaler.enabled = enabled != NULL ? enabled->integer != 0 : job->precision.mixed == PRECISION_FP16;
}

const char *const job_metric_names[] = {"accuracy", "perplexity",  "f1_macro", "f1_binary", "f1_micro",
                                        "matthews", "exact_match", "token_f1", "auc",       "margin",
                                        "pearson",  "spearman",    NULL};

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
  const char *metric = spec_string(job, "training.early_stopping.metric");
  const char *mode = spec_string(job, "training.early_stopping.mode");
  job->training.early_stopping.metric = -1;
  for (int m = 0; metric != NULL && m < METRICS; m++)
    if (strcmp(job_metric_names[m], metric) == 0) job->training.early_stopping.metric = m;
  int decides = job->training.early_stopping.metric;
  bool greater = decides >= 0 && decides != METRIC_PERPLEXITY;
  if (mode != NULL) greater = strcmp(mode, "max") == 0;
  job->training.early_stopping.greater = greater;
  if (decides >= 0) job->training.metrics[decides] = true;
}

const char *const job_hook_keys[HOOKS] = {"on_start", "on_step",     "on_eval",     "on_save",
                                          "on_end",   "on_pre_save", "on_pre_load", "on_step_begin",
                                          "on_epoch", "on_batch",    "on_bucket",   "on_order"};

static void bind_hooks(struct arena *arena, struct job *job) {
  const char *source = spec_string(job, "hooks.source");
  if (source == NULL) return;
  job->hooks.source = relative_to(arena, job->file, source);
  /* Compilers must see a path in it, whatever it begins with. */
  if (job->hooks.source[0] != '/') job->hooks.source = arena_printf(arena, "./%s", job->hooks.source);
  for (int i = 0; i < HOOKS; i++) {
    const struct spec_node *name = spec_find(spec_find(job->tree, "hooks"), job_hook_keys[i]);
    job->hooks.names[i] = name != NULL ? name->text : NULL;
  }
}

/* A size such as 16GiB; a number is bytes. */
static int64_t bytes_of(const struct spec_node *node, struct diagnostics *diags) {
  static const struct {
    const char *name;
    double bytes;
  } units[] = {{"k", 0x1p10},  {"m", 0x1p20},  {"g", 0x1p30},   {"t", 0x1p40},   {"ki", 0x1p10},  {"mi", 0x1p20},
               {"gi", 0x1p30}, {"ti", 0x1p40}, {"kib", 0x1p10}, {"mib", 0x1p20}, {"gib", 0x1p30}, {"tib", 0x1p40},
               {"kb", 1e3},    {"mb", 1e6},    {"gb", 1e9},     {"tb", 1e12}};
  if (node->kind != SPEC_STRING) return node->integer;
  char *unit;
  double number = strtod(node->text, &unit);
  for (size_t i = 0; i < sizeof units / sizeof *units; i++)
    if (strcasecmp(units[i].name, unit) == 0 && number * units[i].bytes < 0x1p60)
      return (int64_t)(number * units[i].bytes);
  diag_error(diags, node->where, "'%s' is not a size: write a number with KiB, MiB, GiB, TiB, KB, MB, GB or TB",
             node->text);
  return 0;
}

/* 0 where the key is away. */
static int64_t size_in_bytes(const struct job *job, const char *key, struct diagnostics *diags) {
  const struct spec_node *node = spec_find(job->tree, key);
  return node != NULL ? bytes_of(node, diags) : 0;
}

/* The limits of memories; the one of the device is that of the program. */
static void bind_limits(struct job *job, struct diagnostics *diags) {
  const struct spec_node *memory = spec_find(job->tree, "devices.memory");
  job->devices.limits.cpu = -1;
  if (memory == NULL || memory->kind != SPEC_MAP) {
    job->devices.memory = memory != NULL ? bytes_of(memory, diags) : 0;
    return;
  }
  const struct spec_node *gpus = spec_find(memory, "gpu"), *cpu = spec_find(memory, "cpu");
  const struct spec_node *disk = spec_find(memory, "disk");
  const int count = spec_count(gpus);
  for (int i = 0; i < count && i < MOST_GPUS; i++) job->devices.limits.gpus[i] = bytes_of(spec_at(gpus, i), diags);
  job->devices.limits.n_gpus = count < MOST_GPUS ? count : MOST_GPUS;
  if (cpu != NULL) job->devices.limits.cpu = bytes_of(cpu, diags);
  if (disk != NULL) job->devices.limits.disk = disk->text;
  const bool is_cpu = job->devices.kind == DEVICE_CPU;
  if (is_cpu && cpu != NULL) job->devices.memory = job->devices.limits.cpu;
  if (!is_cpu && count > 0) job->devices.memory = job->devices.limits.gpus[0];
}

static const char *text_at(const struct spec_node *node, int index) {
  const struct spec_node *item = spec_at(node, index);
  return item != NULL ? item->text : NULL;
}

/* The files of a source. Rules hold its lists to one length. */
static void bind_source(struct arena *arena, const struct job *job, bool is_eval, struct data_source *source) {
  const struct spec_node *node = spec_find(job->tree, is_eval ? "data.eval" : "data.train");
  if (node == NULL) return;
  const struct spec_node *paths = spec_find(node, "path"), *labels = spec_find(node, "labels");
  const struct spec_node *weights = spec_find(node, "weights");
  source->n_parts = spec_count(paths);
  struct data_part *parts = arena_alloc(arena, (size_t)source->n_parts * sizeof *parts);
  for (int i = 0; i < source->n_parts; i++) {
    parts[i].path = text_at(paths, i);
    parts[i].arrays = data_inputs_arrays(arena, job, is_eval, i, text_at(labels, i));
    parts[i].weight = weights != NULL && i < weights->count ? weights->entries[i].value->real : 0;
  }
  source->parts = parts;
}

static void bind_data(struct arena *arena, struct job *job) {
  data_inputs_bind(arena, job);
  bind_source(arena, job, false, &job->data.train);
  bind_source(arena, job, true, &job->data.eval);
  job->data.keep_last = spec_integer(job, "data.drop_last") == 0;
  job->data.masking.on = spec_find(job->tree, "data.masking") != NULL;
  bool seeded = spec_find(job->tree, "data.data_seed") != NULL;
  job->data.data_seed = (uint64_t)spec_integer(job, seeded ? "data.data_seed" : "training.seed");
}

static void bind_devices(struct arena *arena, struct job *job, struct diagnostics *diags) {
  bind_limits(job, diags);
  const char *tuning = spec_string(job, "devices.tuning");
  bool named = tuning != NULL && strcmp(tuning, "machine") != 0;
  job->devices.tuning = named ? relative_to(arena, job->file, tuning) : tuning;
}

/* "epoch", "2 epochs", "1/4 epoch"; `unit` is what follows the numbers. False where it is none. */
static bool read_epochs(long long count, long long parts, const char *unit, struct epochs *epochs) {
  const bool is_one = strcmp(unit, "epoch") == 0;
  if (!is_one && strcmp(unit, "epochs") != 0) return false;
  if (count < 1 || parts < 1 || (parts > 1 && count != 1) || count > MOST_EPOCHS || parts > MOST_EPOCHS) return false;
  *epochs = (struct epochs){count, parts};
  return true;
}

/* A word instead of a number of steps: epochs, or a time where `minutes` is given. NULL: the job cannot have the key.
 */
static void bind_cadence(const struct spec_node *node, struct epochs *epochs, double *minutes,
                         struct diagnostics *diags) {
  if (node == NULL || node->kind != SPEC_STRING) return;
  const bool has_count = isdigit((unsigned char)node->text[0]);
  char *end = (char *)node->text;
  const long long count = has_count ? strtoll(end, &end, 10) : 1;
  const bool is_part = has_count && *end == '/';
  const long long parts = is_part ? strtoll(end + 1, &end, 10) : 1;
  const char *unit = end + strspn(end, " ");
  const bool is_time = minutes != NULL && has_count && !is_part && count > 0 && count <= 1000000;
  if (is_time && (strcmp(unit, "min") == 0 || strcmp(unit, "h") == 0))
    *minutes = (double)count * (*unit == 'h' ? 60 : 1);
  else if (!read_epochs(count, parts, unit, epochs))
    diag_error(diags, node->where,
               "'%s' is not a time from one to the next: write a number of steps, epoch, 2 epochs%s", node->text,
               minutes != NULL ? ", 1/4 epoch, 30min or 1h" : " or 1/4 epoch");
}

static void bind_training(struct job *job, struct diagnostics *diags) {
  job->training.seed = (uint64_t)spec_integer(job, "training.seed");
  bind_cadence(spec_find(job->tree, "training.eval_interval"), &job->training.eval_epochs, NULL, diags);
  bind_cadence(spec_find(job->tree, "training.eval_delay"), &job->training.eval_delay_epochs, NULL, diags);
  bind_metrics(job);
  bind_stopping(job);
  bool stable = spec_find(job->tree, "schedule.stable_steps") != NULL;
  job->schedule.stable_steps = stable ? spec_integer(job, "schedule.stable_steps") : -1;
}

const char *const job_sink_names[] = {"csv",     "tensorboard", "wandb",   "mlflow", "dvclive",
                                      "trackio", "comet_ml",    "clearml", NULL};

/* Tools that read files of others: by `swanlab convert -t wandb-local` and `aim convert mlflow`. */
static const struct importer {
  const char *name;
  enum sink reads;
} importers[] = {{"swanlab", SINK_WANDB}, {"aim", SINK_MLFLOW}};

static void bind_sink(struct job *job, const char *name) {
  for (int s = 0; s < SINKS; s++)
    if (strcmp(name, "all") == 0 || strcmp(name, job_sink_names[s]) == 0) job->tracking.sinks[s] = true;
  for (size_t i = 0; i < sizeof importers / sizeof *importers; i++)
    if (strcmp(name, importers[i].name) == 0) job->tracking.sinks[importers[i].reads] = true;
}

static void bind_sinks(struct job *job) {
  const struct spec_node *list = spec_find(job->tree, "tracking.log_with"),
                         *tags = spec_find(job->tree, "tracking.tags");
  for (int i = 0; list != NULL && i < list->count; i++) bind_sink(job, list->entries[i].value->text);
  for (int i = 0; tags != NULL && i < tags->count; i++) job->tracking.tags[i] = tags->entries[i].value->text;
}

static void bind_reports(struct job *job, struct diagnostics *diags) {
  bind_sinks(job);
  bind_cadence(spec_find(job->tree, "tracking.every"), &job->tracking.epochs, NULL, diags);
  job->profile.on = spec_find(job->tree, "profile") != NULL;
  job->tracking.layer_norms = strcmp(spec_string(job, "tracking.grad_norms"), "per_layer") == 0;
}

static void bind_saves(struct job *job, struct diagnostics *diags) {
  const struct spec_node *every = spec_find(job->tree, "checkpoint.every");
  job->checkpoint.every = every->kind == SPEC_INT ? every->integer : spec_integer(job, "checkpoint.every.steps");
  job->checkpoint.minutes = spec_real(job, "checkpoint.every.minutes");
  job->checkpoint.epochs = (struct epochs){spec_integer(job, "checkpoint.every.epochs"), 1};
  bind_cadence(every, &job->checkpoint.epochs, &job->checkpoint.minutes, diags);
}

static void bind_checkpoint(struct job *job, struct diagnostics *diags) {
  bind_saves(job, diags);
  job->checkpoint.max_shard_bytes = size_in_bytes(job, "checkpoint.max_shard_size", diags);
  job->checkpoint.saves_on_signal = strcmp(spec_string(job, "checkpoint.on_signal"), "save") == 0;
  job->checkpoint.outlives_errors = strcmp(spec_string(job, "checkpoint.on_save_error"), "continue") == 0;
}

struct job *job_bind(struct arena *arena, const char *file, const struct spec_node *tree, struct diagnostics *diags) {
  struct job *job = arena_alloc(arena, sizeof *job);
  job->file = arena_string(arena, file);
  job->tree = tree;
  bind_members(job);
  bind_model(arena, job, diags);
  bind_memory(arena, job);
  bind_optimizer(job);
  bind_groups(arena, job);
  bind_precision(arena, job);
  bind_data(arena, job);
  bind_devices(arena, job, diags);
  job->memory.reserve = size_in_bytes(job, "memory.reserve", diags);
  bind_training(job, diags);
  bind_reports(job, diags);
  bind_layers(arena, job);
  parallel_bind(job);
  bind_checkpoint(job, diags);
  bind_hooks(arena, job);
  return job;
}
