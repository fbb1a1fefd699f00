/* The stand-ins find what they are there to find: each case breaks one rule on purpose, and its twin keeps it. */
#include "tests/cuda/standin/standin.h"
#include "tests/runtime/cmocka_all.h"
#include "tests/tcp/children.h"

#include <cublasLt.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 4096 };

static cudaStream_t one, two;
static cudaEvent_t event;
static char *memory, *other, *pinned;

static void open_all(void) {
  int count;
  cudaGetDeviceCount(&count);
  cudaSetDevice(0);
  cudaStreamCreateWithPriority(&one, cudaStreamNonBlocking, 0);
  cudaStreamCreateWithPriority(&two, cudaStreamNonBlocking, -5);
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  cudaMalloc((void **)&memory, BYTES);
  cudaMalloc((void **)&other, BYTES);
  cudaHostAlloc((void **)&pinned, BYTES, 0);
}

static void close_all(void) {
  cudaDeviceSynchronize();
  cudaStreamDestroy(one);
  cudaStreamDestroy(two);
  cudaEventDestroy(event);
  cudaFree(memory);
  cudaFree(other);
  cudaFreeHost(pinned);
}

/* ---- Order ---- */

static void fill(cudaStream_t stream) {
  cudaMemsetAsync(memory, 1, BYTES, stream);
}
static void copy_from(cudaStream_t stream) {
  cudaMemcpyAsync(other, memory, BYTES, cudaMemcpyDeviceToDevice, stream);
}
static void order(cudaStream_t before, cudaStream_t after) {
  cudaEventRecord(event, before);
  cudaStreamWaitEvent(after, event, 0);
}

static void good_order(void) {
  open_all();
  fill(one);
  order(one, two);
  copy_from(two);
  order(two, one);
  fill(one);
  close_all();
}

static void read_without_wait(void) {
  open_all();
  fill(one);
  copy_from(two);
  close_all();
}

static void write_without_wait(void) {
  open_all();
  fill(one);
  order(one, two);
  copy_from(two);
  fill(one); /* two may still read */
  close_all();
}

static void wait_too_early(void) {
  open_all();
  fill(one);
  order(one, two);
  fill(one);
  copy_from(two);
  close_all();
}

static void wait_for_nothing(void) {
  open_all();
  cudaStreamWaitEvent(two, event, 0);
  close_all();
}

static void host_reads_late(void) {
  open_all();
  fill(one);
  cudaMemcpyAsync(pinned, memory, BYTES, cudaMemcpyDeviceToHost, one);
  cudaEventRecord(event, one);
  cudaEventSynchronize(event);
  standin_touch(pinned, BYTES, false);
  close_all();
}

static void host_reads_early(void) {
  open_all();
  fill(one);
  cudaMemcpyAsync(pinned, memory, BYTES, cudaMemcpyDeviceToHost, one);
  standin_touch(pinned, BYTES, false);
  close_all();
}

static void host_writes_early(void) {
  open_all();
  cudaMemcpyAsync(memory, pinned, BYTES, cudaMemcpyHostToDevice, one);
  standin_touch(pinned, 4, true);
  close_all();
}

/* ---- Kernels ---- */

struct pair {
  char *from, *to;
};

static void run_pair(const void *arguments) {
  const struct pair *pair = arguments;
  standin_touch(pair->from, 4, false);
  standin_touch(pair->to, 4, true);
}

static void kernels(cudaStream_t second) {
  struct pair pair = {memory, other}, back = {other, memory};
  fill(one);
  standin_launch(one, "kernel_a", run_pair, &pair, sizeof pair);
  standin_launch(second, "kernel_b", run_pair, &back, sizeof back);
}
static void kernels_in_order(void) {
  open_all();
  kernels(one);
  close_all();
}
static void concurrent_kernels(void) {
  open_all();
  kernels(two);
  close_all();
}
static void kernel_beyond(void) {
  struct pair pair = {memory + BYTES - 2, other};
  open_all();
  pair.from = memory + BYTES - 2;
  pair.to = other;
  standin_launch(one, "kernel_c", run_pair, &pair, sizeof pair);
  close_all();
}

/* ---- Graphs ---- */

static cudaGraphExec_t captured(bool joined, bool waits) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaStreamBeginCapture(one, cudaStreamCaptureModeThreadLocal);
  fill(one);
  order(one, two);
  copy_from(two);
  if (!waits) cudaMemsetAsync(other, 2, BYTES, one);
  if (joined) order(two, one);
  if (waits) cudaMemsetAsync(other, 2, BYTES, one);
  cudaStreamEndCapture(one, &graph);
  cudaGraphInstantiateWithFlags(&exec, graph, 0);
  cudaGraphDestroy(graph);
  return exec;
}

static void good_graph(void) {
  open_all();
  cudaGraphExec_t exec = captured(true, true);
  for (int i = 0; i < 3; i++) cudaGraphLaunch(exec, one);
  cudaMemcpyAsync(pinned, other, BYTES, cudaMemcpyDeviceToHost, one);
  cudaStreamSynchronize(one);
  if (pinned[7] != 2) exit(3);
  cudaGraphExecDestroy(exec);
  close_all();
}
static void race_in_graph(void) {
  open_all();
  cudaGraphExec_t exec = captured(true, false);
  cudaGraphLaunch(exec, one);
}
static void race_with_graph(void) {
  open_all();
  cudaGraphExec_t exec = captured(true, true);
  cudaGraphLaunch(exec, one);
  fill(two);
}
static void not_joined(void) {
  open_all();
  captured(false, true);
}
static void waits_in_capture(void) {
  open_all();
  cudaStreamBeginCapture(one, cudaStreamCaptureModeThreadLocal);
  cudaStreamSynchronize(two);
}
static void waits_for_outside(void) {
  open_all();
  cudaEventRecord(event, two);
  cudaStreamBeginCapture(one, cudaStreamCaptureModeThreadLocal);
  cudaStreamWaitEvent(one, event, 0);
}

/* ---- Memory and handles ---- */

static void beyond(void) {
  open_all();
  cudaMemsetAsync(memory + 8, 0, BYTES, one);
}
static void wrong_side(void) {
  open_all();
  cudaMemcpyAsync(pinned, memory, BYTES, cudaMemcpyHostToDevice, one);
}
static void freed_twice(void) {
  open_all();
  cudaFree(memory);
  cudaFree(memory);
}
static void used_after_free(void) {
  open_all();
  cudaFree(memory);
  fill(one);
}
static void ended_twice(void) {
  open_all();
  cudaEventDestroy(event);
  cudaEventDestroy(event);
}
static void another_kind(void) {
  open_all();
  cudaEventRecord((cudaEvent_t)one, one);
}
static void left_event(void) {
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
}
static void left_memory(void) {
  cudaMalloc((void **)&memory, BYTES);
}

/* ---- Matmuls ---- */

static void multiply(bool same, size_t workspace) {
  cublasLtHandle_t handle;
  cublasLtMatmulDesc_t what;
  cublasLtMatrixLayout_t square, wide;
  cublasLtMatmulPreference_t wish;
  cublasLtMatmulHeuristicResult_t result;
  size_t most = 1024;
  int found;
  float alpha = 1.0f, beta = 0.0f;
  open_all();
  cublasLtCreate(&handle);
  cublasLtMatmulDescCreate(&what, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  cublasLtMatrixLayoutCreate(&square, CUDA_R_32F, 8, 8, 8);
  cublasLtMatrixLayoutCreate(&wide, CUDA_R_32F, 8, 8, 16);
  cublasLtMatmulPreferenceCreate(&wish);
  cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most);
  cublasLtMatmulAlgoGetHeuristic(handle, what, square, square, square, square, wish, 1, &result, &found);
  cudaMemsetAsync(memory, 0, BYTES, one);
  cublasLtMatmul(handle, what, &alpha, memory, same ? square : wide, memory + 256, square, &beta, memory + 512, square,
                 memory + 512, square, &result.algo, other, workspace, one);
  cublasLtMatmulPreferenceDestroy(wish);
  cublasLtMatrixLayoutDestroy(square);
  cublasLtMatrixLayoutDestroy(wide);
  cublasLtMatmulDescDestroy(what);
  cublasLtDestroy(handle);
  close_all();
}
static void good_matmul(void) {
  multiply(true, 1024);
}
static void other_matmul(void) {
  multiply(false, 1024);
}
static void small_workspace(void) {
  multiply(true, 512);
}

static const struct {
  const char *name;
  void (*body)(void);
  const char *found; /* NULL: nothing is wrong */
} cases[] = {
    {"work in order", good_order, NULL},
    {"a read that does not wait", read_without_wait, "reads byte 0 of an allocation of 4096 without waiting for"},
    {"a write that does not wait", write_without_wait, "writes byte 0"},
    {"a wait for what was done before", wait_too_early, "reads byte 0"},
    {"a wait for an event that never was", wait_for_nothing, "never recorded"},
    {"the host reads what is there", host_reads_late, NULL},
    {"the host reads too early", host_reads_early, "of the host reads byte 0"},
    {"the host writes too early", host_writes_early, "of the host writes byte 0"},
    {"kernels in order", kernels_in_order, NULL},
    {"concurrent kernels", concurrent_kernels, "kernel_b of stream 2 reads byte 0"},
    {"a kernel beyond its memory", kernel_beyond, "kernel_c: 4 bytes"},
    {"a graph", good_graph, NULL},
    {"a race in a graph", race_in_graph, "without waiting"},
    {"a race with a graph", race_with_graph, "without waiting"},
    {"a stream of a capture that is not joined", not_joined, "is not joined"},
    {"a wait in a capture", waits_in_capture, "while a stream is being captured"},
    {"a capture that waits for an event from outside", waits_for_outside, "from outside of the capture"},
    {"a write beyond memory", beyond, "reach 8 bytes beyond"},
    {"a copy from the wrong side", wrong_side, "is not device memory but pinned"},
    {"memory given back twice", freed_twice, "was given back"},
    {"memory used after its end", used_after_free, "is not device memory"},
    {"an event ended twice", ended_twice, "the event has ended"},
    {"a handle of another kind", another_kind, "is of kind stream, not of kind event"},
    {"an event that is left", left_event, "1 event is left at the end"},
    {"memory that is left", left_memory, "4096 bytes of memory are left"},
    {"a matmul", good_matmul, NULL},
    {"an algorithm of another matmul", other_matmul, "was chosen for another matmul"},
    {"too little workspace", small_workspace, "less workspace"},
};

static void test_cases(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[1024];
    int status = ended(cases[i].body, "", text, sizeof text);
    bool right =
        cases[i].found == NULL ? status == 0 : status == STANDIN_STATUS && strstr(text, cases[i].found) != NULL;
    if (!right) print_error("%s: status %d, '%s'\n", cases[i].name, status, text);
    assert_true(right);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
