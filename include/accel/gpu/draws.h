/* Positions in the random stream: the host names one, going down from call to call, and kernels make a key of it. */
#ifndef ACCEL_GPU_DRAWS_H
#define ACCEL_GPU_DRAWS_H

#include <stdint.h>

/* The seed, and the calls that lead to the position from the entry, each as number * 65536 + iteration. The device
 * makes its key of that and of the micro-batch at hand. */
struct accel_draws {
  uint64_t seed;
  int32_t split; /* 0 in training, 1 in evaluation */
  int32_t depth;
  uint64_t before; /* added to the next call's */
  uint64_t calls[8];
};

#ifdef __cplusplus

#include <accel/gpu/launch.h>

/* The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). */
__device__ inline uint64_t accel_mix(uint64_t key, uint64_t position) {
  uint64_t z = key + 0x9E3779B97F4A7C15u * (position + 1);
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

/* The key of random numbers at a position of the stream: that over the calls that lead to it, from the micro-batch on.
 */
__device__ inline uint64_t accel_key(const accel_draws &stream, uint64_t position) {
  uint64_t key = accel_mix(stream.seed, position * 65536 + (uint64_t)stream.split);
  for (int i = 0; i < stream.depth; i++) key = accel_mix(key, stream.calls[i]);
  return key + 0x9E3779B97F4A7C15u * stream.before;
}

#else

/* As the processor's accel_stream and accel_stream_before make keys: */

/* The position of call `number`, iteration i, inside of what runs at `stream`. */
static inline struct accel_draws accel_draws(struct accel_draws stream, uint64_t number, uint64_t i) {
  stream.calls[stream.depth++] = stream.before + number * 65536 + i;
  stream.before = 0;
  return stream;
}

/* The position under which call 0 gives its iteration j what call `number` gives its iteration i + j. */
static inline struct accel_draws accel_draws_before(struct accel_draws stream, uint64_t number, uint64_t i) {
  stream.before += number * 65536 + i;
  return stream;
}

#endif

#endif
