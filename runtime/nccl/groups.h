/* NCCL's communicators of a run: one for each axis of the mesh that has more than one rank, and those of stages. */
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

/* Opens and connects the channels between ranks along `comm`, each of which has stages of a pipeline: those of
 * neighbours and of the program's `stage_pairs`. One rank has MOST_CHANNELS or fewer, half of them in either direction;
 * more end the program. Waits until the other ends have done so, too. */
enum { MOST_CHANNELS = 64 };
void rt_nccl_open_stages(ncclComm_t comm, const struct accel_program *program);

/* Closes the channels if there are any. After the last message has ended. */
void rt_nccl_close_stages(void);

/* Watches a communicator: a thread asks each of them whether an error has come, ten times a second, and ends all ranks
 * over one. It ends the communicators first, so that nothing on the device waits for ranks that will not come. There
 * are MOST_WATCHED or fewer: of all ranks, of axes and of channels. */
enum { MOST_WATCHED = 1 + ACCEL_AXES + MOST_CHANNELS };
void rt_nccl_watch(ncclComm_t comm);

/* Ends the thread. */
void rt_nccl_watch_end(void);

#endif
