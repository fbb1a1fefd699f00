#include "gen/commands/checkpoint/checkpoint_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "gen/base/path.h"
#include "runtime/base/progress.h"
#include "runtime/base/terminal.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/files/folders.h"
#include "runtime/weights/shards.h"

static json_int_t bytes_of(const struct manifest *manifest) {
  uint64_t bytes = 0;
  for (int i = 0; i < manifest->count; i++) bytes += manifest->files[i].sum.size;
  return (json_int_t)bytes;
}

/* ---- list and verify ---- */

static json_t *entry_of(const char *path, FILE *shown) {
  struct manifest manifest;
  struct problem damage;
  if (!rt_checkpoint_verify(path, &manifest, shown, &damage))
    return json_pack("{s:s, s:s}", "path", path, "damage", damage.what);
  json_t *entry =
      json_pack("{s:s, s:I, s:I}", "path", path, "step", (json_int_t)manifest.step, "bytes", bytes_of(&manifest));
  rt_manifest_free(&manifest);
  return entry;
}

/* Adds those of one folder, newest last. */
static bool list_in(json_t *list, const char *folder, const char *prefix, FILE *shown, struct problem *problem) {
  struct numbers numbers;
  if (!rt_numbers_find(&numbers, folder, prefix, problem)) return false;
  for (int i = 0; i < numbers.count; i++) {
    char path[4096];
    snprintf(path, sizeof path, "%.4000s/%s%" PRId64, folder, prefix, numbers.items[i]);
    json_t *entry = entry_of(path, shown);
    struct stat status;
    if (json_object_get(entry, "damage") != NULL && lstat(path, &status) != 0) /* a run has dropped it meanwhile */
      json_decref(entry);
    else
      json_array_append_new(list, entry);
  }
  rt_numbers_free(&numbers);
  return true;
}

json_t *checkpoint_list(const char *folder, FILE *shown, struct problem *problem) {
  char inner[4096];
  snprintf(inner, sizeof inner, "%.4000s/checkpoints", folder);
  json_t *list = json_array();
  const char *const folders[] = {inner, folder, folder}, *const prefixes[] = {"checkpoint_", "checkpoint_", "step_"};
  json_int_t whole = 0;
  for (int i = 0; i < 3; i++)
    if (!list_in(list, folders[i], prefixes[i], shown, problem)) {
      json_decref(list);
      return NULL;
    }
  for (size_t i = 0; i < json_array_size(list); i++)
    whole += json_object_get(json_array_get(list, i), "damage") == NULL;
  return json_pack("{s:o, s:I}", "checkpoints", list, "whole", whole);
}

json_t *checkpoint_verify(const char *folder, FILE *shown, struct problem *problem) {
  struct manifest manifest;
  if (!rt_checkpoint_verify(folder, &manifest, shown, problem)) return NULL;
  json_t *report = json_pack("{s:s, s:I, s:i, s:I}", "path", folder, "step", (json_int_t)manifest.step, "files",
                             manifest.count, "bytes", bytes_of(&manifest));
  rt_manifest_free(&manifest);
  return report;
}

/* ---- show ---- */

static json_t *shape_of(const struct stored_tensor *tensor) {
  json_t *shape = json_array();
  for (int i = 0; i < tensor->rank; i++) json_array_append_new(shape, json_integer(tensor->shape[i]));
  return shape;
}

static bool add_tensors(json_t *file, const char *folder, const char *name, struct problem *problem) {
  char path[4096];
  struct shards shards;
  if (!has_ending(name, ".safetensors")) return true;
  snprintf(path, sizeof path, "%.3800s/%s", folder, name);
  if (!rt_shards_open(&shards, path, "", problem)) return false;
  json_t *tensors = json_array();
  for (int i = 0; i < shards.n_tensors; i++)
    json_array_append_new(tensors, json_pack("{s:s, s:s, s:o}", "name", shards.by_name[i]->name, "dtype",
                                             shards.by_name[i]->dtype, "shape", shape_of(shards.by_name[i])));
  json_object_set_new(file, "tensors", tensors);
  rt_shards_close(&shards);
  return true;
}

json_t *checkpoint_show(const char *folder, FILE *shown, struct problem *problem) {
  struct manifest manifest;
  if (!rt_checkpoint_verify(folder, &manifest, shown, problem)) return NULL;
  json_t *files = json_array();
  json_t *report = json_pack("{s:s, s:I, s:o}", "path", folder, "step", (json_int_t)manifest.step, "files", files);
  bool good = true;
  for (int i = 0; good && i < manifest.count; i++) {
    char sum[17];
    snprintf(sum, sizeof sum, "%016" PRIx64, manifest.files[i].sum.xxh64);
    json_t *file = json_pack("{s:s, s:I, s:s}", "name", manifest.files[i].name, "bytes",
                             (json_int_t)manifest.files[i].sum.size, "xxh64", sum);
    json_array_append_new(files, file);
    good = add_tensors(file, folder, manifest.files[i].name, problem);
  }
  rt_manifest_free(&manifest);
  if (good) return report;
  json_decref(report);
  return NULL;
}

/* ---- merge ---- */

static bool view_of(const struct stored_tensor *stored, struct tensor_view *view, struct problem *problem) {
  *view = (struct tensor_view){.name = (char *)(uintptr_t)stored->name,
                               .rank = stored->rank,
                               .bytes = (char *)(uintptr_t)stored->bytes,
                               .size = stored->size};
  memcpy(view->shape, stored->shape, sizeof view->shape);
  for (enum accel_dtype dtype = ACCEL_FLOAT32; dtype < ACCEL_DTYPES; dtype++)
    if (strcmp(rt_dtype_name(dtype), stored->dtype) == 0) return view->dtype = dtype, true;
  return rt_problem(problem, "tensor '%s' is of dtype %s, which is not written", stored->name, stored->dtype);
}

json_t *checkpoint_merge(const char *path, const char *output, FILE *shown, struct problem *problem) {
  struct shards shards;
  size_t bytes = 0;
  if (!rt_shards_open(&shards, path, "give a folder, an index or a file of safetensors", problem)) return NULL;
  struct tensor_view *views = calloc((size_t)shards.n_tensors + 1, sizeof *views);
  bool good = views != NULL || rt_problem(problem, "no memory for the list of tensors");
  for (int i = 0; good && i < shards.n_tensors; i++) good = view_of(shards.by_name[i], &views[i], problem);
  for (int i = 0; good && i < shards.n_tensors; i++) bytes += views[i].size;
  struct progress progress = rt_progress_begin(shown, "merges", 0, bytes);
  good = good && rt_safetensors_write(output, BY_RENAME, views, shards.n_tensors, NULL, &progress, problem);
  rt_terminal_clear();
  json_t *report = good ? json_pack("{s:s, s:i, s:i}", "output", output, "tensors", shards.n_tensors, "files",
                                    shards.count + shards.joined.files)
                        : NULL;
  free(views);
  rt_shards_close(&shards);
  return report;
}
