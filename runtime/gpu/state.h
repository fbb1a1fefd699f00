/* What the files of this folder share: the device of the process. */
#ifndef RUNTIME_GPU_STATE_H
#define RUNTIME_GPU_STATE_H

#include "include/accel/gpu/device.h"
#include "runtime/gpu/check.h"

#include <cuda_runtime_api.h>

/* Events are cheap; what is ahead of the device is bounded by the plan. */
struct ring {
  char *host;    /* pinned: `ahead` pieces */
  char *device;  /* as many on the device; NULL: none */
  size_t stride; /* from one to the next */
  cudaEvent_t *copied, *taken;
  size_t *targets;    /* the slots of the arena to which they go */
  int64_t sent, done; /* pieces so far */
};

/* Bytes of the arena that have memory, from the first on, none adjacent to the next. */
struct segment {
  size_t first, bytes;
};

/* Weights on their way to the device. Those of files come through pieces of pinned memory in turns. */
enum { RT_PIECES = 2 };

/* A layer that a stream has read: as graphs have its address, it stays. */
struct layer_read {
  size_t first, bytes;
  char *values;
  struct layer_read *next;
};

struct prefetches {
  cudaEvent_t forked, begun, read, fetched; /* the compute stream's work before one; its turn in the prefetch stream;
                                               what is in pinned memory; what is on the device */
  bool fetches;                             /* one has begun that nothing has waited for yet */
  char *staging;                            /* NULL: none come from files */
  size_t stride;                            /* of a piece */
  int64_t reads;                            /* since a recording began */
  struct layer_read *layers;                /* what was read so far: a graph has these addresses */
};

struct cuda_device {
  const struct accel_program *program;
  struct accel_gpu_plan plan;
  int number; /* among the visible ones */
  struct cudaDeviceProp properties;
  char *arena;
  size_t reserved;          /* bytes at `arena` that are addresses */
  struct segment *segments; /* which of them have memory */
  int n_segments;
  accel_stream streams[ACCEL_STREAMS];
  cudaEvent_t *events; /* the program's */
  struct prefetches prefetches;
  struct ring feed, report;
  bool without_graphs; /* what was recorded is launched kernel by kernel */
  char *pinned;        /* the host's address of the states that are there alone; NULL: none do */
};

/* The same object at each call. */
struct cuda_device *rt_cuda_device(void);

/* Chooses the device, or says why there is none for this program. */
bool rt_cuda_choose(struct cuda_device *device, struct problem *problem);

/* Whether so many bytes of the device's memory are free; false with a problem. */
bool rt_cuda_fits(const struct cuda_device *device, size_t bytes, struct problem *problem);

/* Sets device->segments: the granules of device->reserved but for those within what the rank does not use. Free them
 * with free. */
void rt_cuda_find_segments(struct cuda_device *device, size_t granularity);

/* Bytes of all segments. */
size_t rt_cuda_mapped(const struct cuda_device *device);

/* What segment `number` has of `bytes` from `first` on; of 0 bytes where it has none. */
struct segment rt_cuda_within(const struct cuda_device *device, int number, size_t first, size_t bytes);

/* Reserves `bytes` of addresses, aligned to 2 MiB, and maps memory for the segments of them, zeroed. */
bool rt_cuda_map(struct cuda_device *device, size_t bytes, struct problem *problem);
void rt_cuda_unmap(struct cuda_device *device);

/* Ends what accel_gpu_pin has begun. */
void rt_cuda_unpin(struct cuda_device *device);

/* Makes the rings; `staging` has space for the feed's pieces on the device. */
void rt_cuda_rings_open(struct cuda_device *device, char *staging);
void rt_cuda_rings_close(struct cuda_device *device);

/* Whether GEMMs are to be measured, so that nothing is recorded into graphs: ACCEL_MEASURE is in the environment. */
bool rt_cuda_measures(void);

/* Gives the graphs back. */
void rt_cuda_graphs_close(void);

/* Gives handles, algorithms and plans back, where there are any: set by the files that make them, so that a program
 * without GEMMs, attention or convolutions is not linked with their libraries. */
extern void (*rt_cuda_close_gemms)(void);
extern void (*rt_cuda_close_engines)(void);
extern void (*rt_cuda_close_collectives)(void);

/* The events of prefetches, and their pinned memory. */
void rt_cuda_prefetch_open(struct cuda_device *device);
void rt_cuda_prefetch_close(struct cuda_device *device);

/* A recording begins, in which nothing waits for what was before. */
void rt_cuda_prefetch_record(struct cuda_device *device);

/* The prefetch stream, once it waits for what the compute stream holds by now; and a copy that it makes. */
accel_stream rt_cuda_prefetch_begin(struct cuda_device *device);
void rt_cuda_prefetch_copy(struct cuda_device *device, void *to, const void *from, size_t bytes);

/* A file could not be read: who waits for the device next ends the process. May be called by any thread. */
void rt_cuda_note_failed_read(void);

/* After a wait for the device: ends the process where a file could not be read. */
void rt_cuda_require_reads(void);

/* Makes `stream` wait for all that is prefetched by now, where nothing has waited for that yet. */
void rt_cuda_after_prefetch(accel_stream stream);

/* The bytes of a plan's ring on the device, rounded so that each piece begins at a multiple of 256. */
size_t rt_cuda_stride(size_t bytes);

#endif
