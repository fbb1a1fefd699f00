/* What kernels need of CUDA's binary16. */
#ifndef HOST_CUDA_FP16_H
#define HOST_CUDA_FP16_H

struct __half {
  _Float16 value;
};

static inline float __half2float(__half x) {
  return (float)x.value;
}

static inline __half __float2half_rn(float x) {
  return {(_Float16)x};
}

#endif
