/* Weights that a program reads from their file while it computes: layers that are not in memory for the whole run
 * (memory.device_map). Errors as in trainer.h: a file that cannot be read, or that changes, ends the process. */
#ifndef ACCEL_READS_H
#define ACCEL_READS_H

#include <stddef.h>

/* Begins: values[bytes] becomes the parameters whose offsets in the program's table are from `first` on, as the file
 * has them, converted as at the start. Nothing of it is touched until accel_wait_reads. 0 bytes: nothing begins. One
 * thread reads, in the order of the calls; the memory is the caller's. */
void accel_start_read(size_t first, void *values, size_t bytes);

/* Waits until all that was begun is there. */
void accel_wait_reads(void);

#endif
