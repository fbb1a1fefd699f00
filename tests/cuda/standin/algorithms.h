/* Algorithms of the stand-in for cuBLASLt: STANDIN_ALGORITHMS of them (3) for every matmul, which give the same. */
#ifndef TESTS_CUDA_ALGORITHMS_H
#define TESTS_CUDA_ALGORITHMS_H

#include <cublasLt.h>
#include <stdbool.h>
#include <stddef.h>

/* As it stands in a cublasLtMatmulAlgo_t. */
enum { SETTINGS = 9 };
struct algorithm {
  const void *of; /* what the heuristic chose it for; NULL: it was made by its number */
  uint32_t settings[SETTINGS];
};

/* The heuristic's algorithm of this rank for a matmul; how many it has. */
struct algorithm algorithm_offered(int rank, const void *of);
int algorithms_offered(void);

struct algorithm algorithm_in(const cublasLtMatmulAlgo_t *from);
void algorithm_put(cublasLtMatmulAlgo_t *into, struct algorithm algorithm);

/* Whether it is set as one of those that are offered. */
bool algorithm_is_whole(const struct algorithm *algorithm);

/* Milliseconds that a matmul takes by it: the second one is the fastest. */
float algorithm_time(const struct algorithm *algorithm);

/* What a device that did nothing but matmuls would have taken so far, in milliseconds. */
extern float matmuls_time;

#endif
