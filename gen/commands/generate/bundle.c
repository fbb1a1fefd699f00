#include "gen/commands/generate/bundle.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "gen/base/embedded.h"
#include "gen/base/file.h"
#include "gen/base/text.h"
#include "gen/commands/cli/files.h"
#include "gen/commands/cli/process.h"
#include "gen/commands/cli/runtime.h"
#include "gen/commands/generate/generate.h"
#include "runtime/base/terminal.h"

struct needs needs_of(const struct options *options) {
  struct diagnostics diags = diagnostics_in(options->arena);
  struct job *job = job_read(options->arena, options->argument, options->overrides, options->n_overrides, &diags);
  bool trains = options->program == NULL || strcmp(options->program, "train") == 0;
  struct needs needs = {.ranks = 1, .target = target_host(), .processor = processor_named("native"), .name = "trainer"};
  bool evaluates = !trains && strcmp(options->program, "evaluate") == 0;
  if (!trains) needs.name = evaluates ? "evaluator" : "generator";
  if (job == NULL) return needs;
  needs.sqlite = trains && job->tracking.sinks[SINK_TRACKIO];
  if (trains)
    needs.hooks = job->hooks.source;
  else
    job_leave_ranks(job);
  needs.processor = processor_of(job);
  needs.target = target_of(job);
  needs.ranks = target_processes(job);
  return needs;
}

/* ---- Files ---- */

/* What a folder is filled with: all of it is in memory before the first file is written. */
struct filling {
  struct arena *arena;
  const char *folder;
  struct part {
    const char *path, *bytes;
    size_t length;
  } *items;
  int count, capacity;
};

static void put(struct filling *filling, const char *name, const char *bytes, size_t length) {
  const char *path = arena_printf(filling->arena, "%s/%s", filling->folder, name);
  ARENA_PUSH(filling->arena, *filling, ((struct part){path, bytes, length}));
}

static bool spare_inputs(const struct filling *filling, const struct inputs *inputs) {
  for (int i = 0; i < filling->count; i++)
    if (!inputs_spare(inputs, filling->items[i].path)) return false;
  return true;
}

static bool write_parts(const struct filling *filling, const struct inputs *inputs) {
  for (int i = 0; i < filling->count; i++) {
    const struct part *part = &filling->items[i];
    if (!make_folders(filling->arena, part->path) || !write_file(inputs, part->path, part->bytes, part->length))
      return false;
  }
  return true;
}

static void put_sources(struct filling *filling, const struct needs *needs) {
  static const char own[] = "share/bundle/";
  for (int i = 0; i < accel_source_count; i++) {
    const char *name = accel_sources[i].name;
    if (text_begins(name, "share/test/") || !target_takes(needs->target, name, needs->ranks > 1)) continue;
    if (text_begins(name, own)) name += sizeof own - 1;
    put(filling, name, accel_sources[i].text, strlen(accel_sources[i].text));
  }
}

/* The machine that builds may have no jansson, of which an archive for machines like this one comes along. */
static void put_json(struct filling *filling) {
  struct arena *arena = filling->arena;
  static const char *const files[] = {"libdir",    "libjansson.a", "includedir",
                                      "jansson.h", "includedir",   "jansson_config.h"};
  struct utsname machine;
  for (int i = 0; i < 6; i += 2) {
    struct words command = words_in(arena);
    size_t length;
    words_split(&command, "pkg-config --variable");
    words_add(&command, files[i]);
    words_add(&command, "jansson");
    const char *where = process_read(&command);
    if (where == NULL) return;
    const char *path = arena_printf(arena, "%.*s/%s", (int)strcspn(where, "\n"), where, files[i + 1]);
    const char *bytes = read_bytes(arena, path, &length);
    if (bytes == NULL) return;
    put(filling, arena_printf(arena, "lib/%s", files[i + 1]), bytes, length);
  }
  if (uname(&machine) != 0) return;
  const char *name = arena_string(arena, machine.machine);
  put(filling, "lib/machine", name, strlen(name));
}

static void put_settings(struct filling *filling, const struct needs *needs) {
  struct arena *arena = filling->arena;
  size_t length = 0;
  const char *bytes = needs->hooks != NULL ? read_bytes(arena, needs->hooks, &length) : NULL;
  if (bytes != NULL) put(filling, "hooks.c", bytes, length);
  bool foreign = processor_is_foreign(needs->processor);
  const char *tools = foreign ? arena_printf(arena, "%s-", needs->processor->triple) : "";
  const char *text =
      arena_printf(arena, "kind=%s\nranks=%lld\nprogram=%s\nhooks=%s\ntools=%s\nflags_of_program='%s'\n",
                   needs->target->name, (long long)needs->ranks, needs->name, needs->hooks != NULL ? "hooks.c" : "",
                   tools, processor_cflags(arena, needs->processor));
  put(filling, "settings.sh", text, strlen(text));
}

int bundle_write(const struct options *options, const char *folder) {
  struct arena *arena = options->arena;
  struct options inner = *options;
  struct generated generated;
  const struct needs needs = needs_of(options);
  inner.output = arena_printf(arena, "%s/%s.c", folder, needs.name);
  if (!make_folders(arena, inner.output)) return STATUS_CANNOT;
  int status = generate(&inner, NULL, &generated);
  if (status != STATUS_OK) return status;
  struct filling filling = {.arena = arena, .folder = folder};
  put_sources(&filling, &needs);
  put_json(&filling);
  put_settings(&filling, &needs);
  bool written = spare_inputs(&filling, &generated.inputs) && write_generated(&generated) &&
                 write_parts(&filling, &generated.inputs);
  return written ? STATUS_OK : STATUS_CANNOT;
}

bool bundle_build(const struct options *options, const char *folder, const char *program) {
  struct words command = words_in(options->arena);
  if (bundle_write(options, folder) != STATUS_OK) return false;
  words_split(&command, "env QUIET=1"); /* its output is a name that lasts until the program is whole */
  words_add(&command, "sh");
  words_add(&command, arena_printf(options->arena, "%s/build.sh", folder));
  words_add(&command, program);
  if (options->verbose) words_print(stderr, &command);
  return process_run_showing(&command, options->quiet ? NULL : "compiles the program");
}
