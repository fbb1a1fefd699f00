/* Tables that have the rows of one layer for all: what the runtime makes of them, and from where lists name them. */
#include "cmocka_all.h"

#include "runtime/weights/layers.h"

static const struct accel_tensor tensors[] = {
    {"wte", 0, 1, {4}, ACCEL_NORMAL, 0, 1, ACCEL_FLOAT32},
    {"h.%d.a", 64, 1, {2}, ACCEL_ONES, 0, 0, ACCEL_FLOAT32},
    {"h.%d.b.%s", 128, 2, {2, 3}, ACCEL_ZEROS, 0, 0, ACCEL_FLOAT32},
    {"100%d", 1000, 1, {4}, ACCEL_ZEROS, 0, 0, ACCEL_FLOAT32},
    {"e.%d", 2000, 1, {5}, ACCEL_ZEROS, 0, 0, ACCEL_FLOAT32},
};
static const struct accel_layers layers[] = {{1, 2, 0, 3, 200, false}, {4, 1, 9, 2, 64, false}};
static const struct accel_gradient gradients[] = {{0, 0}, {16, 48}, {-1, 0}, {400, 0}, {500, 20}};
static const struct accel_slice slices[] = {
    {-1, 0, 0, 1, {7}}, {2, 7, 100, 2, {2, 3}}, {3, 20, 0, 1, {4}}, {4, 30, 50, 1, {5}}};
static const struct accel_state states[] = {
    {"model", "", ACCEL_FLOAT32, 0, 99, NULL, 0},
    {"optimizer", "exp_avg", ACCEL_FLOAT32, 0, 99, slices, 4},
};
static const int fresh[] = {1, 2, 4}, kept[] = {3};
static const struct accel_adapter adapters[] = {{1, 2, 2, true}, {2, 1, 1, false}, {3, 0, 0, true}};
static const struct accel_program program = {
    .tensors = tensors,
    .n_tensors = 5,
    .layers = layers,
    .n_layers = 2,
    .gradients = gradients,
    .states = states,
    .n_states = 2,
    .start = {.fresh = fresh, .n_fresh = 3},
    .adapters = {.items = adapters, .count = 3, .whole = kept, .n_whole = 1},
};

static const struct accel_program *expanded(void) {
  struct problem problem;
  const struct accel_program *whole = rt_layers_expand(&program, &problem);
  assert_non_null(whole);
  return whole;
}

static void a_program_without_layers_is_as_it_is(void **state) {
  (void)state;
  struct accel_program flat = program;
  struct problem problem;
  flat.n_layers = 0;
  assert_ptr_equal(rt_layers_expand(&flat, &problem), &flat);
}

static void tensors_are_written_layer_by_layer(void **state) {
  (void)state;
  static const struct {
    const char *name;
    size_t offset;
    int rank;
    int64_t gradient;
  } expected[] = {
      {"wte", 0, 1, 0},         {"h.0.a", 64, 1, 16},   {"h.0.b.%s", 128, 2, -1}, {"h.1.a", 264, 1, 64},
      {"h.1.b.%s", 328, 2, -1}, {"h.2.a", 464, 1, 112}, {"h.2.b.%s", 528, 2, -1}, {"100%d", 1000, 1, 400},
      {"e.9", 2000, 1, 500},    {"e.10", 2064, 1, 520},
  };
  const struct accel_program *whole = expanded();
  assert_int_equal(whole->n_tensors, 10);
  assert_int_equal(whole->n_layers, 0);
  for (int i = 0; i < 10; i++) {
    assert_string_equal(whole->tensors[i].name, expected[i].name);
    assert_int_equal(whole->tensors[i].offset, expected[i].offset);
    assert_int_equal(whole->tensors[i].rank, expected[i].rank);
    assert_int_equal(whole->gradients[i].offset, expected[i].gradient);
  }
}

static void slices_belong_to_the_tensors_of_their_layers(void **state) {
  (void)state;
  static const int parameters[] = {-1, 2, 4, 6, 7, 8, 9};
  static const int64_t first[] = {0, 7, 107, 207, 20, 30, 80};
  const struct accel_program *whole = expanded();
  assert_null(whole->states[0].slices);
  assert_int_equal(whole->states[1].n_slices, 7);
  for (int i = 0; i < 7; i++) {
    assert_int_equal(whole->states[1].slices[i].parameter, parameters[i]);
    assert_int_equal(whole->states[1].slices[i].first, first[i]);
  }
}

static void lists_name_the_tensors_of_all_layers(void **state) {
  (void)state;
  static const int start[] = {1, 2, 3, 4, 5, 6, 8, 9};
  static const struct accel_adapter items[] = {{1, 2, 2, true}, {2, 1, 1, false}, {3, 4, 4, true}, {4, 3, 3, false},
                                               {5, 6, 6, true}, {6, 5, 5, false}, {7, 0, 0, true}};
  const struct accel_program *whole = expanded();
  assert_int_equal(whole->start.n_fresh, 8);
  for (int i = 0; i < 8; i++) assert_int_equal(whole->start.fresh[i], start[i]);
  assert_int_equal(whole->adapters.n_whole, 1);
  assert_int_equal(whole->adapters.whole[0], 7);
  assert_int_equal(whole->adapters.count, 7);
  for (int i = 0; i < 7; i++) {
    assert_int_equal(whole->adapters.items[i].weight, items[i].weight);
    assert_int_equal(whole->adapters.items[i].a, items[i].a);
    assert_int_equal(whole->adapters.items[i].b, items[i].b);
    assert_int_equal(whole->adapters.items[i].in_out, items[i].in_out);
  }
}

static void layers_of_two_kinds_alternate(void **state) {
  (void)state;
  static const struct accel_tensor rows[] = {
      {"in", 0, 1, {4}, ACCEL_ZEROS, 0, 0, ACCEL_FLOAT32},
      {"conv.%d.w", 10, 1, {2}, ACCEL_ONES, 0, 0, ACCEL_FLOAT32},
      {"conv.%d.b", 12, 1, {2}, ACCEL_ONES, 0, 0, ACCEL_FLOAT32},
      {"attn.%d.q", 90, 1, {3}, ACCEL_ONES, 0, 0, ACCEL_FLOAT32},
      {"out.%d", 200, 1, {1}, ACCEL_ONES, 0, 0, ACCEL_FLOAT32},
  };
  static const struct accel_layers alternating[] = {
      {1, 2, 1, 2, 8, true}, {3, 1, 0, 2, 16, false}, {4, 1, 0, 3, 4, false}};
  static const struct accel_slice all[] = {
      {1, 0, 10, 1, {2}}, {2, 2, 10, 1, {2}}, {3, 100, 5, 1, {3}}, {4, 300, 1, 1, {1}}};
  static const struct accel_state moments[] = {{"optimizer", "exp_avg", ACCEL_FLOAT32, 0, 99, all, 4}};
  static const int attention[] = {3, 4};
  static const struct {
    const char *name;
    size_t offset;
    int64_t first;
  } expected[] = {{"in", 0, -1},        {"conv.1.w", 10, 0},  {"conv.1.b", 12, 2},    {"attn.0.q", 90, 100},
                  {"conv.2.w", 18, 10}, {"conv.2.b", 20, 12}, {"attn.1.q", 106, 105}, {"out.0", 200, 300},
                  {"out.1", 204, 301},  {"out.2", 208, 302}};
  struct accel_program blocks = {.tensors = rows,
                                 .n_tensors = 5,
                                 .layers = alternating,
                                 .n_layers = 3,
                                 .states = moments,
                                 .n_states = 1,
                                 .start = {.fresh = attention, .n_fresh = 2}};
  struct problem problem;
  const struct accel_program *whole = rt_layers_expand(&blocks, &problem);
  assert_non_null(whole);
  assert_int_equal(whole->n_tensors, 10);
  assert_int_equal(whole->states[0].n_slices, 9);
  for (int i = 0; i < 10; i++) {
    assert_string_equal(whole->tensors[i].name, expected[i].name);
    assert_int_equal(whole->tensors[i].offset, expected[i].offset);
    if (i == 0) continue;
    assert_int_equal(whole->states[0].slices[i - 1].parameter, i);
    assert_int_equal(whole->states[0].slices[i - 1].first, expected[i].first);
  }
  static const int positions[] = {3, 6, 7, 8, 9};
  assert_int_equal(whole->start.n_fresh, 5);
  for (int i = 0; i < 5; i++) assert_int_equal(whole->start.fresh[i], positions[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_program_without_layers_is_as_it_is),
      cmocka_unit_test(tensors_are_written_layer_by_layer),
      cmocka_unit_test(slices_belong_to_the_tensors_of_their_layers),
      cmocka_unit_test(layers_of_two_kinds_alternate),
      cmocka_unit_test(lists_name_the_tensors_of_all_layers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
