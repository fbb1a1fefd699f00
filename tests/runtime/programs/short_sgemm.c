/* Preloaded, lets oneDNN's matrix product find no memory from its call SGEMM_FAILS_AT on, counted from 1: it writes
 * nothing and returns dnnl_out_of_memory. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

enum { OUT_OF_MEMORY = 1 };

typedef int sgemm(char, char, int64_t, int64_t, int64_t, float, const float *, int64_t, const float *, int64_t, float,
                  float *, int64_t);

sgemm dnnl_sgemm;

int dnnl_sgemm(char transa, char transb, int64_t rows, int64_t columns, int64_t depth, float alpha, const float *a,
               int64_t a_step, const float *b, int64_t b_step, float beta, float *c, int64_t c_step) {
  static int calls;
  sgemm *whole;
  if (__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) >= atoi(getenv("SGEMM_FAILS_AT"))) return OUT_OF_MEMORY;
  *(void **)&whole = dlsym(RTLD_NEXT, "dnnl_sgemm");
  return whole(transa, transb, rows, columns, depth, alpha, a, a_step, b, b_step, beta, c, c_step);
}
