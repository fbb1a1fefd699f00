/* Streams, events, captures, graphs. */
#include "tests/cuda/standin/algorithms.h"
#include "tests/cuda/standin/core.h"

#include <stdlib.h>
#include <string.h>

enum { LOCALS = 16, NODES = 1 << 20 };

struct CUstream_st {
  int actor;
  struct clock clock;
  int priority;
  struct CUgraph_st *capture; /* NULL: none continues */
  int local;                  /* its number in the capture */
  struct CUstream_st *next;
};

struct CUevent_st {
  bool is_recorded, is_timed;
  float time; /* of the device, when it was recorded last outside of a capture */
  struct clock clock;
  struct CUgraph_st *capture; /* in which it was recorded last; NULL: in none */
  int slot;                   /* its number there */
  uint32_t locals[LOCALS];    /* what the capture's streams had done */
};

/* A piece of work in a graph, or the recording of an event, or a wait for one. */
enum step { WORK, RECORD, WAIT };
struct node {
  enum step step;
  int local, slot;
  const char *name;
  work_run *run;
  void *arguments;
};

struct CUgraph_st {
  struct node *nodes;
  int n_nodes, capacity, n_slots, n_locals;
  uint32_t done[LOCALS][LOCALS]; /* for each of its streams, what it has waited for */
};

struct CUgraphExec_st {
  struct node *nodes;
  int n_nodes, n_slots, n_locals;
  int actors[LOCALS];
  struct clock last; /* at the end of its last launch */
};

static struct CUstream_st *streams;

static struct CUstream_st *stream_of(cudaStream_t stream, const char *what) {
  static struct CUstream_st *legacy;
  if (stream != NULL && stream != cudaStreamLegacy) return object_of(stream, STREAM, what);
  if (legacy == NULL) {
    legacy = calloc(1, sizeof *legacy);
    if (legacy == NULL) fault("no memory");
    legacy->actor = actor_new("the default stream");
    legacy->next = streams;
    streams = legacy;
  }
  return legacy;
}

void no_capture(const char *what) {
  for (const struct CUstream_st *at = streams; at != NULL; at = at->next)
    if (at->capture != NULL) fault("%s while a stream is being captured", what);
}

/* What the host has done comes before what it puts into a stream now. */
static void follow_host(struct clock *clock) {
  clock_join(clock, host_clock());
  host_clock()->at[0]++;
}

/* ---- Streams ---- */

cudaError_t cudaDeviceGetStreamPriorityRange(int *lowest, int *highest) {
  *lowest = 0;
  *highest = -5;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority) {
  static const char *const names[] = {"stream 1", "stream 2", "stream 3", "stream 4", "stream 5"};
  static int made;
  no_capture("cudaStreamCreateWithPriority");
  if (call("cudaStreamCreateWithPriority")) return cudaErrorMemoryAllocation;
  if (flags != cudaStreamNonBlocking) fault("a stream that waits for the default stream");
  if (priority > 0 || priority < -5) fault("a stream of the priority %d", priority);
  *stream = object_new(STREAM, sizeof **stream);
  (*stream)->priority = priority;
  (*stream)->actor = actor_new(made < 5 ? names[made] : "a stream");
  (*stream)->next = streams;
  streams = *stream;
  made++;
  return cudaSuccess;
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority) {
  *priority = stream_of(stream, "cudaStreamGetPriority")->priority;
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  struct CUstream_st *own = stream_of(stream, "cudaStreamDestroy");
  struct CUstream_st **at = &streams;
  if (own->capture != NULL) fault("cudaStreamDestroy of a stream that is being captured");
  while (*at != own) at = &(*at)->next;
  *at = own->next;
  object_end(stream, STREAM, "cudaStreamDestroy");
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (call("cudaStreamSynchronize")) return cudaErrorIllegalAddress;
  no_capture("cudaStreamSynchronize");
  clock_join(host_clock(), &stream_of(stream, "cudaStreamSynchronize")->clock);
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void) {
  if (call("cudaDeviceSynchronize")) return cudaErrorIllegalAddress;
  no_capture("cudaDeviceSynchronize");
  for (const struct CUstream_st *at = streams; at != NULL; at = at->next) clock_join(host_clock(), &at->clock);
  return cudaSuccess;
}

/* ---- Functions of the host ---- */

struct host_function {
  cudaHostFn_t run;
  void *with;
};

/* Of pinned memory it has touched what it has changed. */
static void run_host_function(const void *arguments) {
  const struct host_function *function = arguments;
  enum { MOST = 16, UNIT = 64 };
  char *from[MOST], *before[MOST];
  size_t bytes[MOST];
  int count = 0;
  for (; memory_pinned(count, &from[count], &bytes[count]); count++) {
    before[count] = count + 1 < MOST ? malloc(bytes[count]) : NULL;
    if (before[count] == NULL) fault("no memory");
    memcpy(before[count], from[count], bytes[count]);
  }
  function->run(function->with);
  for (int i = 0; i < count; i++) {
    for (size_t at = 0; at < bytes[i]; at += UNIT) {
      const size_t unit = bytes[i] - at < UNIT ? bytes[i] - at : UNIT;
      if (memcmp(before[i] + at, from[i] + at, unit) != 0) touch(from[i] + at, unit, true);
    }
    free(before[i]);
  }
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t run, void *with) {
  const struct host_function function = {run, with};
  if (call("cudaLaunchHostFunc")) return cudaErrorMemoryAllocation;
  submit(stream, "cudaLaunchHostFunc", run_host_function, &function, sizeof function);
  return cudaSuccess;
}

/* ---- Events ---- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
  if (call("cudaEventCreateWithFlags")) return cudaErrorMemoryAllocation;
  *event = object_new(EVENT, sizeof **event);
  (*event)->is_timed = (flags & cudaEventDisableTiming) == 0;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  object_end(event, EVENT, "cudaEventDestroy");
  return cudaSuccess;
}

static void add(struct CUgraph_st *graph, struct node node) {
  if (graph->n_nodes == graph->capacity) {
    graph->capacity = graph->capacity > 0 ? 2 * graph->capacity : 256;
    graph->nodes = realloc(graph->nodes, (size_t)graph->capacity * sizeof *graph->nodes);
    if (graph->nodes == NULL) fault("no memory");
  }
  graph->nodes[graph->n_nodes++] = node;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  struct CUevent_st *own = object_of(event, EVENT, "cudaEventRecord");
  struct CUstream_st *in = stream_of(stream, "cudaEventRecord");
  if (call("cudaEventRecord")) return cudaErrorInvalidResourceHandle;
  own->capture = in->capture;
  own->is_recorded = true;
  if (in->capture == NULL) {
    follow_host(&in->clock);
    own->clock = in->clock;
    own->time = matmuls_time;
    return cudaSuccess;
  }
  own->slot = in->capture->n_slots++;
  memcpy(own->locals, in->capture->done[in->local], sizeof own->locals);
  add(in->capture, (struct node){RECORD, in->local, own->slot, "cudaEventRecord", NULL, NULL});
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const struct CUevent_st *own = object_of(event, EVENT, "cudaEventSynchronize");
  if (call("cudaEventSynchronize")) return cudaErrorIllegalAddress;
  no_capture("cudaEventSynchronize");
  if (own->capture != NULL) fault("cudaEventSynchronize: the event was recorded in a capture");
  if (own->is_recorded) clock_join(host_clock(), &own->clock);
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t begun, cudaEvent_t ended) {
  const struct CUevent_st *first = object_of(begun, EVENT, "cudaEventElapsedTime");
  const struct CUevent_st *last = object_of(ended, EVENT, "cudaEventElapsedTime");
  if (call("cudaEventElapsedTime")) return cudaErrorNotReady;
  if (!first->is_timed || !last->is_timed) fault("cudaEventElapsedTime of an event that has no time");
  if (!first->is_recorded || !last->is_recorded || first->capture != NULL || last->capture != NULL)
    fault("cudaEventElapsedTime of an event that was not recorded in a stream");
  if (!clock_covers(host_clock(), &last->clock)) fault("cudaEventElapsedTime of an event that nobody has waited for");
  *milliseconds = last->time - first->time;
  return cudaSuccess;
}

static void wait_captured(struct CUstream_st *in, const struct CUevent_st *event) {
  struct CUgraph_st *graph = event->capture;
  if (in->capture != NULL && in->capture != graph)
    fault("cudaStreamWaitEvent: a stream that is being captured waits for an event from outside of the capture");
  if (in->capture == NULL) {
    if (graph->n_locals == LOCALS) fault("more than %d streams in a capture", LOCALS);
    in->capture = graph;
    in->local = graph->n_locals++;
  }
  for (int i = 0; i < LOCALS; i++)
    if (event->locals[i] > graph->done[in->local][i]) graph->done[in->local][i] = event->locals[i];
  add(graph, (struct node){WAIT, in->local, event->slot, "cudaStreamWaitEvent", NULL, NULL});
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  const struct CUevent_st *own = object_of(event, EVENT, "cudaStreamWaitEvent");
  struct CUstream_st *in = stream_of(stream, "cudaStreamWaitEvent");
  if (call("cudaStreamWaitEvent")) return cudaErrorInvalidResourceHandle;
  if (flags != 0) fault("cudaStreamWaitEvent with the flags %u", flags);
  bool is_captured = false;
  for (const struct CUstream_st *at = streams; at != NULL; at = at->next)
    is_captured |= own->capture != NULL && at->capture == own->capture;
  if (is_captured) {
    wait_captured(in, own);
    return cudaSuccess;
  }
  if (own->capture != NULL) fault("cudaStreamWaitEvent: the event was recorded in a capture that is over");
  if (in->capture != NULL)
    fault("cudaStreamWaitEvent: a stream that is being captured waits for an event from outside of the capture");
  if (!own->is_recorded) fault("cudaStreamWaitEvent: the event was never recorded, so nothing is waited for");
  clock_join(&in->clock, &own->clock);
  return cudaSuccess;
}

/* ---- Work ---- */

void submit(cudaStream_t stream, const char *name, work_run *run, const void *arguments, size_t bytes) {
  struct CUstream_st *in = stream_of(stream, name);
  if (in->capture != NULL) {
    struct node node = {WORK, in->local, 0, name, run, malloc(bytes + 1)};
    if (node.arguments == NULL) fault("no memory");
    if (bytes > 0) memcpy(node.arguments, arguments, bytes);
    in->capture->done[in->local][in->local]++;
    add(in->capture, node);
    return;
  }
  follow_host(&in->clock);
  work_begin(in->actor, &in->clock, name);
  cupti_work_begins();
  run(arguments);
  cupti_work_ends(name, in->actor);
  work_end();
}

void standin_launch(cudaStream_t stream, const char *name, void (*run)(const void *), const void *arguments,
                    size_t bytes) {
  call(name);
  submit(stream, name, run, arguments, bytes);
}

/* ---- Graphs ---- */

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status) {
  bool is_captured = stream_of(stream, "cudaStreamIsCapturing")->capture != NULL;
  *status = is_captured ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
  struct CUstream_st *own = stream_of(stream, "cudaStreamBeginCapture");
  (void)mode;
  if (call("cudaStreamBeginCapture")) return cudaErrorIllegalState;
  if (own->capture != NULL) fault("cudaStreamBeginCapture of a stream that is being captured");
  own->capture = object_new(GRAPH, sizeof *own->capture);
  own->local = 0;
  own->capture->n_locals = 1;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
  struct CUstream_st *own = stream_of(stream, "cudaStreamEndCapture");
  if (call("cudaStreamEndCapture")) return cudaErrorStreamCaptureInvalidated;
  *graph = own->capture;
  if (own->capture == NULL || own->local != 0) fault("cudaStreamEndCapture of a stream whose capture did not begin");
  for (int i = 1; i < own->capture->n_locals; i++)
    if (own->capture->done[0][i] < own->capture->done[i][i])
      fault("cudaStreamEndCapture: work of a stream that was forked is not joined");
  for (struct CUstream_st *at = streams; at != NULL; at = at->next)
    if (at->capture == *graph) at->capture = NULL;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags) {
  const struct CUgraph_st *from = object_of(graph, GRAPH, "cudaGraphInstantiateWithFlags");
  static const char *const names[] = {"a graph's first stream", "a graph's second stream", "a graph's third stream"};
  (void)flags;
  if (call("cudaGraphInstantiateWithFlags")) return cudaErrorMemoryAllocation;
  struct CUgraphExec_st *made = object_new(EXEC, sizeof *made);
  *made = (struct CUgraphExec_st){from->nodes, from->n_nodes, from->n_slots, from->n_locals, {0}, {{0}}};
  for (int i = 0; i < made->n_locals; i++) made->actors[i] = actor_new(i < 3 ? names[i] : "a graph's stream");
  *exec = made;
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  object_end(graph, GRAPH, "cudaGraphDestroy");
  return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  object_of(exec, EXEC, "cudaGraphUpload");
  stream_of(stream, "cudaGraphUpload");
  return call("cudaGraphUpload") ? cudaErrorInvalidValue : cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  object_end(exec, EXEC, "cudaGraphExecDestroy");
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  struct CUgraphExec_st *own = object_of(exec, EXEC, "cudaGraphLaunch");
  struct CUstream_st *in = stream_of(stream, "cudaGraphLaunch");
  if (call("cudaGraphLaunch")) return cudaErrorIllegalAddress;
  if (in->capture != NULL) fault("cudaGraphLaunch into a stream that is being captured");
  struct clock *clocks = calloc((size_t)own->n_locals, sizeof *clocks);
  struct clock *slots = calloc((size_t)own->n_slots + 1, sizeof *slots);
  if (clocks == NULL || slots == NULL) fault("no memory");
  follow_host(&in->clock);
  clock_join(&in->clock, &own->last); /* launches of one graph run one after the other */
  in->clock.at[in->actor]++;
  for (int i = 0; i < own->n_locals; i++) clocks[i] = in->clock;
  for (int i = 0; i < own->n_nodes; i++) {
    const struct node *node = &own->nodes[i];
    struct clock *clock = &clocks[node->local];
    if (node->step == RECORD) slots[node->slot] = *clock;
    if (node->step == WAIT) clock_join(clock, &slots[node->slot]);
    if (node->step != WORK) continue;
    work_begin(own->actors[node->local], clock, node->name);
    cupti_work_begins();
    node->run(node->arguments);
    cupti_work_ends(node->name, in->actor);
    work_end();
  }
  for (int i = 0; i < own->n_locals; i++) clock_join(&in->clock, &clocks[i]);
  own->last = in->clock;
  free(clocks);
  free(slots);
  return cudaSuccess;
}
