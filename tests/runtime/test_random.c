/* Philox against the published vectors, permutations as bijections, the distribution of initialisers. */
#include "cmocka_all.h"

#include "include/accel/trainer.h"
#include "runtime/base/wide.h"
#include "runtime/random/normal.h"
#include "runtime/random/permutation.h"
#include "runtime/random/philox.h"
#include "runtime/weights/init.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

/* Random123's tests/kat_vectors, the lines "philox4x32 10". */
static void known_answers(void **state) {
  static const struct {
    struct philox_block counter;
    uint32_t key[2];
    struct philox_block answer;
  } vectors[] = {
      {{{0, 0, 0, 0}}, {0, 0}, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
      {{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
       {0xffffffff, 0xffffffff},
       {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
      {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
       {0xa4093822, 0x299f31d0},
       {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}},
  };
  (void)state;
  for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
    struct philox_block got = rt_philox(vectors[i].counter, vectors[i].key[0], vectors[i].key[1]);
    assert_memory_equal(&got, &vectors[i].answer, sizeof got);
  }
}

/* The third vector again: the counter is (index / 4, stream), low words first, and index picks a word. */
static void words_of_a_stream(void **state) {
  (void)state;
  uint64_t seed = 0x299f31d0a4093822, stream = 0x0370734413198a2e, block = 0x05a308d3243f6a88;
  struct philox_block got = rt_philox_block(seed, stream, block);
  struct philox_block same =
      rt_philox((struct philox_block){{0x243f6a88, 0x05a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0);
  assert_memory_equal(&got, &same, sizeof got);
  for (uint64_t i = 0; i < 4; i++) assert_int_equal(accel_random(seed, stream, 4 * block + i), got.word[i]);
}

static void lanes_are_blocks(void **state) {
  static const uint64_t firsts[] = {0, 5, 0xfffffff8, UINT64_MAX - 3};
  uint32_t words[4][PHILOX_LANES];
  (void)state;
  for (size_t k = 0; k < sizeof firsts / sizeof *firsts; k++) {
    rt_philox_lanes(0x123456789abcdef, 0xfedcba9876543210, firsts[k], words);
    for (uint64_t lane = 0; lane < PHILOX_LANES; lane++) {
      struct philox_block block = rt_philox_block(0x123456789abcdef, 0xfedcba9876543210, firsts[k] + lane);
      for (int i = 0; i < 4; i++) assert_int_equal(words[i][lane], block.word[i]);
    }
  }
}

static void permute_from(uint64_t first, uint64_t n, uint64_t together[PERMUTED_AT_ONCE]) {
  int count = n - first < PERMUTED_AT_ONCE ? (int)(n - first) : PERMUTED_AT_ONCE;
  for (int i = 0; i < count; i++) together[i] = first + (uint64_t)i;
  rt_permute_all(1337, n, n, count, together);
}

static void permutation_is_a_bijection(void **state) {
  (void)state;
  for (uint64_t n = 1; n <= 5000; n = n < 70 ? n + 1 : n * 3 / 2) {
    char *seen = calloc(n, 1);
    uint64_t together[PERMUTED_AT_ONCE];
    for (uint64_t i = 0; i < n; i++) {
      uint64_t to = rt_permute(1337, n, n, i), at = i % PERMUTED_AT_ONCE;
      if (at == 0) permute_from(i, n, together);
      assert_int_equal(together[at], to);
      assert_true(to < n);
      assert_false(seen[to]);
      seen[to] = 1;
    }
    free(seen);
  }
}

static void permutation_of_a_huge_range(void **state) {
  (void)state;
  uint64_t n = ((uint64_t)1 << 40) + 12345;
  for (uint64_t i = 0; i < 1000; i++) assert_true(rt_permute(7, 1, n, n - 1 - i) < n);
}

static int factorial(int n) {
  return n < 2 ? 1 : n * factorial(n - 1);
}

/* Every order of a few things is about as frequent as another, and so is every position of the first thing among many.
 * Chi squared with k degrees of freedom is below k + 4 sqrt(2 k) but in one of 10,000 cases; the streams are fixed. */
static double spread(const int *count, int cells, int kinds, double expected) {
  double chi = 0;
  int seen = 0;
  for (int i = 0; i < cells; i++) {
    seen += count[i] > 0;
    if (count[i] > 0) chi += (count[i] - expected) * (count[i] - expected) / expected;
  }
  return seen == kinds ? chi : 1e9;
}

static void permutations_are_fair(void **state) {
  (void)state;
  for (int n = 2; n <= 6; n++) {
    static int count[46656];
    int orders = factorial(n), cells = 1;
    memset(count, 0, sizeof count);
    for (int i = 0; i < n; i++) cells *= n;
    for (uint64_t stream = 0; stream < 200 * (uint64_t)orders; stream++) {
      int order = 0;
      for (uint64_t i = 0; i < (uint64_t)n; i++) order = order * n + (int)rt_permute(1, stream, (uint64_t)n, i);
      count[order]++;
    }
    assert_true(spread(count, cells, orders, 200) < orders - 1 + 4 * sqrt(2.0 * (orders - 1)) + 4);
  }
}

static void places_are_fair(void **state) {
  static const int sizes[] = {17, 100, 128, 1000};
  (void)state;
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    static int first[1000], distance[1000];
    int n = sizes[k];
    memset(first, 0, sizeof first);
    memset(distance, 0, sizeof distance);
    for (uint64_t stream = 0; stream < 200 * (uint64_t)n; stream++) {
      int a = (int)rt_permute(1, stream, (uint64_t)n, 0), b = (int)rt_permute(1, stream, (uint64_t)n, 1);
      first[a]++;
      distance[(b - a + n) % n]++; /* of neighbours: anything but 0 */
    }
    assert_true(spread(first, n, n, 200) < n - 1 + 4 * sqrt(2.0 * (n - 1)));
    assert_true(spread(distance, n, n - 1, 200.0 * n / (n - 1)) < n - 2 + 4 * sqrt(2.0 * (n - 2)));
  }
}

/* Against the C library's functions in double, over words of all sizes. */
static void normals_are_exact(void **state) {
  (void)state;
  for (uint64_t i = 0; i < 100000; i += NORMAL_LANES) {
    uint32_t radius[NORMAL_LANES], angle[NORMAL_LANES];
    float first[NORMAL_LANES], second[NORMAL_LANES];
    for (uint64_t k = 0; k < NORMAL_LANES; k++) {
      radius[k] = accel_random(1, 0, i + k) >> (i / NORMAL_LANES % 32);
      angle[k] = accel_random(1, 1, i + k);
    }
    rt_normals(radius, angle, first, second);
    for (int k = 0; k < NORMAL_LANES; k++) {
      double u = ((radius[k] >> 1) + 0.5) * 0x1p-31, t = 2 * acos(-1) * angle[k] * 0x1p-32;
      /* Near 1, u has a float's 24 bits: what its rounding moves the radius by is allowed on top. */
      double r = sqrt(-2 * log(u)), allowed = 2e-6 + (r < 0.1 ? 1e-3 : 0);
      assert_true(fabs(first[k] - r * cos(t)) < allowed);
      assert_true(fabs(second[k] - r * sin(t)) < allowed);
    }
  }
}

#if RT_WIDE
void rt_philox_lanes_v3(uint64_t seed, uint64_t stream, uint64_t first, uint32_t words[4][PHILOX_LANES]);
void rt_philox_lanes_v4(uint64_t seed, uint64_t stream, uint64_t first, uint32_t words[4][PHILOX_LANES]);
void rt_normals_v3(const uint32_t radius[NORMAL_LANES], const uint32_t angle[NORMAL_LANES], float first[NORMAL_LANES],
                   float second[NORMAL_LANES]);
void rt_normals_v4(const uint32_t radius[NORMAL_LANES], const uint32_t angle[NORMAL_LANES], float first[NORMAL_LANES],
                   float second[NORMAL_LANES]);

/* FNV-1a (Fowler, Noll, Vo) of the normals that many blocks give, by the functions at hand. */
static uint64_t digest_of(__typeof__(&rt_philox_lanes) lanes, __typeof__(&rt_normals) normals) {
  uint64_t digest = 0xcbf29ce484222325;
  for (uint64_t block = 0; block < 100000; block += PHILOX_LANES) {
    uint32_t words[4][PHILOX_LANES];
    float made[2][NORMAL_LANES];
    lanes(1337, 5, block, words);
    normals(words[0], words[3], made[0], made[1]);
    for (size_t i = 0; i < sizeof made; i++) digest = (digest ^ ((const unsigned char *)made)[i]) * 0x100000001b3;
  }
  return digest;
}
#endif

/* Wider registers change no bit. */
static void widths_agree(void **state) {
  (void)state;
#if RT_WIDE
  const uint64_t digest = digest_of(rt_philox_lanes, rt_normals);
  assert_int_equal(digest, 0xa3a092895ce134c3);
  if (__builtin_cpu_supports("x86-64-v3")) assert_int_equal(digest_of(rt_philox_lanes_v3, rt_normals_v3), digest);
  if (__builtin_cpu_supports("x86-64-v4")) assert_int_equal(digest_of(rt_philox_lanes_v4, rt_normals_v4), digest);
#endif
}

static void extreme_words(void **state) {
  (void)state;
  uint32_t radius[NORMAL_LANES] = {0, 1, 0xffffffff, 0x80000000}, angle[NORMAL_LANES] = {0, 0x40000000, 0xffffffff};
  float first[NORMAL_LANES], second[NORMAL_LANES];
  rt_normals(radius, angle, first, second);
  for (int k = 0; k < NORMAL_LANES; k++) assert_true(isfinite(first[k]) && isfinite(second[k]));
  assert_true(first[0] > 6.6f && first[0] < 6.7f);
}

static void moments(const float *values, int64_t n, double *mean, double *deviation) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < n; i++) sum += values[i];
  *mean = sum / (double)n;
  for (int64_t i = 0; i < n; i++) squares += (values[i] - *mean) * (values[i] - *mean);
  *deviation = sqrt(squares / (double)n);
}

static void initialisers_distribute(void **state) {
  enum { N = 1000003 };
  double mean, deviation;
  float *values = malloc(N * sizeof *values);
  (void)state;
  struct accel_tensor normal = {"n", 0, 1, {N}, ACCEL_NORMAL, 0.5, 0.02, ACCEL_FLOAT32};
  rt_init_tensor(&normal, 3, 1337, values);
  moments(values, N, &mean, &deviation);
  assert_true(fabs(mean - 0.5) < 1e-4 && fabs(deviation - 0.02) < 1e-4);
  struct accel_tensor uniform = {"u", 0, 1, {N}, ACCEL_UNIFORM, -1, 3, ACCEL_FLOAT32};
  rt_init_tensor(&uniform, 3, 1337, values);
  moments(values, N, &mean, &deviation);
  assert_true(fabs(mean - 1) < 5e-3 && fabs(deviation - 4 / sqrt(12)) < 5e-3);
  for (int64_t i = 0; i < N; i++) assert_true(values[i] >= -1 && values[i] < 3);
  free(values);
}

/* Whatever the threads, and whatever the length after an element. */
static void initialisers_are_pure(void **state) {
  enum { N = 10007 };
  static float one[N], three[N], longer[2 * N];
  (void)state;
  struct accel_tensor tensor = {"n", 0, 2, {N, 1}, ACCEL_NORMAL, 0, 1, ACCEL_FLOAT32};
  omp_set_num_threads(1);
  rt_init_tensor(&tensor, 2, 9, one);
  omp_set_num_threads(3);
  rt_init_tensor(&tensor, 2, 9, three);
  tensor.shape[1] = 2;
  rt_init_tensor(&tensor, 2, 9, longer);
  assert_memory_equal(one, three, sizeof one);
  assert_memory_equal(one, longer, sizeof one);
  rt_init_tensor(&tensor, 1, 9, longer);
  assert_memory_not_equal(one, longer, sizeof one);
}

static void constants(void **state) {
  float values[5] = {7, 7, 7, 7, 7};
  (void)state;
  struct accel_tensor tensor = {"c", 0, 1, {4}, ACCEL_ONES, 0, 0, ACCEL_FLOAT32};
  rt_init_tensor(&tensor, 0, 1, values);
  assert_true(values[0] == 1 && values[3] == 1 && values[4] == 7);
  tensor.init = ACCEL_ZEROS;
  rt_init_tensor(&tensor, 0, 1, values);
  assert_true(values[0] == 0 && values[3] == 0 && values[4] == 7);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(known_answers),
      cmocka_unit_test(words_of_a_stream),
      cmocka_unit_test(lanes_are_blocks),
      cmocka_unit_test(permutation_is_a_bijection),
      cmocka_unit_test(permutation_of_a_huge_range),
      cmocka_unit_test(permutations_are_fair),
      cmocka_unit_test(places_are_fair),
      cmocka_unit_test(normals_are_exact),
      cmocka_unit_test(widths_agree),
      cmocka_unit_test(extreme_words),
      cmocka_unit_test(initialisers_distribute),
      cmocka_unit_test(initialisers_are_pure),
      cmocka_unit_test(constants),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
