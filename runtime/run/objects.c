/* Objects and files of user code that belong to checkpoints: include/accel/hooks.h. */
#include "include/accel/hooks.h"
#include "runtime/run/run.h"

#include "runtime/files/files.h"
#include "runtime/files/mapping.h"
#include "runtime/process/fail.h"
#include "runtime/process/world.h"
#include "runtime/values/agreement.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool add(struct saver *saver, void *object, size_t size, struct problem *problem) {
  struct saved_object *objects = realloc(saver->objects, ((size_t)saver->n_objects + 1) * sizeof *objects);
  if (objects != NULL) saver->objects = objects;
  void *copy = malloc(size > 0 ? size : 1);
  if (objects == NULL || copy == NULL) {
    free(copy);
    return rt_problem(problem, "no memory for an object of %zu bytes", size);
  }
  saver->objects[saver->n_objects++] = (struct saved_object){object, copy, size};
  return true;
}

/* The bytes that the checkpoint has of object `number`; its sums were right. */
static bool fill(const struct accel_run *run, int number, void *object, size_t size, struct problem *problem) {
  char name[40], path[4096];
  struct mapping mapping;
  snprintf(name, sizeof name, "custom_checkpoint_%d.bin", number);
  if (!rt_join(path, sizeof path, run->resumption.folder, name, problem) ||
      !rt_map(&mapping, path, "register the objects that the run had before, in the same order", problem))
    return false;
  bool fits = mapping.size == size;
  if (fits && size > 0) memcpy(object, mapping.bytes, size);
  if (!fits) rt_problem(problem, "%s: %zu bytes, but the object has %zu", path, mapping.size, size);
  rt_unmap(&mapping);
  return fits || rt_help(problem, "register the objects that the run had before, in the same order");
}

void accel_register_for_checkpointing(struct accel_run *run, void *object, size_t size) {
  struct problem problem;
  char of[80];
  int number = run->saves.saver.n_objects;
  snprintf(of, sizeof of, "object %d, of %zu bytes", number, size);
  rt_meet(OPERATION_REGISTER, of);
  if (!add(&run->saves.saver, object, size, &problem)) rt_fail(&problem, 1);
  if (!run->resumption.continues) return;
  bool good = !rt_is_main() || fill(run, number, object, size, &problem);
  rt_world_require(good, &problem, 1);
  rt_world_broadcast(object, size);
}

void accel_save_file(struct accel_run *run, const char *name, const void *bytes, size_t size) {
  struct problem problem;
  if (!rt_is_main()) return;
  if (!rt_saver_add_file(&run->saves.saver, name, bytes, size, &problem)) rt_fail(&problem, 1);
}

/* The size of a file; -1: there is none. */
static int64_t read_file(const struct accel_run *run, const char *name, void *bytes, size_t most) {
  struct problem problem;
  char path[4096];
  struct mapping mapping;
  if (!rt_join(path, sizeof path, run->resumption.folder, name, &problem) || access(path, F_OK) != 0) return -1;
  if (!rt_map(&mapping, path, "give a whole checkpoint with --resume", &problem)) rt_fail(&problem, 1);
  int64_t size = (int64_t)mapping.size;
  size_t taken = mapping.size < most ? mapping.size : most;
  if (taken > 0) memcpy(bytes, mapping.bytes, taken);
  rt_unmap(&mapping);
  return size;
}

int64_t accel_load_file(const struct accel_run *run, const char *name, void *bytes, size_t most) {
  char of[400];
  snprintf(of, sizeof of, "'%.255s', %zu bytes at most", name, most);
  rt_meet(OPERATION_LOAD_FILE, of);
  if (run->resumption.folder[0] == '\0') return -1;
  int64_t size = rt_is_main() ? read_file(run, name, bytes, most) : -1;
  rt_world_broadcast(&size, sizeof size);
  if (size > 0) rt_world_broadcast(bytes, (size_t)size < most ? (size_t)size : most);
  return size;
}

const char *accel_resumed_from(const struct accel_run *run) {
  return run->resumption.folder[0] != '\0' ? run->resumption.folder : NULL;
}
