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
#include "gen/ir/names.h"
#include "gen/stablehlo/make.h"
#include "runtime/base/terminal.h"
#include "runtime/xla/xla.h"

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

static bool say_memory(struct arena *arena, struct xla *xla, const char *text, struct problem *problem) {
  struct xla_program *program;
  struct xla_memory memory;
  const struct xla_facts facts = rt_xla_facts(xla);
  if (!rt_xla_compile(xla, text, NULL, &program, problem)) return false;
  const bool good = rt_xla_memory(program, &memory, problem);
  if (good)
    rt_print(stdout, "XLA compiles it for %s: arguments %s, results %s, temporary memory %s\n", facts.platform,
             bytes_text(arena, memory.arguments), bytes_text(arena, memory.results),
             bytes_text(arena, memory.temporary));
  rt_xla_discard(program);
  return good;
}

/* Compiles the module with the plugin that is found; the command's status. */
static int compile(const struct options *options, const char *text, struct diagnostics *diags) {
  char path[4096];
  struct xla *xla = NULL;
  struct problem problem = {0};
  const bool good = rt_xla_find(NULL, path, sizeof path, &problem) && rt_xla_open(path, &xla, &problem) &&
                    say_memory(options->arena, xla, text, &problem);
  if (xla != NULL) rt_xla_close(xla);
  if (good) return STATUS_OK;
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
  return options->compile ? compile(options, module.text, &compilation->diags) : STATUS_OK;
}

int stablehlo_write(const struct options *options) {
  struct compilation compilation;
  int status = begin_compilation(&compilation, options);
  if (status == STATUS_OK) status = write_module(&compilation);
  return finish_compilation(&compilation, status);
}
