/* accel-gen audit: what a program does, proved from its text. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gen/audit/audit.h"
#include "gen/audit/program/grammar.h"
#include "gen/audit/write/write.h"
#include "gen/base/path.h"
#include "gen/commands/cli/commands.h"
#include "gen/commands/cli/files.h"
#include "gen/commands/cli/process.h"
#include "gen/commands/cli/runtime.h"
#include "gen/commands/inspect/recorded.h"
#include "gen/commands/inspect/regenerate.h"
#include "gen/device_code/ptx.h"
#include "gen/device_code/sass.h"

/* Whether the audit meets what --fail-on asks. */
static bool passes(const struct options *options, const struct audit *audit) {
  if (strcmp(options->fail_on, "never") == 0) return true;
  if (audit_count(audit, VERDICT_BROKEN) > 0) return false;
  return strcmp(options->fail_on, "broken") == 0 || audit_count(audit, VERDICT_CANNOT_TELL) == 0;
}

/* The commands that compile the program: of --command, and of the manifest next to it. */
static int commands_of(const struct options *options, struct audit_command commands[2]) {
  struct diagnostics unread = diagnostics_in(options->arena);
  const char *path = manifest_path(options->arena, options->argument);
  struct recorded recorded;
  int count = 0;
  if (options->command != NULL)
    commands[count++] = (struct audit_command){options->command, {.file = "--command", .line = 1, .column = 1}};
  if (access(path, R_OK) == 0 && recorded_read(options->arena, options->argument, &recorded, &unread))
    commands[count++] = (struct audit_command){recorded.manifest->compile, {.file = path, .line = 1, .column = 1}};
  return count;
}

/* The modules that the manifest next to the program says it has, also where the program has changed since; NULL: there
 * is no manifest. */
static const struct audit_module *modules_of(const struct options *options, int *count) {
  struct arena *arena = options->arena;
  struct diagnostics unread = diagnostics_in(arena);
  const char *path = manifest_path(arena, options->argument);
  const struct manifest *manifest = access(path, R_OK) == 0 ? manifest_read(arena, path, &unread) : NULL;
  if (manifest == NULL) return NULL;
  struct audit_module *modules = arena_alloc(arena, ((size_t)manifest->modules.count + 1) * sizeof *modules);
  *count = manifest->modules.count;
  for (int i = 0; i < *count; i++) {
    const struct manifest_file *file = &manifest->modules.items[i];
    modules[i] = (struct audit_module){file->name, file->sha256, {.file = path, .line = 1, .column = 1}};
  }
  return modules;
}

/* ---- The program compiled once more ---- */

struct recompiling {
  const struct options *options;
  const struct words *flags; /* where the headers are */
  const char *folder;
};

/* The compiler alone, in a folder: nothing of the environment changes what it reads. */
static struct words begin_compiler(const struct recompiling *recompiling, const char *name) {
  struct words words = words_in(recompiling->options->arena);
  words_split(&words, "env -u CPATH -u C_INCLUDE_PATH -u COMPILER_PATH -u GCC_EXEC_PREFIX -u LIBRARY_PATH "
                      "-u CCC_OVERRIDE_OPTIONS -u DEPENDENCIES_OUTPUT -u SUNPRO_DEPENDENCIES -C");
  words_add(&words, recompiling->folder);
  words_split(&words, "LC_ALL=C timeout 300");
  words_add(&words, name);
  return words;
}

static const char *absolute(struct arena *arena, const char *path) {
  char here[PATH_MAX];
  return path[0] == '/' || getcwd(here, sizeof here) == NULL ? path : arena_printf(arena, "%s/%s", here, path);
}

static bool is_same(const char *path, const char *other) {
  struct stat one, two;
  return stat(path, &one) == 0 && stat(other, &two) == 0 && one.st_dev == two.st_dev && one.st_ino == two.st_ino;
}

/* The program by the path that the object's compiler was given, which clang writes into the data of parallel regions:
 * a link to it, in the folder. An absolute path is the program's own, or cannot be had. */
static const char *linked_source(const struct recompiling *recompiling, const char *path) {
  struct arena *arena = recompiling->options->arena;
  const char *own = absolute(arena, recompiling->options->argument);
  if (path[0] == '/') return is_same(path, own) ? path : own;
  if (path[0] == '\0' || strstr(path, "..") != NULL) return own;
  char *link = arena_printf(arena, "%s/%s", recompiling->folder, path);
  for (char *at = link + strlen(recompiling->folder) + 1; (at = strchr(at, '/')) != NULL; at++) {
    *at = '\0';
    mkdir(link, 0777);
    *at = '/';
  }
  return symlink(own, link) == 0 ? path : own;
}

/* A folder of headers, as the object's compiler was given it. */
static const char *named_folder(const struct audit_compilation *compilation, const char *folder) {
  for (int i = 0; i < compilation->n_folders; i++)
    if (compilation->folders[i][0] == '/' && is_same(compilation->folders[i], folder)) return compilation->folders[i];
  return folder;
}

/* The headers are where the audit has read them. */
static void add_headers(const struct recompiling *recompiling, const struct audit_compilation *compilation,
                        struct words *words) {
  struct arena *arena = recompiling->options->arena;
  const struct words *flags = recompiling->flags;
  for (int i = 0; i < flags->count; i++) {
    const char *flag = flags->items[i];
    const bool alone = strcmp(flag, "-I") == 0 && i + 1 < flags->count;
    if (strncmp(flag, "-D", 2) == 0) words_add(words, flag);
    if (strncmp(flag, "-I", 2) != 0) continue;
    words_add(words, "-I");
    words_add(words, named_folder(compilation, absolute(arena, alone ? flags->items[++i] : flag + 2)));
  }
  words_add(words, "-iquote");
  words_add(words, absolute(arena, folder_of(arena, recompiling->options->argument)));
}

static const char *compile_again(void *context, const struct audit_compilation *compilation, const char **why) {
  struct recompiling *recompiling = context;
  struct arena *arena = recompiling->options->arena;
  recompiling->folder = make_folder(arena);
  *why = "there is no folder for it";
  if (recompiling->folder == NULL) return NULL;
  *why = arena_printf(arena, "there is no %s here", compilation->names[0]);
  for (int i = 0; i < compilation->n_names; i++) {
    struct words asked = begin_compiler(recompiling, compilation->names[i]);
    words_add(&asked, "--version");
    if (process_try(&asked) == NULL) continue;
    const char *object = arena_printf(arena, "%s/again.o", recompiling->folder);
    struct words words = begin_compiler(recompiling, compilation->names[i]);
    for (int j = 0; j < compilation->n_flags; j++) words_add(&words, compilation->flags[j]);
    add_headers(recompiling, compilation, &words);
    words_split(&words, compilation->is_linked ? "-w -o" : "-w -c -o");
    words_add(&words, object);
    words_add(&words, linked_source(recompiling, compilation->source));
    const struct linked linked = {compilation->has_ranks, compilation->has_sqlite, compilation->runtime};
    *why = "the runtime is not found";
    if (compilation->is_linked && !runtime_flags(recompiling->options, "--cflags --libs", linked, &words)) return NULL;
    if (recompiling->options->verbose) words_print(stderr, &words);
    *why = arena_printf(arena, "%s fails", compilation->names[i]);
    return process_try(&words) != NULL ? object : NULL;
  }
  return NULL;
}

/* What the manifest next to a program says of each line; NULL where none is there that describes it. */
static const struct line_note *notes_of(const struct options *options, const struct audit *audit) {
  struct arena *arena = options->arena;
  struct diagnostics unread = diagnostics_in(arena);
  struct recorded recorded;
  if (access(manifest_path(arena, options->argument), R_OK) != 0) return NULL;
  if (!recorded_read(arena, options->argument, &recorded, &unread)) return NULL;
  const struct manifest *manifest = recorded.manifest;
  struct line_note *notes = arena_alloc(arena, ((size_t)audit->tree->n_lines + 2) * sizeof *notes);
  for (int i = 0; i <= audit->tree->n_lines; i++) {
    bool known = i < manifest->n_lines;
    notes[i].words = known ? locations_text(arena, manifest, &manifest->lines[i]) : "";
    notes[i].more = known ? origins_text(arena, manifest, &manifest->lines[i]) : "";
  }
  return notes;
}

static void write_report(const struct options *options, const struct audit *audit, struct text *text) {
  const char *format = options->format != NULL ? options->format : "text";
  if (strcmp(format, "json") == 0)
    audit_write_json(audit, text);
  else if (strcmp(format, "sarif") == 0)
    audit_write_sarif(audit, text);
  else if (strcmp(format, "junit") == 0)
    audit_write_junit(audit, text);
  else if (strcmp(format, "html") == 0)
    audit_write_html(audit, notes_of(options, audit), text);
  else
    audit_write_text(audit, options->verbose, text);
}

static struct audit *audit_of(const struct options *options, const struct audit_options *how,
                              struct diagnostics *diags) {
  const char *file = options->argument;
  if (has_ending(file, ".ptx")) return ptx_audit(options->arena, file, NULL, diags);
  if (has_ending(file, ".sass")) return sass_audit(options->arena, file, NULL, diags);
  return audit_run(options->arena, file, how, diags);
}

/* What the text of a program may hold. */
static int print_grammar(const struct options *options) {
  struct text text = text_in(options->arena);
  struct inputs inputs = inputs_in(options->arena);
  grammar_write(&text);
  const char *output = options->output != NULL ? options->output : "-";
  return write_lines(&inputs, output, text_string(&text)) ? STATUS_OK : STATUS_CANNOT;
}

int command_audit(const struct options *options) {
  if (options->grammar) return print_grammar(options);
  if (options->regenerate) return regenerate(options);
  struct diagnostics diags = diagnostics_in(options->arena);
  struct words flags = words_in(options->arena);
  reading_flags(options, &flags);
  struct audit_command commands[2];
  int n_modules = 0;
  const struct audit_module *modules = modules_of(options, &n_modules);
  struct recompiling recompiling = {options, &flags, NULL};
  const struct audit_compiler compiler = {compile_again, &recompiling};
  struct audit_options audit_options = {
      .flags = (const char *const *)flags.items,
      .n_flags = flags.count,
      .root = options->root,
      .commands = commands,
      .n_commands = commands_of(options, commands),
      .modules = modules,
      .n_modules = n_modules,
      .object = options->object,
      .compiler = &compiler,
  };
  struct audit *audit = audit_of(options, &audit_options, &diags);
  if (recompiling.folder != NULL) remove_folder(recompiling.folder);
  if (diags.count > 0) diag_print(&diags, stderr, options->colour);
  if (audit == NULL) return STATUS_BAD_JOB;
  struct text text = text_in(options->arena);
  write_report(options, audit, &text);
  const char *output = options->output != NULL ? options->output : "-";
  struct inputs inputs = inputs_in(options->arena);
  inputs_add(&inputs, "the program", options->argument);
  inputs_add(&inputs, "the program's object code", options->object);
  inputs_add(&inputs, "the program's manifest", manifest_path(options->arena, options->argument));
  const bool people = options->format == NULL || strcmp(options->format, "text") == 0;
  if (people ? !write_lines(&inputs, output, text_string(&text))
             : !write_file(&inputs, output, text.bytes, text.length))
    return STATUS_CANNOT;
  return passes(options, audit) ? STATUS_OK : STATUS_CANNOT;
}
