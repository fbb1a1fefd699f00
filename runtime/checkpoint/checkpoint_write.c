#define _DEFAULT_SOURCE /* strdup */
#include "runtime/checkpoint/checkpoint.h"

#include "runtime/checkpoint/keys.h"
#include "runtime/checkpoint/sharded_states.h"
#include "runtime/files/folders.h"
#include "runtime/weights/parts.h"
#include "runtime/weights/shards.h"
#include "runtime/weights/tensors.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether a state before this one goes to the same file. */
static bool has_earlier_state(const struct accel_program *program, int state) {
  for (int i = 0; i < state; i++)
    if (strcmp(program->states[i].file, program->states[state].file) == 0) return true;
  return false;
}

static bool write_whole(const char *folder, const struct accel_program *program, const char *file, char *const *arrays,
                        struct manifest *manifest, struct problem *problem) {
  struct tensor_list tensors;
  uint64_t most = (uint64_t)program->checkpoint.max_shard_bytes;
  if (!rt_tensors_of_state(&tensors, program, file, arrays, problem)) return false;
  bool written = rt_shards_write(folder, file, &tensors, most, manifest, problem);
  rt_tensors_free(&tensors);
  return written;
}

/* Files of which this rank has a part, and if `all` the others. */
static bool write_arrays(const char *folder, const struct accel_program *program, char *const *arrays, bool all,
                         struct manifest *manifest, struct problem *problem) {
  bool written = true;
  for (int i = 0; i < program->n_states && written; i++) {
    const char *file = program->states[i].file;
    if (has_earlier_state(program, i)) continue;
    if (program->checkpoint.by_rank && rt_is_sharded(program, i))
      written = rt_parts_write(folder, program, file, arrays, manifest, problem);
    else if (all)
      written = write_whole(folder, program, file, arrays, manifest, problem);
  }
  return written;
}

static bool write_bytes(const char *folder, const char *name, const void *bytes, size_t size, struct manifest *manifest,
                        struct problem *problem) {
  char path[4096];
  struct file_sum sum;
  return rt_join(path, sizeof path, folder, name, problem) &&
         rt_write_file(path, IN_PLACE, bytes, size, &sum, problem) && rt_manifest_add(manifest, name, sum, problem);
}

/* Writes `root`, which it takes over. */
static bool write_json(const char *folder, const char *name, json_t *root, struct manifest *manifest,
                       struct problem *problem) {
  char *text = root != NULL ? json_dumps(root, JSON_INDENT(2)) : NULL;
  bool written = text != NULL ? write_bytes(folder, name, text, strlen(text), manifest, problem)
                              : rt_problem(problem, "%s: no memory to write %s", folder, name);
  free(text);
  json_decref(root);
  return written;
}

static json_t *scheduler_of(const struct checkpoint *what) {
  return json_pack("{s:I, s:f}", "last_epoch", (json_int_t)what->step, "last_lr", what->lr);
}

static json_t *sampler_of(const struct accel_program *program, const struct checkpoint *what) {
  const char *path = program->source[ACCEL_TRAIN].path;
  return json_pack("{s:I, s:I, s:s?, s:b, s:o*, s:o*}", "epoch", (json_int_t)what->epoch, "index",
                   (json_int_t)what->index, "path", path, "shuffle", program->shuffle, "data",
                   json_deep_copy(what->data), "weights", json_deep_copy(what->weights));
}

static json_t *random_of(const struct accel_program *program, const struct checkpoint *what) {
  return json_pack("{s:I, s:I, s:s}", "step", (json_int_t)what->step, "seed", (json_int_t)program->seed, "generator",
                   "philox4x32-10");
}

static bool write_objects(const char *folder, const struct checkpoint *what, struct manifest *manifest,
                          struct problem *problem) {
  for (int i = 0; i < what->n_objects; i++) {
    char name[40];
    snprintf(name, sizeof name, "custom_checkpoint_%d.bin", i);
    if (!write_bytes(folder, name, what->objects[i].copy, what->objects[i].size, manifest, problem)) return false;
  }
  return true;
}

/* After all others, so that a name that is taken shows. */
static bool write_files(const char *folder, const struct checkpoint *what, struct manifest *manifest,
                        struct problem *problem) {
  for (int i = 0; i < what->n_files; i++) {
    const struct saved_file *file = &what->files[i];
    if (strcmp(file->name, "manifest.json") == 0 || rt_manifest_find(manifest, file->name) != NULL)
      return rt_problem(problem, "%s/%s: user code saves a file of a name that the checkpoint has already", folder,
                        file->name);
    if (!write_bytes(folder, file->name, file->copy, file->size, manifest, problem)) return false;
  }
  return true;
}

static bool write_all(const char *folder, const struct accel_program *program, char *const *arrays,
                      const struct checkpoint *what, struct manifest *manifest, struct problem *problem) {
  return write_arrays(folder, program, arrays, true, manifest, problem) &&
         write_objects(folder, what, manifest, problem) &&
         write_json(folder, "scheduler.json", scheduler_of(what), manifest, problem) &&
         write_json(folder, "sampler.json", sampler_of(program, what), manifest, problem) &&
         write_json(folder, "random_states_0.json", random_of(program, what), manifest, problem) &&
         write_json(folder, "job.json", rt_keys_json(program), manifest, problem) &&
         write_files(folder, what, manifest, problem) &&
         (!program->checkpoint.by_rank || rt_parts_await(folder, program, manifest, problem)) &&
         rt_manifest_write(manifest, folder, "manifest.json", IN_PLACE, program->generator, program->job_digest,
                           problem) &&
         rt_sync_folder(folder, problem);
}

bool rt_checkpoint_begin(const char *folder, struct problem *problem) {
  char partial[4096];
  return rt_partial_name(partial, sizeof partial, folder, problem) && rt_folder_remove(partial, problem) &&
         rt_make_folders(partial, problem);
}

void rt_checkpoint_write_part(const char *folder, const struct accel_program *program, char *const *arrays) {
  char partial[4096];
  struct problem problem;
  struct manifest manifest = {0};
  if (!rt_partial_name(partial, sizeof partial, folder, &problem)) return;
  bool written = write_arrays(partial, program, arrays, false, &manifest, &problem);
  rt_parts_report(partial, program, &manifest, written ? NULL : &problem);
  rt_manifest_free(&manifest);
}

bool rt_checkpoint_write(const char *folder, const struct accel_program *program, char *const *arrays,
                         const struct checkpoint *what, struct problem *problem) {
  char partial[4096];
  struct problem ignored;
  struct manifest manifest = {.step = what->step};
  if (!rt_partial_name(partial, sizeof partial, folder, problem)) return false;
  bool written =
      write_all(partial, program, arrays, what, &manifest, problem) && rt_folder_replace(partial, folder, problem);
  rt_manifest_free(&manifest);
  if (!written) rt_folder_remove(partial, &ignored);
  return written;
}
