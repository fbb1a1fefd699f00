/* How long cuBLASLt's algorithms take for a program's GEMMs, where they run: the same memory, and what is in the
 * caches there. */
#include "runtime/files/files.h"
#include "runtime/gpu/algorithm.h"
#include "runtime/gpu/state.h"
#include "runtime/process/fail.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ALGORITHMS = 16, ROUNDS = 3, RUNS = 5 };

/* By GEMM: {"name", "variants": [{"variant", "seconds"}]}. */
static json_t *measured;

/* One execution. What was in a result that adds up stays there: next to it the GEMM vanishes. */
static bool run(cublasLtHandle_t handle, const struct accel_gpu_gemm *gemm, const struct operands *operands,
                const cublasLtMatmulAlgo_t *algorithm, accel_stream stream) {
  const struct cuda_device *device = rt_cuda_device();
  const struct accel_gpu_algorithm *of = gemm->algorithm;
  const float factor = gemm->accumulate ? 1e-37f : 1.0f, old = gemm->accumulate ? 1.0f : 0.0f;
  return cublasLtMatmul(handle, of->what, &factor, operands->b, of->b, operands->a, of->a, &old, operands->y, of->y,
                        operands->y, of->y, algorithm, device->arena + device->plan.workspace_offset,
                        device->plan.workspace_bytes, stream) == CUBLAS_STATUS_SUCCESS;
}

static int by_size(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

/* The median over rounds of the seconds of one execution; 0 where the algorithm does not run. */
static double time_of(cublasLtHandle_t handle, const struct accel_gpu_gemm *gemm, const struct operands *operands,
                      const cublasLtMatmulAlgo_t *algorithm, accel_stream stream) {
  cudaEvent_t started, ended;
  float rounds[ROUNDS];
  bool good = run(handle, gemm, operands, algorithm, stream);
  RT_CUDA(cudaEventCreateWithFlags(&started, cudaEventDefault));
  RT_CUDA(cudaEventCreateWithFlags(&ended, cudaEventDefault));
  for (int round = 0; round < ROUNDS && good; round++) {
    RT_CUDA(cudaEventRecord(started, stream));
    for (int i = 0; i < RUNS; i++) good = run(handle, gemm, operands, algorithm, stream) && good;
    RT_CUDA(cudaEventRecord(ended, stream));
    RT_CUDA(cudaEventSynchronize(ended));
    RT_CUDA(cudaEventElapsedTime(&rounds[round], started, ended));
  }
  RT_CUDA(cudaEventDestroy(started));
  RT_CUDA(cudaEventDestroy(ended));
  if (!good) return 0;
  qsort(rounds, ROUNDS, sizeof *rounds, by_size);
  return 1e-3 * rounds[ROUNDS / 2] / RUNS;
}

void rt_measure_gemm(cublasLtHandle_t handle, const struct accel_gpu_gemm *gemm, const struct operands *operands,
                     accel_stream stream) {
  cublasLtMatmulHeuristicResult_t found[MOST_ALGORITHMS];
  json_t *variants;
  if (measured == NULL) measured = json_object();
  if (json_object_get(measured, gemm->name) != NULL) return;
  json_object_set_new(measured, gemm->name, variants = json_array());
  int count = rt_algorithms(handle, gemm->algorithm, found, MOST_ALGORITHMS);
  for (int i = 0; i < count; i++) {
    char name[ALGORITHM_NAME];
    double seconds = time_of(handle, gemm, operands, &found[i].algo, stream);
    rt_algorithm_name(&found[i].algo, name);
    if (seconds > 0) json_array_append_new(variants, json_pack("{s:s, s:f}", "variant", name, "seconds", seconds));
  }
}

void rt_measured_write(void) {
  const char *file = getenv("ACCEL_MEASURE");
  const struct cudaDeviceProp *device = &rt_cuda_device()->properties;
  char library[LIBRARY_NAME];
  rt_blas_library(library);
  json_t *root = json_pack("{s:s, s:s, s:i, s:s, s:o*}", "format", "accel-measured-2", "device", device->name, "cores",
                           device->multiProcessorCount, "library", library, "matmuls", measured);
  char *text = json_dumps(root, JSON_INDENT(1));
  struct problem problem;
  rt_problem(&problem, "no memory for what was measured");
  if (text == NULL || !rt_write_file(file, BY_RENAME, text, strlen(text), NULL, &problem)) rt_warn("%s", problem.what);
  free(text);
  json_decref(root);
  measured = NULL;
}
