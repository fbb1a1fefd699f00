/* States and trained layers that a program has on a disk while it trains (parallelism.offload): arrays of
 * program->states and parameters that are in files, of which the program holds some elements at a time. Errors as in
 * trainer.h: what cannot be read or written ends the process. */
#ifndef ACCEL_DISK_H
#define ACCEL_DISK_H

#include "program.h"

#include <stddef.h>

/* Begins: values[bytes] becomes the bytes of state `state` from its byte `first` on. The memory is the caller's;
 * nothing touches it until accel_wait_disk. Multiples of 4096 bytes, in memory, in the state and as a size, pass by the
 * system's cache. Of two that share memory, or bytes of a state, the second one begins when the first has ended. */
void accel_start_load(int state, size_t first, void *values, size_t bytes);

/* The same, from memory to the disk. */
void accel_start_store(int state, size_t first, const void *values, size_t bytes);

/* Begins: values[bytes] becomes the layer of program->reads whose offsets are from `first` on; the memory is where that
 * comes to. Otherwise as accel_start_load. 0 bytes: nothing begins. */
void accel_start_load_layer(size_t first, void *values, size_t bytes);

/* The same, from memory to the disk. */
void accel_start_store_layer(size_t first, const void *values, size_t bytes);

/* Waits until nothing that was begun uses memory[bytes] any more. */
void accel_wait_disk(const void *memory, size_t bytes);

#endif
