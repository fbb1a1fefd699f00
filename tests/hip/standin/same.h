/* Same: entry points of HIP that the stand-ins of CUDA (tests/cuda/standin) are under other names. Their parameters are
 * those of CUDA's, and the numbers of what the runtime passes are equal ("HIP Porting Guide" of the ROCm
 * documentation).
 */
#ifndef TESTS_HIP_SAME_H
#define TESTS_HIP_SAME_H

#if !defined __x86_64__
#error "a call continues in another function by an instruction of x86-64"
#endif

/* `name` continues in `other`, with its arguments and its result. At file level. */
#define SAME(name, other)                                                                                              \
  __asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n  jmp " #other "@PLT\n")

#endif
