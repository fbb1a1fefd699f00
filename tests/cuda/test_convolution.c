/* Convolutions by cuDNN's operations, over the stand-in that computes them: that what the runtime describes is the
 * convolution and both its gradients, against sums in float64, and that no engine is taken whose notes say that it
 * gives other numbers. Which engines cuDNN has is asked by test_engines.py. */
#include "include/accel/gpu/convolution.h"
#include "runtime/base/half.h"
#include "tests/cuda/standin/standin.h"
#include "tests/runtime/cmocka_all.h"
#include "tests/tcp/children.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 2, MOST = 4096, WORKSPACE = 1 << 16, OPERANDS = 3 };

/* x, weights and y, and what is made of the other two; with space to begin away from a line's beginning. */
struct arena {
  _Alignas(64) char given[OPERANDS][4 * MOST + 64], made[OPERANDS][4 * MOST + 64];
  _Alignas(256) char workspace[WORKSPACE];
};

static const char *const architectures[] = {"sm_90", NULL};
static const struct accel_program program = {.arena_bytes = sizeof(struct arena)};
static struct accel_gpu_plan plan = {.architectures = architectures,
                                     .arena_bytes = sizeof(struct arena),
                                     .workspace_offset = offsetof(struct arena, workspace),
                                     .workspace_bytes = WORKSPACE,
                                     .ahead = 2};

static struct accel_gpu_convolution convolutions[OPERANDS];
static struct arena host, *arena;
static double given[OPERANDS][MOST], truth[OPERANDS][MOST], sizes[OPERANDS][MOST];
static int64_t counts[OPERANDS];
static size_t offset; /* bytes from a multiple of 64 to an operand */

static int setting(const char *name, int otherwise) {
  const char *value = getenv(name);
  return value != NULL ? atoi(value) : otherwise;
}

/* ---- What is convolved ---- */

static void describe(void) {
  int64_t groups = setting("GROUPS", 1), in = setting("IN", 4), out = setting("OUT", 6);
  struct accel_gpu_convolution c = {.name = "conv",
                                    .type = (enum accel_element)setting("TYPE", ACCEL_F32),
                                    .tf32 = setting("TF32", 0),
                                    .accumulate = setting("ACCUMULATE", 0),
                                    .batch = BATCH,
                                    .groups = groups,
                                    .x_channels = in,
                                    .y_channels = out,
                                    .x = {7, 6},
                                    .kernel = {setting("KERNEL", 3), setting("KERNEL", 3)},
                                    .stride = {setting("STRIDE", 1), 1},
                                    .padding = {setting("PADDING", 0), 1},
                                    .dilation = {1, setting("DILATION", 1)}};
  for (int i = 0; i < 2; i++)
    c.y[i] = (c.x[i] + 2 * c.padding[i] - c.dilation[i] * (c.kernel[i] - 1) - 1) / c.stride[i] + 1;
  counts[0] = BATCH * in * c.x[0] * c.x[1];
  counts[1] = out * (in / groups) * c.kernel[0] * c.kernel[1];
  counts[2] = BATCH * out * c.y[0] * c.y[1];
  for (int i = 0; i < OPERANDS; i++) convolutions[i] = c;
  convolutions[0].makes = ACCEL_MAKES_X;
  convolutions[1].makes = ACCEL_MAKES_WEIGHTS;
  convolutions[2].makes = ACCEL_MAKES_Y;
}

/* Each of the three, of the other two: all terms of one position of y. */
static void add_position(const struct accel_gpu_convolution *c, int64_t n, int64_t o, int64_t i, int64_t j) {
  int64_t in = c->x_channels / c->groups, first = o / (c->y_channels / c->groups) * in;
  int64_t at_y = ((n * c->y_channels + o) * c->y[0] + i) * c->y[1] + j;
  for (int64_t k = 0; k < in * c->kernel[0] * c->kernel[1]; k++) {
    int64_t channel = k / (c->kernel[0] * c->kernel[1]), p = k / c->kernel[1] % c->kernel[0], q = k % c->kernel[1];
    int64_t row = i * c->stride[0] - c->padding[0] + p * c->dilation[0];
    int64_t column = j * c->stride[1] - c->padding[1] + q * c->dilation[1];
    if (row < 0 || row >= c->x[0] || column < 0 || column >= c->x[1]) continue;
    int64_t at[OPERANDS] = {((n * c->x_channels + first + channel) * c->x[0] + row) * c->x[1] + column,
                            o * in * c->kernel[0] * c->kernel[1] + k, at_y};
    for (int made = 0; made < OPERANDS; made++) {
      int a = (made + 1) % OPERANDS, b = (made + 2) % OPERANDS;
      double term = given[a][at[a]] * given[b][at[b]];
      truth[made][at[made]] += term;
      sizes[made][at[made]] += fabs(term);
    }
  }
}

static void add_all(void) {
  const struct accel_gpu_convolution *c = &convolutions[0];
  for (int64_t n = 0; n < BATCH; n++)
    for (int64_t o = 0; o < c->y_channels; o++)
      for (int64_t i = 0; i < c->y[0]; i++)
        for (int64_t j = 0; j < c->y[1]; j++) add_position(c, n, o, i, j);
}

/* ---- Elements ---- */

static size_t width(void) {
  return convolutions[0].type == ACCEL_F32 ? 4 : 2;
}

static void put(char *at, double value) {
  float wide = (float)value;
  uint16_t narrow = convolutions[0].type == ACCEL_BF16 ? rt_narrow_bfloat16(wide) : rt_narrow_float16(wide);
  if (convolutions[0].type == ACCEL_F32)
    memcpy(at, &wide, sizeof wide);
  else
    memcpy(at, &narrow, sizeof narrow);
}

static double get(const char *at) {
  float wide;
  uint16_t narrow;
  memcpy(&wide, at, sizeof wide);
  memcpy(&narrow, at, sizeof narrow);
  if (convolutions[0].type == ACCEL_F32) return wide;
  return convolutions[0].type == ACCEL_BF16 ? rt_widen_bfloat16(narrow) : rt_widen_float16(narrow);
}

static void fill(void) {
  for (int o = 0; o < OPERANDS; o++)
    for (int64_t i = 0; i < counts[o]; i++) {
      char *at = host.given[o] + offset + (size_t)i * width(), *before = host.made[o] + offset + (size_t)i * width();
      put(at, 2.0 * accel_random(1, (uint64_t)o, (uint64_t)i) / 4294967296.0 - 1.0);
      put(before, 5.0);
      given[o][i] = get(at);
      truth[o][i] = convolutions[0].accumulate ? 5.0 : 0.0;
    }
  add_all();
}

/* Sums in float32 of operands as they are, rounded once; of operands in tf32 or 16 bits coarser. Sets how far the
 * farthest is away, as a part of what its terms' sizes add up to. */
static void check(const struct arena *after, double *farthest) {
  static const double roundings[] = {[ACCEL_F32] = 6e-8, [ACCEL_BF16] = 1.0 / 256.0, [ACCEL_F16] = 1.0 / 2048.0};
  for (int o = 0; o < OPERANDS; o++)
    for (int64_t i = 0; i < counts[o]; i++) {
      double got = get(after->made[o] + offset + (size_t)i * width()), away = fabs(got - truth[o][i]);
      double bound = (convolutions[0].tf32 ? 1e-3 : 1e-6) * sizes[o][i] + roundings[convolutions[0].type] * fabs(got);
      if (away > bound) {
        fprintf(stderr, "%s: element %lld is %.8g, not %.8g\n", (const char *[]){"dx", "dw", "y"}[o], (long long)i, got,
                truth[o][i]);
        exit(4);
      }
      if (sizes[o][i] > 0 && away / sizes[o][i] > *farthest) *farthest = away / sizes[o][i];
    }
}

static void record(void) {
  accel_stream stream = accel_gpu_stream(ACCEL_COMPUTE);
  char *x = arena->given[0] + offset, *weights = arena->given[1] + offset, *y = arena->given[2] + offset;
  accel_gpu_convolve(&convolutions[0], stream, arena->made[0] + offset, y, weights);
  accel_gpu_convolve(&convolutions[1], stream, arena->made[1] + offset, y, x);
  accel_gpu_convolve(&convolutions[2], stream, arena->made[2] + offset, x, weights);
}

static void run(void) {
  static struct arena runs[2];
  double farthest = 0.0;
  describe();
  offset = (size_t)setting("OFFSET", 0) * width();
  plan.deterministic = setting("DETERMINISTIC", 0);
  if (setting("WORKSPACE", 0) > 0) plan.workspace_bytes = (size_t)setting("WORKSPACE", 0);
  accel_gpu_open(&program, &plan);
  arena = accel_gpu_arena();
  for (int i = 0; i < OPERANDS; i++) accel_gpu_open_convolution(&convolutions[i]);
  fill();
  const struct accel_graph *graph = accel_gpu_capture("convolutions", record);
  for (int i = 0; i < 2; i++) {
    accel_gpu_write(arena, &host, sizeof host);
    accel_gpu_launch(graph);
    accel_gpu_read(&runs[i], arena, sizeof runs[i]);
    check(&runs[i], &farthest);
  }
  bool alike = memcmp(runs[0].made, runs[1].made, sizeof runs[0].made) == 0;
  accel_gpu_close();
  if (alike != (setting("ALIKE", 1) != 0)) fprintf(stderr, "two runs are%s alike\n", alike ? "" : " not"), exit(4);
  if (setting("TF32", 0) && farthest < 1e-5) fprintf(stderr, "tf32 is not used\n"), exit(4);
}

static void test_numbers(void **state) {
  static const char *const cases[] = {
      "ALIKE=0",
      "DETERMINISTIC=1",
      "DETERMINISTIC=1 ACCUMULATE=1 PADDING=1",
      "DETERMINISTIC=1 STRIDE=2 PADDING=1 KERNEL=3",
      "DETERMINISTIC=1 STRIDE=2 KERNEL=1",
      "DETERMINISTIC=1 DILATION=2 KERNEL=2",
      "DETERMINISTIC=1 GROUPS=2",
      "DETERMINISTIC=1 GROUPS=4 OUT=8 ACCEL_GRAPHS=no",
      "DETERMINISTIC=1 OFFSET=1",
      "TF32=1",
      "TYPE=1",
      "TYPE=2 STRIDE=2 PADDING=1",
      "TYPE=1 ACCUMULATE=1 GROUPS=2 OFFSET=3",
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) assert_true(ends_with(run, cases[i], 0, ""));
}

static void test_refusals(void **state) {
  static const struct {
    const char *environment, *said;
  } cases[] = {
      {"STANDIN_FAIL=cudnnCreate", "cudnnCreate of cuDNN"},
      {"STANDIN_WORKSPACE=70000", "cuDNN's engines for conv work in 70000 bytes or more, the plan has 65536 left"},
      {"STANDIN_WORKSPACE=4096 WORKSPACE=1024", "devices.convolution: own"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_true(ends_with(run, cases[i].environment, 1, cases[i].said));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_numbers), cmocka_unit_test(test_refusals)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
