#include "gen/commands/generate/compiler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/commands/cli/process.h"
#include "gen/commands/cli/runtime.h"
#include "runtime/base/terminal.h"

const char *compiler_name(void) {
  return environment("CC", "cc");
}

const char *compiler_flags(struct arena *arena, const struct processor *processor) {
  return environment("CFLAGS", processor_cflags(arena, processor));
}

const char *compiler_version(const struct options *options) {
  struct words command = words_in(options->arena);
  words_split(&command, compiler_name());
  words_add(&command, "--version");
  const char *text = process_read(&command);
  return text == NULL ? "unknown" : arena_copy(options->arena, text, strcspn(text, "\n"));
}

bool compiler_run(const struct options *options, const struct processor *processor, const char *hooks,
                  struct linked linked, const char *source, const char *program, const char *what) {
  struct words command = words_in(options->arena);
  words_split(&command, compiler_name());
  words_split(&command, compiler_flags(options->arena, processor));
  words_add(&command, "-o");
  words_add(&command, program);
  words_add(&command, source);
  if (hooks != NULL) words_add(&command, hooks);
  if (!runtime_flags(options, "--cflags --libs", linked, &command)) return false;
  if (options->verbose) words_print(stderr, &command);
  if (process_run_showing(&command, options->quiet ? NULL : what)) return true;
  rt_print(stderr, "accel-gen: the compiler failed; %s\n",
           options->verbose ? "its command is above" : "run with -v to see its command");
  return false;
}
