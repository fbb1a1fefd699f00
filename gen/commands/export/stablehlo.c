/* A job's training graph as StableHLO: the model of a micro-batch and its backward, after the passes that any device
 * needs, for XLA and other compilers of that dialect. */
#include "gen/commands/export/stablehlo.h"

#include <stdio.h>
#include <string.h>

#include "gen/base/path.h"
#include "gen/base/quantity.h"
#include "gen/commands/cli/commands.h"
#include "gen/commands/cli/files.h"
#include "gen/commands/generate/generate.h"
#include "gen/commands/generate/xla_memory.h"
#include "gen/ir/names.h"
#include "gen/stablehlo/make.h"
#include "runtime/base/terminal.h"

/* What of a job no module says. */
static bool check_job(struct compilation *compilation) {
  const struct job *job = compilation->job;
  if (job->devices.ranks <= 1) return true;
  diag_error(&compilation->diags, job_where(job, "parallelism"),
             "a module of StableHLO is one process's, and the job has %lld ranks", (long long)job->devices.ranks);
  diag_help(&compilation->diags, "leave out 'parallelism': what one process computes is exported");
  return false;
}

static const char *module_name(struct arena *arena, const struct job *job) {
  const char *file = name_in_folder(job->model.source), *stem = without_ending(arena, file, ".c");
  return identifier(arena, stem != NULL ? stem : file);
}

/* ---- XLA ---- */

/* Compiles the module with the plugin that is found; the command's status. */
static int compile(const struct options *options, const char *kind, const char *text, struct diagnostics *diags) {
  struct arena *arena = options->arena;
  struct xla_memory memory;
  struct problem problem = {0};
  const char *platform;
  if (xla_memory_of(arena, kind, text, 1, &memory, &platform, &problem)) {
    rt_print(stdout, "XLA compiles it for %s: arguments %s, results %s, temporary memory %s\n", platform,
             bytes_text(arena, memory.arguments), bytes_text(arena, memory.results),
             bytes_text(arena, memory.temporary));
    return STATUS_OK;
  }
  diag_error(diags, (struct location){.file = options->output}, "%s", problem.what);
  if (problem.help[0] != '\0') diag_help(diags, "%s", problem.help);
  return STATUS_CANNOT;
}

/* ---- The command ---- */

static int write_module(struct compilation *compilation) {
  const struct options *options = compilation->options;
  struct hlo_module module;
  struct inputs inputs = inputs_in(options->arena);
  if (compile_to_graph(compilation) != STATUS_OK || !check_job(compilation)) return STATUS_BAD_JOB;
  inputs_add_compilation(&inputs, compilation);
  if (!hlo_make(options->arena, compilation->program->graph, module_name(options->arena, compilation->job), &module,
                &compilation->diags))
    return STATUS_BAD_JOB;
  if (!write_file(&inputs, options->output, module.text, strlen(module.text))) return STATUS_CANNOT;
  return options->compile
             ? compile(options, job_word(compilation->job, "devices.kind"), module.text, &compilation->diags)
             : STATUS_OK;
}

int stablehlo_write(const struct options *options) {
  struct compilation compilation;
  int status = begin_compilation(&compilation, options);
  if (status == STATUS_OK) status = write_module(&compilation);
  return finish_compilation(&compilation, status);
}
