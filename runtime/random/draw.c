/* Random numbers that an emitted program takes by the array. */
#include "include/accel/trainer.h"
#include "runtime/random/normal.h"
#include "runtime/random/philox.h"

#include <string.h>

void accel_draw_normals(uint64_t seed, uint64_t number, float *values, size_t count) {
  enum { AT_ONCE = 4 * NORMAL_LANES };
  uint64_t stream = RT_STREAM(RT_USE_DRAW, number & 0xffffffffffffff);
  for (size_t at = 0; at < count; at += AT_ONCE) {
    uint32_t words[4][PHILOX_LANES];
    float normals[4][NORMAL_LANES];
    size_t left = count - at;
    rt_philox_lanes(seed, stream, at / 4, words);
    rt_normals(words[0], words[1], normals[0], normals[1]);
    rt_normals(words[2], words[3], normals[2], normals[3]);
    memcpy(values + at, normals, (left < AT_ONCE ? left : AT_ONCE) * sizeof *values);
  }
}
