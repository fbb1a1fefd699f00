/* accel-gen build: generate into a temporary folder, compile there, move the program to its final path. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gen/base/path.h"
#include "gen/commands/cli/commands.h"
#include "gen/commands/cli/files.h"
#include "gen/commands/cli/process.h"
#include "gen/commands/generate/bundle.h"
#include "gen/commands/generate/compiler.h"
#include "gen/commands/generate/generate.h"
#include "runtime/base/terminal.h"

/* Writes the statements on what the program at options->output was made of. */
static bool write_made(const struct options *options, const struct needs *needs, const struct generated *generated) {
  struct arena *arena = options->arena;
  const struct manifest *manifest = generated->manifest;
  const char *digest = file_digest(arena, options->output);
  struct made made = {.manifest = manifest,
                      .name = name_in_folder(options->output),
                      .sha256 = digest != NULL ? digest : "",
                      .compiler = compiler_version(options),
                      .command = arena_printf(arena, "%s%s %s %s", manifest->compile_before, compiler_name(),
                                              compiler_flags(arena, needs->processor), manifest->compile_rest)};
  return write_statements(&generated->inputs, options->output, &made);
}

/* Whether a program can be written there: reported before a compiler does in its own way. */
static bool is_writable(const char *program, const char *temporary) {
  int file = open(temporary, O_WRONLY | O_CREAT | O_EXCL, 0666);
  if (file < 0) {
    rt_print(stderr, "accel-gen: cannot write %s: %s\n", program, strerror(errno));
    return false;
  }
  close(file);
  unlink(temporary);
  return true;
}

/* Generates and compiles inside `folder`; the finished program gets its name by a rename. */
static int build_in(const struct options *options, const char *folder) {
  struct options inner = *options;
  struct generated generated;
  inner.output = arena_printf(options->arena, "%s/program.c", folder);
  const char *program = options->provenance ? arena_printf(options->arena, "%s.c", options->output) : NULL;
  int status = generate(&inner, program, &generated);
  if (status != STATUS_OK) return status;
  if (!inputs_spare(&generated.inputs, options->output) ||
      (options->provenance && !spare_statements(&generated.inputs, options->output)) || !write_generated(&generated))
    return STATUS_CANNOT;
  const char *temporary = arena_printf(options->arena, "%s.%ld", options->output, (long)getpid());
  if (!is_writable(options->output, temporary)) return STATUS_CANNOT;
  const struct needs needs = needs_of(options);
  const struct linked linked = {
      .ranks = needs.ranks > 1, .sqlite = needs.sqlite, .runtime = needs.target->build.packages[needs.ranks > 1]};
  /* A program of two texts has two compilers, one for other processors takes a runtime for them too: as a
   * bundle it knows how to build itself. */
  bool elsewhere = needs.target->texts.count > 1 || processor_is_foreign(needs.processor);
  bool good = elsewhere ? bundle_build(options, arena_printf(options->arena, "%s/bundle", folder), temporary)
                        : compiler_run(options, needs.processor, needs.hooks, linked, inner.output, temporary,
                                       arena_printf(options->arena, "compiles %s", name_in_folder(options->output)));
  if (!good) {
    unlink(temporary);
    return STATUS_CANNOT;
  }
  if (rename(temporary, options->output) == 0)
    return generated.manifest == NULL || write_made(options, &needs, &generated) ? STATUS_OK : STATUS_CANNOT;
  perror(options->output);
  unlink(temporary);
  return STATUS_CANNOT;
}

int command_build(const struct options *options) {
  if (options->bundle != NULL) return bundle_write(options, options->bundle);
  const char *folder = make_folder(options->arena);
  if (folder == NULL) return STATUS_CANNOT;
  int status = build_in(options, folder);
  remove_folder(folder);
  return status;
}
