/* The orders of epochs that user code fills (hooks.on_order). An order is a pure function of what user code gets, so a
 * table of one is a cache: filled when a step first needs a sample of its epoch, and again by a run that resumes. */
#ifndef RUNTIME_DATA_SAMPLER_H
#define RUNTIME_DATA_SAMPLER_H

#include "include/accel/trainer.h"

#include <stdbool.h>
#include <stdint.h>

struct sampler;

/* A sampler of epochs of `count` samples, each below `samples`. NULL when there is no memory for two orders. */
struct sampler *rt_sampler_make(accel_order_hook *fill, uint64_t seed, int64_t samples, int64_t count);

/* NULL is good. */
void rt_sampler_free(struct sampler *sampler);

/* positions[0] ... positions[count - 1] of an epoch become the samples at them. Any thread may call it. Where the order
 * of the epoch is not known yet, it is filled when `fills`, and false is given otherwise. A sample that is not among
 * those of the data ends the process with status 1, before any is used. */
bool rt_sampler_take(struct sampler *sampler, int64_t epoch, bool fills, int count, uint64_t *positions);

#endif
