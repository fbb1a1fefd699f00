#include "gen/commands/inspect/diff_input.h"

#include <string.h>
#include <unistd.h>

#include "gen/base/file.h"
#include "gen/base/path.h"
#include "gen/base/version.h"
#include "gen/commands/cli/files.h"
#include "gen/commands/generate/compilation.h"
#include "gen/commands/inspect/recorded.h"
#include "gen/commands/inspect/stated.h"
#include "gen/commands/inspect/step_path.h"
#include "gen/model/model.h"
#include "gen/plan/report/report.h"
#include "gen/provenance/program_words.h"
#include "gen/spec/keys.h"

static void set_lines(struct arena *arena, const char *text, size_t length, struct diff_input *input) {
  input->lines = lines_of(arena, text, length);
}

static void set_keys(struct arena *arena, const struct job *job, struct diff_input *input) {
  int count;
  const struct job_key *keys = job_keys(arena, job, &count);
  input->generator = "accel-gen " ACCEL_VERSION;
  for (int i = 0; i < count; i++) {
    add_pair(arena, &input->keys, keys[i].name, keys[i].value);
    if (!keys[i].at_default) add_pair(arena, &input->stated, keys[i].name, keys[i].value);
  }
}

/* ---- Jobs ---- */

bool diff_input_from_job(const struct options *options, const char *file, struct diff_input *input,
                         struct inputs *inputs, struct diagnostics *diags) {
  struct arena *arena = options->arena;
  struct options own = *options;
  own.argument = file;
  struct compilation compilation = {
      .options = &own, .job_file = compilation_job_file(&own), .arena = arena, .diags = *diags};
  program_kind_find(options->program, &compilation.kind);
  const char *text;
  int status = compile_to_text(&compilation, NULL, &text);
  *diags = compilation.diags;
  if (status != STATUS_OK) return false;
  inputs_add_compilation(inputs, &compilation);
  set_keys(arena, compilation.job, input);
  input->model = model_digest(compilation.model);
  input->figures = figures_of(arena, report_json(compilation.program, NULL, NULL, NULL));
  input->summary = summary_of(arena, report_text(compilation.program));
  set_lines(arena, text, strlen(text), input);
  return find_step_functions(options, arena_printf(arena, "%s.c", file), text, input, diags);
}

/* ---- Manifests ---- */

static void set_manifest(struct arena *arena, const struct manifest *manifest, struct diff_input *input) {
  for (int i = 0; i < manifest->n_keys; i++)
    add_pair(arena, &input->keys, manifest->keys[i].key, manifest->keys[i].value);
  input->stated = input->keys;
  input->model = manifest->job.model;
  input->figures = figures_of(arena, manifest->plan);
  input->summary = summary_of(arena, manifest->plan_text);
}

bool diff_input_from_manifest(const struct options *options, const char *file, struct diff_input *input,
                              struct inputs *inputs, struct diagnostics *diags) {
  struct arena *arena = options->arena;
  const struct manifest *manifest = manifest_read(arena, file, diags);
  if (manifest == NULL) return false;
  set_manifest(arena, manifest, input);
  const char *program = arena_printf(arena, "%s/%s", folder_of(arena, file), manifest->output.name);
  inputs_add(inputs, "the program of a manifest", program);
  size_t length = 0;
  const char *text = read_bytes(arena, program, &length);
  if (text == NULL || strcmp(digest_of(arena, text, length), manifest->output.sha256) != 0) return true;
  set_lines(arena, text, length, input);
  input->program = program;
  return find_step_functions(options, program, text, input, diags);
}

/* ---- Programs ---- */

static void set_program_keys(struct arena *arena, const char *text, struct diff_input *input) {
  const struct program_job recorded = job_in_program(arena, text);
  const struct stated_keys stated = stated_in_program(arena, &recorded);
  const struct job *job = job_restore(arena, &stated);
  input->model = recorded.model;
  input->stated = recorded.keys;
  input->generator = recorded.generator;
  if (job != NULL) {
    input->stated = (struct pairs){0};
    set_keys(arena, job, input);
  }
}

bool diff_input_from_program(const struct options *options, const char *file, const char *text, size_t length,
                             struct diff_input *input, struct inputs *inputs, struct diagnostics *diags) {
  struct arena *arena = options->arena;
  const char *path = manifest_path(arena, file);
  inputs_add(inputs, "the manifest of a program", path);
  struct diagnostics unread = diagnostics_in(arena);
  const struct manifest *manifest = access(path, R_OK) == 0 ? manifest_read(arena, path, &unread) : NULL;
  set_lines(arena, text, length, input);
  input->program = file;
  if (manifest != NULL && strcmp(digest_of(arena, text, length), manifest->output.sha256) == 0) {
    set_manifest(arena, manifest, input);
  } else {
    set_program_keys(arena, text, input);
    input->summary = summary_in_program(arena, text);
  }
  return find_step_functions(options, file, text, input, diags);
}
