/* CUPTI's records of what the device does, as events. */
#include "include/accel/gpu/trace.h"
#include "runtime/cuda/device_intervals.h"
#include "runtime/cuda/events.h"
#include "runtime/gpu/state.h"
#include "runtime/process/world.h"
#include "runtime/report/intervals.h"

#include <stdlib.h>

#if __has_include(<cupti.h>)

#include "runtime/cuda/records.h"
#include "runtime/process/fail.h"

#include <pthread.h>
#include <string.h>

static const CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                           CUPTI_ACTIVITY_KIND_MEMSET};

/* Records that say in which interval a call of CUDA was made: of the calls, and of the interval's number for each. */
static const CUpti_ActivityKind correlation_kinds[] = {CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER,
                                                       CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION};
enum {
  KINDS = sizeof kinds / sizeof *kinds,
  CORRELATION_KINDS = sizeof correlation_kinds / sizeof *correlation_kinds,
  BUFFER = 1 << 20
};
static const CUpti_ExternalCorrelationKind external_kind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;

static struct device_events events;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* CUPTI gives buffers back on threads of its own too */
static bool is_open, is_active;
static int64_t step;
static uint64_t began;
static struct device_intervals intervals;

static void check(CUptiResult result, const char *call, int line) {
  const char *text = "?";
  if (result == CUPTI_SUCCESS) return;
  cuptiGetResultString(result, &text);
  struct refusal refusal = {"CUPTI", call, __FILE__, line, text, text};
  rt_refused(&refusal,
             "NVIDIA's driver may give profiles to administrators alone (NVreg_RestrictProfilingToAdminUsers), "
             "and two profilers do not share a process; the job runs without the group profile");
}
#define CHECK(call) check((call), #call, __LINE__)

/* ---- Records ---- */

static void CUPTIAPI ask_for_buffer(uint8_t **buffer, size_t *size, size_t *most) {
  *buffer = aligned_alloc(8, BUFFER);
  *size = *buffer != NULL ? BUFFER : 0;
  *most = 0;
}

static void add_record(const CUpti_Activity *record) {
  struct device_event event = {.step = step};
  if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
    const cupti_kernel *kernel = (const cupti_kernel *)record;
    event.name = rt_kernel_name(kernel->name);
    event.stream = kernel->streamId, event.start = kernel->start, event.end = kernel->end;
    event.call = kernel->correlationId;
  } else if (record->kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) {
    const CUpti_ActivityExternalCorrelation *of = (const CUpti_ActivityExternalCorrelation *)record;
    if (of->externalKind == external_kind)
      rt_device_intervals_add_call(&intervals, of->correlationId, (int64_t)of->externalId);
    return;
  } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
    const cupti_copy *copy = (const cupti_copy *)record;
    bool in = copy->copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD,
         out = copy->copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
    event.name = strdup(in ? "copy from the host" : out ? "copy to the host" : "copy");
    event.stream = copy->streamId, event.start = copy->start, event.end = copy->end, event.bytes = copy->bytes;
  } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
    const cupti_fill *fill = (const cupti_fill *)record;
    event.name = strdup("fill");
    event.stream = fill->streamId, event.start = fill->start, event.end = fill->end, event.bytes = fill->bytes;
  } else {
    return;
  }
  rt_events_add(&events, event);
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
  CUpti_Activity *record = NULL;
  size_t dropped = 0;
  (void)size;
  pthread_mutex_lock(&lock);
  while (valid > 0 && cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) add_record(record);
  if (cuptiActivityGetNumDroppedRecords(context, stream, &dropped) == CUPTI_SUCCESS && dropped > 0) events.lost = true;
  pthread_mutex_unlock(&lock);
  free(buffer);
}

/* ---- Intervals ---- */

static void begin_interval(void) {
  CHECK(cuptiActivityPushExternalCorrelationId(external_kind, (uint64_t)intervals.count + 1));
}

static void end_interval(int part) {
  uint64_t number;
  CHECK(cuptiActivityPopExternalCorrelationId(external_kind, &number));
  rt_device_intervals_add(&intervals, part);
}

void accel_gpu_profile_part(int part) {
  if (!is_active) return;
  end_interval(part);
  begin_interval();
}

/* ---- Steps ---- */

void accel_gpu_begin_trace(struct accel_run *run, int64_t at) {
  const struct accel_profile *profile = &rt_cuda_device()->program->profile;
  is_active = rt_is_measured(profile, at - accel_first_step(run));
  if (!is_active) return;
  RT_CUDA(cudaDeviceSynchronize());
  if (!is_open) CHECK(cuptiActivityRegisterCallbacks(ask_for_buffer, take_buffer));
  is_open = true;
  step = at;
  for (int i = 0; i < KINDS; i++) CHECK(cuptiActivityEnable(kinds[i]));
  rt_cuda_device()->without_graphs = profile->with_flops;
  if (rt_cuda_device()->without_graphs) {
    for (int i = 0; i < CORRELATION_KINDS; i++) CHECK(cuptiActivityEnable(correlation_kinds[i]));
    begin_interval();
  }
  CHECK(cuptiGetTimestamp(&began));
}

void accel_gpu_end_trace(void) {
  uint64_t ended;
  if (!is_active) return;
  RT_CUDA(cudaDeviceSynchronize());
  CHECK(cuptiGetTimestamp(&ended));
  for (int i = 0; i < KINDS; i++) CHECK(cuptiActivityDisable(kinds[i]));
  if (rt_cuda_device()->without_graphs) {
    end_interval(-1);
    for (int i = 0; i < CORRELATION_KINDS; i++) CHECK(cuptiActivityDisable(correlation_kinds[i]));
  }
  rt_cuda_device()->without_graphs = false;
  CHECK(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  pthread_mutex_lock(&lock);
  rt_events_add(&events, (struct device_event){.step = step, .is_step = true, .start = began, .end = ended});
  pthread_mutex_unlock(&lock);
  is_active = false;
}

void accel_gpu_write_trace(const struct accel_run *run) {
  const struct accel_profile *profile = &rt_cuda_device()->program->profile;
  struct problem problem;
  (void)run;
  if (profile->with_flops) rt_events_name(&events, &intervals, profile->parts);
  if (rt_is_main()) rt_events_print(&events, profile->with_flops);
  if (!rt_events_write(&events, profile->trace_folder, &problem)) rt_fail(&problem, 1);
  rt_events_free(&events);
  rt_device_intervals_free(&intervals);
}

#else

static void refuse(void) {
  struct problem problem;
  rt_problem(&problem, "the program was built without CUPTI, of which its profile is made");
  rt_help(&problem, "install CUPTI's headers (tools/cuda-toolkit.sh --explain) and build again, or leave out profile");
  rt_fail(&problem, 1);
}
void accel_gpu_begin_trace(struct accel_run *run, int64_t at) {
  if (rt_is_measured(&rt_cuda_device()->program->profile, at - accel_first_step(run))) refuse();
}
void accel_gpu_profile_part(int part) {
  (void)part;
}
void accel_gpu_end_trace(void) {}
void accel_gpu_write_trace(const struct accel_run *run) {
  (void)run;
}

#endif
