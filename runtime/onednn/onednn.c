#include "runtime/onednn/onednn.h"

#include "include/accel/gemm.h"
#include "runtime/base/problem.h"
#include "runtime/process/fail.h"

#include <omp.h>

static int status;

int accel_onednn_status(void) {
  return status;
}

void rt_onednn_note(dnnl_status_t found) {
#pragma omp atomic
  status |= (int)found;
}

dnnl_engine_t rt_onednn_engine(void) {
  static dnnl_engine_t engine;
  if (engine == NULL && dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success) {
    struct problem problem;
    rt_problem(&problem, "oneDNN cannot start; is it built for this processor?");
    rt_fail(&problem, 1);
  }
  return engine;
}

dnnl_stream_t rt_onednn_stream(void) {
  static dnnl_stream_t stream;
  if (stream == NULL && dnnl_stream_create(&stream, rt_onednn_engine(), dnnl_stream_default_flags) != dnnl_success) {
    struct problem problem;
    rt_problem(&problem, "oneDNN cannot start a stream");
    rt_fail(&problem, 1);
  }
  return stream;
}

int rt_set_threads(int threads) {
  int before = omp_get_max_threads();
  omp_set_num_threads(threads);
  return before;
}
