#include "runtime/onednn/lines.h"

#include "runtime/base/half.h"
#include "runtime/base/wide.h"

/* The address sanitizer does not know how clones are chosen. */
#if RT_WIDE && !defined __SANITIZE_ADDRESS__
#define FOR_EACH_PROCESSOR __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif

FOR_EACH_PROCESSOR void rt_widen_lines(enum accel_element type, float *to, int64_t to_line, const uint16_t *from,
                                       int64_t line, int64_t lines, int64_t length) {
  for (int64_t i = 0; i < lines; i++) {
    float *restrict out = to + i * to_line;
    const uint16_t *restrict in = from + i * line;
    if (type == ACCEL_BF16)
#pragma omp simd
      for (int64_t j = 0; j < length; j++) out[j] = rt_widen_bfloat16(in[j]);
    else
#pragma omp simd
      for (int64_t j = 0; j < length; j++) out[j] = rt_widen_float16(in[j]);
  }
}

FOR_EACH_PROCESSOR void rt_store_lines(enum accel_element type, bool accumulate, void *to, int64_t line,
                                       const float *from, int64_t from_line, int64_t lines, int64_t length) {
  for (int64_t i = 0; i < lines; i++) {
    const float *restrict in = from + i * from_line;
    float *restrict wide = (float *)to + i * line;
    uint16_t *restrict low = (uint16_t *)to + i * line;
    if (type == ACCEL_F32)
#pragma omp simd
      for (int64_t j = 0; j < length; j++) wide[j] = accumulate ? wide[j] + in[j] : in[j];
    else if (type == ACCEL_BF16)
#pragma omp simd
      for (int64_t j = 0; j < length; j++)
        low[j] = rt_narrow_bfloat16(accumulate ? rt_widen_bfloat16(low[j]) + in[j] : in[j]);
    else
#pragma omp simd
      for (int64_t j = 0; j < length; j++)
        low[j] = rt_narrow_float16(accumulate ? rt_widen_float16(low[j]) + in[j] : in[j]);
  }
}
