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

/* The bytes of a plan's ring on the device, rounded so that each piece begins at a multiple of 256. */
size_t rt_cuda_stride(size_t bytes);

#endif
