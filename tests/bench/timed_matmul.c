/* Makes each matmul of a layer last as long as MATMUL_SECONDS says, by waiting after the product, for
 * tests/bench/bubble.py: cc -shared -fPIC, then LD_PRELOAD. The product is the library's. A process waits without a
 * core, so that several of them continue as if each had one. Matmuls over BUBBLE_VOCABULARY classes are as they are:
 * they are of the last stage alone. At the end it writes, to BUBBLE_OUT and the process's number, when the first one
 * began, when the last one ended, and the seconds between the begin and the end of each, added up. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

typedef int sgemm(char, char, int64_t, int64_t, int64_t, float, const float *, int64_t, const float *, int64_t, float,
                  float *, int64_t);

static struct {
  double each, first, last, busy;
  int64_t vocabulary;
  sgemm *real;
} timed;

static double now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static void wait_until(double at) {
  const struct timespec when = {.tv_sec = (time_t)at, .tv_nsec = (long)(1e9 * (at - (double)(time_t)at))};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) != 0) continue;
}

__attribute__((constructor)) static void begin(void) {
  const char *each = getenv("MATMUL_SECONDS"), *vocabulary = getenv("BUBBLE_VOCABULARY");
  timed.each = each != NULL ? atof(each) : 0;
  timed.vocabulary = vocabulary != NULL ? atoll(vocabulary) : 0;
  timed.real = (sgemm *)dlsym(RTLD_NEXT, "dnnl_sgemm");
}

__attribute__((destructor)) static void end(void) {
  char path[4096];
  const char *out = getenv("BUBBLE_OUT");
  if (out == NULL || timed.busy == 0) return;
  snprintf(path, sizeof path, "%s.%d", out, (int)getpid());
  FILE *file = fopen(path, "w");
  if (file == NULL) return;
  fprintf(file, "%.9f %.9f %.9f\n", timed.first, timed.last, timed.busy);
  fclose(file);
}

int dnnl_sgemm(char transa, char transb, int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t lda,
               const float *b, int64_t ldb, float beta, float *c, int64_t ldc) {
  const double begins = now();
  const int status = timed.real(transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  if (m == timed.vocabulary || n == timed.vocabulary || k == timed.vocabulary) return status;
  wait_until(begins + timed.each);
  timed.last = now();
  if (timed.first == 0) timed.first = begins;
  timed.busy += timed.last - begins;
  return status;
}
