#include "gen/commands/cli/runtime.h"

#include "gen/program/processor.h"
#include "gen/program/target.h"
#include "runtime/base/terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void runtime_path(const struct options *options) {
  const char *old = getenv("PKG_CONFIG_PATH");
  if (options->binary == NULL) return;
  const char *path = arena_printf(options->arena, "%s/../lib/pkgconfig:%s%s%s", options->binary, options->binary,
                                  old != NULL ? ":" : "", old != NULL ? old : "");
  setenv("PKG_CONFIG_PATH", path, 1);
}

static bool finds(const struct options *options, const char *package) {
  struct words command = words_in(options->arena);
  words_split(&command, environment("PKG_CONFIG", "pkg-config"));
  words_split(&command, "--libs");
  words_add(&command, package);
  return process_read(&command) != NULL;
}

/* Says what to install. */
static bool report_missing(const struct options *options, struct linked linked) {
  if (linked.sqlite && !finds(options, "sqlite3"))
    rt_print(stderr, "accel-gen: tracking.log_with: trackio needs SQLite, which pkg-config does not find; install it "
                     "(libsqlite3-dev), or leave trackio out\n");
  else if (linked.ranks)
    rt_print(stderr, "accel-gen: a program of several ranks needs MPI; install it (libopenmpi-dev, openmpi-bin), and "
                     "build accel-gen again where it was built without\n");
  else
    rt_print(stderr, "accel-gen: pkg-config does not find accel-runtime; install it with `ninja install`, or name the "
                     "folder of accel-runtime.pc in PKG_CONFIG_PATH\n");
  return false;
}

bool runtime_flags(const struct options *options, const char *what, struct linked linked, struct words *flags) {
  runtime_path(options);
  struct words command = words_in(options->arena);
  words_split(&command, environment("PKG_CONFIG", "pkg-config"));
  words_split(&command, what);
  words_add(&command, linked.runtime != NULL ? linked.runtime : target_host()->build.packages[linked.ranks]);
  if (linked.sqlite) words_add(&command, "sqlite3");
  const char *output = process_read(&command);
  if (output == NULL) return report_missing(options, linked);
  words_split(flags, output);
  return true;
}

/* A name of devices.arch, or one that compilers know. */
static void add_processor(const struct options *options, struct words *flags) {
  const struct processor *processor = processor_named(options->march);
  if (processor == NULL) {
    words_add(flags, arena_printf(options->arena, "-march=%s", options->march));
    return;
  }
  words_add(flags, processor->flags);
  if (processor_is_foreign(processor)) words_add(flags, arena_printf(options->arena, "--target=%s", processor->triple));
}

void reading_flags(const struct options *options, struct words *flags) {
  for (int i = 0; i < options->n_includes; i++) {
    words_add(flags, "-I");
    words_add(flags, options->includes[i]);
  }
  add_processor(options, flags);
  struct words runtime = words_in(options->arena);
  runtime_flags(options, "--cflags", (struct linked){0}, &runtime);
  for (int i = 0; i < runtime.count; i++)
    if (strncmp(runtime.items[i], "-I", 2) == 0 || strncmp(runtime.items[i], "-D", 2) == 0)
      words_add(flags, runtime.items[i]);
}
