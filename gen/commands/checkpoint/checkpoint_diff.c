/* In what two checkpoints differ. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gen/base/path.h"
#include "gen/commands/checkpoint/checkpoint_report.h"
#include "gen/spec/restore.h"
#include "runtime/base/half.h"
#include "runtime/base/progress.h"
#include "runtime/base/terminal.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/weights/shards.h"

/* Two checkpoints, verified. */
struct pair {
  const char *folder[2];
  struct manifest manifest[2];
  FILE *shown; /* the terminal at whose end progress is shown; NULL: none is */
};

#define JOB_FILE "job.json"

static const char *const sides[] = {"a", "b"};

/* ---- Tensors ---- */

static double element(const struct stored_tensor *tensor, int64_t i) {
  const uint8_t *at = tensor->bytes;
  const char *dtype = tensor->dtype;
  int64_t wide;
  int32_t whole;
  float single;
  uint16_t half;
  if (strcmp(dtype, "F32") == 0) return memcpy(&single, at + 4 * i, 4), (double)single;
  if (strcmp(dtype, "BF16") == 0) return memcpy(&half, at + 2 * i, 2), (double)rt_widen_bfloat16(half);
  if (strcmp(dtype, "F16") == 0) return memcpy(&half, at + 2 * i, 2), (double)rt_widen_float16(half);
  if (strcmp(dtype, "I32") == 0) return memcpy(&whole, at + 4 * i, 4), (double)whole;
  if (strcmp(dtype, "I64") == 0) return memcpy(&wide, at + 8 * i, 8), (double)wide;
  return strcmp(dtype, "U8") == 0 ? (double)at[i] : NAN;
}

static json_t *kind_of(const struct stored_tensor *tensor) {
  char shape[200];
  return json_sprintf("%s %s", tensor->dtype, rt_shape_text(shape, sizeof shape, tensor->rank, tensor->shape));
}

static bool is_alike(const struct stored_tensor *a, const struct stored_tensor *b) {
  return strcmp(a->dtype, b->dtype) == 0 && a->rank == b->rank &&
         memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape) == 0;
}

/* What is to be said of a tensor that both have, of other bytes. */
static json_t *compare_elements(const struct stored_tensor *a, const struct stored_tensor *b) {
  int64_t count = rt_shape_count(a->rank, a->shape), different = 0;
  size_t size = a->size / (size_t)count;
  double largest = 0;
  for (int64_t i = 0; i < count; i++) {
    if (memcmp(a->bytes + (size_t)i * size, b->bytes + (size_t)i * size, size) == 0) continue;
    double distance = fabs(element(a, i) - element(b, i));
    different++;
    if (!(distance <= largest)) largest = distance; /* so that a NaN stays */
    if (isnan(largest)) largest = INFINITY;
  }
  return json_pack("{s:I, s:I, s:o}", "elements", (json_int_t)count, "different", (json_int_t)different, "largest",
                   isfinite(largest) ? json_real(largest) : json_null());
}

static json_t *compare_tensor(const struct stored_tensor *a, const struct stored_tensor *b) {
  if (a == NULL || b == NULL) return json_pack("{s:s}", "only", sides[a == NULL]);
  if (!is_alike(a, b)) return json_pack("{s:o, s:o}", "a", kind_of(a), "b", kind_of(b));
  return memcmp(a->bytes, b->bytes, a->size) == 0 ? NULL : compare_elements(a, b);
}

/* Notes the tensors of `own` and their counterparts; of those that only the other side has, it is asked the other way
 * round.
 */
static json_int_t compare_shards(const char *stem, const struct shards shards[2], json_t *different,
                                 struct progress *progress) {
  json_int_t equal = 0;
  for (int side = 0; side < 2; side++)
    for (int i = 0; i < shards[side].n_tensors; i++) {
      const struct stored_tensor *own = shards[side].by_name[i], *other = rt_shards_find(&shards[!side], own->name);
      if (side == 1 && other != NULL) continue;
      json_t *entry = side == 0 ? compare_tensor(own, other) : compare_tensor(other, own);
      equal += entry == NULL;
      if (side == 0) rt_progress_add(progress, own->size);
      if (entry == NULL) continue;
      json_object_set_new(entry, "file", json_string(stem));
      json_object_set_new(entry, "name", json_string(own->name));
      json_array_append_new(different, entry);
    }
  return equal;
}

/* The file's name without its ending and its position among shards; false for what is no file of tensors. */
static bool stem_of(const char *name, char stem[256]) {
  snprintf(stem, 256, "%s", name);
  char *end = strstr(stem, ".safetensors");
  if (end == NULL || strcmp(end, ".safetensors") != 0) return false;
  *end = '\0';
  char *shard = strstr(stem, "-of-");
  if (shard != NULL && shard - stem > 6 && shard[-6] == '-') shard[-6] = '\0';
  return true;
}

static bool has_stem(const struct manifest *manifest, int until, const char *stem) {
  char other[256];
  for (int i = 0; i < until; i++)
    if (stem_of(manifest->files[i].name, other) && strcmp(stem, other) == 0) return true;
  return false;
}

static bool compare_stem(const struct pair *pair, const char *stem, json_int_t *equal, json_t *different,
                         struct progress *progress, struct problem *problem) {
  struct shards shards[2] = {0};
  bool open = true;
  for (int side = 0; open && side < 2; side++)
    if (has_stem(&pair->manifest[side], pair->manifest[side].count, stem))
      open = rt_shards_open_in(&shards[side], pair->folder[side], stem, "", problem);
  if (open) *equal += compare_shards(stem, shards, different, progress);
  for (int side = 0; side < 2; side++) rt_shards_close(&shards[side]);
  return open;
}

static bool compare_tensors(const struct pair *pair, json_t *report, struct problem *problem) {
  char stem[256];
  json_int_t equal = 0;
  json_t *different = json_array();
  bool good = true;
  uint64_t bytes = 0;
  for (int i = 0; i < pair->manifest[0].count; i++)
    if (stem_of(pair->manifest[0].files[i].name, stem)) bytes += pair->manifest[0].files[i].sum.size;
  struct progress progress = rt_progress_begin(pair->shown, "compares", 0, bytes);
  for (int side = 0; side < 2; side++)
    for (int i = 0; good && i < pair->manifest[side].count; i++) {
      bool first = stem_of(pair->manifest[side].files[i].name, stem) && !has_stem(&pair->manifest[side], i, stem) &&
                   (side == 0 || !has_stem(&pair->manifest[0], pair->manifest[0].count, stem));
      if (first) good = compare_stem(pair, stem, &equal, different, &progress, problem);
    }
  rt_terminal_clear();
  json_object_set_new(report, "tensors", json_pack("{s:I, s:o}", "equal", equal, "different", different));
  return good;
}

/* ---- Other files ---- */

static json_t *load(const char *folder, const char *name) {
  char path[4096];
  snprintf(path, sizeof path, "%.3800s/%s", folder, name);
  return json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
}

/* Adds the values that differ, in the file `name` of both; `none` is shown where one has no such value. */
static void compare_values(const char *name, json_t *const root[2], json_t *none, json_t *values) {
  const char *key;
  json_t *entry;
  for (int side = 0; side < 2; side++) json_object_foreach(root[side], key, entry) {
      json_t *a = json_object_get(root[0], key), *b = json_object_get(root[1], key);
      bool in_both = side == 1 && a != NULL;
      if (!in_both && !json_equal(a, b))
        json_array_append_new(values, json_pack("{s:s, s:s, s:O, s:O}", "file", name, "key", key, "a",
                                                a != NULL ? a : none, "b", b != NULL ? b : none));
    }
}

static void compare_plain(const struct pair *pair, const char *name, json_t *values) {
  json_t *root[2] = {load(pair->folder[0], name), load(pair->folder[1], name)};
  compare_values(name, root, json_null(), values);
  json_decref(root[0]);
  json_decref(root[1]);
}

/* ---- The job ---- */

/* The values of keys in a job.json. */
static json_t *stated_values(const json_t *recorded) {
  json_t *keys = json_object_get(recorded, "keys"), *values = json_object(), *entry;
  const char *name;
  json_object_foreach(keys != NULL ? keys : (json_t *)recorded, name, entry) {
    json_object_set(values, name, json_object_get(entry, "value"));
  }
  return values;
}

/* The same with those that are left out; false where this version does not have their defaults. */
static bool add_defaults(struct arena *arena, const json_t *recorded, json_t *values) {
  if (json_object_get(recorded, "keys") == NULL) return true; /* none is left out */
  const struct stated_keys stated = stated_in_checkpoint(arena, recorded);
  const struct job *job = job_restore(arena, &stated);
  int count = 0;
  const struct job_key *keys = job != NULL ? job_keys(arena, job, &count) : NULL;
  for (int i = 0; i < count; i++) json_object_set_new(values, keys[i].name, json_string(keys[i].value));
  return job != NULL;
}

/* By the keys that differ from defaults, and whose defaults these are, where those of one are not known. */
static void compare_jobs(struct arena *arena, const struct pair *pair, json_t *values) {
  json_t *stated[2], *whole[2];
  bool complete = true;
  for (int side = 0; side < 2; side++) {
    json_t *recorded = load(pair->folder[side], JOB_FILE);
    stated[side] = stated_values(recorded);
    whole[side] = json_copy(stated[side]);
    complete = add_defaults(arena, recorded, whole[side]) && complete;
    json_object_set(stated[side], "defaults", json_object_get(recorded, "generator"));
    json_decref(recorded);
  }
  json_t *left_out = json_string("(default)");
  compare_values(JOB_FILE, complete ? whole : stated, complete ? json_null() : left_out, values);
  json_decref(left_out);
  for (int side = 0; side < 2; side++) {
    json_decref(stated[side]);
    json_decref(whole[side]);
  }
}

static bool is_index(const char *name) {
  return strstr(name, ".safetensors.index.json") != NULL || strstr(name, rt_parts_ending) != NULL;
}

static void compare_files(struct arena *arena, const struct pair *pair, json_t *report) {
  json_t *files = json_array(), *values = json_array();
  char stem[256];
  for (int side = 0; side < 2; side++)
    for (int i = 0; i < pair->manifest[side].count; i++) {
      const struct manifest_file *own = &pair->manifest[side].files[i];
      const struct manifest_file *other = rt_manifest_find(&pair->manifest[!side], own->name);
      if (stem_of(own->name, stem) || is_index(own->name)) continue;
      if (other == NULL)
        json_array_append_new(files, json_pack("{s:s, s:s}", "name", own->name, "only", sides[side]));
      else if (side == 0 && strcmp(own->name, JOB_FILE) == 0)
        compare_jobs(arena, pair, values);
      else if (side == 0 && has_ending(own->name, ".json"))
        compare_plain(pair, own->name, values);
      else if (side == 0 && own->sum.xxh64 != other->sum.xxh64)
        json_array_append_new(files, json_pack("{s:s}", "name", own->name));
    }
  json_object_set_new(report, "values", values);
  json_object_set_new(report, "files", files);
}

static bool is_equal(const json_t *report) {
  const json_t *tensors = json_object_get(report, "tensors");
  return json_array_size(json_object_get(report, "values")) == 0 &&
         json_array_size(json_object_get(report, "files")) == 0 &&
         json_array_size(json_object_get(tensors, "different")) == 0;
}

static json_t *report_of(struct arena *arena, const struct pair *pair, struct problem *problem) {
  json_t *report = json_pack("{s:s, s:s, s:[I, I]}", "a", pair->folder[0], "b", pair->folder[1], "steps",
                             (json_int_t)pair->manifest[0].step, (json_int_t)pair->manifest[1].step);
  compare_files(arena, pair, report);
  if (!compare_tensors(pair, report, problem)) {
    json_decref(report);
    return NULL;
  }
  json_object_set_new(report, "equal", json_boolean(is_equal(report)));
  return report;
}

json_t *checkpoint_diff(struct arena *arena, const char *a, const char *b, FILE *shown, struct problem *problem) {
  struct pair pair = {.folder = {a, b}, .shown = shown};
  json_t *report = NULL;
  if (!rt_checkpoint_verify(a, &pair.manifest[0], shown, problem)) return NULL;
  if (rt_checkpoint_verify(b, &pair.manifest[1], shown, problem)) report = report_of(arena, &pair, problem);
  rt_manifest_free(&pair.manifest[0]);
  rt_manifest_free(&pair.manifest[1]);
  return report;
}
