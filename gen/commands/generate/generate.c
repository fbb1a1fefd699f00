/* accel-gen JOB -o FILE and accel-gen plan JOB. */
#include <stdio.h>
#include <string.h>

#include "gen/base/quantity.h"
#include "gen/base/text.h"
#include "gen/commands/cli/commands.h"
#include "gen/commands/cli/files.h"
#include "gen/commands/generate/compilation.h"
#include "gen/commands/generate/generate.h"
#include "gen/commands/generate/length.h"
#include "gen/commands/generate/manifest.h"
#include "gen/commands/generate/variations.h"
#include "gen/plan/kernels/predict.h"
#include "gen/plan/plan.h"
#include "gen/plan/ranks/cost.h"
#include "gen/plan/report/placements.h"
#include "gen/plan/report/report.h"
#include "gen/plan/report/traffic.h"
#include "gen/program/choose.h"
#include "gen/program/target.h"
#include "gen/search/search.h"
#include "runtime/report/terminal.h"

static bool is_pass(const char *name) {
  for (int i = 0; pass_name(i) != NULL; i++)
    if (strcmp(pass_name(i), name) == 0) return true;
  return false;
}

static int begin(struct compilation *compilation, const struct options *options) {
  *compilation =
      (struct compilation){.options = options, .arena = options->arena, .diags = diagnostics_in(options->arena)};
  program_kind_find(options->program, &compilation->kind);
  if (options->dump == NULL || is_pass(options->dump)) return STATUS_OK;
  diag_error(&compilation->diags, (struct location){0}, "unknown pass '%s'", options->dump);
  struct text names = text_in(options->arena);
  for (int i = 0; pass_name(i) != NULL; i++) text_printf(&names, "%s%s", i > 0 ? ", " : "", pass_name(i));
  diag_help(&compilation->diags, "the passes are %s", text_string(&names));
  return STATUS_BAD_JOB;
}

static int finish(struct compilation *compilation, int status) {
  if (compilation->diags.count > 0) diag_print(&compilation->diags, stderr, compilation->options->colour);
  return status;
}

/* Writes the plan after a pass. */
static int dump(const struct options *options) {
  struct compilation compilation;
  int status = begin(&compilation, options);
  if (status == STATUS_OK) status = compile_to_program(&compilation);
  if (status != STATUS_OK) return finish(&compilation, status);
  struct inputs inputs = inputs_in(options->arena);
  inputs_add_compilation(&inputs, &compilation);
  const char *output = options->output != NULL ? options->output : "-";
  if (!write_file(&inputs, output, compilation.dumped, strlen(compilation.dumped))) return STATUS_CANNOT;
  return finish(&compilation, STATUS_OK);
}

/* The second text is next to the first; NULL where there is one text. */
static const char *second_path(const struct generated *generated) {
  const struct compilation *compilation = &generated->compilation;
  return compilation->second != NULL ? compilation_second_path(compilation, compilation->options->output) : NULL;
}

/* Whether all outputs can be written: asked before the first one is written. */
static bool check_outputs(const struct generated *generated) {
  const struct compilation *compilation = &generated->compilation;
  const struct options *options = compilation->options;
  const char *second = second_path(generated);
  if (compilation->second != NULL && second == NULL) {
    fprintf(stderr, "accel-gen: this program is two files, NAME.c and NAME%s: -o must end with .c\n",
            compilation->program->target->texts.suffixes[1]);
    return false;
  }
  return inputs_spare(&generated->inputs, options->output) &&
         (second == NULL || inputs_spare(&generated->inputs, second)) &&
         (!options->manifest || spare_manifest(&generated->inputs, options->output, generated->manifest)) &&
         (!options->provenance || spare_statements(&generated->inputs, options->output));
}

int generate(const struct options *options, const char *program, struct generated *generated) {
  struct compilation *compilation = &generated->compilation;
  struct origins origins = {0};
  *generated = (struct generated){.inputs = inputs_in(options->arena)};
  int status = begin(compilation, options);
  if (program != NULL) {
    compilation->second_origins = arena_alloc(options->arena, sizeof *compilation->second_origins);
    *compilation->second_origins = (struct origins){0};
  }
  if (status == STATUS_OK) status = compile_to_text(compilation, program != NULL ? &origins : NULL, &generated->text);
  if (status != STATUS_OK) return finish(compilation, status);
  inputs_add_compilation(&generated->inputs, compilation);
  if (program != NULL) generated->manifest = describe(compilation, program, generated->text, &origins);
  if (!check_outputs(generated)) return STATUS_CANNOT;
  if (options->manifest) find_keys(compilation, generated->text, generated->manifest);
  return finish(compilation, STATUS_OK);
}

bool write_generated(const struct generated *generated) {
  const struct compilation *compilation = &generated->compilation;
  const char *second = second_path(generated);
  return (second == NULL || write_file(&generated->inputs, second, compilation->second, strlen(compilation->second))) &&
         write_file(&generated->inputs, compilation->options->output, generated->text, strlen(generated->text));
}

int command_generate(const struct options *options) {
  if (options->dump != NULL) return dump(options);
  bool sidecars = options->manifest || options->provenance;
  struct generated generated;
  int status = generate(options, sidecars ? options->output : NULL, &generated);
  if (status != STATUS_OK) return status;
  if (!write_generated(&generated)) return STATUS_CANNOT;
  const struct manifest *manifest = generated.manifest;
  if (!sidecars) return STATUS_OK;
  struct made made = {.manifest = manifest, .name = manifest->output.name, .sha256 = manifest->output.sha256};
  bool good = !options->manifest || write_manifest(&generated.inputs, options->output, manifest);
  if (good && options->provenance) good = write_statements(&generated.inputs, options->output, &made);
  return good ? STATUS_OK : STATUS_CANNOT;
}

/* On a terminal, the continuation of a line is below the text after its label. */
static void print_lines(struct arena *arena, const char *text) {
  enum { LABEL = 10 };
  for (const char *at = text; *at != '\0';) {
    size_t length = strcspn(at, "\n");
    rt_print_line(arena_copy(arena, at, length), LABEL);
    at += length + (at[length] == '\n');
  }
}

/* Of a job that has no program: what was predicted is printed all the same. */
static void print_search(const struct options *options, const struct search_result *searched) {
  if (searched == NULL) return;
  if (!options->json) {
    print_lines(options->arena, search_text(options->arena, searched));
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

int command_plan(const struct options *options) {
  struct compilation compilation;
  int status = begin(&compilation, options);
  if (status == STATUS_OK) status = compile_to_program(&compilation);
  if (status != STATUS_OK) {
    print_search(options, compilation.searched);
    return finish(&compilation, status);
  }
  const char *searched = compilation.searched != NULL ? search_text(options->arena, compilation.searched) : "";
  struct network over = options->network;
  struct prediction step;
  if (over.step <= 0 && predict_step(compilation.program, &step)) over.step = step.seconds;
  const struct network *network = options->predicts ? &over : NULL;
  struct trained_tokens trained;
  const bool marked = find_trained(compilation.job, &trained);
  const char *data = marked ? trained_text(compilation.arena, &trained) : "";
  const char *people =
      arena_printf(compilation.arena, "%s%s%s%s%s%s%s%s%s", searched, report_text(compilation.program), data,
                   traffic_text(compilation.program), placements_text(compilation.program),
                   network != NULL ? cost_text(compilation.program, network) : "", target_matmuls(compilation.program),
                   options->verbose ? choices_text(compilation.program) : "", prediction_text(compilation.program));
  json_t *predicted = options->json && network != NULL ? cost_json(compilation.program, network) : NULL;
  json_t *search = options->json && compilation.searched != NULL ? search_json(compilation.searched) : NULL;
  const char *text =
      options->json ? report_json(compilation.program, predicted, search, trained_json(&trained)) : people;
  if (compilation.dumped != NULL || options->json)
    fputs(compilation.dumped != NULL ? compilation.dumped : text, stdout);
  else
    print_lines(options->arena, text);
  return finish(&compilation, STATUS_OK);
}
