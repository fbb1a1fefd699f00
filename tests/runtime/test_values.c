/* Values: made and read, shown, as bytes and back; bytes that are cut or changed; errors that go through a chain. */
#include "tests/runtime/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/accel/accel.h"

static uint64_t state_of_draw;

static uint64_t draw(uint64_t below) {
  state_of_draw = state_of_draw * 6364136223846793005u + 1442695040888963407u;
  return (state_of_draw >> 33) % below;
}

static struct accel_value *random_tensor(struct accel_store *store) {
  int64_t shape[ACCEL_MOST_DIMENSIONS];
  int rank = (int)draw(4);
  for (int i = 0; i < rank; i++) shape[i] = (int64_t)draw(4);
  struct accel_value *value = accel_make_tensor(store, (enum accel_dtype)draw(ACCEL_DTYPES), rank, shape, NULL);
  size_t size = (size_t)accel_count(value) * accel_dtype_size(value->tensor.dtype);
  for (size_t i = 0; i < size; i++) ((uint8_t *)value->tensor.data)[i] = (uint8_t)draw(2);
  return value;
}

static struct accel_value *random_value(struct accel_store *store, int depth) {
  char name[40];
  switch (draw(depth > 0 ? 8 : 6)) {
  case 0:
    return accel_make_none(store);
  case 1:
    return accel_make_boolean(store, draw(2) != 0);
  case 2:
    return accel_make_integer(store, (int64_t)draw(UINT64_C(1) << 31) - 5);
  case 3:
    return accel_make_real(store, (double)draw(1000) / 7);
  case 4:
    return accel_make_bytes(store, "a\0\"b\n", draw(6));
  case 5:
    return random_tensor(store);
  default:
    break;
  }
  bool map = draw(2) != 0;
  struct accel_value *list = map ? accel_make_map(store) : accel_make_list(store);
  for (uint64_t i = 0, count = draw(4); i < count; i++) {
    snprintf(name, sizeof name, "name %d", (int)i);
    struct accel_value *item = random_value(store, depth - 1);
    list = map ? accel_set(store, list, name, item) : accel_append(store, list, item);
  }
  return list;
}

static void bytes_and_back(void **state) {
  (void)state;
  const char *seed = getenv("SEED");
  state_of_draw = seed != NULL ? strtoull(seed, NULL, 10) : 1;
  print_message("# seed %llu\n", (unsigned long long)state_of_draw);
  for (int i = 0; i < 300; i++) {
    struct accel_store *store = accel_store_new(), *other = accel_store_new();
    struct accel_value *value = random_value(store, 4);
    size_t size;
    char *bytes = accel_to_bytes(store, value, &size), *own = malloc(size);
    assert_non_null(own);
    memcpy(own, bytes, size);
    struct accel_value *back = accel_from_bytes(other, own, size);
    assert_true(accel_equal(value, back));
    assert_string_equal(accel_show(store, value), accel_show(other, back));
    /* Cut anywhere, it is no value; changed anywhere, it is one or none. */
    assert_null(accel_from_bytes(other, own, draw(size)));
    assert_non_null(accel_store_error(other));
    own[draw(size)] ^= (char)(1 << draw(8));
    accel_store_clear(other);
    assert_true((accel_from_bytes(other, own, size) == NULL) == (accel_store_error(other) != NULL));
    free(own);
    accel_store_free(other);
    accel_store_free(store);
  }
}

static void lists_and_maps(void **state) {
  (void)state;
  struct accel_store *store = accel_store_new();
  struct accel_value *list = accel_make_list(store), *map = accel_make_map(store);
  for (int i = 0; i < 100; i++) assert_ptr_equal(accel_append(store, list, accel_make_integer(store, i)), list);
  assert_int_equal(accel_count(list), 100);
  assert_int_equal(accel_at(list, -1)->integer, 99);
  assert_null(accel_at(list, 100));
  accel_set(store, map, "b", accel_make_real(store, 1.5));
  accel_set(store, map, "a", accel_make_none(store));
  accel_set(store, map, "b", accel_make_tensor(store, ACCEL_FLOAT32, 1, (int64_t[]){2}, (float[]){1.5f, 2}));
  assert_string_equal(accel_show(store, map), "{\"b\": float32[2] (1.5, 2), \"a\": null}");
  assert_null(accel_get(map, "c"));
  assert_null(accel_store_error(store));
  assert_null(accel_append(store, map, list));
  assert_string_equal(accel_store_error(store), "an item is added to a map");
  accel_store_free(store);
}

/* What fails first is reported, whatever comes after. */
static void errors(void **state) {
  (void)state;
  struct accel_store *store = accel_store_new();
  struct accel_value *bad = accel_make_tensor(store, ACCEL_INT8, 1, (int64_t[]){-3}, NULL);
  assert_null(accel_gather(store, accel_convert_to_fp32(store, accel_concatenate(store, bad, 0))));
  assert_string_equal(accel_store_error(store), "a tensor of length -3");
  accel_store_clear(store);
  assert_null(accel_make_tensor(store, ACCEL_INT64, 3, (int64_t[]){INT64_MAX, 0, INT64_MAX}, NULL));
  assert_string_equal(accel_store_error(store), "a tensor beyond the address space");
  accel_store_clear(store);
  assert_null(accel_make_tensor(store, ACCEL_INT64, 9, (int64_t[9]){0}, NULL));
  assert_string_equal(accel_store_error(store), "a tensor of 9 dimensions; it has 0 to 8");
  assert_int_equal(accel_find_batch_size(NULL, accel_make_list(store)), -1);
  accel_store_free(store);
}

static void too_deep(void **state) {
  (void)state;
  struct accel_store *store = accel_store_new();
  struct accel_value *value = accel_make_none(store);
  for (int i = 0; i < 65; i++) value = accel_append(store, accel_make_list(store), value);
  size_t size;
  assert_null(accel_to_bytes(store, value, &size));
  assert_string_equal(accel_store_error(store), "a value that is nested more than 64 deep");
  accel_store_free(store);
}

static struct accel_value *negative(struct accel_store *store, struct accel_value *leaf, void *context) {
  int *calls = context;
  ++*calls;
  return accel_make_integer(store, -leaf->integer);
}

static bool is_integer(const struct accel_value *value) {
  return value->kind == ACCEL_INTEGER;
}

static void applied(void **state) {
  (void)state;
  struct accel_store *store = accel_store_new();
  int calls = 0;
  struct accel_value *list = accel_make_list(store), *map = accel_make_map(store);
  accel_append(store, list, accel_set(store, map, "x", accel_make_integer(store, 3)));
  accel_append(store, list, accel_make_integer(store, 4));
  struct accel_value *result = accel_recursively_apply(store, negative, list, &calls, is_integer, true);
  assert_string_equal(accel_show(store, result), "[{\"x\": -3}, -4]");
  assert_int_equal(calls, 2);
  accel_append(store, list, accel_make_string(store, "no number"));
  assert_non_null(accel_recursively_apply(store, negative, list, &calls, is_integer, false));
  assert_null(accel_recursively_apply(store, negative, list, &calls, is_integer, true));
  assert_string_equal(accel_store_error(store), "a string where nested lists and maps of tensors are wanted");
  accel_store_free(store);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bytes_and_back), cmocka_unit_test(lists_and_maps), cmocka_unit_test(errors),
      cmocka_unit_test(too_deep),       cmocka_unit_test(applied),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
