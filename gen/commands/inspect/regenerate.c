#include "gen/commands/inspect/regenerate.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "gen/base/difference.h"
#include "gen/base/file.h"
#include "gen/base/path.h"
#include "gen/base/version.h"
#include "gen/commands/cli/files.h"
#include "gen/commands/generate/compilation.h"
#include "gen/commands/generate/manifest.h"
#include "gen/commands/generate/variations.h"
#include "gen/emit/templates.h"
#include "gen/provenance/json.h"

/* One thing that was compared. */
struct finding {
  enum { SAME, ABSENT, DIFFERS } word; /* ABSENT: it is not needed */
  const char *what;                    /* "model.c" */
  const char *detail;                  /* "" for what is the same */
};

struct regeneration {
  const struct options *options;
  struct arena *arena;
  struct diagnostics diags;
  const char *folder; /* of the manifest */
  const struct manifest *manifest;
  bool job_is_same;
  struct {
    struct finding *items;
    int count, capacity;
  } findings;
};

static void found(struct regeneration *r, bool same, const char *what, const char *detail) {
  ARENA_PUSH(r->arena, r->findings, ((struct finding){same ? SAME : DIFFERS, what, detail}));
}

static const char *word_of(const struct finding *finding) {
  static const char *const words[] = {"same", "absent", "differs"};
  return words[finding->word];
}

static const char *path_of(const struct regeneration *r, const char *name) {
  return name[0] == '/' ? name : arena_printf(r->arena, "%s/%s", r->folder, name);
}

/* ---- Inputs ---- */

static bool compare_file(struct regeneration *r, const char *name, const char *digest, const char *said) {
  bool same = digest != NULL && strcmp(digest, said) == 0;
  if (same)
    found(r, true, name, "");
  else if (digest == NULL)
    found(r, false, name, "is not there");
  else
    found(r, false, name, arena_printf(r->arena, "is another: its SHA-256 is %s, not %s", digest, said));
  return same;
}

static void compare_inputs(struct regeneration *r) {
  const struct manifest *manifest = r->manifest;
  for (int i = 0; i < manifest->inputs.count; i++) {
    const struct manifest_file *file = &manifest->inputs.items[i];
    if (strcmp(file->role, "template") == 0) continue; /* when they were read again */
    const char *digest = file_digest(r->arena, path_of(r, file->name));
    bool same = compare_file(r, file->name, digest, file->sha256);
    if (i > 0 && strcmp(file->role, "base") != 0) continue;
    r->job_is_same = (i == 0 || r->job_is_same) && same;
    if (digest == NULL && (i == 0 || r->findings.items[0].word == ABSENT))
      r->findings.items[i] = (struct finding){ABSENT, file->name, "(made from the job in the manifest)"};
  }
  bool known = strcmp(manifest->generator.version, ACCEL_VERSION) == 0;
  if (known)
    compare_file(r, "accel-gen", file_digest(r->arena, "/proc/self/exe"), manifest->generator.sha256);
  else
    found(r, false, "accel-gen",
          arena_printf(r->arena, "is version " ACCEL_VERSION ", not %s", manifest->generator.version));
}

static void compare_templates(struct regeneration *r, const struct origins *origins) {
  const struct templates *read = origins->templates;
  int changed = 0, count = 0;
  for (int i = 0; i < r->manifest->inputs.count; i++) {
    const struct manifest_file *file = &r->manifest->inputs.items[i];
    if (strcmp(file->role, "template") != 0) continue;
    const char *digest = NULL;
    for (int k = 0; k < read->n_read; k++)
      if (strcmp(read->read[k].name, file->name) == 0)
        digest = digest_of(r->arena, read->read[k].text, strlen(read->read[k].text));
    count++;
    if (digest != NULL && strcmp(digest, file->sha256) == 0) continue;
    changed++;
    compare_file(r, file->name, digest, file->sha256);
  }
  if (changed == 0) found(r, true, arena_printf(r->arena, "%d templates", count), "");
}

/* ---- Outputs ---- */

static const char *line_at(struct arena *arena, const struct lines *lines, int line) {
  if (line >= lines->count) return "(nothing)";
  return arena_copy(arena, lines->starts[line], (size_t)lines->lengths[line]);
}

/* The first line that differs, with both texts. */
static void compare_text(struct regeneration *r, const char *name, const char *there, size_t length, const char *made) {
  struct arena *arena = r->arena;
  struct lines a = lines_of(arena, there, length), b = lines_of(arena, made, strlen(made));
  if (length == strlen(made) && memcmp(there, made, length) == 0) {
    found(r, true, arena_printf(arena, "%s: %d lines", name, a.count), "");
    return;
  }
  int line = 0;
  while (line < a.count && line < b.count && a.lengths[line] == b.lengths[line] &&
         memcmp(a.starts[line], b.starts[line], (size_t)a.lengths[line]) == 0)
    line++;
  found(r, false, arena_printf(arena, "%s:%d", name, line + 1),
        arena_printf(arena, "\n            there: %.200s\n            again: %.200s", line_at(arena, &a, line),
                     line_at(arena, &b, line)));
}

static void compare_output(struct regeneration *r, const char *name, const char *made) {
  size_t length = 0;
  const char *there = read_bytes(r->arena, path_of(r, name), &length);
  if (there == NULL)
    found(r, false, name, "is not there");
  else
    compare_text(r, name, there, length, made);
}

/* ---- Making it again ---- */

/* From the job's file where it is the same as then, so that the manifest can be compared, too; else from the job that
 * the manifest contains. */
static void set_out(const struct regeneration *r, struct options *options, struct compilation *compilation) {
  const struct manifest *manifest = r->manifest;
  *options = (struct options){.arena = r->arena,
                              .binary = r->options->binary,
                              .argument = path_of(r, manifest->inputs.items[0].name),
                              .output = path_of(r, manifest->output.name),
                              .templates = manifest->templates != NULL ? path_of(r, manifest->templates) : NULL};
  if (r->job_is_same) {
    options->overrides = arena_alloc(r->arena, ((size_t)manifest->set.count + 1) * sizeof *options->overrides);
    for (int i = 0; i < manifest->set.count; i++) {
      const char *set = manifest->set.items[i], *equals = strchr(set, '=');
      if (equals == NULL) continue;
      options->overrides[options->n_overrides++] =
          (struct job_override){arena_copy(r->arena, set, (size_t)(equals - set)), equals + 1};
    }
  }
  *compilation = (struct compilation){.options = options,
                                      .job_file = manifest->set.count == 0 ? name_in_folder(options->argument) : NULL,
                                      .arena = r->arena,
                                      .diags = diagnostics_in(r->arena),
                                      .text = r->job_is_same ? NULL : manifest->job.resolved};
  program_kind_find(manifest->kind, &compilation->kind);
}

/* The files of modules next to it. */
static void compare_modules(struct regeneration *r, const struct compilation *compilation) {
  const char *const texts[] = {compilation->modules.main, compilation->modules.second};
  for (int i = 0; i < r->manifest->modules.count && i < 2; i++)
    if (texts[i] != NULL) compare_output(r, r->manifest->modules.items[i].name, texts[i]);
}

static void make_again(struct regeneration *r) {
  struct options options;
  struct compilation compilation;
  struct origins origins = {0}, second = {0};
  const char *text;
  set_out(r, &options, &compilation);
  compilation.second_origins = &second;
  int status = compile_to_text(&compilation, &origins, &text);
  if (compilation.diags.count > 0) diag_print(&compilation.diags, stderr, r->options->colour);
  if (status != STATUS_OK) {
    found(r, false, r->manifest->output.name, "cannot be made again");
    return;
  }
  compare_templates(r, &origins);
  const char *program = compilation_program_path(&compilation, options.output); /* where this is its second text */
  compare_output(r, r->manifest->output.name, program != NULL ? compilation.second : text);
  compare_modules(r, &compilation);
  if (r->job_is_same) {
    struct manifest *again = describe(&compilation, program != NULL ? program : options.output, text, &origins);
    find_keys(&compilation, text, again);
    if (program != NULL) again = again->second;
    compare_output(r, name_in_folder(r->options->argument), manifest_text(r->arena, again));
  }
}

/* ---- The answer ---- */

static void write_text(const struct regeneration *r, struct text *out) {
  for (int i = 0; i < r->findings.count; i++) {
    const struct finding *finding = &r->findings.items[i];
    const char *space = finding->detail[0] != '\0' && finding->detail[0] != '\n' ? " " : "";
    text_printf(out, "  %-8s  %s%s%s\n", word_of(finding), finding->what, space, finding->detail);
  }
}

static void write_json(const struct regeneration *r, bool same, struct text *out) {
  json_t *root = json_object(), *list = json_array();
  for (int i = 0; i < r->findings.count; i++) {
    const struct finding *finding = &r->findings.items[i];
    json_t *object = json_object();
    json_put(object, "what", finding->what);
    json_put(object, "verdict", word_of(finding));
    if (finding->word != SAME) json_put(object, "detail", finding->detail);
    json_array_append_new(list, object);
  }
  json_object_set_new(root, "same", json_boolean(same));
  json_object_set_new(root, "compared", list);
  json_add_indented(out, root);
}

static struct inputs inputs_of(const struct regeneration *r) {
  struct inputs inputs = inputs_in(r->arena);
  inputs_add(&inputs, "the manifest", r->options->argument);
  inputs_add(&inputs, "the program", path_of(r, r->manifest->output.name));
  for (int i = 0; i < r->manifest->modules.count; i++)
    inputs_add(&inputs, "the program's module", path_of(r, r->manifest->modules.items[i].name));
  for (int i = 0; i < r->manifest->inputs.count; i++) {
    const struct manifest_file *file = &r->manifest->inputs.items[i];
    if (strcmp(file->role, "template") != 0)
      inputs_add(&inputs, arena_printf(r->arena, "the program's %s", file->role), path_of(r, file->name));
  }
  if (r->manifest->templates != NULL) inputs_add(&inputs, "the templates", path_of(r, r->manifest->templates));
  return inputs;
}

int regenerate(const struct options *options) {
  struct regeneration r = {.options = options,
                           .arena = options->arena,
                           .diags = diagnostics_in(options->arena),
                           .folder = folder_of(options->arena, options->argument)};
  r.manifest = manifest_read(r.arena, options->argument, &r.diags);
  if (r.manifest == NULL) {
    diag_print(&r.diags, stderr, options->colour);
    return STATUS_BAD_JOB;
  }
  compare_inputs(&r);
  make_again(&r);
  bool same = true;
  for (int i = 0; i < r.findings.count; i++) same &= r.findings.items[i].word != DIFFERS;
  struct text out = text_in(r.arena);
  const bool json = options->format != NULL && strcmp(options->format, "json") == 0;
  if (json)
    write_json(&r, same, &out);
  else
    write_text(&r, &out);
  const char *output = options->output != NULL ? options->output : "-";
  struct inputs inputs = inputs_of(&r);
  if (json ? !write_file(&inputs, output, out.bytes, out.length) : !write_lines(&inputs, output, text_string(&out)))
    return STATUS_CANNOT;
  return same ? STATUS_OK : STATUS_CANNOT;
}
