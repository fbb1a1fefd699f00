/* nvcuda::wmma on the processor: fragments shared out among the lanes of a warp, in an order of our own as the real one
 * is nobody's business, and matmuls that the lanes of a warp make together. What the real functions ask of addresses
 * and of lanes is checked. */
#ifndef HOST_MMA_H
#define HOST_MMA_H

#include <stdio.h>
#include <stdlib.h>

#include <type_traits>

#include <accel/gpu/launch.h>

#include "cuda_bf16.h"
#include "cuda_fp16.h"

namespace nvcuda {
namespace wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32;
}

/* Rounded to 10 bits of mantissa, to the nearest, ties away from 0. */
static inline float __float_to_tf32(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  if ((bits & 0x7f800000u) != 0x7f800000u) bits = (bits + 0x1000u) & ~0x1fffu;
  memcpy(&x, &bits, sizeof x);
  return x;
}

template <typename use, int m, int n, int k, typename type, typename layout = void> struct fragment {
  static constexpr int rows = std::is_same_v<use, matrix_b> ? k : m, columns = std::is_same_v<use, matrix_a> ? k : n;
  static constexpr int num_elements = rows * columns / 32;
  typedef std::conditional_t<std::is_same_v<type, precision::tf32>, float, type> number;
  static_assert(m == 16 && n == 16 && k == (std::is_same_v<type, precision::tf32> ? 8 : k), "shapes that there are");
  number x[num_elements];
};

/* Of element e of the lane at hand. */
template <typename of> static inline int host_row(int e) {
  return (e * 32 + (int)(threadIdx.x % 32)) / of::columns;
}
template <typename of> static inline int host_column(int e) {
  return (e * 32 + (int)(threadIdx.x % 32)) % of::columns;
}

static inline float host_number(float x) { /* of which tensor cores read 10 bits of mantissa */
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  bits &= ~0x1fffu;
  memcpy(&x, &bits, sizeof x);
  return x;
}
static inline float host_number(__nv_bfloat16 x) {
  return __bfloat162float(x);
}
static inline float host_number(__half x) {
  return __half2float(x);
}

static inline void host_check(const void *at, size_t pitch_bytes) {
  const char *why = NULL;
  if ((uintptr_t)at % 32 != 0) why = "an address that is no multiple of 32 bytes";
  if (pitch_bytes % 16 != 0) why = "lines that do not begin at multiples of 16 bytes";
  if (__shfl_sync(0xffffffffu, (uintptr_t)at, 0) != (uintptr_t)at) why = "addresses that differ between lanes";
  if (why == NULL) return;
  fprintf(stderr, "a fragment is moved at %s\n", why);
  exit(1);
}

template <typename use, int m, int n, int k, typename type, typename layout, typename number>
static inline void load_matrix_sync(fragment<use, m, n, k, type, layout> &to, const number *from, unsigned pitch) {
  typedef fragment<use, m, n, k, type, layout> of;
  host_check(from, pitch * sizeof *from);
  for (int e = 0; e < of::num_elements; e++) {
    const int row = host_row<of>(e), column = host_column<of>(e);
    to.x[e] = std::is_same_v<layout, row_major> ? from[row * pitch + column] : from[column * pitch + row];
  }
  __syncwarp();
}

template <typename of>
static inline void store_matrix_sync(float *to, const of &from, unsigned pitch, layout_t layout) {
  host_check(to, pitch * sizeof *to);
  for (int e = 0; e < of::num_elements; e++) {
    const int row = host_row<of>(e), column = host_column<of>(e);
    to[layout == mem_row_major ? row * pitch + column : column * pitch + row] = from.x[e];
  }
}

template <typename of> static inline void fill_fragment(of &to, float x) {
  for (float &element : to.x) element = x;
}

template <typename sum, typename left, typename right>
static inline void mma_sync(sum &d, const left &a, const right &b, const sum &c) {
  static float all[32][2][16 * 16];
  float *rows = all[threadIdx.x / 32][0], *columns = all[threadIdx.x / 32][1];
  for (int e = 0; e < left::num_elements; e++)
    rows[host_row<left>(e) * left::columns + host_column<left>(e)] = host_number(a.x[e]);
  for (int e = 0; e < right::num_elements; e++)
    columns[host_row<right>(e) * right::columns + host_column<right>(e)] = host_number(b.x[e]);
  __syncwarp();
  for (int e = 0; e < sum::num_elements; e++) {
    float x = c.x[e];
    for (int i = 0; i < left::columns; i++)
      x += rows[host_row<sum>(e) * left::columns + i] * columns[i * right::columns + host_column<sum>(e)];
    d.x[e] = x;
  }
  __syncwarp();
}

} // namespace wmma
} // namespace nvcuda

#endif
