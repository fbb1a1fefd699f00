#include "gen/commands/inspect/stated.h"

#include <errno.h>
#include <string.h>

#include "gen/base/file.h"
#include "gen/base/path.h"
#include "gen/base/version.h"
#include "gen/commands/cli/files.h"

struct stated_keys stated_in_program(struct arena *arena, const struct program_job *job) {
  struct stated_keys stated = {.digest = job->digest, .generator = job->generator};
  for (int i = 0; i < job->keys.count; i++)
    ARENA_PUSH(arena, stated, ((struct job_override){job->keys.items[i].name, job->keys.items[i].value}));
  return stated;
}

bool states_job(const char *file) {
  return has_ending(file, ".c") || is_folder(file);
}

static struct stated_keys read_stated(struct arena *arena, bool program, const char *text, size_t length) {
  if (program) {
    const struct program_job job = job_in_program(arena, text);
    return stated_in_program(arena, &job);
  }
  json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
  struct stated_keys stated = stated_in_checkpoint(arena, root);
  json_decref(root);
  return stated;
}

const struct job *read_stated_job(const struct options *options, const char *file, struct diagnostics *diags) {
  struct arena *arena = options->arena;
  bool program = !is_folder(file);
  const char *path = program ? file : arena_printf(arena, "%s/job.json", file);
  const struct location where = {.file = path};
  size_t length = 0;
  const char *text = read_bytes(arena, path, &length);
  if (text == NULL) {
    diag_error(diags, where, "cannot read it: %s", strerror(errno));
    return NULL;
  }
  const struct stated_keys stated = read_stated(arena, program, text, length);
  const struct job *job = stated.count > 0 ? job_restore(arena, &stated) : NULL;
  if (job != NULL) return job;
  if (stated.count == 0)
    diag_error(diags, where, "it states no job; trainers do, and their checkpoints");
  else
    diag_error(diags, where, "the defaults of %s that it leaves out are not those of accel-gen " ACCEL_VERSION,
               stated.generator != NULL ? stated.generator : "another version");
  return NULL;
}
