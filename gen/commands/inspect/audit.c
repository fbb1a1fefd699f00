/* accel-gen audit: what a program does, proved from its text. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gen/audit/audit.h"
#include "gen/audit/grammar.h"
#include "gen/audit/write.h"
#include "gen/base/path.h"
#include "gen/commands/cli/commands.h"
#include "gen/commands/cli/files.h"
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
  struct audit_options audit_options = {
      .flags = (const char *const *)flags.items,
      .n_flags = flags.count,
      .root = options->root,
      .commands = commands,
      .n_commands = commands_of(options, commands),
      .object = options->object,
  };
  struct audit *audit = audit_of(options, &audit_options, &diags);
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
