/* Neighbours in memory that a thread moves in one access. For C++ that nvcc or hipcc compiles. */
#ifndef ACCEL_GPU_PACK_H
#define ACCEL_GPU_PACK_H

#include <stdint.h>

#include <accel/gpu/launch.h>

/* Neighbours that are moved in one access. */
template <typename type, int count> struct alignas(sizeof(type) * count) accel_pack {
  type items[count];
};

/* The neighbours from there on. */
template <int count, typename type> __device__ inline accel_pack<type, count> accel_load(const type *from) {
  return *(const accel_pack<type, count> *)from;
}

/* Stores neighbours from there on. */
template <int count, typename type> __device__ inline void accel_store(type *to, const accel_pack<type, count> &pack) {
  *(accel_pack<type, count> *)to = pack;
}

/* The same at to[at], a multiple of their count: of an index in packs a compiler sees that this is one access, of the
 * sum of a row's and a column's offset nvcc does not for architectures before sm_100. */
template <int count, typename type>
__device__ inline void accel_store(type *to, size_t at, const accel_pack<type, count> &pack) {
  ((accel_pack<type, count> *)to)[at / count] = pack;
}

/* Whether so many neighbours can be moved in one access, wherever one of these begins. */
template <int count> static inline bool accel_packs() {
  return true;
}
template <int count, typename type, typename... types>
static inline bool accel_packs(const type *first, const types *...rest) {
  return (uintptr_t)first % (sizeof(type) * count) == 0 && accel_packs<count>(rest...);
}

/* The addresses of so many arrays, as one argument of a kernel. */
template <typename type, int count> struct accel_addresses {
  type *items[count];
};

#endif
