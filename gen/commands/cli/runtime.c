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

bool runtime_flags(const struct options *options, const char *what, bool ranks, struct words *flags) {
  runtime_path(options);
  struct words command = words_in(options->arena);
  words_split(&command, environment("PKG_CONFIG", "pkg-config"));
  words_split(&command, what);
  words_add(&command, target_host()->build.packages[ranks]);
  const char *output = process_read(&command);
  if (output == NULL && ranks) {
    rt_print(stderr, "accel-gen: a program of several ranks needs MPI; install it (libopenmpi-dev, openmpi-bin), and "
                     "build accel-gen again where it was built without\n");
    return false;
  }
  if (output == NULL) {
    rt_print(stderr, "accel-gen: pkg-config does not find accel-runtime; install it with `ninja install`, or name the "
                     "folder of accel-runtime.pc in PKG_CONFIG_PATH\n");
    return false;
  }
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
  runtime_flags(options, "--cflags", false, &runtime);
  for (int i = 0; i < runtime.count; i++)
    if (strncmp(runtime.items[i], "-I", 2) == 0 || strncmp(runtime.items[i], "-D", 2) == 0)
      words_add(flags, runtime.items[i]);
}
