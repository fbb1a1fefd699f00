#include "runtime/checkpoint/checkpoint.h"

#include "runtime/base/progress.h"
#include "runtime/base/terminal.h"
#include "runtime/checkpoint/keys.h"
#include "runtime/checkpoint/sharded_states.h"
#include "runtime/files/mapping.h"
#include "runtime/process/world.h"
#include "runtime/weights/parts.h"
#include "runtime/weights/shards.h"
#include "runtime/weights/tensors.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char cure[] = "name the folder of a whole checkpoint; a run with --resume never starts from scratch";

/* ---- Files ---- */

/* Where the bytes are not those that were written; they are as many. */
static void report_change(const struct manifest_file *file, const char *path, const struct mapping *mapping,
                          struct problem *problem) {
  uint64_t first, end;
  rt_prefix_checksums_locate(&file->sum.marks, mapping->bytes, mapping->size, &first, &end);
  rt_problem(problem, "%s: its bytes have changed, first among bytes %" PRIu64 " to %" PRIu64, path, first, end - 1);
}

/* rt_checksum, shown as it goes. */
static uint64_t sum_of(const struct mapping *mapping, struct progress *progress) {
  enum { PIECE = 1 << 24 };
  const unsigned char *bytes = mapping->bytes;
  struct checksum sum = rt_checksum_start();
  for (size_t at = 0; at < mapping->size; at += PIECE) {
    const size_t size = mapping->size - at < PIECE ? mapping->size - at : PIECE;
    rt_checksum_add(&sum, bytes + at, size);
    rt_map_forget(bytes + at, size);
    rt_progress_add(progress, size);
  }
  return rt_checksum_end(&sum);
}

static bool verify_file(const char *folder, const struct manifest_file *file, struct progress *progress,
                        struct problem *problem) {
  char path[4096];
  struct mapping mapping;
  if (!rt_join(path, sizeof path, folder, file->name, problem) || !rt_map(&mapping, path, cure, problem)) return false;
  rt_map_ahead(&mapping);
  bool whole = mapping.size == file->sum.size, same = whole && sum_of(&mapping, progress) == file->sum.xxh64;
  if (!whole)
    rt_problem(problem, "%s: %zu bytes, but the manifest says %" PRIu64, path, mapping.size, file->sum.size);
  else if (!same)
    report_change(file, path, &mapping, problem);
  rt_unmap(&mapping);
  return same || rt_help(problem, "%s", cure);
}

static bool read_manifest(const char *folder, struct manifest *manifest, struct problem *problem) {
  char path[4096];
  struct mapping mapping;
  if (!rt_join(path, sizeof path, folder, "manifest.json", problem) || !rt_map(&mapping, path, cure, problem))
    return false;
  bool read = rt_manifest_read(manifest, path, (const char *)mapping.bytes, mapping.size, problem);
  rt_unmap(&mapping);
  return read || rt_help(problem, "%s", cure);
}

bool rt_checkpoint_verify(const char *folder, struct manifest *manifest, FILE *shown, struct problem *problem) {
  if (!read_manifest(folder, manifest, problem)) return false;
  uint64_t bytes = 0;
  bool whole = true;
  for (int i = 0; i < manifest->count; i++) bytes += manifest->files[i].sum.size;
  struct progress progress = rt_progress_begin(shown, "verifies", 0, bytes);
  for (int i = 0; whole && i < manifest->count; i++)
    whole = verify_file(folder, &manifest->files[i], &progress, problem);
  rt_terminal_clear();
  if (!whole) rt_manifest_free(manifest);
  return whole;
}

static json_t *read_json(const char *folder, const char *name, struct problem *problem) {
  char path[4096];
  struct mapping mapping;
  json_error_t error;
  if (!rt_join(path, sizeof path, folder, name, problem) || !rt_map(&mapping, path, cure, problem)) return NULL;
  json_t *root = json_loadb((const char *)mapping.bytes, mapping.size, JSON_REJECT_DUPLICATES, &error);
  rt_unmap(&mapping);
  if (root == NULL) rt_problem(problem, "%s: byte %d: not JSON: %s", path, error.position, error.text);
  return root;
}

static bool read_number(const char *folder, const char *name, const char *key, int64_t *number,
                        struct problem *problem) {
  json_t *root = read_json(folder, name, problem);
  if (root == NULL) return false;
  const json_t *value = json_object_get(root, key);
  bool read = json_is_integer(value) && json_integer_value(value) >= 0;
  *number = json_integer_value(value);
  json_decref(root);
  return read || rt_problem(problem, "%s/%s: '%s' is not a number", folder, name, key);
}

/* ---- The job ---- */

bool rt_checkpoint_compare(const char *folder, const struct accel_program *program, char *changed, size_t size,
                           struct problem *problem) {
  json_t *job = read_json(folder, "job.json", problem);
  bool same = job != NULL && rt_keys_compare(job, folder, program, changed, size, problem);
  json_decref(job);
  return same;
}

/* ---- Arrays ---- */

static bool check(const struct tensor_view *tensor, const struct stored_tensor *stored, const char *folder,
                  const char *file, struct problem *problem) {
  if (stored == NULL) return rt_problem(problem, "%s/%s: no tensor '%s'", folder, file, tensor->name);
  if (strcmp(stored->dtype, rt_dtype_name(tensor->dtype)) == 0 && stored->rank == tensor->rank &&
      memcmp(stored->shape, tensor->shape, (size_t)tensor->rank * sizeof *tensor->shape) == 0)
    return true;
  char has[200], needs[200];
  return rt_problem(problem, "%s/%s: tensor '%s' is %s %s, this program's is %s %s", folder, file, tensor->name,
                    stored->dtype, rt_shape_text(has, sizeof has, stored->rank, stored->shape),
                    rt_dtype_name(tensor->dtype), rt_shape_text(needs, sizeof needs, tensor->rank, tensor->shape));
}

/* In chunks, as most of the time goes into first touches, which threads can share. No chunk of a file stays in memory.
 * False: a disk failed, with errno. */
static bool copy(const struct tensor_view *tensor, const struct stored_tensor *stored) {
  static const size_t chunk = (size_t)1 << 20;
  int error = 0;
#pragma omp parallel for reduction(max : error)
  for (size_t at = 0; at < tensor->size; at += chunk) {
    const size_t size = tensor->size - at < chunk ? tensor->size - at : chunk;
    if (tensor->scratch == NULL)
      memcpy(tensor->bytes + at, stored->bytes + at, size);
    else if (!rt_scratch_write(tensor->scratch, tensor->bytes + at, stored->bytes + at, size))
      error = errno;
    rt_map_forget(stored->bytes + at, size);
  }
  errno = error;
  return error == 0;
}

/* The tensors of one file: looked at, or copied when `copies`. */
static bool take_file(const char *folder, const struct accel_program *program, const char *file, char *const *arrays,
                      bool copies, struct problem *problem) {
  struct tensor_list tensors;
  struct shards shards;
  if (!rt_tensors_of_state(&tensors, program, file, arrays, problem)) return false;
  bool good = rt_shards_open_in(&shards, folder, file, cure, problem);
  if (good) {
    for (int i = 0; good && i < tensors.count; i++) {
      const struct stored_tensor *stored = rt_shards_find(&shards, tensors.items[i].name);
      good = check(&tensors.items[i], stored, folder, file, problem);
      if (good && copies && !copy(&tensors.items[i], stored))
        good = rt_problem(problem, "tensor '%s' could not be written to its disk: %s", tensors.items[i].name,
                          strerror(errno));
    }
    if (good && shards.n_tensors != tensors.count)
      good =
          rt_problem(problem, "%s/%s: %d tensors, this program has %d", folder, file, shards.n_tensors, tensors.count);
    rt_shards_close(&shards);
  }
  rt_tensors_free(&tensors);
  return good;
}

static bool is_first_of_file(const struct accel_program *program, int state) {
  for (int i = 0; i < state; i++)
    if (strcmp(program->states[i].file, program->states[state].file) == 0) return false;
  return true;
}

static bool take_arrays(const char *folder, const struct accel_program *program, char *const *arrays, bool copies,
                        struct problem *problem) {
  for (int i = 0; i < program->n_states; i++)
    if (is_first_of_file(program, i) && arrays[i] != NULL &&
        !take_file(folder, program, program->states[i].file, arrays, copies, problem))
      return false;
  return true;
}

/* ---- Parts ---- */

static bool index_path(char path[4096], const char *folder, const char *file, struct problem *problem) {
  char name[256];
  snprintf(name, sizeof name, "%.100s%s", file, rt_parts_ending);
  return rt_join(path, 4096, folder, name, problem);
}

/* Whether a state is the first one of a file that ranks divide. */
static bool is_first_of_parts(const struct accel_program *program, int state) {
  return rt_is_sharded(program, state) && is_first_of_file(program, state);
}

bool rt_checkpoint_is_in_parts(const char *folder, const struct accel_program *program) {
  bool all = true, any = false;
  char path[4096];
  struct problem ignored;
  for (int i = 0; i < program->n_states && all; i++)
    if (is_first_of_parts(program, i)) {
      any = true;
      all = index_path(path, folder, program->states[i].file, &ignored) && access(path, F_OK) == 0;
    }
  return all && any;
}

static const struct stored_tensor *find_joined(const struct joined *index, const char *name) {
  for (int i = 0; i < index->count; i++)
    if (strcmp(index->tensors[i].name, name) == 0) return &index->tensors[i];
  return NULL;
}

/* The index is of this program's tensors. */
static bool check_index(const char *folder, const struct accel_program *program, const char *file,
                        const struct joined *index, struct problem *problem) {
  struct tensor_list whole;
  if (!rt_tensors_of_state(&whole, program, file, NULL, problem)) return false;
  bool good = whole.count == index->count ||
              rt_problem(problem, "%s/%s: %d tensors, this program has %d", folder, file, index->count, whole.count);
  for (int i = 0; good && i < whole.count; i++)
    good = check(&whole.items[i], find_joined(index, whole.items[i].name), folder, file, problem);
  rt_tensors_free(&whole);
  return good;
}

static bool take_parts(const char *folder, const struct accel_program *program, const char *file, char *const *own,
                       struct problem *problem) {
  struct joined index;
  struct tensor_list list;
  char path[4096];
  if (!index_path(path, folder, file, problem) || !rt_parts_open(&index, path, cure, problem)) return false;
  bool good = check_index(folder, program, file, &index, problem) &&
              rt_tensors_of_rank(&list, program, file, own, false, problem);
  if (good) {
    good = rt_parts_fill(&index, path, &list, problem);
    rt_tensors_free(&list);
  }
  rt_parts_free(&index);
  return good;
}

bool rt_checkpoint_read_part(const char *folder, const struct accel_program *program, char *const *own,
                             struct problem *problem) {
  bool good = true;
  for (int i = 0; i < program->n_states && good; i++)
    if (is_first_of_parts(program, i)) good = take_parts(folder, program, program->states[i].file, own, problem);
  return good;
}

bool rt_checkpoint_read(const char *folder, const struct accel_program *program, char *const *arrays,
                        struct checkpoint *what, struct problem *problem) {
  *what = (struct checkpoint){0};
  bool read = read_number(folder, "random_states_0.json", "step", &what->step, problem) &&
              read_number(folder, "sampler.json", "epoch", &what->epoch, problem) &&
              read_number(folder, "sampler.json", "index", &what->index, problem) &&
              take_arrays(folder, program, arrays, false, problem) &&
              take_arrays(folder, program, arrays, true, problem);
  return read || (problem->help[0] == '\0' ? rt_help(problem, "%s", cure) : false);
}
