/* Tensors that ranks divide: the program with whole ones, and what of them the first rank gets and gives. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/weights/tensor_parts.h"

/* A rank's: one that all have whole, then by rows, by columns, and by columns in three blocks. */
static const struct accel_tensor tensors[] = {
    {"norm", 0, 1, {5}, ACCEL_ONES, 0, 0, ACCEL_FLOAT32},
    {"rows", 64, 2, {4, 3}, ACCEL_ZEROS, 0, 0, ACCEL_FLOAT32},
    {"columns", 128, 2, {2, 3}, ACCEL_ZEROS, 0, 0, ACCEL_FLOAT32},
    {"blocks", 192, 3, {2, 6, 2}, ACCEL_NORMAL, 0, 1, ACCEL_FLOAT32},
    {"last", 320, 1, {1}, ACCEL_ONES, 0, 0, ACCEL_FLOAT32},
};
static const struct accel_tensor_part parts[] = {
    {1, ACCEL_TP, 0, 1, 0}, {2, ACCEL_TP, 1, 1, 0}, {3, ACCEL_TP, 1, 3, 0}};
/* Of a frozen model: two of its tensors alone, the second one first. */
static const struct accel_slice slices[] = {{2, 0, 0, 2, {2, 3}}, {4, 8, 0, 1, {1}}};
static const struct accel_slice number[] = {{-1, 0, 0, 0, {0}}};
static const struct accel_state states[] = {
    {"model", "", ACCEL_FLOAT32, 0, 96, NULL, 0},
    {"optimizer", "exp_avg", ACCEL_BFLOAT16, 384, 96, NULL, 0},
    {"optimizer", "momentum", ACCEL_FLOAT32, 768, 16, slices, 2},
    {"scaler", "scale", ACCEL_FLOAT32, 832, 1, number, 1},
};
static const struct accel_program program = {
    .tensors = tensors,
    .n_tensors = 5,
    .tensor_parts = parts,
    .n_tensor_parts = 3,
    .states = states,
    .n_states = 4,
    .mesh = {[ACCEL_DP_REPLICATE] = 3, [ACCEL_TP] = 2},
};

/* Elements of the arrays: a rank's, the whole's. */
enum { OWN = 96, WHOLE = 128 };

static const struct accel_program *joined(void) {
  struct problem problem;
  const struct accel_program *whole = rt_tensor_parts_join(&program, &problem);
  assert_non_null(whole);
  return whole;
}

static void a_program_without_parts_is_as_it_is(void **state) {
  (void)state;
  struct accel_program undivided = program;
  struct problem problem;
  undivided.n_tensor_parts = 0;
  assert_ptr_equal(rt_tensor_parts_join(&undivided, &problem), &undivided);
}

static void tensors_become_whole_one_after_the_other(void **state) {
  (void)state;
  static const struct {
    size_t offset;
    int64_t shape[3];
  } expected[] = {{0, {5}}, {64, {8, 3}}, {192, {2, 6}}, {256, {2, 12, 2}}, {448, {1}}};
  const struct accel_program *whole = joined();
  assert_int_equal(whole->n_tensors, program.n_tensors);
  for (int i = 0; i < program.n_tensors; i++) {
    assert_string_equal(whole->tensors[i].name, tensors[i].name);
    assert_int_equal(whole->tensors[i].rank, tensors[i].rank);
    assert_int_equal(whole->tensors[i].offset, expected[i].offset);
    for (int d = 0; d < tensors[i].rank; d++) assert_int_equal(whole->tensors[i].shape[d], expected[i].shape[d]);
  }
  assert_int_equal(tensors[1].shape[0], 4); /* the rank's own rows stay */
}

static void states_of_parameters_are_divided(void **state) {
  (void)state;
  const struct accel_program *whole = joined();
  assert_int_equal(whole->sharding.whole, WHOLE);
  assert_int_equal(whole->sharding.first_state, 0);
  assert_int_equal(whole->sharding.n_states, 3); /* not the scaler's number */
  assert_int_equal(whole->sharding.n_rows, 0);
  assert_int_equal(whole->states[2].slices[0].first, 48);
  assert_int_equal(whole->states[2].slices[0].shape[1], 6);
  assert_int_equal(whole->states[2].slices[1].first, 112);
  assert_ptr_equal(whole->states[3].slices, number);
}

/* Where the first rank's elements are in the whole's array: those of tensors, which are some of OWN. */
static int positions(int *own, int *whole) {
  static const int columns[] = {0, 1, 4, 5, 8, 9}; /* of 12, of three blocks of four */
  int n = 0;
  for (int i = 0; i < 5; i++) own[n] = i, whole[n++] = i;
  for (int i = 0; i < 12; i++) own[n] = 16 + i, whole[n++] = 16 + i;
  for (int i = 0; i < 6; i++) own[n] = 32 + i, whole[n++] = 48 + i / 3 * 6 + i % 3;
  for (int i = 0; i < 24; i++) own[n] = 48 + i, whole[n++] = 64 + i / 12 * 24 + columns[i % 12 / 2] * 2 + i % 2;
  own[n] = 80;
  whole[n++] = 112;
  return n;
}

static void a_rank_gets_its_part_of_each_piece(void **state) {
  (void)state;
  float whole[WHOLE], own[OWN] = {0};
  int from[WHOLE], to[WHOLE], count = positions(to, from), filled = 0;
  for (int i = 0; i < WHOLE; i++) whole[i] = (float)(1 + i);
  rt_tensor_parts_scatter(joined(), 0, (char *)own, (const char *)whole);
  for (int i = 0; i < count; i++) assert_true(own[to[i]] == whole[from[i]]);
  for (int i = 0; i < OWN; i++) filled += own[i] != 0;
  assert_int_equal(filled, count);
}

/* Where the last rank has fewer rows, its part ends with padding, of which files know nothing. */
static void padding_is_no_part_of_the_whole(void **state) {
  (void)state;
  static const struct accel_tensor padded[] = {{"rows", 0, 2, {4, 3}, ACCEL_ZEROS, 0, 0, ACCEL_FLOAT32},
                                               {"columns", 64, 2, {2, 3}, ACCEL_ZEROS, 0, 0, ACCEL_FLOAT32}};
  static const struct accel_tensor_part short_parts[] = {{0, ACCEL_TP, 0, 1, 1}, {1, ACCEL_TP, 1, 1, 2}};
  struct accel_program with = program;
  struct problem problem;
  with.tensors = padded, with.tensor_parts = short_parts;
  with.n_tensors = with.n_tensor_parts = 2, with.n_states = 1;
  const struct accel_program *whole = rt_tensor_parts_join(&with, &problem);
  assert_int_equal(whole->tensors[0].shape[0], 7);
  assert_int_equal(whole->tensors[1].shape[1], 4);
  assert_int_equal(whole->tensors[1].offset, 128); /* 21 elements are two lines */
  float elements[48], own[32];
  for (int i = 0; i < 48; i++) elements[i] = (float)(1 + i);
  for (int i = 0; i < 32; i++) own[i] = -1;
  rt_tensor_parts_scatter(whole, 0, (char *)own, (const char *)elements);
  for (int i = 0; i < 12; i++) assert_true(own[i] == elements[i]);
  for (int i = 0; i < 6; i++) assert_true(own[16 + i] == elements[32 + i / 3 * 4 + i % 3]);
}

/* In elements of any size, as states have them. */
static void a_rank_gives_it_back(void **state) {
  (void)state;
  uint16_t whole[WHOLE] = {0}, own[OWN];
  int from[WHOLE], to[WHOLE], count = positions(from, to);
  for (int i = 0; i < OWN; i++) own[i] = (uint16_t)(1 + i);
  rt_tensor_parts_collect(joined(), 1, (char *[]){NULL, (char *)own}, (char *)whole);
  for (int i = 0; i < count; i++) assert_int_equal(whole[to[i]], own[from[i]]);
}

/* Where a state has some tensors alone, in an order of its own. */
static void slices_get_their_parts(void **state) {
  (void)state;
  float whole[WHOLE], own[16] = {0}, back[WHOLE] = {0};
  static const int from[] = {48, 49, 50, 54, 55, 56, 112}, to[] = {0, 1, 2, 3, 4, 5, 8};
  for (int i = 0; i < WHOLE; i++) whole[i] = (float)(1 + i);
  rt_tensor_parts_scatter(joined(), 2, (char *)own, (const char *)whole);
  for (int i = 0; i < 7; i++) assert_true(own[to[i]] == whole[from[i]]);
  rt_tensor_parts_collect(joined(), 2, (char *[]){NULL, NULL, (char *)own}, (char *)back);
  for (int i = 0; i < 7; i++) assert_true(back[from[i]] == whole[from[i]]);
}

/* Where ranks along dp_shard divide two rows of a rank's array, the first rank has the first shard of each. */
static void a_rank_gets_its_shards_of_its_part(void **state) {
  (void)state;
  static const struct accel_row rows[] = {{16, 32, 48, 0}, {0, 8, 8, 32}};
  static struct accel_program sharded;
  struct problem problem;
  float whole[WHOLE], own[40] = {0}, back[WHOLE] = {0};
  int from[WHOLE], to[WHOLE], count = positions(to, from), filled = 0;
  sharded = program;
  sharded.mesh[ACCEL_DP_SHARD] = 2;
  sharded.sharding = (struct accel_sharding){.rows = rows, .n_rows = 2, .whole = OWN, .first_state = 0, .n_states = 1};
  const struct accel_program *all = rt_tensor_parts_join(&sharded, &problem);
  for (int i = 0; i < WHOLE; i++) whole[i] = (float)(1 + i);
  rt_tensor_parts_scatter(all, 0, (char *)own, (const char *)whole);
  rt_tensor_parts_collect(all, 0, (char *[]){(char *)own}, (char *)back);
  for (int i = 0; i < count; i++) {
    int at = to[i] < 8 ? 32 + to[i] : to[i] >= 16 && to[i] < 48 ? to[i] - 16 : -1;
    if (at < 0) continue;
    assert_true(own[at] == whole[from[i]] && back[from[i]] == whole[from[i]]);
    filled++;
  }
  for (int i = 0; i < 40; i++) filled -= own[i] != 0;
  assert_int_equal(filled, 0);
}

/* The first rank's half of the rows ends where memory ends that can be read. */
static void a_rank_reads_no_more_than_its_part(void **state) {
  (void)state;
  const struct accel_program *all = joined();
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), half = 12 * sizeof(float);
  float whole[WHOLE], own[OWN] = {0}, scattered[OWN] = {0};
  struct stored_tensor stored[5];
  struct named_tensor named[5];
  const struct named_tensor *matched[5];
  struct problem problem;
  for (int i = 0; i < WHOLE; i++) whole[i] = (float)(1 + i);
  for (int i = 0; i < 5; i++) {
    const uint8_t *bytes = (const uint8_t *)whole + all->tensors[i].offset;
    stored[i] = (struct stored_tensor){.name = all->tensors[i].name, .dtype = "F32", .bytes = bytes};
    named[i] = (struct named_tensor){.tensor = &stored[i]};
    matched[i] = &named[i];
  }
  void *pages;
  assert_int_equal(posix_memalign(&pages, page, 2 * page), 0);
  uint8_t *guarded = pages;
  memcpy(guarded + page - half, stored[1].bytes, half);
  assert_int_equal(mprotect(guarded + page, page, PROT_NONE), 0);
  stored[1].bytes = guarded + page - half;
  matched[4] = NULL; /* the job initializes it: with ones */
  whole[all->tensors[4].offset / sizeof(float)] = 1;
  rt_tensor_parts_scatter(all, 0, (char *)scattered, (const char *)whole);
  assert_true(rt_tensor_parts_read(all, &(struct weights_file){.matched = matched}, (char *)own, &problem));
  assert_memory_equal(own, scattered, sizeof own);
  assert_int_equal(mprotect(guarded + page, page, PROT_READ | PROT_WRITE), 0);
  free(pages);
}

/* Two ranks have two of four experts each, whose weights a model names expert by expert, and two of four tables. */
static void tensors_of_other_ranks_follow_in_the_model_s_order(void **state) {
  (void)state;
  static const struct accel_tensor with_experts[] = {
      {"norm", 0, 1, {2}, ACCEL_ONES, 0, 0, ACCEL_FLOAT32},
      {"h.0.experts.0.in", 64, 1, {3}, ACCEL_ONES, 0, 0, ACCEL_FLOAT32},
      {"h.0.experts.0.out", 128, 1, {5}, ACCEL_ONES, 0, 0, ACCEL_FLOAT32},
      {"h.0.experts.1.in", 192, 1, {3}, ACCEL_ONES, 0, 0, ACCEL_FLOAT32},
      {"h.0.experts.1.out", 256, 1, {5}, ACCEL_ONES, 0, 0, ACCEL_FLOAT32},
      {"table.0", 320, 1, {1}, ACCEL_ONES, 0, 0, ACCEL_FLOAT32},
      {"table.1", 384, 1, {1}, ACCEL_ONES, 0, 0, ACCEL_FLOAT32},
  };
  static const struct accel_expert_tensor experts[] = {{1, ACCEL_EP, 1, 2, 4}, {2, ACCEL_EP, 1, 2, 4},
                                                       {3, ACCEL_EP, 1, 2, 4}, {4, ACCEL_EP, 1, 2, 4},
                                                       {5, ACCEL_EP, 0, 2, 2}, {6, ACCEL_EP, 0, 2, 2}};
  static const char *const names[] = {"norm",
                                      "h.0.experts.0.in",
                                      "h.0.experts.0.out",
                                      "h.0.experts.1.in",
                                      "h.0.experts.1.out",
                                      "h.0.experts.2.in",
                                      "h.0.experts.2.out",
                                      "h.0.experts.3.in",
                                      "h.0.experts.3.out",
                                      "table.0",
                                      "table.1",
                                      "table.2",
                                      "table.3"};
  static struct accel_program of_experts;
  struct problem problem;
  float whole[13 * 16], own[7 * 16] = {0};
  of_experts = program;
  of_experts.tensors = with_experts;
  of_experts.n_tensors = 7;
  of_experts.n_tensor_parts = 0;
  of_experts.expert_tensors = experts;
  of_experts.n_expert_tensors = 6;
  of_experts.n_states = 1;
  of_experts.mesh[ACCEL_TP] = 1;
  of_experts.mesh[ACCEL_EP] = 2;
  const struct accel_program *all = rt_tensor_parts_join(&of_experts, &problem);
  assert_int_equal(all->n_tensors, 13);
  for (int i = 0; i < 13; i++) {
    assert_string_equal(all->tensors[i].name, names[i]);
    assert_int_equal(all->tensors[i].offset, i * 64);
  }
  for (int i = 0; i < 13 * 16; i++) whole[i] = (float)(1 + i);
  rt_tensor_parts_scatter(all, 0, (char *)own, (const char *)whole);
  assert_true(own[16] == 17 && own[16 * 4 + 4] == 16 * 4 + 5 && own[16 * 5] == 16 * 9 + 1 &&
              own[16 * 6] == 16 * 10 + 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_program_without_parts_is_as_it_is),
      cmocka_unit_test(tensors_become_whole_one_after_the_other),
      cmocka_unit_test(states_of_parameters_are_divided),
      cmocka_unit_test(a_rank_gets_its_part_of_each_piece),
      cmocka_unit_test(padding_is_no_part_of_the_whole),
      cmocka_unit_test(a_rank_gives_it_back),
      cmocka_unit_test(slices_get_their_parts),
      cmocka_unit_test(a_rank_gets_its_shards_of_its_part),
      cmocka_unit_test(a_rank_reads_no_more_than_its_part),
      cmocka_unit_test(tensors_of_other_ranks_follow_in_the_model_s_order),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
