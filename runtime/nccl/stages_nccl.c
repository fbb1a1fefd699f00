/* What one stage of a pipeline gives another, over NCCL.
 *
 * A call of NCCL's waits on the device until the other rank has made its own, and those of one communicator, or of one
 * stream, wait for each other. Two stages send to each other, and continue meanwhile. So the messages of each rank to
 * each of its neighbours have a communicator and a stream of their own, on both sides, and none waits for another one:
 * a message waits for its receipt alone, which is what `accel-gen audit` proves to end. Neighbours are those of a ring,
 * as the last stage of a rank gives to the first one of the next. Other ranks have a channel, from the lower one to the
 * higher one, where the program says that both add to the gradient of a parameter. */
#include "include/accel/gpu/collectives.h"
#include "runtime/gpu/state.h"
#include "runtime/nccl/groups.h"
#include "runtime/process/fail.h"

/* Several calls wait on the device at a time, and each takes multiprocessors meanwhile. */
enum { MOST_BLOCKS = 8, MOST_STARTED = 1024 };

struct channel {
  int other; /* the rank along the axis */
  ncclComm_t comm;
  accel_stream stream;
};

/* What is on its way, of messages that were started, from where, and the events of their ends. */
static struct {
  cudaEvent_t events[MOST_STARTED];
  const void *values[MOST_STARTED];
  int count, made;
} started;

static struct channels {
  struct channel items[MOST_CHANNELS / 2];
  int count;
} to, from;
static cudaEvent_t ready, arrived;

static cudaEvent_t event(void) {
  cudaEvent_t made;
  RT_CUDA(cudaEventCreateWithFlags(&made, cudaEventDisableTiming));
  return made;
}

/* ---- Beginning and end ---- */

static void open_channel(struct channel *channel, int other, ncclComm_t comm) {
  int lowest, highest;
  RT_CUDA(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
  *channel = (struct channel){.other = other, .comm = comm};
  RT_CUDA(cudaStreamCreateWithPriority(&channel->stream, cudaStreamNonBlocking, highest));
}

/* NCCL connects two ranks with their first message, for which the host waits. All ranks come to the channels in one
 * order, so that each of them finds its other end. */
static void connect(const struct channel *channel, bool sends) {
  char *at = rt_cuda_device()->arena + rt_cuda_device()->plan.workspace_offset;
  if (sends)
    RT_NCCL(ncclSend(at, 1, ncclUint8, 1, channel->comm, channel->stream));
  else
    RT_NCCL(ncclRecv(at, 1, ncclUint8, 0, channel->comm, channel->stream));
  RT_CUDA(cudaStreamSynchronize(channel->stream));
}

/* The channel from rank `giver` to rank `taker`: rank 0 of its communicator gives to rank 1. */
static void join(ncclComm_t comm, int own, int giver, int taker) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  const bool gives = own == giver, takes = own == taker;
  ncclComm_t made;
  config.maxCTAs = MOST_BLOCKS;
  RT_NCCL(ncclCommSplit(comm, gives || takes ? giver : NCCL_SPLIT_NOCOLOR, takes, &made, &config));
  if (!gives && !takes) return;
  struct channels *channels = gives ? &to : &from;
  if (channels->count == MOST_CHANNELS / 2) {
    struct problem problem;
    rt_problem(&problem, "`stage_pairs` has one rank with more than %d others", MOST_CHANNELS / 2);
    rt_fail(&problem, 1);
  }
  struct channel *channel = &channels->items[channels->count++];
  open_channel(channel, gives ? taker : giver, made);
  rt_nccl_watch(made);
  connect(channel, gives);
}

void rt_nccl_open_stages(ncclComm_t comm, const struct accel_program *program) {
  int ranks, own;
  RT_NCCL(ncclCommCount(comm, &ranks));
  RT_NCCL(ncclCommUserRank(comm, &own));
  for (int i = 0; i < ranks; i++) {
    const int next = (i + 1) % ranks;
    join(comm, own, i, next);
    if (ranks > 2) join(comm, own, next, i);
  }
  for (int i = 0; i < program->n_stage_pairs; i++)
    join(comm, own, program->stage_pairs[i].lower, program->stage_pairs[i].higher);
  ready = event();
  arrived = event();
}

static void close_channel(struct channel *channel) {
  RT_CUDA(cudaStreamDestroy(channel->stream));
  RT_NCCL(ncclCommFinalize(channel->comm));
  RT_NCCL(ncclCommDestroy(channel->comm));
  *channel = (struct channel){0};
}

static void close_channels(struct channels *channels) {
  for (int i = 0; i < channels->count; i++) close_channel(&channels->items[i]);
  channels->count = 0;
}

void rt_nccl_close_stages(void) {
  if (to.count + from.count == 0) return;
  close_channels(&to);
  close_channels(&from);
  for (int i = 0; i < started.made; i++) RT_CUDA(cudaEventDestroy(started.events[i]));
  RT_CUDA(cudaEventDestroy(ready));
  RT_CUDA(cudaEventDestroy(arrived));
  started.made = started.count = 0;
}

/* That to or from rank `other` along the axis. */
static const struct channel *channel_of(const struct channels *channels, int other) {
  for (int i = 0; i < channels->count; i++)
    if (channels->items[i].other == other) return &channels->items[i];
  struct problem problem;
  rt_problem(&problem, "rank %d along pp is not a neighbour of this one, nor of `stage_pairs`", other);
  rt_fail(&problem, 1);
}

/* ---- Messages ---- */

/* The channel's stream waits for what the compute stream holds by now. */
static void follow_compute(const struct channel *channel) {
  RT_CUDA(cudaEventRecord(ready, accel_gpu_stream(ACCEL_COMPUTE)));
  RT_CUDA(cudaStreamWaitEvent(channel->stream, ready, 0));
}

static void wait_for(cudaEvent_t end) {
  RT_CUDA(cudaStreamWaitEvent(accel_gpu_stream(ACCEL_COMPUTE), end, 0));
}

void accel_wait_sends(void) {
  for (int i = 0; i < started.count; i++) wait_for(started.events[i]);
  started.count = 0;
}

void accel_wait_send(const void *values) {
  int left = 0;
  for (int i = 0; i < started.count; i++) {
    const cudaEvent_t end = started.events[i];
    if (started.values[i] == values) {
      wait_for(end);
      continue;
    }
    started.events[i] = started.events[left]; /* one that is free again */
    started.events[left] = end;
    started.values[left++] = started.values[i];
  }
  started.count = left;
}

void accel_start_send(enum accel_axis axis, int other, const void *values, size_t bytes) {
  const struct channel *channel = channel_of(&to, other);
  (void)axis;
  if (started.count == MOST_STARTED) accel_wait_sends();
  if (started.count == started.made) started.events[started.made++] = event();
  follow_compute(channel);
  RT_NCCL(ncclSend(values, bytes, ncclUint8, 1, channel->comm, channel->stream));
  RT_CUDA(cudaEventRecord(started.events[started.count], channel->stream));
  started.values[started.count++] = values;
}

void accel_send(enum accel_axis axis, int other, const void *values, size_t bytes) {
  accel_start_send(axis, other, values, bytes);
  accel_wait_sends();
}

void accel_take(enum accel_axis axis, int other, void *values, size_t bytes) {
  const struct channel *channel = channel_of(&from, other);
  (void)axis;
  follow_compute(channel);
  RT_NCCL(ncclRecv(values, bytes, ncclUint8, 0, channel->comm, channel->stream));
  RT_CUDA(cudaEventRecord(arrived, channel->stream));
  wait_for(arrived);
}

void accel_receive(enum accel_axis axis, int other, void *values, size_t bytes) {
  accel_take(axis, other, values, bytes);
  accel_wait_sends();
}

/* A sum of two has the same bits in either order. The channel of the lower rank of both carries it. */
void accel_add_other(enum accel_axis axis, int other, float *values, size_t count) {
  int own;
  RT_NCCL(ncclCommUserRank(rt_nccl_along(axis), &own));
  const struct channel *channel = channel_of(own < other ? &to : &from, other);
  RT_NCCL(ncclAllReduce(values, values, count, ncclFloat32, ncclSum, channel->comm, rt_nccl_begin()));
  rt_nccl_wait();
}
