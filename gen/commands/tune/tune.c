/* accel-gen tune: how fast the kernels of a job's trainer are on this machine, in each variant in which it can be
 * written. What is measured is the trainer itself with a profile in it: kernels find in the caches what they find there
 * in training. One program takes the first variant of every choice, another the second, and so on; they run in
 * rotation. Then comes one in which each choice takes the variant that was fastest. The least of several numbers is too
 * small by chance: what this one says replaces what was said of the same variants before. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/base/file.h"
#include "gen/base/path.h"
#include "gen/commands/cli/commands.h"
#include "gen/commands/cli/files.h"
#include "gen/commands/cli/process.h"
#include "gen/commands/cli/runtime.h"
#include "gen/commands/generate/compilation.h"
#include "gen/commands/generate/compiler.h"
#include "gen/commands/tune/profile.h"
#include "gen/commands/tune/tune.h"
#include "gen/ir/op.h"
#include "gen/plan/kernels/predict.h"
#include "gen/program/choose.h"
#include "gen/program/kernels.h"
#include "gen/program/parts.h"
#include "gen/program/target.h"
#include "gen/tuning/tuning.h"
#include "runtime/base/clock.h"
#include "runtime/base/digits.h"
#include "runtime/base/progress.h"
#include "runtime/base/terminal.h"

enum { SKIPPED = 2, LEAST_STEPS = 5, MOST_STEPS = 100 };

/* Of measured steps in one run, and of a program's runs in one round. Where other work or another guest slows a machine
 * down for a second now and then, several short runs in rotation meet less of it than a long one. */
static const double seconds_of_run = 0.4, seconds_of_round = 2;

/* What was measured of one variant: a number for each run. */
struct samples {
  struct tuned entry;
  const char *variant;
  struct {
    double *items;
    int count, capacity;
  } seconds;
  int chosen_by; /* how many of them the last trainer's choices were made by */
};

/* A trainer, by what its choices are. */
struct candidate {
  struct compilation compilation;
  const char *program;
};

struct tune {
  const struct options *options;
  struct arena *arena;
  const char *folder;
  struct inputs own; /* of files in that folder: none */
  int64_t threads;
  struct candidate
      *candidates; /* by the number of the variant that each choice takes; the last one: the fastest variants */
  int n_candidates;
  int steps, runs_per_round; /* of a run; of a program */
  struct progress progress;
  double began;     /* when the first run did */
  int runs_done;    /* of all programs */
  bool has_fastest; /* the last candidate is there */
  struct {
    struct samples *items;
    int count, capacity;
  } samples;
};

/* ---- The programs ---- */

/* The job as it is measured: nothing but steps, each with its parts' times. */
static void adjust(void *context, struct job *job) {
  const struct tune *tune = context;
  memset(&job->hooks, 0, sizeof job->hooks);
  job->profile.on = job->profile.with_flops = true;
  job->profile.schedule.skip_first = SKIPPED;
  job->profile.schedule.wait = job->profile.schedule.warmup = 0;
  job->profile.schedule.active = MOST_STEPS;
  job->profile.schedule.repeat = 1;
  job->profile.output_trace_dir = tune->folder;
  job->training.eval_interval = job->training.eval_epochs.count = 0;
  job->training.early_stopping.patience = 0;
  job->training.early_stopping.restore_best = false;
  job->checkpoint.project_dir = arena_printf(tune->arena, "%s/run", tune->folder);
  job->checkpoint.every = job->checkpoint.epochs.count = 0;
  job->checkpoint.minutes = 0;
  job->checkpoint.resume = "never";
  job->devices.threads = (int)tune->threads;
}

static int make_candidate(struct tune *tune, int number, const struct tuning *tuning) {
  struct candidate *candidate = &tune->candidates[number];
  struct compilation *compilation = &candidate->compilation;
  const char *text = NULL;
  *compilation = (struct compilation){.options = tune->options,
                                      .arena = tune->arena,
                                      .diags = diagnostics_in(tune->arena),
                                      .kind = PROGRAM_TRAIN,
                                      .tuning = tuning,
                                      .adjust = adjust,
                                      .context = tune};
  int status = compile_to_text(compilation, NULL, &text);
  if (compilation->diags.count > 0) diag_print(&compilation->diags, stderr, tune->options->colour);
  if (status != STATUS_OK) return status;
  const char *source = arena_printf(tune->arena, "%s/program%d.c", tune->folder, number);
  candidate->program = arena_printf(tune->arena, "%s/program%d", tune->folder, number);
  if (!write_file(&tune->own, source, text, strlen(text))) return STATUS_CANNOT;
  const struct processor *processor = processor_of(compilation->job);
  const char *what = arena_printf(tune->arena, "compiles program %d", number + 1);
  const struct linked linked = {.sqlite = compilation->job->tracking.sinks[SINK_TRACKIO]};
  return compiler_run(tune->options, processor, NULL, linked, source, candidate->program, what) ? STATUS_OK
                                                                                                : STATUS_CANNOT;
}

static int count_candidates(const struct program *program) {
  int count = 1;
  for (int i = 0; i < program->choices.count; i++)
    if (program->choices.items[i].n_variants > count) count = program->choices.items[i].n_variants;
  return count;
}

static int make_variants(struct tune *tune) {
  tune->candidates = arena_alloc(tune->arena, (MAX_VARIANTS + 1) * sizeof *tune->candidates);
  tune->n_candidates = 1;
  for (int i = 0; i < tune->n_candidates; i++) {
    struct tuning *forced = tuning_new(tune->arena);
    forced->forced = i;
    int status = make_candidate(tune, i, forced);
    if (status != STATUS_OK) return status;
    if (i == 0) tune->n_candidates = count_candidates(tune->candidates[0].compilation.program);
  }
  return STATUS_OK;
}

/* ---- Runs ---- */

static bool run(const struct tune *tune, const struct candidate *candidate, int steps, struct step_profile *profile) {
  struct words command = words_in(tune->arena);
  words_add(&command, candidate->program);
  words_add(&command, "--steps");
  words_add(&command, arena_printf(tune->arena, "%d", SKIPPED + steps));
  const char *trace = arena_printf(tune->arena, "%s/profile_0.json", tune->folder);
  remove(trace);
  if (process_read(&command) != NULL && profile_read(tune->arena, trace, profile)) return true;
  rt_print(stderr, "accel-gen: the trainer that was to be measured did not run\n");
  return false;
}

static void add_sample(struct tune *tune, struct tuned entry, const char *variant, double seconds) {
  struct samples *found = NULL;
  if (seconds <= 0) return; /* shorter than the clock can tell */
  for (int i = 0; i < tune->samples.count && found == NULL; i++) {
    struct samples *at = &tune->samples.items[i];
    if (strcmp(at->entry.subject, entry.subject) == 0 && strcmp(at->variant, variant) == 0) found = at;
  }
  if (found == NULL) {
    ARENA_PUSH(tune->arena, tune->samples, ((struct samples){.entry = entry, .variant = variant}));
    found = &tune->samples.items[tune->samples.count - 1];
  }
  ARENA_PUSH(tune->arena, found->seconds, seconds);
}

static bool has_subject(const struct program *program, const char *subject) {
  for (int i = 0; i < program->kernels.count; i++)
    if (strcmp(program->kernels.items[i]->subject, subject) == 0) return true;
  return false;
}

static bool is_part(const struct program *program, const char *subject) {
  struct step_part parts[MAX_PARTS_AROUND];
  int n_parts = step_parts(program, parts);
  for (int i = 0; i < n_parts; i++)
    if (strcmp(parts[i].subject, subject) == 0) return true;
  return false;
}

static bool all_have(const struct tune *tune, const char *subject) {
  for (int i = 0; i < tune->n_candidates; i++)
    if (!has_subject(tune->candidates[i].compilation.program, subject)) return false;
  return true;
}

/* What one run says. A choice that makes other kernels is measured by all that not every candidate has. */
static void add_run(struct tune *tune, const struct candidate *candidate, const struct step_profile *profile) {
  const struct program *program = candidate->compilation.program;
  double others = 0;
  for (int i = 0; i < program->kernels.count; i++) {
    const struct kernel *kernel = program->kernels.items[i];
    const struct profile_part *part = profile_find(profile, kernel->name);
    if (part == NULL) continue;
    struct tuned entry = {kernel->subject, tune->threads, op_flops(kernel->node), kernel_bytes(kernel), {0}};
    add_sample(tune, entry, kernel->variant, part->seconds / part->times);
    if (!all_have(tune, kernel->subject)) others += part->seconds;
  }
  for (int i = 0; i < program->choices.count; i++) {
    const struct choice *choice = &program->choices.items[i];
    if (!has_subject(program, choice->subject) && !is_part(program, choice->subject))
      add_sample(tune, (struct tuned){choice->subject, tune->threads, 0, 0, {0}}, choice->variants[choice->taken],
                 others);
  }
  struct step_part parts[MAX_PARTS_AROUND + 1];
  int n_parts = step_parts(program, parts);
  parts[n_parts++] = (struct step_part){step_rest, step_rest, "", 1, 0};
  for (int i = 0; i < n_parts; i++) {
    const struct profile_part *part = profile_find(profile, parts[i].name);
    struct tuned entry = {parts[i].subject, tune->threads, 0, parts[i].bytes, {0}};
    if (part != NULL) add_sample(tune, entry, parts[i].variant, part->seconds / parts[i].times);
  }
}

/* All runs of a program. */
static int runs_of(const struct tune *tune) {
  return tune->options->rounds * tune->runs_per_round;
}

/* What is measured now, and how long the rest takes. The last program is made of what the others say. */
static void show_run(struct tune *tune, int number) {
  const int programs = tune->n_candidates + (tune->n_candidates > 1 && !tune->has_fastest);
  const int all = programs * runs_of(tune), done = tune->runs_done;
  char left[48] = "";
  if (!rt_progress_is_due(&tune->progress)) return;
  if (done > 0) rt_duration(left, 32, (rt_now() - tune->began) / done * (all - done));
  if (done > 0) strcat(left, " left");
  const char *what =
      arena_printf(tune->arena, "run %d of %d, of program %d of %d", done + 1, all, number + 1, programs);
  rt_progress_show(&tune->progress, (const char *const[]){what, left}, 2);
}

static bool measure_candidate(struct tune *tune, int number, int round) {
  struct step_profile profile;
  show_run(tune, number);
  tune->runs_done++;
  if (tune->options->verbose)
    rt_print(stderr, "run %d of %d, program %d of %d, %d steps\n", round + 1, runs_of(tune), number + 1,
             tune->n_candidates, tune->steps);
  if (!run(tune, &tune->candidates[number], tune->steps, &profile)) return false;
  add_run(tune, &tune->candidates[number], &profile);
  return true;
}

static bool measure(struct tune *tune) {
  struct step_profile profile;
  tune->progress = rt_progress_begin(tune->options->quiet ? NULL : stderr, "measures", 0, 0);
  tune->began = rt_now();
  if (!run(tune, &tune->candidates[0], LEAST_STEPS, &profile)) return false;
  double wanted = seconds_of_run / profile.step;
  tune->steps = wanted < LEAST_STEPS ? LEAST_STEPS : wanted > MOST_STEPS ? MOST_STEPS : (int)wanted;
  double runs = seconds_of_round / fmax(seconds_of_run, tune->steps * profile.step);
  tune->runs_per_round = runs < 1 ? 1 : (int)runs;
  bool counts = tune->steps == LEAST_STEPS; /* then the first run is as good as any */
  if (counts) add_run(tune, &tune->candidates[0], &profile);
  for (int round = 0; round < runs_of(tune); round++)
    for (int i = counts && round == 0 ? 1 : 0; i < tune->n_candidates; i++)
      if (!measure_candidate(tune, i, round)) return false;
  return true;
}

/* Puts what was measured so far into a table; of variants that the last trainer takes, what it said. A machine is
 * slower than it is now and then, and never faster: of several runs it is the first quartile. */
static void fill(const struct tune *tune, struct tuning *table) {
  for (int i = 0; i < tune->samples.count; i++) {
    const struct samples *samples = &tune->samples.items[i];
    int count = samples->seconds.count, first = count > samples->chosen_by ? samples->chosen_by : 0;
    tuning_put(table, &samples->entry, samples->variant, first_quartile(samples->seconds.items + first, count - first));
  }
}

/* The same of the trainer that the table would have now. */
static int measure_fastest(struct tune *tune) {
  struct tuning *table = tuning_new(tune->arena);
  if (tune->n_candidates == 1) return STATUS_OK;
  fill(tune, table);
  for (int i = 0; i < tune->samples.count; i++) tune->samples.items[i].chosen_by = tune->samples.items[i].seconds.count;
  int status = make_candidate(tune, tune->n_candidates, table);
  if (status != STATUS_OK) return status;
  tune->has_fastest = true;
  tune->n_candidates++;
  for (int round = 0; round < runs_of(tune); round++)
    if (!measure_candidate(tune, tune->n_candidates - 1, round)) return STATUS_CANNOT;
  return STATUS_OK;
}

/* ---- The table ---- */

/* oneDNN's version, as its header says it. */
static const char *library_version(const struct tune *tune) {
  static const char source[] =
      "#include <oneapi/dnnl/dnnl_version.h>\nDNNL_VERSION_MAJOR DNNL_VERSION_MINOR DNNL_VERSION_PATCH\n";
  const char *path = arena_printf(tune->arena, "%s/version.c", tune->folder);
  struct words command = words_in(tune->arena);
  if (!write_file(&tune->own, path, source, strlen(source))) return "oneDNN";
  words_split(&command, compiler_name());
  words_split(&command, "-E -P");
  words_add(&command, path);
  const char *text = process_read(&command);
  int major, minor, patch;
  if (text == NULL || sscanf(text, "%d %d %d", &major, &minor, &patch) != 3) return "oneDNN";
  return arena_printf(tune->arena, "oneDNN %d.%d.%d", major, minor, patch);
}

/* Adds to the table of `file`; then says what follows for the job. */
static int finish(struct tune *tune, const char *file) {
  struct arena *arena = tune->arena;
  struct compilation *compilation = &tune->candidates[0].compilation;
  struct tuning *fresh = tuning_new(arena);
  fresh->machine = tuning_machine(arena);
  fresh->compiler = compiler_version(tune->options);
  fresh->flags = compiler_flags(arena, processor_of(compilation->job));
  fresh->library = library_version(tune);
  struct tuning *table = tune_open(tune->options, file, fresh);
  fill(tune, table);
  return tune_finish(compilation, table, file);
}

/* What cannot be measured by one process on this machine. */
static bool can_tune(struct compilation *compilation) {
  const struct job *job = compilation->job;
  if (processor_is_foreign(processor_of(job))) {
    diag_error(&compilation->diags, job_where(job, "devices.arch"),
               "what is measured is this machine, and the job's program is for another kind");
    diag_help(&compilation->diags, "tune the job on such a machine");
    return false;
  }
  const struct target *target = target_of(job);
  if (!target->is_host && !target->library.names_algorithms) {
    diag_error(&compilation->diags, job_where(job, "devices.kind"),
               "there is nothing to measure for devices.kind '%s': its library's algorithms have no names that last",
               target->name);
    diag_help(&compilation->diags, "run the program untuned: the library chooses");
    return false;
  }
  if (job->devices.ranks == 1) return true;
  diag_error(&compilation->diags, job_where(job, "devices.per_node"),
             "what is measured is one process, and the job's program is for several");
  diag_help(&compilation->diags, "tune the same job with one rank: the kernels of a micro-batch are the same");
  return false;
}

static int tune_job(struct tune *tune, const char *file) {
  int status = make_variants(tune);
  if (status == STATUS_OK && !measure(tune)) status = STATUS_CANNOT;
  if (status == STATUS_OK) status = measure_fastest(tune);
  rt_terminal_clear();
  return status == STATUS_OK ? finish(tune, file) : status;
}

int command_tune(const struct options *options) {
  struct arena *arena = options->arena;
  struct tune tune = {.options = options, .arena = arena, .own = inputs_in(arena)};
  const struct tuned_machine machine = tuning_machine(arena);
  struct compilation first = {.options = options,
                              .arena = arena,
                              .diags = diagnostics_in(arena),
                              .kind = PROGRAM_TRAIN,
                              .tuning = tuning_new(arena)};
  int status = compile_to_job(&first);
  if (status == STATUS_OK && !can_tune(&first)) status = STATUS_BAD_JOB;
  if (first.diags.count > 0) diag_print(&first.diags, stderr, options->colour);
  if (status != STATUS_OK) return status;
  bool here = target_of(first.job)->is_host;
  const char *file = options->output != NULL || !here ? options->output : tuning_path(arena, &machine);
  if (file == NULL || strcmp(file, "-") == 0) {
    rt_print(stderr, "accel-gen: name the table's file: -o FILE\n");
    return STATUS_BAD_JOB;
  }
  struct inputs inputs = inputs_in(arena);
  inputs_add_compilation(&inputs, &first);
  inputs_add(&inputs, "what was measured (--measured)", options->measured);
  if (!inputs_spare(&inputs, file)) return STATUS_CANNOT; /* before minutes of measuring */
  if (!here) return tune_gemms(options, file);
  if (options->measured != NULL) {
    rt_print(stderr, "accel-gen: --measured is of programs for GPUs\n");
    return STATUS_BAD_JOB;
  }
  tune.threads = first.job->devices.threads > 0 ? first.job->devices.threads : machine.cores;
  tune.folder = make_folder(arena);
  if (tune.folder == NULL) return STATUS_CANNOT;
  status = tune_job(&tune, file);
  remove_folder(tune.folder);
  return status;
}
