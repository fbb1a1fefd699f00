/* accel-gen plan JOB: what a program needs, as text, as JSON or as a page. */
#include <stdio.h>

#include "gen/base/quantity.h"
#include "gen/base/text.h"
#include "gen/commands/cli/commands.h"
#include "gen/commands/generate/generate.h"
#include "gen/commands/generate/length.h"
#include "gen/commands/generate/xla_memory.h"
#include "gen/commands/inspect/fit.h"
#include "gen/commands/report/plan_page.h"
#include "gen/plan/kernels/predict.h"
#include "gen/plan/ranks/cost.h"
#include "gen/plan/report/device_map.h"
#include "gen/plan/report/placements.h"
#include "gen/plan/report/report.h"
#include "gen/plan/report/traffic.h"
#include "gen/program/choose.h"
#include "gen/program/target.h"
#include "gen/search/search.h"
#include "runtime/base/terminal.h"

/* Of a job that has no program: what was predicted is printed all the same. */
static void print_search(const struct options *options, const struct search_result *searched) {
  if (searched == NULL) return;
  if (!options->json) {
    rt_print_text(stdout, search_text(options->arena, searched));
    return;
  }
  json_t *root = json_pack("{s:o}", "search", search_json(searched));
  json_dumpf(root, stdout, JSON_INDENT(2));
  puts("");
  json_decref(root);
}

/* NULL: no file says which tokens are trained on. */
static json_t *trained_json(const struct trained_tokens *trained) {
  return trained->trained < 0
             ? NULL
             : json_pack("{s:I, s:I}", "tokens", (json_int_t)trained->tokens, "trained", (json_int_t)trained->trained);
}

static const char *trained_text(struct arena *arena, const struct trained_tokens *trained) {
  return arena_printf(arena, "data      %s tokens, of which %s are trained on\n", count_text(arena, trained->tokens),
                      count_text(arena, trained->trained));
}

/* What is over a network, and the tokens that are trained on; NULL where nobody asks and where no file says it. */
struct asked {
  const struct network *network;
  const struct trained_tokens *trained;
};

/* What XLA's compiler says that a step takes, where the program is a module and a plugin is at hand. */
static const char *compiled_text(const struct compilation *compilation) {
  struct arena *arena = compilation->arena;
  struct xla_memory memory;
  struct problem problem;
  const char *platform;
  if (compilation->modules.main == NULL) return "";
  if (!xla_memory_of(arena, job_word(compilation->job, "devices.kind"), compilation->modules.main,
                     target_devices(compilation->job), &memory, &platform, &problem))
    return arena_printf(arena, "XLA       does not say what a step takes: %s\n", problem.what);
  const int devices = target_devices(compilation->job);
  const char *where = devices > 1 ? arena_printf(arena, "each of %d devices (%s)", devices, platform) : platform;
  return arena_printf(arena, "XLA       %s in a %s on %s: arguments %s, of which %s become results, temporary %s\n",
                      bytes_text(arena, memory.arguments + memory.results - memory.reused + memory.temporary),
                      compilation->kind == PROGRAM_TRAIN      ? "step"
                      : compilation->kind == PROGRAM_GENERATE ? "call of the model"
                                                              : "batch",
                      where, bytes_text(arena, memory.arguments), bytes_text(arena, memory.reused),
                      bytes_text(arena, memory.temporary));
}

static const char *plan_text(const struct compilation *compilation, const struct asked *asked) {
  struct program *program = compilation->program;
  const char *searched = compilation->searched != NULL ? search_text(compilation->arena, compilation->searched) : "";
  return arena_printf(
      compilation->arena, "%s%s%s%s%s%s%s%s%s%s", searched, report_text(program), compiled_text(compilation),
      asked->trained != NULL ? trained_text(compilation->arena, asked->trained) : "", traffic_text(program),
      placements_text(program), asked->network != NULL ? cost_text(program, asked->network) : "",
      target_matmuls(program), compilation->options->verbose ? choices_text(program) : "", prediction_text(program));
}

static const char *plan_json(const struct compilation *compilation, const struct asked *asked) {
  json_t *predicted = asked->network != NULL ? cost_json(compilation->program, asked->network) : NULL;
  json_t *search = compilation->searched != NULL ? search_json(compilation->searched) : NULL;
  return report_json(compilation->program, predicted, search,
                     asked->trained != NULL ? trained_json(asked->trained) : NULL);
}

static int put_plan(const struct compilation *compilation, const struct asked *asked) {
  const struct options *options = compilation->options;
  if (options->device_map) {
    const struct program *program = compilation->program;
    if (options->json)
      fputs(device_map_json(program, options->read_bandwidth), stdout);
    else
      rt_print_text(stdout, device_map_text(program, options->read_bandwidth));
    return STATUS_OK;
  }
  if (options->html != NULL)
    return plan_page_write(compilation, plan_text(compilation, asked), plan_json(compilation, asked));
  if (compilation->dumped != NULL)
    fputs(compilation->dumped, stdout);
  else if (options->json)
    fputs(plan_json(compilation, asked), stdout);
  else
    rt_print_text(stdout, plan_text(compilation, asked));
  return STATUS_OK;
}

int command_plan(const struct options *options) {
  if (options->fits) return plan_fit(options);
  struct compilation compilation;
  int status = begin_compilation(&compilation, options);
  if (status == STATUS_OK) status = compile_to_program(&compilation);
  if (status == STATUS_OK && options->dump == NULL) status = compile_to_module(&compilation);
  if (status != STATUS_OK) {
    print_search(options, compilation.searched);
    return finish_compilation(&compilation, status);
  }
  struct network over = options->network;
  struct prediction step;
  if (over.step <= 0 && predict_step(compilation.program, &step)) over.step = step.seconds;
  struct trained_tokens trained;
  const bool marked = find_trained(compilation.job, &trained);
  const struct asked asked = {options->predicts ? &over : NULL, marked ? &trained : NULL};
  return finish_compilation(&compilation, put_plan(&compilation, &asked));
}
