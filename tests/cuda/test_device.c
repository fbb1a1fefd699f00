/* The runtime's device part over the stand-ins: start, and what it says when it cannot; feed, report, graphs, matmuls.
 */
#include "include/accel/gpu/gemm.h"
#include "tests/cuda/standin/standin.h"
#include "tests/runtime/cmocka_all.h"
#include "tests/tcp/children.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The arena: states, a feed, a report, matmuls, a workspace. */
struct arena {
  _Alignas(64) float states[64];
  _Alignas(64) int32_t feed[16];
  _Alignas(64) float report[4];
  _Alignas(64) float a[64 * 64], b[64 * 64], y[64 * 64], aux[64 * 64], bias[64];
  _Alignas(256) char workspace[1 << 16];
};

static const char *const architectures[] = {"sm_80", "sm_90a", NULL};
static const struct accel_program program = {.arena_bytes = sizeof(struct arena)};
static struct accel_gpu_plan plan = {.architectures = architectures,
                                     .arena_bytes = sizeof(struct arena),
                                     .workspace_offset = offsetof(struct arena, workspace),
                                     .workspace_bytes = 1 << 16,
                                     .feed_offset = offsetof(struct arena, feed),
                                     .feed_bytes = sizeof(int32_t[16]),
                                     .report_offset = offsetof(struct arena, report),
                                     .report_bytes = sizeof(float[4]),
                                     .ahead = 3,
                                     .events = 2};
static struct arena *arena;

static void open_device(void) {
  accel_gpu_open(&program, &plan);
  arena = accel_gpu_arena();
}

static void nothing(void) {
  open_device();
  accel_gpu_close();
}

/* ---- What is said at start ---- */

static void test_start(void **state) {
  static const struct {
    const char *environment, *said; /* NULL: all is well */
  } cases[] = {
      {"STANDIN_GPUS=1", NULL},
      {"STANDIN_ARCH=86", NULL},
      {"STANDIN_HANDLES=0 STANDIN_RDMA=0 STANDIN_FABRIC=0", NULL}, /* which one rank does not ask for */
      {"STANDIN_DRIVER=0", "error: no NVIDIA driver on this machine"},
      {"STANDIN_DRIVER=11080", "the NVIDIA driver is for CUDA 11.8, older than the CUDA"},
      {"STANDIN_GPUS=0", "error: no GPU on this machine"},
      {"STANDIN_GPUS=0 CUDA_VISIBLE_DEVICES=7", "no GPU among CUDA_VISIBLE_DEVICES=7"},
      {"STANDIN_ARCH=75", "GPU 0 (stand-in) is an sm_75, but the kernels are for sm_80 sm_90a"},
      {"STANDIN_ARCH=100", "add \"sm_100\" to architectures[]"},
      {"STANDIN_MEMORY=1048576", "the plan takes 0.00 GiB, GPU 0 (stand-in) has 0.00 of its 0.00 GiB free"},
      {"STANDIN_FAIL=cudaSetDevice", "GPU 0 (stand-in) cannot be used"},
      {"STANDIN_FAIL=cuMemCreate", "cuMemCreate"},
      {"STANDIN_FAIL=cudaHostAlloc", "cudaHostAlloc of CUDA: cudaErrorMemoryAllocation"},
      {"STANDIN_FAIL=cudaStreamCreateWithPriority:3", "runtime/gpu/device.c:"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    bool well = cases[i].said == NULL;
    assert_true(ends_with(nothing, cases[i].environment, well ? 0 : 1, well ? "" : cases[i].said));
  }
}

/* What ranks wait for goes first: the stream of collectives has the highest priority, all others the lowest. */
static void look_at_priorities(void) {
  int lowest, highest;
  open_device();
  if (cudaDeviceGetStreamPriorityRange(&lowest, &highest) != cudaSuccess || highest >= lowest) exit(3);
  for (int i = 0; i < ACCEL_STREAMS; i++) {
    int priority = 1;
    if (cudaStreamGetPriority(accel_gpu_stream((enum accel_stream_name)i), &priority) != cudaSuccess) exit(4);
    if (priority != (i == ACCEL_TRAFFIC ? highest : lowest)) exit(5);
  }
  accel_gpu_close();
}

static void test_priorities(void **state) {
  char text[1024];
  (void)state;
  assert_int_equal(ended(look_at_priorities, "", text, sizeof text), 0);
}

/* ---- Feed and report ---- */

static void run_sum(const void *arguments) {
  (void)arguments;
  standin_touch(arena->feed, sizeof arena->feed, false);
  standin_touch(arena->report, sizeof arena->report, true);
  arena->report[0] = 0.0f;
  for (int i = 0; i < 16; i++) arena->report[0] += (float)arena->feed[i];
  arena->report[1] += 1.0f;
}

static void record_step(void) {
  standin_launch(accel_gpu_stream(ACCEL_COMPUTE), "sum", run_sum, NULL, 0);
}

static void feed(int step) {
  int32_t *feed = accel_gpu_feed_begin();
  standin_touch(feed, plan.feed_bytes, true); /* while no copy of it continues */
  for (int i = 0; i < 16; i++) feed[i] = step * i;
  accel_gpu_feed_send();
}

/* The host is up to two feeds ahead, and reads reports of earlier steps. */
static void ten_steps(void) {
  open_device();
  accel_gpu_zero(accel_gpu_stream(ACCEL_COMPUTE), arena->report, sizeof arena->report);
  struct accel_graph *graph = accel_gpu_capture("step", record_step);
  if (accel_gpu_report(0) != NULL) exit(3);
  feed(0);
  for (int step = 0; step < 10; step++) {
    if (step + 1 < 10) feed(step + 1);
    accel_gpu_feed_take();
    accel_gpu_launch(graph);
    accel_gpu_report_send();
    const float *before = accel_gpu_report(1);
    if (step == 0 && before != NULL) exit(4);
    if (step == 0) continue;
    standin_touch(before, plan.report_bytes, false);
    if (before[0] != 120.0f * (float)(step - 1) || before[1] != (float)step) exit(5);
  }
  const float *last = accel_gpu_report(0);
  standin_touch(last, plan.report_bytes, false);
  if (last[0] != 1080.0f || last[1] != 10.0f || accel_gpu_report(3) != NULL) exit(6);
  accel_gpu_close();
}

static void test_steps(void **state) {
  char text[1024];
  (void)state;
  int status = ended(ten_steps, "ACCEL_GRAPHS=yes", text, sizeof text);
  if (status != 0) print_error("%s\n", text);
  assert_int_equal(status, 0);
  status = ended(ten_steps, "ACCEL_GRAPHS=no", text, sizeof text);
  if (status != 0) print_error("%s\n", text);
  assert_int_equal(status, 0);
}

/* ---- What a program could do wrong ---- */

static void reads_without_take(void) {
  open_device();
  feed(1);
  record_step();
  accel_gpu_copy(accel_gpu_stream(ACCEL_TRAFFIC), arena->states, arena->report, 16);
}

static void forgets_wait(void) {
  open_device();
  accel_gpu_zero(accel_gpu_stream(ACCEL_COMPUTE), arena->a, sizeof arena->a);
  accel_gpu_record(0, accel_gpu_stream(ACCEL_COMPUTE));
  accel_gpu_copy(accel_gpu_stream(ACCEL_TRAFFIC), arena->b, arena->a, sizeof arena->a);
}

static void fails_late(void) {
  open_device();
  accel_gpu_finish(accel_gpu_stream(ACCEL_COMPUTE));
}

static void test_breaks(void **state) {
  char text[1024];
  (void)state;
  assert_int_equal(ended(reads_without_take, "", text, sizeof text), STANDIN_STATUS);
  assert_non_null(strstr(text, "without waiting for sum of stream 1"));
  assert_int_equal(ended(forgets_wait, "", text, sizeof text), STANDIN_STATUS);
  assert_non_null(strstr(text, "without waiting for cudaMemsetAsync"));
  assert_int_equal(ended(fails_late, "STANDIN_FAIL=cudaStreamSynchronize", text, sizeof text), 1);
  assert_non_null(strstr(text, "error: runtime/gpu/device.c:"));
  assert_non_null(strstr(text, "an illegal memory access was encountered"));
  assert_non_null(strstr(text, "compute-sanitizer"));
}

/* ---- Matmuls ---- */

static double gelu(double x) {
  return 0.5 * x * (1.0 + tanh(sqrt(2.0 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

static double gelu_slope(double x) {
  const double h = 1e-5;
  return (gelu(x + h) - gelu(x - h)) / (2.0 * h);
}

static void random_fill(float *values, int count, uint64_t stream) {
  for (int i = 0; i < count; i++)
    values[i] =
        (float)accel_random((uint64_t)atoll(getenv("SEED") != NULL ? getenv("SEED") : "1"), stream, (uint64_t)i) /
            4294967296.0f -
        0.5f;
}

static void expect(double wanted, double got, const char *what, enum accel_epilogue epilogue) {
  if (fabs(wanted - got) <= 1e-4 * (1.0 + fabs(wanted))) return;
  fprintf(stderr, "%s of epilogue %d: %.9g, not %.9g\n", what, (int)epilogue, got, wanted);
  exit(4);
}

static bool bit_of(const void *mask, int64_t at) {
  return ((const unsigned char *)mask)[at / 8] >> at % 8 & 1;
}

/* One matmul in the steps that a program may choose, against the sum that its header states. */
static void check_gemm(enum accel_epilogue epilogue, bool a_turned, bool b_turned, bool accumulate, int64_t batch) {
  enum { ROWS = 8, COLUMNS = 16, DEPTH = 24, MASK_ROW = 128 };
  bool relu = epilogue == ACCEL_RELU || epilogue == ACCEL_BIAS_RELU;
  bool drelu = epilogue == ACCEL_DRELU || epilogue == ACCEL_DRELU_SUM;
  struct accel_gpu_gemm p = {.name = "test",
                             .accumulate = accumulate,
                             .epilogue = epilogue,
                             .rows = ROWS,
                             .columns = COLUMNS,
                             .depth = DEPTH,
                             .y_row = relu || drelu ? MASK_ROW : COLUMNS,
                             .a_row = a_turned ? 1 : DEPTH,
                             .a_column = a_turned ? ROWS : 1,
                             .b_row = b_turned ? 1 : COLUMNS,
                             .b_column = b_turned ? DEPTH : 1,
                             .batch = batch,
                             .y_step = ROWS * (relu || drelu ? MASK_ROW : COLUMNS),
                             .a_step = ROWS * DEPTH,
                             .b_step = DEPTH * COLUMNS};
  static struct arena host;
  random_fill(host.a, 4096, 1);
  random_fill(host.b, 4096, 2);
  random_fill(host.y, 4096, 3);
  random_fill(host.aux, 4096, 4);
  random_fill(host.bias, 64, 5);
  accel_gpu_write(arena, &host, sizeof host);
  accel_gpu_open_gemm(&p);
  accel_gpu_multiply(&p, accel_gpu_stream(ACCEL_COMPUTE), arena->y, arena->a, arena->b, arena->bias, arena->aux);
  static struct arena got;
  accel_gpu_read(&got, arena, sizeof got);
  double column_sums[COLUMNS] = {0}, depth_sums_a[ROWS] = {0}, depth_sums_b[COLUMNS] = {0};
  for (int64_t n = 0; n < (batch > 0 ? batch : 1); n++)
    for (int64_t i = 0; i < ROWS; i++)
      for (int64_t j = 0; j < COLUMNS; j++) {
        int64_t at = n * p.y_step + i * p.y_row + j;
        double sum = accumulate ? host.y[at] : 0.0, aux = host.aux[at];
        for (int64_t k = 0; k < DEPTH; k++)
          sum += (double)host.a[n * p.a_step + i * p.a_row + k * p.a_column] *
                 (double)host.b[n * p.b_step + k * p.b_row + j * p.b_column];
        bool biased = epilogue == ACCEL_BIAS || epilogue == ACCEL_BIAS_GELU || epilogue == ACCEL_BIAS_RELU;
        if (biased) sum += host.bias[j];
        if (epilogue == ACCEL_GELU || epilogue == ACCEL_BIAS_GELU) {
          expect(sum, got.aux[at], "aux", epilogue);
          sum = gelu(sum);
        }
        if (epilogue == ACCEL_DGELU || epilogue == ACCEL_DGELU_SUM) sum *= gelu_slope(aux);
        if (relu) {
          expect(sum > 0.0, bit_of(got.aux, at), "mask", epilogue);
          sum = fmax(sum, 0.0);
        }
        if (drelu && !bit_of(host.aux, at)) sum = 0.0;
        expect(sum, got.y[at], "y", epilogue);
        column_sums[j] += sum;
      }
  for (int64_t k = 0; k < DEPTH; k++) {
    for (int64_t i = 0; i < ROWS; i++) depth_sums_a[i] += host.a[i * p.a_row + k * p.a_column];
    for (int64_t j = 0; j < COLUMNS; j++) depth_sums_b[j] += host.b[k * p.b_row + j * p.b_column];
  }
  for (int64_t j = 0; j < COLUMNS; j++) {
    if (epilogue == ACCEL_DGELU_SUM || epilogue == ACCEL_DRELU_SUM)
      expect(column_sums[j], got.bias[j], "sum", epilogue);
    if (epilogue == ACCEL_SUM_B) expect(depth_sums_b[j], got.bias[j], "sum of b", epilogue);
    if (epilogue == ACCEL_SUM_A && j < ROWS) expect(depth_sums_a[j], got.bias[j], "sum of a", epilogue);
  }
}

static void gemms(void) {
  open_device();
  for (int epilogue = ACCEL_PLAIN; epilogue <= ACCEL_SUM_B; epilogue++)
    for (int transposed = 0; transposed < 4; transposed++)
      check_gemm((enum accel_epilogue)epilogue, transposed & 1, transposed & 2, false, 0);
  for (int transposed = 0; transposed < 4; transposed++)
    check_gemm(ACCEL_PLAIN, transposed & 1, transposed & 2, true, 3);
  check_gemm(ACCEL_SUM_A, true, false, true, 0);
  check_gemm(ACCEL_BIAS_GELU, false, true, false, 2);
  check_gemm(ACCEL_BIAS_RELU, false, true, false, 2);
  accel_gpu_close();
}

/* 1 + 2^-11 is 1 in ten bits of mantissa, and stays what it is in float32. */
static void rounds_factors(void) {
  static const float one = 1.0f, near_one = 1.0f + 1.0f / 2048.0f;
  open_device();
  for (int tf32 = 0; tf32 < 2; tf32++) {
    struct accel_gpu_gemm p = {.name = "tf32",
                               .tf32 = tf32,
                               .rows = 1,
                               .columns = 1,
                               .depth = 1,
                               .y_row = 4,
                               .a_row = 4,
                               .a_column = 1,
                               .b_row = 4,
                               .b_column = 1};
    float y;
    accel_gpu_open_gemm(&p);
    accel_gpu_write(arena->a, &near_one, sizeof near_one);
    accel_gpu_write(arena->b, &one, sizeof one);
    accel_gpu_multiply(&p, accel_gpu_stream(ACCEL_COMPUTE), arena->y, arena->a, arena->b, NULL, NULL);
    accel_gpu_read(&y, arena->y, sizeof y);
    if (y != (tf32 ? one : near_one)) exit(3 + tf32);
  }
  accel_gpu_close();
}

static void test_tf32(void **state) {
  char text[1024];
  (void)state;
  assert_int_equal(ended(rounds_factors, "", text, sizeof text), 0);
}

static void no_algorithm(void) {
  open_device();
  check_gemm(ACCEL_PLAIN, false, false, false, 0);
}

static void test_gemms(void **state) {
  char text[1024];
  (void)state;
  static const char *const libraries[] = {"", "STANDIN_SUMS=0"};
  for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
    int status = ended(gemms, libraries[i], text, sizeof text);
    if (status != 0) print_error("%s\n", text);
    assert_int_equal(status, 0);
  }
  assert_int_equal(ended(no_algorithm, "STANDIN_FAIL=cublasLtMatmulAlgoGetHeuristic", text, sizeof text), 1);
  assert_non_null(strstr(text, "no algorithm for the matmul of test, 8 x 24 x 16"));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_start),  cmocka_unit_test(test_priorities),
                                     cmocka_unit_test(test_steps),  cmocka_unit_test(test_tf32),
                                     cmocka_unit_test(test_breaks), cmocka_unit_test(test_gemms)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
