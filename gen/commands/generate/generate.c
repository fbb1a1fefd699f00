/* accel-gen JOB -o FILE. */
#include <stdio.h>
#include <string.h>

#include "gen/base/text.h"
#include "gen/commands/cli/commands.h"
#include "gen/commands/cli/files.h"
#include "gen/commands/generate/compilation.h"
#include "gen/commands/generate/generate.h"
#include "gen/commands/generate/manifest.h"
#include "gen/commands/generate/variations.h"
#include "gen/plan/plan.h"
#include "gen/program/target.h"
#include "runtime/base/terminal.h"

static bool is_pass(const char *name) {
  for (int i = 0; pass_name(i) != NULL; i++)
    if (strcmp(pass_name(i), name) == 0) return true;
  return false;
}

int begin_compilation(struct compilation *compilation, const struct options *options) {
  *compilation = (struct compilation){.options = options,
                                      .job_file = compilation_job_file(options),
                                      .arena = options->arena,
                                      .diags = diagnostics_in(options->arena)};
  program_kind_find(options->program, &compilation->kind);
  if (options->dump == NULL || is_pass(options->dump)) return STATUS_OK;
  diag_error(&compilation->diags, (struct location){0}, "unknown pass '%s'", options->dump);
  struct text names = text_in(options->arena);
  for (int i = 0; pass_name(i) != NULL; i++) text_printf(&names, "%s%s", i > 0 ? ", " : "", pass_name(i));
  diag_help(&compilation->diags, "the passes are %s", text_string(&names));
  return STATUS_BAD_JOB;
}

int finish_compilation(const struct compilation *compilation, int status) {
  if (compilation->diags.count > 0) diag_print(&compilation->diags, stderr, compilation->options->colour);
  return status;
}

/* Writes the plan after a pass. */
static int dump(const struct options *options) {
  struct compilation compilation;
  int status = begin_compilation(&compilation, options);
  if (status == STATUS_OK) status = compile_to_program(&compilation);
  if (status != STATUS_OK) return finish_compilation(&compilation, status);
  struct inputs inputs = inputs_in(options->arena);
  inputs_add_compilation(&inputs, &compilation);
  const char *output = options->output != NULL ? options->output : "-";
  if (!write_file(&inputs, output, compilation.dumped, strlen(compilation.dumped))) return STATUS_CANNOT;
  return finish_compilation(&compilation, STATUS_OK);
}

/* The second text is next to the first; NULL where there is one text. */
static const char *second_path(const struct generated *generated) {
  const struct compilation *compilation = &generated->compilation;
  return compilation->second != NULL ? compilation_second_path(compilation, compilation->options->output) : NULL;
}

/* Modules are next to the program that holds them, for people and tools: of a step, and of an evaluation; of text, over
 * several positions and over one. */
static bool spare_modules(const struct generated *generated) {
  for (int i = 0; i < 2; i++) {
    const char *path = compilation_module_path(&generated->compilation, generated->compilation.options->output, i > 0);
    if (path != NULL && !inputs_spare(&generated->inputs, path)) return false;
  }
  return true;
}

static bool write_modules(const struct generated *generated) {
  const struct step_modules *modules = &generated->compilation.modules;
  for (int i = 0; i < 2; i++) {
    const char *path = compilation_module_path(&generated->compilation, generated->compilation.options->output, i > 0);
    const char *text = i > 0 ? modules->second : modules->main;
    if (path != NULL && !write_file(&generated->inputs, path, text, strlen(text))) return false;
  }
  return true;
}

/* Whether all outputs can be written: asked before the first one is written. */
static bool check_outputs(const struct generated *generated) {
  const struct compilation *compilation = &generated->compilation;
  const struct options *options = compilation->options;
  const char *second = second_path(generated);
  if (compilation->second != NULL && second == NULL) {
    rt_print(stderr, "accel-gen: this program is two files, NAME.c and NAME%s: -o must end with .c\n",
             compilation->program->target->texts.suffixes[1]);
    return false;
  }
  return inputs_spare(&generated->inputs, options->output) &&
         (second == NULL || inputs_spare(&generated->inputs, second)) && spare_modules(generated) &&
         (!options->manifest || spare_manifest(&generated->inputs, options->output, generated->manifest)) &&
         (!options->provenance || spare_statements(&generated->inputs, options->output));
}

int generate(const struct options *options, const char *program, struct generated *generated) {
  struct compilation *compilation = &generated->compilation;
  struct origins origins = {0};
  *generated = (struct generated){.inputs = inputs_in(options->arena)};
  int status = begin_compilation(compilation, options);
  if (program != NULL) {
    compilation->second_origins = arena_alloc(options->arena, sizeof *compilation->second_origins);
    *compilation->second_origins = (struct origins){0};
  }
  if (status == STATUS_OK) status = compile_to_text(compilation, program != NULL ? &origins : NULL, &generated->text);
  if (status != STATUS_OK) return finish_compilation(compilation, status);
  inputs_add_compilation(&generated->inputs, compilation);
  if (program != NULL) generated->manifest = describe(compilation, program, generated->text, &origins);
  if (!check_outputs(generated)) return STATUS_CANNOT;
  if (options->manifest) find_keys(compilation, generated->text, generated->manifest);
  return finish_compilation(compilation, STATUS_OK);
}

bool write_generated(const struct generated *generated) {
  const struct compilation *compilation = &generated->compilation;
  const char *second = second_path(generated);
  return write_modules(generated) &&
         (second == NULL || write_file(&generated->inputs, second, compilation->second, strlen(compilation->second))) &&
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
