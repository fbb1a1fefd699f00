#include "runtime/process/world.h"
#include "runtime/weights/parts.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int rt_parts_writers(const struct accel_program *program) {
  return rt_length_along(program, ACCEL_DP_SHARD) * rt_length_along(program, ACCEL_EP) *
         rt_length_along(program, ACCEL_PP);
}

int rt_parts_writer(const struct accel_program *program) {
  const int others =
      rt_rank_along(program, ACCEL_PP) * rt_length_along(program, ACCEL_EP) + rt_rank_along(program, ACCEL_EP);
  return others * rt_length_along(program, ACCEL_DP_SHARD) + rt_rank_along(program, ACCEL_DP_SHARD);
}

static bool write_index(const char *folder, const struct accel_program *program, const char *file,
                        struct manifest *manifest, struct problem *problem) {
  struct tensor_list whole;
  if (!rt_tensors_of_state(&whole, program, file, NULL, problem)) return false;
  json_t *tensors = json_object(),
         *root = json_pack("{s:i, s:o}", "ranks", rt_parts_writers(program), "tensors", tensors);
  for (int i = 0; i < whole.count; i++) {
    json_t *shape = json_array();
    for (int d = 0; d < whole.items[i].rank; d++)
      json_array_append_new(shape, json_integer((json_int_t)whole.items[i].shape[d]));
    json_object_set_new(tensors, whole.items[i].name,
                        json_pack("{s:s, s:o}", "dtype", rt_dtype_name(whole.items[i].dtype), "shape", shape));
  }
  rt_tensors_free(&whole);
  char *text = root != NULL ? json_dumps(root, JSON_INDENT(2)) : NULL, path[4096], name[256];
  struct file_sum sum;
  snprintf(name, sizeof name, "%.100s%s", file, rt_parts_ending);
  bool written = text != NULL && rt_join(path, sizeof path, folder, name, problem) &&
                 rt_write_file(path, IN_PLACE, text, strlen(text), &sum, problem) &&
                 rt_manifest_add(manifest, name, sum, problem);
  if (text == NULL) rt_problem(problem, "%s: no memory for the index", folder);
  free(text);
  json_decref(root);
  return written;
}

bool rt_parts_write(const char *folder, const struct accel_program *program, const char *file, char *const *own,
                    struct manifest *manifest, struct problem *problem) {
  int writer = rt_parts_writer(program);
  struct tensor_list tensors;
  struct file_sum sum;
  char name[160], path[4096];
  if (writer == 0 && !write_index(folder, program, file, manifest, problem)) return false;
  if (!rt_tensors_of_rank(&tensors, program, file, own, true, problem)) return false;
  snprintf(name, sizeof name, "%.100s-%05d-of-%05d.safetensors", file, writer + 1, rt_parts_writers(program));
  bool written = rt_join(path, sizeof path, folder, name, problem) &&
                 rt_safetensors_write(path, IN_PLACE, tensors.items, tensors.count, &sum, NULL, problem) &&
                 rt_manifest_add(manifest, name, sum, problem);
  rt_tensors_free(&tensors);
  return written;
}
