#include "runtime/process/processor.h"

#include "include/accel/processor.h"

#include <stddef.h>
#if defined __aarch64__ && defined __linux__
#include <sys/auxv.h>
#endif

struct instructions {
  uint32_t bit;
  const char *name;
  bool there;
};

/* __builtin_cpu_supports takes literals alone. */
bool rt_processor_has(uint32_t needs, struct problem *problem) {
#if defined __x86_64__ && defined __GNUC__
  __builtin_cpu_init();
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  const struct instructions sets[] = {{ACCEL_HAS_AVX2, "AVX2", __builtin_cpu_supports("avx2") != 0},
                                      {ACCEL_HAS_AVX512, "AVX-512", wide},
                                      {ACCEL_HAS_AVX512_BF16, "AVX512-BF16", __builtin_cpu_supports("avx512bf16") != 0},
                                      {ACCEL_HAS_AVX512_FP16, "AVX512-FP16", __builtin_cpu_supports("avx512fp16") != 0},
                                      {ACCEL_HAS_AMX, "AMX", __builtin_cpu_supports("amx-tile") != 0}};
#elif defined __aarch64__ && defined __linux__
  /* Of Linux's asm/hwcap.h, which older headers have not whole. */
  const struct instructions sets[] = {{ACCEL_HAS_SVE, "SVE", (getauxval(AT_HWCAP) & (1UL << 22)) != 0},
                                      {ACCEL_HAS_SVE2, "SVE2", (getauxval(AT_HWCAP2) & (1UL << 1)) != 0}};
#else
  const struct instructions sets[] = {{0, "", true}};
#endif
  for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
    if ((needs & sets[i].bit) == 0 || sets[i].there) continue;
    rt_problem(problem, "this program was compiled for processors with %s, which this machine's lacks", sets[i].name);
    return rt_help(problem, "build it on such a machine, or name its processor in the job: devices.arch");
  }
  return true;
}
