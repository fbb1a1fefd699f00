/* Stand-ins for the entry points of CUDA, cuBLASLt, cuDNN and NCCL that a trainer calls: a library that is linked in
 * their position, where there is no GPU. "Device" memory is ordinary memory. Each piece of work is done when it is put
 * into a stream, or into a graph at each launch, and what it reads and writes is compared with what other streams and
 * the host do: two that touch the same memory, one of them writing, must be ordered by streams, events, graphs or waits
 * (Lamport, "Time, clocks, and the ordering of events", CACM 1978; FastTrack, PLDI 2009), whatever the order in which
 * they happened to run here. Also checked: bounds of allocations, arguments of calls, handles that are used after
 * their end or ended twice, what is left at the end, captures that are not joined, collectives that differ among ranks.
 *
 * What is found ends the process with status 70 and a line on standard error: "stand-in: rank 0: ...".
 *
 * The machine that is played: STANDIN_GPUS (8), STANDIN_ARCH (90), STANDIN_MEMORY (bytes, 16 GiB), STANDIN_DRIVER
 * (13000, 0: none), STANDIN_TIMEOUT (seconds that a rank waits in a collective, 30), STANDIN_FAIL=CALL:N lets the Nth
 * call of that name fail, STANDIN_ALGORITHMS (3) that cuBLASLt has for a matmul, STANDIN_SUMS (1: also with sums),
 * STANDIN_CUDNN (the version of its headers), STANDIN_WORKSPACE (bytes that cuDNN's engines take, as cuDNN itself),
 * STANDIN_VARIES (1: engines that note that their results vary add up backwards in every other call; 0: in none),
 * STANDIN_RDMA (1: memory of the driver's interface may be for GPUDirect RDMA), STANDIN_FABRIC (2: it may have handles
 * for other machines; 1: the GPU has them and gives none), STANDIN_HANDLES (1: and for other processes),
 * STANDIN_GRANULARITY (2 MiB) of memory of the driver's interface, where addresses without memory are not touched;
 * STANDIN_TRACE=FILE gets a line for each call. Of kernels that run by their PTX: STANDIN_ORDER (0: as they are
 * numbered) draws in which order blocks and warps take turns, STANDIN_ARRAYS=FILE has a line with the offset and the
 * bytes of each array of the program's arena, STANDIN_PTX=FILE has the PTX of the kernels, in place of the program's
 * own, STANDIN_COUNTS=FILE gets what their instructions cost (ptx/counts.h). */
#ifndef TESTS_CUDA_STANDIN_H
#define TESTS_CUDA_STANDIN_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdnoreturn.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { STANDIN_STATUS = 70 };

/* A kernel that is compiled for the host: run(arguments) runs all its blocks. The arguments are copied. What it touches
 * is seen when its file is compiled with -fsanitize=thread, at compile time alone: its hooks are defined here. */
void standin_launch(cudaStream_t stream, const char *name, void (*run)(const void *arguments), const void *arguments,
                    size_t bytes);

/* The host, or the kernel that runs, reads or writes memory: for code that is not instrumented. */
void standin_touch(const void *address, size_t bytes, bool writes);

#ifdef __cplusplus
}
#endif

#endif
