/* matmul: how fast a library multiplies the matrices of training, on this machine.
 *
 * usage: matmul KIND LIBRARY THREADS SHAPE MODE
 *
 *   KIND     dnnl (dnnl_sgemm), dnnl16 (oneDNN's gemm of bfloat16 that gives floats) or cblas (cblas_sgemm)
 *   LIBRARY  the shared library, loaded by name, so that one binary measures all of them
 *   SHAPE    tiny, small or gpt2: the linear layers of the three models that `ninja bench` trains
 *   MODE     plain: one call a matmul, the library's threads
 *            loops: the same, with an OpenMP loop over the result between the calls, as a trainer has them
 *            split: one OpenMP region of our own, each thread calling for its part of the result
 *
 * Prints one line: GFLOP/s of all matmuls, of the forward ones, of the input gradients, of the weight gradients, for
 * the fastest of some rounds, and of all matmuls in the median round. tests/bench/matmul.sh interleaves the libraries
 * and takes medians. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <omp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A linear layer: y [rows][out] = x [rows][in] times weight [out][in]
 * transposed. */
struct layer {
  long rows, in, out;
  void *x, *weight, *dy; /* the factors */
  float *y, *dx, *dweight;
};

struct shape {
  const char *name;
  long rows, width, layers, vocabulary;
};

static const struct shape shapes[] = {
    {"tiny", 12 * 64, 128, 4, 65}, {"small", 8 * 256, 384, 6, 65}, {"gpt2", 4 * 64, 768, 12, 50257}};

typedef int (*dnnl_sgemm_fn)(char, char, int64_t, int64_t, int64_t, float, const float *, int64_t, const float *,
                             int64_t, float, float *, int64_t);
typedef void (*cblas_sgemm_fn)(int, int, int, int, int, int, float, const float *, int, const float *, int, float,
                               float *, int);

typedef int (*dnnl_gemm16_fn)(char, char, int64_t, int64_t, int64_t, float, const uint16_t *, int64_t, const uint16_t *,
                              int64_t, float, float *, int64_t);

static dnnl_sgemm_fn dnnl_sgemm;
static dnnl_gemm16_fn dnnl_gemm16;
static cblas_sgemm_fn cblas_sgemm;
static bool loops, split;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* c [m][n] = op(a) op(b), row-major, dense rows; ldc is the extent of a row of
 * c. */
static void call(bool ta, bool tb, long m, long n, long k, const void *a, long lda, const void *b, long ldb, float *c,
                 long ldc) {
  if (dnnl_gemm16 != NULL) {
    dnnl_gemm16(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, 1, a, lda, b, ldb, 0, c, ldc);
  } else if (dnnl_sgemm != NULL) {
    dnnl_sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, 1, a, lda, b, ldb, 0, c, ldc);
  } else {
    cblas_sgemm(101, ta ? 112 : 111, tb ? 112 : 111, (int)m, (int)n, (int)k, 1, a, (int)lda, b, (int)ldb, 0, c,
                (int)ldc);
  }
}

/* The part of a result that one thread takes: columns when there are more of
 * them than rows. */
static void call_part(bool ta, bool tb, long m, long n, long k, const void *a, const void *b, float *c, long part,
                      long parts) {
  long size = dnnl_gemm16 != NULL ? 2 : 4;
  long lda = ta ? m : k, ldb = tb ? k : n;
  if (n >= m) {
    long from = n * part / parts, to = n * (part + 1) / parts;
    call(ta, tb, m, to - from, k, a, lda, (const char *)b + from * (tb ? k : 1) * size, ldb, c + from, n);
  } else {
    long from = m * part / parts, to = m * (part + 1) / parts;
    call(ta, tb, to - from, n, k, (const char *)a + from * (ta ? 1 : k) * size, lda, b, ldb, c + from * n, n);
  }
}

static void matmul(bool ta, bool tb, long m, long n, long k, const void *a, const void *b, float *c) {
  if (split) {
#pragma omp parallel
    call_part(ta, tb, m, n, k, a, b, c, omp_get_thread_num(), omp_get_num_threads());
  } else {
    call(ta, tb, m, n, k, a, ta ? m : k, b, tb ? k : n, c, n);
  }
}

/* What a trainer does between two matmuls: a pass over the result by all
 * threads. Not counted. */
static void between(float *c, long count) {
  if (!loops) return;
#pragma omp parallel for
  for (long i = 0; i < count; i++) c[i] = c[i] * 0.5f + 1e-3f;
}

static float *numbers(long count) {
  float *values = aligned_alloc(64, ((size_t)count * sizeof *values + 63) / 64 * 64);
  if (values == NULL) exit(1);
  for (long i = 0; i < count; i++) values[i] = (float)((i * 2654435761u >> 7) % 1024) / 1024 - 0.5f;
  return values;
}

/* A factor, as the library takes it. */
static void *factors(long count) {
  float *values = numbers(count);
  uint16_t *halves = (uint16_t *)values;
  for (long i = 0; i < count && dnnl_gemm16 != NULL; i++) {
    uint32_t bits;
    memcpy(&bits, &values[i], sizeof bits);
    halves[i] = (uint16_t)(bits >> 16);
  }
  return values;
}

static struct layer make_layer(long rows, long in, long out) {
  return (struct layer){rows,
                        in,
                        out,
                        factors(rows * in),
                        factors(out * in),
                        factors(rows * out),
                        numbers(rows * out),
                        numbers(rows * in),
                        numbers(out * in)};
}

static int make_layers(const struct shape *shape, struct layer *layers) {
  int count = 0;
  long width = shape->width;
  for (long i = 0; i < shape->layers; i++) {
    layers[count++] = make_layer(shape->rows, width, 3 * width);
    layers[count++] = make_layer(shape->rows, width, width);
    layers[count++] = make_layer(shape->rows, width, 4 * width);
    layers[count++] = make_layer(shape->rows, 4 * width, width);
  }
  layers[count++] = make_layer(shape->rows, width, shape->vocabulary);
  return count;
}

static void forward(struct layer *l, double *seconds) {
  double start = now();
  matmul(false, true, l->rows, l->out, l->in, l->x, l->weight, l->y);
  seconds[0] += now() - start;
  between(l->y, l->rows * l->out);
}

static void backward(struct layer *l, double *seconds) {
  double start = now();
  matmul(false, false, l->rows, l->in, l->out, l->dy, l->weight, l->dx);
  seconds[1] += now() - start;
  between(l->dx, l->rows * l->in);
  start = now();
  matmul(true, false, l->out, l->in, l->rows, l->dy, l->x, l->dweight);
  seconds[2] += now() - start;
  between(l->dweight, l->out * l->in);
}

static void load(const char *kind, const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (library == NULL) {
    fprintf(stderr, "matmul: %s\n", dlerror());
    exit(77);
  }
  bool dnnl = strcmp(kind, "dnnl") == 0, half = strcmp(kind, "dnnl16") == 0;
  void *function = dlsym(library, half ? "dnnl_gemm_bf16bf16f32" : dnnl ? "dnnl_sgemm" : "cblas_sgemm");
  if (function == NULL) {
    fprintf(stderr, "matmul: no shape in %s\n", path);
    exit(77);
  }
  memcpy(half ? (void *)&dnnl_gemm16 : dnnl ? (void *)&dnnl_sgemm : (void *)&cblas_sgemm, &function, sizeof function);
  const uint16_t one = 0x3f80;
  float y = 0;
  if (half && dnnl_gemm16('N', 'N', 1, 1, 1, 1, &one, 1, &one, 1, 0, &y, 1) != 0) exit(77); /* not on this processor */
}

enum { MOST_ROUNDS = 4096 };

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Rounds for about a second, at least three. */
static void measure(struct layer *layers, int count) {
  static double totals[MOST_ROUNDS];
  double flops = 0, best[3] = {0}, least = 1e30;
  int n_totals = 0;
  for (int i = 0; i < count; i++) flops += 2.0 * (double)layers[i].rows * (double)layers[i].in * (double)layers[i].out;
  double start = now();
  for (int round = 0; round < 4 || (now() - start < 1 && n_totals < MOST_ROUNDS); round++) {
    double seconds[3] = {0};
    for (int i = 0; i < count; i++) forward(&layers[i], seconds);
    for (int i = count - 1; i >= 0; i--) backward(&layers[i], seconds);
    double total = seconds[0] + seconds[1] + seconds[2];
    if (round > 0) totals[n_totals++] = total; /* the first one warms up */
    if (round == 0 || total >= least) continue;
    least = total;
    memcpy(best, seconds, sizeof best);
  }
  qsort(totals, (size_t)n_totals, sizeof *totals, by_size);
  printf("%.1f %.1f %.1f %.1f %.1f\n", 3 * flops / least / 1e9, flops / best[0] / 1e9, flops / best[1] / 1e9,
         flops / best[2] / 1e9, 3 * flops / totals[n_totals / 2] / 1e9);
}

int main(int argc, char **argv) {
  if (argc != 6) {
    fprintf(stderr, "usage: matmul dnnl|dnnl16|cblas LIBRARY THREADS "
                    "tiny|small|gpt2 plain|loops|split\n");
    return 2;
  }
  omp_set_num_threads(atoi(argv[3]));
  loops = strcmp(argv[5], "loops") == 0;
  split = strcmp(argv[5], "split") == 0;
  load(argv[1], argv[2]);
  static struct layer layers[64];
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
    if (strcmp(shapes[i].name, argv[4]) == 0) measure(layers, make_layers(&shapes[i], layers));
  return 0;
}
