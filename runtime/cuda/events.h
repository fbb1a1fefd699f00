/* What a device did, as a table for people and as a trace for tools. Needs nothing of CUDA. */
#ifndef RUNTIME_CUDA_EVENTS_H
#define RUNTIME_CUDA_EVENTS_H

#include "include/accel/program.h"
#include "runtime/base/problem.h"

#include <stddef.h>
#include <stdint.h>

struct device_event {
  char *name; /* its own; NULL: there was no memory for it, or it is a step */
  int64_t step;
  bool is_step;                      /* the step as a whole, by the host's clock */
  uint32_t stream;                   /* as CUPTI numbers them */
  uint64_t start, end;               /* nanoseconds */
  uint64_t bytes;                    /* that it moved; 0: a kernel */
  uint32_t call;                     /* of CUDA that began it, as CUPTI numbers them; 0: unknown */
  int64_t interval;                  /* in which the host put it into a stream; 0: unknown */
  const struct accel_measured *part; /* of this interval; NULL: none */
};

struct device_events {
  struct device_event *items;
  size_t count, capacity;
  bool lost; /* there was no memory for all */
};

/* Takes an event, and its name. */
void rt_events_add(struct device_events *events, struct device_event event);
void rt_events_free(struct device_events *events);

/* A kernel's name as people write it, "layer_norm_12x64", from that of its symbol. The caller frees it; NULL: there was
 * no memory. */
char *rt_kernel_name(const char *symbol);

/* The table, of a part of the program instead of what that has run where events have one; with_flops: with the
 * rates of parts. Nothing when no step was measured. */
void rt_events_print(const struct device_events *events, bool with_flops);

/* profile_RANK.json in `folder`; NULL: none. */
bool rt_events_write(const struct device_events *events, const char *folder, struct problem *problem);

#endif
