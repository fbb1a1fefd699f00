/* Streams: layers that come to the device before each use, from the host or from the files of the weights. */
#ifndef ACCEL_PROGRAM_STREAMS_H
#define ACCEL_PROGRAM_STREAMS_H

#include "gen/program/program.h"

/* Pieces of the host's memory by way of which layers come from files to a device with a memory of its own. */
enum { STREAM_PIECES = 2 };

/* Bytes into which a program on a processor reads blocks of layers past the system's cache, in addition to its arena:
 * four of 4 MiB and two pages (runtime/weights/streamed.c). */
enum { STREAM_BUFFERS = 4 * ((4 << 20) + (8 << 10)) };

/* What a program takes of these; 0: none of its layers come from files of the weights to a processor. */
int64_t stream_buffer_bytes(const struct program *program);

/* The bytes of unit `number` of program->ranks.fsdp_units, one layer. */
int64_t streamed_unit_bytes(const struct program *program, int number);

/* The bytes of all layers that come from files, or from the host. */
int64_t streamed_bytes(const struct program *program, bool on_disk);

/* The first units that come from the host; the others come from files. */
int streamed_from_host(const struct program *program);

/* Whether they are trained, in a file of the run's own (parallelism.offload.param: nvme), instead of in those of the
 * weights that it starts from. */
bool layers_are_on_disk(const struct program *program);

/* The bytes of the largest layer that comes from a file; 0: none does. */
int64_t largest_read(const struct program *program);

#endif
