#include "runtime/checkpoint/saver.h"

#include "runtime/base/dtype.h"
#include "runtime/checkpoint/sharded_states.h"
#include "runtime/files/files.h"
#include "runtime/files/folders.h"
#include "runtime/process/fail.h"
#include "runtime/process/world.h"
#include "runtime/weights/disk_states.h"
#include "runtime/weights/sharded_rows.h"
#include "runtime/weights/tensor_parts.h"
#include "runtime/weights/tensors.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ALIGNMENT = 64 };

/* The states one after the other in the copy, each aligned as in the arena. */
static bool locate_arrays(struct saver *saver, char *arena, struct problem *problem) {
  const struct accel_program *program = saver->program;
  size_t count = (size_t)program->n_states + 1, at = program->checkpoint.copy_offset;
  saver->own = calloc(count, sizeof *saver->own);
  saver->arrays = calloc(count, sizeof *saver->arrays);
  if (at > 0) saver->copies = calloc(count, sizeof *saver->copies);
  if (saver->own == NULL || saver->arrays == NULL || (at > 0 && saver->copies == NULL))
    return rt_problem(problem, "no memory for the list of states");
  for (int i = 0; i < program->n_states; i++) {
    bool sharded = rt_is_sharded(program, i);
    saver->own[i] =
        rt_is_on_disk(program, &program->states[i]) ? program->disk.disk->array(i) : arena + program->states[i].offset;
    if (!sharded) saver->arrays[i] = saver->own[i];
    if (saver->copies == NULL || (sharded && !program->checkpoint.by_rank)) continue;
    saver->copies[i] = arena + at;
    at += (rt_state_bytes(&program->states[i]) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  }
  return true;
}

static bool find_next(struct saver *saver, struct problem *problem) {
  struct numbers numbers;
  if (!rt_numbers_find(&numbers, saver->folder, saver->prefix, problem)) return false;
  saver->next = saver->program->checkpoint.iteration;
  if (numbers.count > 0 && numbers.items[numbers.count - 1] >= saver->next)
    saver->next = numbers.items[numbers.count - 1] + 1;
  rt_numbers_free(&numbers);
  return true;
}

bool rt_saver_open(struct saver *saver, const struct accel_program *program, const char *project_dir, char *arena,
                   struct problem *problem) {
  bool numbered = program->checkpoint.automatic_naming;
  *saver = (struct saver){.program = program, .prefix = numbered ? "checkpoint_" : "step_"};
  int length = snprintf(saver->folder, sizeof saver->folder, "%s%s", project_dir, numbered ? "/checkpoints" : "");
  if (length < 0 || (size_t)length >= sizeof saver->folder)
    return rt_problem(problem, "%.200s…: the path is too long", project_dir);
  return locate_arrays(saver, arena, problem) && find_next(saver, problem);
}

static bool path_of(const struct saver *saver, int64_t number, char path[4096], struct problem *problem) {
  int length = snprintf(path, 4096, "%s/%s%" PRId64, saver->folder, saver->prefix, number);
  return (length >= 0 && length < 4096) || rt_problem(problem, "%.200s…: the path is too long", saver->folder);
}

bool rt_saver_has_any(const struct saver *saver, bool *any, struct problem *problem) {
  struct numbers numbers;
  if (!rt_numbers_find(&numbers, saver->folder, saver->prefix, problem)) return false;
  *any = numbers.count > 0;
  rt_numbers_free(&numbers);
  return true;
}

static bool is_whole(const char *path) {
  struct manifest manifest;
  struct problem problem;
  bool whole = rt_checkpoint_verify(path, &manifest, stderr, &problem);
  if (whole)
    rt_manifest_free(&manifest);
  else
    rt_warn("%s; it is skipped", problem.what);
  return whole;
}

bool rt_saver_newest(const struct saver *saver, int64_t most, int64_t *number, char path[4096],
                     struct problem *problem) {
  struct numbers numbers;
  bool found = false;
  *number = -1;
  if (!rt_numbers_find(&numbers, saver->folder, saver->prefix, problem)) return false;
  for (int i = numbers.count - 1; i >= 0 && !found; i--) {
    found = numbers.items[i] <= most && path_of(saver, numbers.items[i], path, problem) && is_whole(path);
    if (found) *number = numbers.items[i];
  }
  bool any = numbers.count > 0;
  rt_numbers_free(&numbers);
  if (!found) path[0] = '\0';
  if (found || !any || most < INT64_MAX) return true;
  rt_problem(problem, "%s: none of its checkpoints is whole", saver->folder);
  return rt_help(problem,
                 "give one with --resume, or start from scratch with --resume never and another --project-dir");
}

/* ---- Saving ---- */

/* What is saved from, where it is not copied before. */
static char *const *sources(const struct saver *saver) {
  return saver->program->checkpoint.by_rank ? saver->own : saver->arrays;
}

bool rt_saver_writes(const struct saver *saver) {
  const struct accel_program *program = saver->program;
  return rt_writes_files(program) || (program->checkpoint.by_rank && rt_rank_along(program, ACCEL_DP_REPLICATE) == 0);
}

static bool make_folder(const struct saver *saver, struct problem *problem) {
  return rt_make_folders(saver->folder, problem) && rt_folders_sweep(saver->folder, saver->prefix, problem) &&
         rt_checkpoint_begin(saver->path, problem);
}

/* Where the next checkpoint goes; where ranks write their parts it is made for all, before one begins. */
static bool choose_folder(struct saver *saver, int64_t step, struct problem *problem) {
  const struct accel_checkpoints *checkpoint = &saver->program->checkpoint;
  if (rt_writes_files(saver->program)) {
    int64_t number = checkpoint->automatic_naming ? saver->next++ : step;
    bool good = path_of(saver, number, saver->path, problem) && (!checkpoint->by_rank || make_folder(saver, problem));
    if (!good) saver->path[0] = '\0';
  }
  if (checkpoint->by_rank) rt_world_broadcast(saver->path, sizeof saver->path);
  return saver->path[0] != '\0';
}

static bool write_now(struct saver *saver, char *const *arrays, struct problem *problem) {
  int64_t limit = saver->program->checkpoint.total_limit;
  if (!rt_writes_files(saver->program)) {
    rt_checkpoint_write_part(saver->path, saver->program, arrays);
    return true;
  }
  if (rt_is_main() && fsync(saver->metrics) != 0 && errno != EINVAL)
    return rt_problem(problem, "%s: metrics.jsonl cannot be synced: %s", saver->folder, strerror(errno));
  return (saver->program->checkpoint.by_rank || make_folder(saver, problem)) &&
         rt_checkpoint_write(saver->path, saver->program, arrays, &saver->what, problem) &&
         (limit <= 0 || rt_folders_limit(saver->folder, saver->prefix, limit, problem));
}

static void *write_in_background(void *argument) {
  struct saver *saver = argument;
  saver->failed = !write_now(saver, saver->copies, &saver->problem);
  atomic_store(&saver->done, true);
  return NULL;
}

/* A process that ends over an error, such as a loss that is not finite, first lets a save end that has begun. */
static struct saver *waited_for;

static void wait_at_exit(void) {
  struct problem problem;
  if (waited_for != NULL && !rt_saver_wait(waited_for, &problem)) rt_warn("%s", problem.what);
}

static bool begin_thread(struct saver *saver, void *(*work)(void *saver)) {
  if (waited_for == NULL && atexit(wait_at_exit) != 0) return false;
  waited_for = saver;
  atomic_store(&saver->done, false);
  saver->failed = false;
  saver->busy = pthread_create(&saver->thread, NULL, work, saver) == 0;
  return saver->busy;
}

/* Whether this rank writes a state, from a copy in the arena. */
static bool is_copied(const struct saver *saver, int state) {
  bool sharded = rt_is_sharded(saver->program, state), by_rank = saver->program->checkpoint.by_rank;
  return sharded ? by_rank : rt_writes_files(saver->program);
}

/* Visits the bytes that this rank has of a state: of weights that it has whole, those of its stage. */
static void each_range(const struct saver *saver, int state,
                       void (*visit)(const struct saver *saver, int state, size_t first, size_t bytes)) {
  const struct accel_program *program = saver->program;
  const size_t size = rt_dtype_size(program->states[state].dtype);
  if (program->n_stages == 0 || program->states[state].slices != NULL ||
      rt_rows_divide(rt_rank_program(program), state)) {
    visit(saver, state, 0, rt_state_bytes(&program->states[state]));
    return;
  }
  for (int i = 0; i < program->n_stages; i++)
    if (program->stages[i].stage == rt_rank_along(program, ACCEL_PP))
      visit(saver, state, program->stages[i].first * size, program->stages[i].count * size);
}

static void touch(const struct saver *saver, int state, size_t first, size_t bytes) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  for (size_t at = first; at < first + bytes; at += page) *(volatile char *)(saver->copies[state] + at) = 0;
}

static void *touch_copies(void *argument) {
  struct saver *saver = argument;
  for (int i = 0; i < saver->program->n_states; i++)
    if (is_copied(saver, i)) each_range(saver, i, touch);
  atomic_store(&saver->done, true);
  return NULL;
}

void rt_saver_prepare(struct saver *saver) {
  if (saver->copies != NULL && !saver->busy) (void)begin_thread(saver, touch_copies);
}

bool rt_saver_collect(struct saver *saver, enum state_set states, struct problem *problem) {
  bool good = rt_sharded_open(saver->program, saver->own, saver->arrays, states, problem);
  if (saver->program->sharding.n_states == 0) return true;
  rt_world_require(good, problem, 1);
  rt_sharded_collect(saver->program, saver->own, saver->arrays, states);
  return true;
}

static void copy_range(const struct saver *saver, int state, size_t first, size_t bytes) {
  static const size_t chunk = (size_t)1 << 20;
  const char *from = sources(saver)[state] + first;
  char *to = saver->copies[state] + first;
#pragma omp parallel for
  for (size_t at = 0; at < bytes; at += chunk) memcpy(to + at, from + at, bytes - at < chunk ? bytes - at : chunk);
}

static void copy_states(struct saver *saver) {
  for (int i = 0; i < saver->program->n_states; i++)
    if (is_copied(saver, i))
      each_range(saver, i, copy_range);
    else
      saver->copies[i] = saver->arrays[i]; /* a copy already, or another rank's to write */
}

static void free_files(const struct saved_file *files, int count) {
  for (int i = 0; i < count; i++) free(files[i].copy);
  free((void *)(uintptr_t)files);
}

bool rt_saver_add_file(struct saver *saver, const char *name, const void *bytes, size_t size, struct problem *problem) {
  struct saved_file file = {.size = size, .copy = malloc(size > 0 ? size : 1)};
  if (name[0] == '\0' || name[0] == '.' || strchr(name, '/') != NULL || strlen(name) >= sizeof file.name) {
    free(file.copy);
    return rt_problem(problem, "'%.300s' is not the plain name of a file", name);
  }
  struct saved_file *files = realloc(saver->files, ((size_t)saver->n_files + 1) * sizeof *files);
  if (files != NULL) saver->files = files;
  if (files == NULL || file.copy == NULL) {
    free(file.copy);
    return rt_problem(problem, "no memory for the file '%s' of %zu bytes", name, size);
  }
  snprintf(file.name, sizeof file.name, "%s", name);
  if (size > 0) memcpy(file.copy, bytes, size);
  saver->files[saver->n_files++] = file;
  return true;
}

/* The objects as they are, and the files that were added since the save before. */
static void take_user_data(struct saver *saver) {
  struct checkpoint *what = &saver->what;
  what->objects = saver->objects;
  what->n_objects = saver->n_objects;
  for (int i = 0; i < saver->n_objects; i++)
    memcpy(saver->objects[i].copy, saver->objects[i].object, saver->objects[i].size);
  what->files = saver->files;
  what->n_files = saver->n_files;
  saver->files = NULL;
  saver->n_files = 0;
}

bool rt_saver_save(struct saver *saver, const struct checkpoint *what, bool in_background, struct problem *problem) {
  if (!rt_saver_wait(saver, problem)) return false;
  if (!choose_folder(saver, what->step, problem)) return false;
  if (!rt_saver_writes(saver)) return true;
  free_files(saver->what.files, saver->what.n_files);
  saver->what = *what;
  take_user_data(saver);
  if (!in_background || saver->copies == NULL) return write_now(saver, sources(saver), problem);
  copy_states(saver);
  return begin_thread(saver, write_in_background) || write_now(saver, saver->copies, problem);
}

bool rt_saver_has_failed(const struct saver *saver) {
  return saver->busy && atomic_load(&saver->done) && saver->failed;
}

bool rt_saver_wait(struct saver *saver, struct problem *problem) {
  if (!saver->busy) return true;
  pthread_join(saver->thread, NULL);
  saver->busy = false;
  if (!saver->failed) return true;
  *problem = saver->problem;
  return false;
}

void rt_saver_close(struct saver *saver) {
  waited_for = NULL;
  if (saver->arrays != NULL) rt_sharded_close(saver->program, saver->arrays);
  free(saver->own);
  free(saver->arrays);
  free(saver->copies);
  for (int i = 0; i < saver->n_objects; i++) free(saver->objects[i].copy);
  free(saver->objects);
  free_files(saver->what.files, saver->what.n_files);
  free_files(saver->files, saver->n_files);
  *saver = (struct saver){0};
}
