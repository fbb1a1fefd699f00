/* Attention by cuDNN's operations, over the stand-in that computes them one by one: that the graphs which the runtime
 * builds are attention and its gradient, against sums in float64 and their central differences. That cuDNN has engines
 * for them can be seen on a GPU alone. */
#include "include/accel/gpu/attention.h"
#include "runtime/base/half.h"
#include "tests/cuda/packed_attention.h"
#include "tests/cuda/standin/standin.h"
#include "tests/runtime/cmocka_all.h"
#include "tests/tcp/children.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 2, HEADS = 4, LENGTH = 6, SIZE = 8, MOST = BATCH * LENGTH * 3 * HEADS * SIZE };

/* Queries, keys and values are together, as one matmul makes them; gradients are separate. */
struct arena {
  _Alignas(64) uint16_t qkv[MOST], y[MOST], d_y[MOST], d_qkv[MOST];
  _Alignas(64) float lse[BATCH * HEADS * LENGTH];
  _Alignas(64) int32_t query_lengths[BATCH], key_lengths[BATCH];
  _Alignas(256) char workspace[1 << 18];
};

static const char *const architectures[] = {"sm_90", "sm_100", NULL};
static const struct accel_program program = {.arena_bytes = sizeof(struct arena)};
static struct accel_gpu_plan plan = {.architectures = architectures,
                                     .arena_bytes = sizeof(struct arena),
                                     .workspace_offset = offsetof(struct arena, workspace),
                                     .workspace_bytes = 1 << 18,
                                     .ahead = 2};

/* What a case is: the environment says. */
static int groups;
static bool causal, lengths;
static enum accel_element type;

static int setting(const char *name, int otherwise) {
  const char *value = getenv(name);
  return value != NULL ? atoi(value) : otherwise;
}

/* ---- The truth ---- */

/* q is [batch][head][row][d], k and v [batch][group][row][d]. */
static double q[MOST], k[MOST], v[MOST], y[MOST], d_y[MOST], lse[BATCH * HEADS * LENGTH];
static int32_t query_lengths[BATCH], key_lengths[BATCH];

static int64_t at(int b, int h, int heads, int row) {
  return ((int64_t)(b * heads + h) * LENGTH + row) * SIZE;
}

static void attend_row(int b, int h, int row, double *to, double *log_sum) {
  double scores[LENGTH], largest = -INFINITY, sum = 0.0;
  int group = h * groups / HEADS, last = causal ? row + 1 : LENGTH;
  if (key_lengths[b] < last) last = key_lengths[b];
  for (int j = 0; j < last; j++) {
    scores[j] = 0.0;
    for (int d = 0; d < SIZE; d++) scores[j] += q[at(b, h, HEADS, row) + d] * k[at(b, group, groups, j) + d];
    scores[j] *= 0.35;
    largest = fmax(largest, scores[j]);
  }
  for (int j = 0; j < last; j++) sum += exp(scores[j] - largest);
  for (int d = 0; d < SIZE; d++) to[d] = 0.0;
  for (int j = 0; j < last; j++)
    for (int d = 0; d < SIZE; d++) to[d] += exp(scores[j] - largest) / sum * v[at(b, group, groups, j) + d];
  *log_sum = largest + log(sum);
}

/* Σ dY · Y over the rows that count: what the gradients are of. */
static double loss(void) {
  double sum = 0.0;
  for (int b = 0; b < BATCH; b++)
    for (int h = 0; h < HEADS; h++)
      for (int row = 0; row < query_lengths[b]; row++) {
        double *to = &y[at(b, h, HEADS, row)];
        attend_row(b, h, row, to, &lse[(b * HEADS + h) * LENGTH + row]);
        for (int d = 0; d < SIZE; d++) sum += to[d] * d_y[at(b, h, HEADS, row) + d];
      }
  return sum;
}

static double slope(double *value) {
  const double step = 1e-4, old = *value;
  *value = old + step;
  double high = loss();
  *value = old - step;
  double low = loss();
  *value = old;
  return (high - low) / (2.0 * step);
}

/* ---- The program's ---- */

static uint16_t narrow(double value) {
  return type == ACCEL_BF16 ? rt_narrow_bfloat16((float)value) : rt_narrow_float16((float)value);
}

static double widen(uint16_t bits) {
  return type == ACCEL_BF16 ? rt_widen_bfloat16(bits) : rt_widen_float16(bits);
}

/* Where a value is among queries, keys and values that are together. */
static int64_t together(int b, int first, int h, int row) {
  return ((int64_t)(b * LENGTH + row) * (HEADS + 2 * groups) + first + h) * SIZE;
}

static double drawn(uint64_t stream, int64_t i) {
  uint64_t seed = (uint64_t)setting("SEED", 1);
  return widen(narrow(2.0 * accel_random(seed, stream, (uint64_t)i) / 4294967296.0 - 1.0));
}

static struct arena host;

static void fill(void) {
  for (int b = 0; b < BATCH; b++) {
    query_lengths[b] = key_lengths[b] = LENGTH;
    if (lengths) query_lengths[b] = LENGTH - 1 - b, key_lengths[b] = LENGTH - 2 + b;
    host.query_lengths[b] = query_lengths[b];
    host.key_lengths[b] = key_lengths[b];
  }
  for (int b = 0; b < BATCH; b++)
    for (int row = 0; row < LENGTH; row++)
      for (int d = 0; d < SIZE; d++) {
        for (int h = 0; h < HEADS; h++) {
          int64_t i = at(b, h, HEADS, row) + d;
          q[i] = drawn(1, i);
          d_y[i] = drawn(4, i);
          host.qkv[together(b, 0, h, row) + d] = narrow(q[i]);
          host.d_y[((b * LENGTH + row) * HEADS + h) * SIZE + d] = narrow(d_y[i]);
        }
        for (int h = 0; h < groups; h++) {
          int64_t i = at(b, h, groups, row) + d;
          k[i] = drawn(2, i);
          v[i] = drawn(3, i);
          host.qkv[together(b, HEADS, h, row) + d] = narrow(k[i]);
          host.qkv[together(b, HEADS + groups, h, row) + d] = narrow(v[i]);
        }
      }
}

static void expect(double wanted, double got, const char *what) {
  double bound = type == ACCEL_BF16 ? 2e-2 : 3e-3;
  if (fabs(wanted - got) <= bound * (1.0 + fabs(wanted))) return;
  fprintf(stderr, "%s: %.6g, not %.6g\n", what, got, wanted);
  exit(4);
}

static void check_forward(void) {
  loss();
  for (int b = 0; b < BATCH; b++)
    for (int h = 0; h < HEADS; h++)
      for (int row = 0; row < query_lengths[b]; row++) {
        expect(lse[(b * HEADS + h) * LENGTH + row], host.lse[(b * HEADS + h) * LENGTH + row], "lse");
        for (int d = 0; d < SIZE; d++)
          expect(y[at(b, h, HEADS, row) + d], widen(host.y[((b * LENGTH + row) * HEADS + h) * SIZE + d]), "y");
      }
}

static void check_backward(void) {
  for (int b = 0; b < BATCH; b++)
    for (int row = 0; row < LENGTH; row++)
      for (int d = 0; d < SIZE; d++) {
        for (int h = 0; h < HEADS && row < query_lengths[b]; h++)
          expect(slope(&q[at(b, h, HEADS, row) + d]), widen(host.d_qkv[together(b, 0, h, row) + d]), "dQ");
        for (int h = 0; h < groups && row < key_lengths[b]; h++) {
          expect(slope(&k[at(b, h, groups, row) + d]), widen(host.d_qkv[together(b, HEADS, h, row) + d]), "dK");
          expect(slope(&v[at(b, h, groups, row) + d]), widen(host.d_qkv[together(b, HEADS + groups, h, row) + d]),
                 "dV");
        }
      }
}

static struct accel_gpu_attention attention;
static struct arena *arena;

static void record(void) {
  accel_stream stream = accel_gpu_stream(ACCEL_COMPUTE);
  const struct accel_attention_data data = {.q = arena->qkv,
                                            .k = arena->qkv + HEADS * SIZE,
                                            .v = arena->qkv + (HEADS + groups) * SIZE,
                                            .y = arena->y,
                                            .lse = arena->lse,
                                            .query_lengths = arena->query_lengths,
                                            .key_lengths = arena->key_lengths,
                                            .d_y = arena->d_y,
                                            .d_q = arena->d_qkv,
                                            .d_k = arena->d_qkv + HEADS * SIZE,
                                            .d_v = arena->d_qkv + (HEADS + groups) * SIZE};
  accel_gpu_attend(&attention, stream, &data);
  accel_gpu_attend_backward(&attention, stream, &data);
}

static void run(void) {
  groups = setting("GROUPS", HEADS);
  causal = setting("CAUSAL", 0);
  lengths = setting("LENGTHS", 0);
  type = setting("HALF", 0) ? ACCEL_F16 : ACCEL_BF16;
  plan.deterministic = setting("DETERMINISTIC", 0);
  if (setting("WORKSPACE", 0) > 0) plan.workspace_bytes = (size_t)setting("WORKSPACE", 0);
  attention = packed_attention(type, BATCH, HEADS, groups, LENGTH, SIZE);
  attention.name = "attn";
  attention.scale = 0.35;
  attention.causal = causal;
  attention.lengths = lengths;
  accel_gpu_open(&program, &plan);
  arena = accel_gpu_arena();
  accel_gpu_open_attention(&attention);
  accel_gpu_open_attention_backward(&attention);
  fill();
  accel_gpu_write(arena, &host, sizeof host);
  const struct accel_graph *graph = accel_gpu_capture("attention", record);
  for (int i = 0; i < 2; i++) accel_gpu_launch(graph); /* again, over what the first has left */
  accel_gpu_read(&host, arena, sizeof host);
  check_forward();
  check_backward();
  accel_gpu_close();
}

static void test_graphs(void **state) {
  static const char *const cases[] = {
      "CAUSAL=0",
      "CAUSAL=1",
      "CAUSAL=1 GROUPS=2",
      "CAUSAL=1 GROUPS=1 HALF=1",
      "LENGTHS=1",
      "LENGTHS=1 CAUSAL=1 GROUPS=2 HALF=1",
      "LENGTHS=1 CAUSAL=1 STANDIN_CUDNN=90100",
      "CAUSAL=1 GROUPS=2 STANDIN_CUDNN=90501",
      "STANDIN_CUDNN=91500 DETERMINISTIC=1",
      "CAUSAL=1 DETERMINISTIC=1",
      "LENGTHS=1 GROUPS=2 DETERMINISTIC=1 ACCEL_GRAPHS=no",
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) assert_true(ends_with(run, cases[i], 0, ""));
}

static void test_refusals(void **state) {
  static const struct {
    const char *environment, *said;
  } cases[] = {
      {"STANDIN_FAIL=cudnnCreate", "cudnnCreate of cuDNN"},
      {"STANDIN_CUDNN=80907", "attention of attn in 16 bits with cuDNN 80907"},
      {"STANDIN_CUDNN=91001", "use cuDNN 9.10.2 or later"},
      {"STANDIN_CUDNN=91700 STANDIN_ARCH=100 DETERMINISTIC=1", "use cuDNN 9.18 or later"},
      {"STANDIN_WORKSPACE=270000", "cuDNN's engines for attn work in 270000 bytes or more, the plan has 262144 left"},
      {"STANDIN_WORKSPACE=4096 WORKSPACE=1024",
       "cuDNN's engines for attn work in 4096 bytes or more, the plan has 1024 left"},
      {"STANDIN_FAIL=cudnnBackendExecute", "cudnnBackendExecute of cuDNN"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_true(ends_with(run, cases[i].environment, 1, cases[i].said));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_graphs), cmocka_unit_test(test_refusals)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
