/* Loops over lanes for every width of registers. The runtime is compiled for all processors of a kind, and a program
 * may draw a hundred million numbers before its first step: such a loop is compiled once more for each of x86-64's
 * wider registers, and the widest that the processor has runs. The arithmetic is the same, so the bits are.
 *
 * RT_WIDE says whether to: where the compiler was given no processor, whose macro is that of the first one of x86-64.
 * A build for one has its text alone, as no function for one is inlined into a function for another. */
#ifndef RUNTIME_BASE_WIDE_H
#define RUNTIME_BASE_WIDE_H

#if defined __k8__ && defined __GNUC__ && !defined __AVX2__
#define RT_WIDE 1
#else
#define RT_WIDE 0
#endif

/* Defines NAME, and on x86-64 NAME_v3 and NAME_v4 for those levels of its psABI, of NAME_body, a static inline function
 * that always is inlined. `parameters` and `arguments` stand in brackets. */
#if RT_WIDE
#define RT_FOR_WIDTHS(name, parameters, arguments)                                                                     \
  RT_FOR_AVX2 void name##_v3 parameters {                                                                              \
    name##_body arguments;                                                                                             \
  }                                                                                                                    \
  RT_FOR_AVX512 void name##_v4 parameters {                                                                            \
    name##_body arguments;                                                                                             \
  }                                                                                                                    \
  void name parameters {                                                                                               \
    if (__builtin_cpu_supports("x86-64-v4"))                                                                           \
      name##_v4 arguments;                                                                                             \
    else if (__builtin_cpu_supports("x86-64-v3"))                                                                      \
      name##_v3 arguments;                                                                                             \
    else                                                                                                               \
      name##_body arguments;                                                                                           \
  }
#else
#define RT_FOR_WIDTHS(name, parameters, arguments)                                                                     \
  void name parameters {                                                                                               \
    name##_body arguments;                                                                                             \
  }
#endif

/* Of a function with intrinsics of these levels of the psABI, where RT_WIDE. */
#define RT_FOR_AVX2 __attribute__((target("arch=x86-64-v3")))
#define RT_FOR_AVX512 __attribute__((target("arch=x86-64-v4")))

#if defined __GNUC__
#define RT_INLINED static inline __attribute__((always_inline))
#else
#define RT_INLINED static inline
#endif

#endif
