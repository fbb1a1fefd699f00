/* What of a processor's instructions a program was compiled for: part of trainer.h, which a program includes, so that
 * it is the program's compiler that answers. */
#ifndef ACCEL_PROCESSOR_H
#define ACCEL_PROCESSOR_H

/* A bit for each set of instructions that the program's compiler took for granted. */
enum {
  ACCEL_HAS_AVX2 = 1,
  ACCEL_HAS_AVX512 = 2,
  ACCEL_HAS_AVX512_BF16 = 4,
  ACCEL_HAS_AVX512_FP16 = 8,
  ACCEL_HAS_AMX = 16,
  ACCEL_HAS_SVE = 32,
  ACCEL_HAS_SVE2 = 64,
  ACCEL_PROCESSOR = 0
#if defined __AVX2__
                    | ACCEL_HAS_AVX2
#endif
#if defined __AVX512F__ && defined __AVX512BW__ && defined __AVX512VL__ && defined __AVX512DQ__
                    | ACCEL_HAS_AVX512
#endif
#if defined __AVX512BF16__
                    | ACCEL_HAS_AVX512_BF16
#endif
#if defined __AVX512FP16__
                    | ACCEL_HAS_AVX512_FP16
#endif
#if defined __AMX_TILE__
                    | ACCEL_HAS_AMX
#endif
#if defined __ARM_FEATURE_SVE
                    | ACCEL_HAS_SVE
#endif
#if defined __ARM_FEATURE_SVE2
                    | ACCEL_HAS_SVE2
#endif
};

#endif
