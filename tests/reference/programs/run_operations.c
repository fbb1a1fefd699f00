/* Runs the cases of a JSON file, one after the other, and writes what each gives on this rank: run_operations CASES
 * OUT. A case is {"op": NAME, "args": [...], "values": [VALUE of each rank]}; a map is {"map": [[NAME, VALUE], ...]}, a
 * tensor {"tensor": [TYPE, SHAPE, HEX]}, its information {"information": [TYPE, SHAPE]}. */
#include "include/accel/accel.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void require(bool good, const char *what) {
  if (good) return;
  fprintf(stderr, "operations: %s\n", what);
  abort();
}

/* ---- Values from JSON ---- */

static enum accel_dtype dtype_of(const char *name) {
  for (int i = 0; i < ACCEL_DTYPES; i++)
    if (strcmp(accel_dtype_name((enum accel_dtype)i), name) == 0) return (enum accel_dtype)i;
  abort();
}

static struct accel_value *read_tensor(struct accel_store *store, const json_t *json) {
  int64_t shape[ACCEL_MOST_DIMENSIONS];
  const json_t *lengths = json_array_get(json, 1);
  const char *hex = json_string_value(json_array_get(json, 2));
  for (size_t i = 0; i < json_array_size(lengths); i++) shape[i] = json_integer_value(json_array_get(lengths, i));
  struct accel_value *value = accel_make_tensor(store, dtype_of(json_string_value(json_array_get(json, 0))),
                                                (int)json_array_size(lengths), shape, NULL);
  for (size_t i = 0; 2 * i < strlen(hex); i++) {
    unsigned byte;
    require(sscanf(hex + 2 * i, "%2x", &byte) == 1, "hexadecimal digits");
    ((unsigned char *)value->tensor.data)[i] = (unsigned char)byte;
  }
  return value;
}

static struct accel_value *read_value(struct accel_store *store, const json_t *json) {
  struct accel_value *value;
  size_t i;
  json_t *item;
  if (json_is_null(json)) return accel_make_none(store);
  if (json_is_boolean(json)) return accel_make_boolean(store, json_is_true(json));
  if (json_is_integer(json)) return accel_make_integer(store, json_integer_value(json));
  if (json_is_real(json)) return accel_make_real(store, json_real_value(json));
  if (json_is_string(json)) return accel_make_string(store, json_string_value(json));
  if (json_object_get(json, "tensor") != NULL) return read_tensor(store, json_object_get(json, "tensor"));
  if (json_is_array(json)) {
    value = accel_make_list(store);
    json_array_foreach(json, i, item) accel_append(store, value, read_value(store, item));
    return value;
  }
  value = accel_make_map(store);
  json_array_foreach(json_object_get(json, "map"), i, item)
      accel_set(store, value, json_string_value(json_array_get(item, 0)), read_value(store, json_array_get(item, 1)));
  return value;
}

/* ---- And back ---- */

static json_t *write_tensor(const struct accel_value *value) {
  json_t *shape = json_array(), *both = json_array();
  for (int i = 0; i < value->tensor.rank; i++) json_array_append_new(shape, json_integer(value->tensor.shape[i]));
  json_array_append_new(both, json_string(accel_dtype_name(value->tensor.dtype)));
  json_array_append_new(both, shape);
  if (value->kind == ACCEL_INFORMATION) return json_pack("{s:o}", "information", both);
  size_t size = (size_t)accel_count(value) * accel_dtype_size(value->tensor.dtype);
  char *hex = calloc(2 * size + 1, 1);
  for (size_t i = 0; i < size; i++) sprintf(hex + 2 * i, "%02x", ((unsigned char *)value->tensor.data)[i]);
  json_array_append_new(both, json_string(hex));
  free(hex);
  return json_pack("{s:o}", "tensor", both);
}

static json_t *write_value(const struct accel_value *value) {
  json_t *list = json_array();
  switch (value->kind) {
  case ACCEL_NONE:
    return json_decref(list), json_null();
  case ACCEL_BOOLEAN:
    return json_decref(list), json_boolean(value->boolean);
  case ACCEL_INTEGER:
    return json_decref(list), json_integer(value->integer);
  case ACCEL_REAL:
    return json_decref(list), json_real(value->real);
  case ACCEL_STRING:
    return json_decref(list), json_stringn(value->string.text, value->string.length);
  case ACCEL_TENSOR:
  case ACCEL_INFORMATION:
    return json_decref(list), write_tensor(value);
  default:
    for (int64_t i = 0; i < accel_count(value); i++) {
      json_t *item = write_value(accel_at(value, i));
      if (value->kind == ACCEL_MAP) item = json_pack("[s, o]", value->list.names[i], item);
      json_array_append_new(list, item);
    }
    return value->kind == ACCEL_MAP ? json_pack("{s:o}", "map", list) : list;
  }
}

/* ---- Operations ---- */

static double number(const json_t *arguments, size_t index) {
  return json_number_value(json_array_get(arguments, index));
}

static bool truth(const json_t *arguments, size_t index) {
  return json_is_true(json_array_get(arguments, index));
}

/* A bound of a slice; null as Python's None. */
static int64_t bound(const json_t *arguments, size_t index, int64_t none) {
  const json_t *bound = json_array_get(arguments, index);
  return json_is_integer(bound) ? json_integer_value(bound) : none;
}

static struct accel_value *batch_size(struct accel_store *store, const struct accel_value *value) {
  int64_t size = accel_find_batch_size(store, value);
  return size >= 0 ? accel_make_integer(store, size) : NULL;
}

static struct accel_value *through_bytes(struct accel_store *store, struct accel_value *value) {
  size_t size;
  void *bytes = accel_to_bytes(store, value, &size);
  return accel_from_bytes(store, bytes, size);
}

static enum accel_reduction reduction_of(const char *name) {
  return strcmp(name, "sum") == 0    ? ACCEL_SUM
         : strcmp(name, "mean") == 0 ? ACCEL_MEAN
         : strcmp(name, "max") == 0  ? ACCEL_MAX
                                     : ACCEL_NO_REDUCTION;
}

static struct accel_value *same(struct accel_store *store, struct accel_value *leaf, void *context) {
  (void)store, (void)context;
  return leaf;
}

static struct accel_value *run(struct accel_store *store, const char *op, const json_t *arguments,
                               struct accel_value *value) {
  if (strcmp(op, "gather") == 0) return accel_gather(store, value);
  if (strcmp(op, "gather_object") == 0) return accel_gather_object(store, value);
  if (strcmp(op, "gather_for_metrics") == 0)
    return accel_gather_for_metrics(store, value, (int64_t)number(arguments, 0), truth(arguments, 1));
  if (strcmp(op, "reduce") == 0)
    return accel_reduce(store, value, reduction_of(json_string_value(json_array_get(arguments, 0))),
                        number(arguments, 1));
  if (strcmp(op, "broadcast") == 0) return accel_broadcast(store, value, (int)number(arguments, 0));
  if (strcmp(op, "broadcast_object_list") == 0)
    return accel_broadcast_object_list(store, value, (int)number(arguments, 0));
  if (strcmp(op, "pad_across_processes") == 0)
    return accel_pad_across_processes(store, value, (int)number(arguments, 0), number(arguments, 1),
                                      truth(arguments, 2));
  if (strcmp(op, "split_between_processes") == 0)
    return accel_split_between_processes(store, value, truth(arguments, 0));
  if (strcmp(op, "concatenate") == 0) return accel_concatenate(store, value, (int)number(arguments, 0));
  if (strcmp(op, "slice_tensors") == 0)
    return accel_slice_tensors(store, value, bound(arguments, 0, 0), bound(arguments, 1, ACCEL_TO_END),
                               bound(arguments, 2, 1));
  if (strcmp(op, "listify") == 0) return accel_listify(store, value);
  if (strcmp(op, "send_to_device") == 0) return accel_send_to_device(store, value, "cpu");
  if (strcmp(op, "convert_to_fp32") == 0) return accel_convert_to_fp32(store, value);
  if (strcmp(op, "convert_outputs_to_fp32") == 0) return accel_convert_outputs_to_fp32(store, same, value, NULL);
  if (strcmp(op, "find_batch_size") == 0) return batch_size(store, value);
  if (strcmp(op, "get_data_structure") == 0) return accel_get_data_structure(store, value);
  if (strcmp(op, "get_shape") == 0) return accel_get_shape(store, value);
  if (strcmp(op, "initialize_tensors") == 0)
    return accel_initialize_tensors(store, accel_get_data_structure(store, value));
  require(strcmp(op, "bytes") == 0, op);
  return through_bytes(store, value);
}

int main(int argc, char **argv) {
  json_error_t error;
  char path[4096];
  accel_processes_start(20);
  const struct accel_process *process = accel_process();
  json_t *cases = json_load_file(argv[argc - 2], 0, &error), *each, *results = json_array();
  require(cases != NULL, error.text);
  size_t i;
  json_array_foreach(cases, i, each) {
    struct accel_store *store = accel_store_new();
    struct accel_value *value =
        read_value(store, json_array_get(json_object_get(each, "values"), (size_t)process->index));
    struct accel_value *result =
        run(store, json_string_value(json_object_get(each, "op")), json_object_get(each, "args"), value);
    require((result == NULL) == (accel_store_error(store) != NULL), "a result or a message");
    json_array_append_new(results, result != NULL ? json_pack("{s:o}", "ok", write_value(result))
                                                  : json_pack("{s:s}", "error", accel_store_error(store)));
    accel_store_free(store);
  }
  snprintf(path, sizeof path, "%s.%d", argv[argc - 1], process->index);
  require(json_dump_file(results, path, JSON_REAL_PRECISION(17)) == 0, path);
  json_decref(results);
  json_decref(cases);
  accel_processes_end();
  return 0;
}
