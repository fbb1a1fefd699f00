/* NCCL's communicators of a run: one for each axis of the mesh that has more than one rank. */
#ifndef RUNTIME_NCCL_GROUPS_H
#define RUNTIME_NCCL_GROUPS_H

#include "include/accel/gpu/device.h"
#include "include/accel/trainer.h"

#include <nccl.h>

/* Ends all ranks when a call of NCCL has failed. */
void rt_nccl_check(ncclResult_t result, const char *call, const char *file, int line);
#define RT_NCCL(call) rt_nccl_check((call), #call, __FILE__, __LINE__)

ncclComm_t rt_nccl_along(enum accel_axis axis);

/* Whether a rank differs from this one along `axis` alone, or is this one. */
bool rt_nccl_is_in_group(enum accel_axis axis, int rank);

/* The events that order the traffic stream and the compute stream. sums: those that are waited for one by one. */
void rt_nccl_open_order(size_t sums);
void rt_nccl_close_order(void);

/* The traffic stream, after all that the compute stream holds by now. */
accel_stream rt_nccl_begin(void);

/* Lets the compute stream wait for all that the traffic stream holds by now. What was started before is waited for by
 * its own calls as if this had not been called. */
void rt_nccl_wait(void);

/* The channels between ranks along `comm`, each of which has stages of a pipeline: their communicators go to watched[],
 * of which the number is returned, MOST_CHANNELS or less. And their end, where there are any. */
enum { MOST_CHANNELS = 4 };
int rt_nccl_open_stages(ncclComm_t comm, ncclComm_t *watched);
void rt_nccl_close_stages(void);

/* A thread that asks the communicators whether an error has come, ten times a second, and ends all ranks over one:
 * first the communicators, so that nothing on the device waits for ranks that will not come. */
void rt_nccl_watch(const ncclComm_t *comms, int count);
void rt_nccl_watch_end(void);

#endif
