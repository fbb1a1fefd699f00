/* accel-gen plan --fit JOB: the largest batch and the longest sequence that fit, for each way to train the job. */
#include "gen/commands/inspect/fit.h"

#include <stdio.h>
#include <string.h>

#include "gen/base/quantity.h"
#include "gen/commands/cli/machine.h"
#include "gen/commands/generate/compilation.h"
#include "gen/commands/generate/generate.h"
#include "gen/commands/generate/targets.h"
#include "gen/program/target.h"
#include "runtime/base/terminal.h"

/* What a process takes in addition to its arena: libraries, packed operands; a GPU's context. */
enum { OF_PROCESS = 64 << 20, OF_CONTEXT = 1 << 30 };

struct fitter {
  const struct options *options;
  const struct job *job; /* as it is */
  struct tree *model;    /* of all plans */
  struct fit_table *table;
};

/* ---- Ways to train ---- */

static void put(struct fit_row *row, const char *key, const char *value) {
  row->keys[row->n_keys++] = (struct job_override){key, value};
}

/* Adapters and codes, or neither. False with the row's refusal where it is not known what to adapt. */
static bool put_model(const struct fitter *fitter, struct fit_row *row, bool adapts, bool quantizes) {
  const struct job *job = fitter->job;
  struct arena *arena = fitter->options->arena;
  const bool adapted = job->model.lora.rank > 0,
             quantized = job->model.quantize.load_in_4bit || job->model.quantize.quant_type != NULL;
  if (adapted && !adapts) put(row, "model.lora", "null");
  if (quantized && !quantizes) put(row, "model.quantize", "null");
  if (quantizes && !quantized) put(row, "model.quantize", "{load_in_4bit: true, bnb_4bit_quant_type: nf4}");
  if (adapted || !adapts) return true;
  const char *targets = usual_targets(arena, job->model.source);
  if (targets != NULL)
    put(row, "model.lora", arena_printf(arena, "{targets: [%s]}", targets));
  else
    row->refusal = "it is not known which matrices of this model are the attention's: model.lora.targets names them";
  return targets != NULL;
}

static void put_checkpointing(const struct job *job, struct fit_row *row) {
  if (strcmp(job_word(job, "memory.activation_checkpointing"), row->checkpointing) == 0) return;
  put(row, "memory.activation_checkpointing", row->checkpointing);
  if (job->memory.activation_checkpointing == CHECKPOINTING_EVERY) put(row, "memory.checkpoint_every", "null");
  if (job->memory.activation_checkpointing == CHECKPOINTING_LAYERS) put(row, "memory.checkpoint_layers", "null");
  if (job->memory.activation_checkpointing == CHECKPOINTING_FUNCTIONS) put(row, "memory.checkpoint_functions", "null");
}

/* ---- One way ---- */

/* Numbers that the job leaves open, as small as they can be. */
static void close_numbers(struct job *job) {
  const int64_t samples = step_of_rank(job);
  if (job->data.batch_size == 0)
    job->data.batch_size =
        samples > 0 && job->accumulation.num_steps > 0 ? (int)(samples / job->accumulation.num_steps) : 1;
  if (job->accumulation.num_steps == 0)
    job->accumulation.num_steps = samples > 0 ? (int)(samples / job->data.batch_size) : 1;
}

/* Of a sequence also the batch that it was fitted with, where the job leaves that open. */
static struct fitted fit_size(struct fitter *fitter, const struct planner *planner, const struct job *job,
                              enum fit_size what) {
  struct arena *arena = fitter->options->arena;
  struct fitted fitted = {.fit = fit_largest(arena, planner, job, what, fitter->table->memory)};
  const bool open = fitter->job->data.batch_size == 0 || fitter->job->accumulation.num_steps == 0;
  if (fitted.fit.size == 0) return fitted;
  fitted.keys = fit_keys(arena, job, what, fitted.fit.size, &fitted.n_keys);
  if (what == FIT_BATCH || !open) return fitted;
  int n_batch;
  const struct job_override *batch = fit_keys(arena, job, FIT_BATCH, job->data.batch_size, &n_batch),
                            *sequence = fitted.keys;
  fitted.keys = arena_alloc(arena, (size_t)(n_batch + fitted.n_keys) * sizeof *fitted.keys);
  for (int i = 0; i < n_batch + fitted.n_keys; i++) fitted.keys[i] = i < n_batch ? batch[i] : sequence[i - n_batch];
  fitted.n_keys += n_batch;
  return fitted;
}

static void fit_job_of(struct fitter *fitter, struct compilation *compilation, struct fit_row *row) {
  struct arena *arena = fitter->options->arena;
  const struct planner planner = compilation_planner(compilation);
  close_numbers(compilation->job);
  row->batch = fit_size(fitter, &planner, compilation->job, FIT_BATCH);
  row->sequence = fit_size(fitter, &planner, compilation->job, FIT_SEQUENCE);
  const struct fit *batch = &row->batch.fit;
  const int64_t host = batch->bytes.host, limit = compilation->job->devices.limits.cpu;
  if (batch->size == 0 && batch->next_bytes == 0) row->refusal = batch->refusal;
  if (limit > 0 && limit < PLACE_ENDLESS && host > limit)
    row->refusal = arena_printf(arena, "it takes %s of the host's memory, and devices.memory.cpu is %s",
                                bytes_text(arena, host), bytes_text(arena, limit));
}

static void fit_row(struct fitter *fitter, struct fit_row *row) {
  struct arena *arena = fitter->options->arena;
  const size_t given = (size_t)fitter->options->n_overrides;
  struct options options = *fitter->options;
  options.overrides = arena_alloc(arena, (given + FIT_MOST_KEYS) * sizeof *options.overrides);
  for (size_t i = 0; i < given; i++) options.overrides[i] = fitter->options->overrides[i];
  for (int i = 0; i < row->n_keys; i++) options.overrides[options.n_overrides++] = row->keys[i];
  struct compilation compilation = {.options = &options,
                                    .arena = arena,
                                    .diags = diagnostics_in(arena),
                                    .kind = PROGRAM_TRAIN,
                                    .model = fitter->model,
                                    .leaves_open = true};
  if (compile_to_job(&compilation) == STATUS_OK)
    fit_job_of(fitter, &compilation, row);
  else
    row->refusal = diag_first_error(arena, &compilation.diags);
}

/* Whether a row says nothing that the one before of its setting does not. */
static bool is_known(const struct fit_table *table, const struct fit_row *row) {
  if (table->rows.count == 0) return false;
  const struct fit_row *before = &table->rows.items[table->rows.count - 1];
  if (strcmp(before->setting, row->setting) != 0) return false;
  if (before->refusal != NULL || row->refusal != NULL)
    return before->refusal != NULL && row->refusal != NULL && strcmp(before->refusal, row->refusal) == 0;
  return before->batch.fit.size == row->batch.fit.size && before->sequence.fit.size == row->sequence.fit.size;
}

/* The optimizer's states outside of the device's memory: in the host's, or of a processor on a disk. */
static void put_offload(const struct job *job, struct fit_row *row) {
  if (job->devices.kind != DEVICE_CPU)
    put(row, "parallelism.offload", "{optimizer: cpu}");
  else if (job->parallelism.offload.optimizer != OFFLOAD_NVME)
    put(row, "parallelism.offload", "{optimizer: nvme, optimizer_nvme_path: .}");
}

static void add_setting(struct fitter *fitter, const char *name, bool adapts, bool quantizes, bool offloads) {
  const char *own = job_word(fitter->job, "memory.activation_checkpointing");
  const enum checkpointing chosen = fitter->job->memory.activation_checkpointing;
  const bool another = chosen != CHECKPOINTING_NONE && chosen != CHECKPOINTING_ALL && chosen != CHECKPOINTING_AUTO;
  const char *const ways[] = {"none", "all", own};
  for (int i = 0; i < (another ? 3 : 2); i++) {
    struct fit_row row = {.setting = name, .checkpointing = ways[i]};
    if (put_model(fitter, &row, adapts, quantizes)) {
      if (offloads) put_offload(fitter->job, &row);
      put_checkpointing(fitter->job, &row);
      fit_row(fitter, &row);
    }
    if (!is_known(fitter->table, &row)) ARENA_PUSH(fitter->options->arena, fitter->table->rows, row);
  }
}

/* ---- The memory ---- */

static bool no_memory(struct diagnostics *diags, const char *what) {
  diag_error(diags, (struct location){0}, "%s, so it is not known what fits", what);
  diag_help(diags, "give the memory of a rank: --set devices.memory=16GiB");
  return false;
}

/* What one of the job's ranks may take: as the job says, or of this machine. */
static bool find_memory(const struct options *options, const struct job *job, struct fit_table *table,
                        struct diagnostics *diags) {
  struct arena *arena = options->arena;
  table->memory = job->devices.memory;
  table->origin = table->reason = "devices.memory";
  if (table->memory > 0) return true;
  if (target_of(job)->module != NULL) {
    diag_error(diags, job_where(job, "devices.kind"), "XLA decides what a step takes, so it is not known what fits");
    diag_help(diags, "add --set devices.kind=cpu: what fits a program for processors is planned");
    return false;
  }
  const struct machine machine = machine_at_hand(arena);
  const bool host = job->devices.kind == DEVICE_CPU;
  if (!host && machine.gpus.memory == 0) return no_memory(diags, "no GPU of this machine says how much memory it has");
  if (host && machine.available == 0) return no_memory(diags, "this machine does not say how much memory it has");
  const int64_t ranks = host ? job->devices.ranks / job->devices.nodes : 1,
                has = host ? machine.available / ranks : machine.gpus.memory, kept = host ? OF_PROCESS : OF_CONTEXT;
  table->memory = has > kept ? has - kept : 1;
  table->origin = "machine";
  table->reason = arena_printf(arena, "%s that %s of this machine has, less %s for %s", bytes_text(arena, has),
                               host ? (ranks > 1 ? "each rank" : "a process") : "a GPU", bytes_text(arena, kept),
                               host ? "its libraries" : "the driver's context");
  return true;
}

/* ---- The command ---- */

static bool can_fit(const struct compilation *compilation, struct diagnostics *diags) {
  const struct job *job = compilation->job;
  if (compilation->kind != PROGRAM_TRAIN) {
    diag_error(diags, (struct location){0}, "--fit says what can be trained, and takes no --program %s",
               compilation->options->program);
    return false;
  }
  if (!job->parallelism.automatic) return step_divides(job, diags);
  diag_error(diags, job_where(job, "parallelism"), "--fit plans one mesh, and 'parallelism' is auto");
  diag_help(diags, "without --fit the plan finds mesh and batch together; or name the axes here");
  return false;
}

static int print_table(const struct options *options, const struct fit_table *table) {
  if (options->json)
    fputs(fit_json(options->arena, table), stdout);
  else
    rt_print_text(stdout, fit_text(options->arena, table));
  return STATUS_OK;
}

int plan_fit(const struct options *options) {
  struct compilation compilation;
  struct fit_table table = {0};
  int status = begin_compilation(&compilation, options);
  compilation.leaves_open = true;
  if (status == STATUS_OK) status = compile_to_job(&compilation);
  if (status == STATUS_OK && (!can_fit(&compilation, &compilation.diags) ||
                              !find_memory(options, compilation.job, &table, &compilation.diags)))
    status = STATUS_BAD_JOB;
  if (status != STATUS_OK) return finish_compilation(&compilation, status);
  struct fitter fitter = {options, compilation.job, compilation.model, &table};
  struct job closed = *compilation.job;
  close_numbers(&closed);
  table.batch = batch_in_file(&closed, closed.data.batch_size);
  table.tokens = job_has_rows(&closed) ? 0 : closed.data.sequence_length;
  add_setting(&fitter, "full", false, false, false);
  add_setting(&fitter, "LoRA", true, false, false);
  add_setting(&fitter, "QLoRA", true, true, false);
  add_setting(&fitter, "offload", false, false, true);
  return finish_compilation(&compilation, print_table(options, &table));
}
