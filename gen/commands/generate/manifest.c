#include "gen/commands/generate/manifest.h"

#include <stdio.h>
#include <string.h>

#include "gen/base/path.h"
#include "gen/base/version.h"
#include "gen/commands/cli/files.h"
#include "gen/commands/cli/runtime.h"
#include "gen/emit/templates.h"
#include "gen/model/model.h"
#include "gen/plan/report/report.h"
#include "gen/program/processor.h"
#include "gen/program/target.h"
#include "gen/tuning/tuning.h"
#include "runtime/base/terminal.h"

struct describer {
  struct arena *arena;
  const char *folder; /* of the manifest */
  const struct compilation *compilation;
  struct manifest *manifest;
};

/* ---- Files ---- */

static void add_input(struct describer *d, const char *role, const char *path) {
  const char *digest = file_digest(d->arena, path);
  struct manifest_file file = {role, name_from(d->arena, d->folder, path), digest != NULL ? digest : ""};
  for (int i = 0; i < d->manifest->inputs.count; i++)
    if (strcmp(d->manifest->inputs.items[i].name, file.name) == 0) return;
  ARENA_PUSH(d->arena, d->manifest->inputs, file);
}

static void add_templates(struct describer *d, const struct origins *origins) {
  for (int i = 0; i < origins->templates->n_read; i++) {
    const struct template_text *template = &origins->templates->read[i];
    const char *digest = digest_of(d->arena, template->text, strlen(template->text));
    ARENA_PUSH(d->arena, d->manifest->inputs, ((struct manifest_file){"template", template->name, digest}));
  }
}

static void add_inputs(struct describer *d, const struct origins *origins) {
  const struct compilation *compilation = d->compilation;
  int n_includes;
  const char *const *includes = model_includes(compilation->model, &n_includes);
  add_input(d, "job", compilation->options->argument);
  for (int i = 0; i < compilation->job->n_extends; i++) add_input(d, "base", compilation->job->extends[i]);
  add_input(d, "model", compilation->job->model.source);
  for (int i = 0; i < n_includes; i++) add_input(d, "header", includes[i]);
  const char *hooks = compilation->job->hooks.source;
  if (hooks != NULL && compilation->kind == PROGRAM_TRAIN) add_input(d, "hooks", hooks);
  if (compilation->tuning != NULL) add_input(d, "tuning", compilation->tuning->file);
  add_templates(d, origins);
}

/* The modules that the program holds, by the names of the files next to it. */
static void add_modules(struct describer *d, const char *program) {
  const char *const texts[] = {d->compilation->modules.main, d->compilation->modules.second};
  for (int i = 0; i < 2; i++) {
    const char *path = compilation_module_path(d->compilation, program, i > 0);
    if (path == NULL) continue;
    const char *digest = digest_of(d->arena, texts[i], strlen(texts[i]));
    ARENA_PUSH(d->arena, d->manifest->modules, ((struct manifest_file){"module", name_in_folder(path), digest}));
  }
}

/* The file of a program's second text; NULL where it has one text. */
static const char *second_file(const struct describer *d, const char *program) {
  const struct target *target = d->compilation->program->target;
  return target->texts.count > 1 ? compilation_second_path(d->compilation, program) : NULL;
}

/* What compiles that to an object in the manifest's folder, with `&&` after it; "" where there is none. */
static const char *compile_before(const struct describer *d) {
  const struct target *target = d->compilation->program->target;
  const char *second = second_file(d, d->manifest->output.name);
  struct text text = text_in(d->arena);
  if (second == NULL) return "";
  text_puts(&text, target->texts.compiler);
  text_printf(&text, " $(pkg-config --cflags %s) -c -o %s %s && ", d->manifest->runtime,
              shell_word(d->arena, arena_printf(d->arena, "%s.o", second)), shell_word(d->arena, second));
  return text_string(&text);
}

/* What a C compiler gets in the manifest's folder, in addition to its flags. */
static const char *compile_rest(const struct describer *d) {
  struct arena *arena = d->arena;
  const char *program = d->manifest->output.name, *hooks = d->compilation->job->hooks.source;
  const char *stem = without_ending(arena, program, ".c"),
             *binary = stem != NULL ? stem : arena_printf(arena, "%s.out", program);
  const char *more = hooks == NULL || d->compilation->kind != PROGRAM_TRAIN
                         ? ""
                         : arena_printf(arena, " %s", shell_word(arena, name_from(arena, d->folder, hooks)));
  const char *second = second_file(d, program), *object = "";
  if (second != NULL) object = arena_printf(arena, " %s", shell_word(arena, arena_printf(arena, "%s.o", second)));
  return arena_printf(arena, "-o %s %s%s%s $(pkg-config --cflags --libs %s)%s", shell_word(arena, binary),
                      shell_word(arena, program), more, object, d->manifest->runtime,
                      second != NULL ? " -lstdc++" : "");
}

/* ---- Lines ---- */

static void add_locations(struct describer *d, struct manifest_list *list, const struct jinja_location *locations,
                          int count) {
  for (int i = 0; i < count; i++)
    manifest_add(d->arena, list, arena_printf(d->arena, "%s:%d", locations[i].template_name, locations[i].line));
}

static void add_lines(struct describer *d, const struct origins *origins) {
  struct manifest *manifest = d->manifest;
  manifest->n_lines = origins->count;
  manifest->lines = arena_alloc(d->arena, ((size_t)origins->count + 1) * sizeof *manifest->lines);
  for (int i = 0; i < origins->count; i++) {
    const struct line_origin *origin = &origins->lines[i];
    struct manifest_line *line = &manifest->lines[i];
    add_locations(d, &line->templates, origin->templates, origin->n_templates);
    add_locations(d, &line->callers, origin->callers, origin->n_callers);
    for (int k = 0; k < origin->n_model; k++)
      manifest_add(d->arena, &line->model,
                   arena_printf(d->arena, "%s:%d", name_from(d->arena, d->folder, origin->model[k].file),
                                origin->model[k].line));
  }
}

/* What pkg-config calls all that the program is linked with. */
static const char *packages_of(const struct compilation *compilation) {
  const struct job *job = compilation->job;
  const char *runtime = compilation->program->target->build.packages[target_processes(job) > 1];
  const bool sqlite = compilation->kind == PROGRAM_TRAIN && job->tracking.sinks[SINK_TRACKIO];
  return sqlite ? arena_printf(compilation->arena, "%s sqlite3", runtime) : runtime;
}

static struct manifest *describe_one(const struct compilation *compilation, const char *program, const char *text,
                                     const struct origins *origins) {
  struct arena *arena = compilation->arena;
  const struct options *options = compilation->options;
  struct manifest *manifest = arena_alloc(arena, sizeof *manifest);
  struct describer d = {arena, folder_of(arena, program), compilation, manifest};
  const char *own = file_digest(arena, "/proc/self/exe");
  manifest->generator.version = ACCEL_VERSION;
  manifest->generator.sha256 = own != NULL ? own : "";
  manifest->kind = program_kind_name(compilation->kind);
  manifest->templates = options->templates != NULL ? name_from(arena, d.folder, options->templates) : NULL;
  for (int i = 0; i < options->n_overrides; i++)
    manifest_add(arena, &manifest->set,
                 arena_printf(arena, "%s=%s", options->overrides[i].key, options->overrides[i].value));
  manifest->output = (struct manifest_file){"program", name_in_folder(program), digest_of(arena, text, strlen(text))};
  add_modules(&d, program);
  manifest->job.digest = compilation->job->digest;
  manifest->job.resolved = job_resolved(arena, compilation->job);
  manifest->job.model = model_digest(compilation->model);
  manifest->plan = report_json(compilation->program, NULL, NULL, NULL);
  manifest->plan_text = report_text(compilation->program);
  manifest->runtime = packages_of(compilation);
  manifest->compile_before = compile_before(&d);
  manifest->compile_rest = compile_rest(&d);
  manifest->compile = arena_printf(arena, "%scc %s %s", manifest->compile_before,
                                   processor_cflags(arena, processor_of(compilation->job)), manifest->compile_rest);
  add_inputs(&d, origins);
  add_lines(&d, origins);
  return manifest;
}

struct manifest *describe(const struct compilation *compilation, const char *program, const char *text,
                          const struct origins *origins) {
  struct manifest *manifest = describe_one(compilation, program, text, origins);
  const char *path = compilation->second_origins != NULL && compilation->second != NULL
                         ? compilation_second_path(compilation, program)
                         : NULL;
  if (path == NULL) return manifest;
  manifest->second = describe_one(compilation, path, compilation->second, compilation->second_origins);
  manifest->second->compile = manifest->compile;
  return manifest;
}

/* Where the program's second text is, which has a manifest of its own; NULL: there is none. */
static const char *second_path(struct arena *arena, const char *program, const struct manifest *manifest) {
  if (manifest->second == NULL) return NULL;
  return arena_printf(arena, "%s/%s", folder_of(arena, program), manifest->second->output.name);
}

bool write_manifest(const struct inputs *inputs, const char *program, const struct manifest *manifest) {
  struct arena *arena = inputs->arena;
  const char *text = manifest_text(arena, manifest), *second = second_path(arena, program, manifest);
  return write_file(inputs, manifest_path(arena, program), text, strlen(text)) &&
         (second == NULL || write_manifest(inputs, second, manifest->second));
}

bool spare_manifest(const struct inputs *inputs, const char *program, const struct manifest *manifest) {
  const char *second = second_path(inputs->arena, program, manifest);
  return inputs_spare(inputs, manifest_path(inputs->arena, program)) &&
         (second == NULL || spare_manifest(inputs, second, manifest->second));
}

static const char *statement_path(struct arena *arena, const char *file) {
  return arena_printf(arena, "%s.intoto.json", file);
}

static const char *sbom_path(struct arena *arena, const char *file) {
  return arena_printf(arena, "%s.cdx.json", file);
}

bool write_statements(const struct inputs *inputs, const char *file, const struct made *made) {
  struct arena *arena = inputs->arena;
  const char *statement = statement_text(arena, made), *sbom = sbom_text(arena, made);
  return write_file(inputs, statement_path(arena, file), statement, strlen(statement)) &&
         write_file(inputs, sbom_path(arena, file), sbom, strlen(sbom));
}

bool spare_statements(const struct inputs *inputs, const char *file) {
  const char *missing = statements_missing(inputs->arena);
  if (missing != NULL) {
    rt_print(stderr, "accel-gen: --provenance: %s\n", missing);
    return false;
  }
  return inputs_spare(inputs, statement_path(inputs->arena, file)) &&
         inputs_spare(inputs, sbom_path(inputs->arena, file));
}
