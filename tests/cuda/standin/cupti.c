/* CUPTI's activity records: those of the work that the stand-ins do while they are asked for. */
#include "tests/cuda/standin/core.h"

#include <string.h>
#include <time.h>

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return 1000000000u * (uint64_t)time.tv_sec + (uint64_t)time.tv_nsec;
}

#if __has_include(<cupti.h>)

#include "runtime/cuda/records.h"

enum { ENABLED = 64 };
static bool enabled[ENABLED];
static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static uint8_t *buffer;
static size_t capacity, used;
static uint64_t began;
static uint64_t outside[8]; /* what calls are made for, as the caller numbers it */
static int n_outside;
static uint32_t calls;

CUptiResult cuptiGetResultString(CUptiResult result, const char **text) {
  *text = result == CUPTI_SUCCESS ? "no error" : "requested of the stand-in";
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(uint64_t *time) {
  *time = now();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                                           CUpti_BuffersCallbackCompleteFunc completed) {
  request = requested;
  complete = completed;
  return call("cuptiActivityRegisterCallbacks") ? CUPTI_ERROR_UNKNOWN : CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  if (request == NULL) fault("cuptiActivityEnable before cuptiActivityRegisterCallbacks");
  if ((unsigned)kind >= ENABLED) fault("cuptiActivityEnable of the kind %d", (int)kind);
  if (call("cuptiActivityEnable")) return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  enabled[kind] = true;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  if ((unsigned)kind >= ENABLED || !enabled[kind]) fault("cuptiActivityDisable of a kind that is not enabled");
  enabled[kind] = false;
  return CUPTI_SUCCESS;
}

static void give_back(void) {
  uint8_t *full = buffer;
  buffer = NULL;
  if (full != NULL) complete(NULL, 0, full, capacity, used);
}

CUptiResult cuptiActivityFlushAll(uint32_t flag) {
  (void)flag;
  give_back();
  return call("cuptiActivityFlushAll") ? CUPTI_ERROR_UNKNOWN : CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *dropped) {
  (void)context, (void)stream;
  *dropped = 0;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t id) {
  (void)kind;
  if (n_outside == 8) fault("cuptiActivityPushExternalCorrelationId: what was pushed is not popped");
  outside[n_outside++] = id;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t *id) {
  (void)kind;
  if (n_outside == 0) fault("cuptiActivityPopExternalCorrelationId: nothing was pushed");
  *id = outside[--n_outside];
  return CUPTI_SUCCESS;
}

static size_t size_of(const CUpti_Activity *record) {
  if (record->kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) return sizeof(CUpti_ActivityExternalCorrelation);
  if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) return sizeof(cupti_copy);
  return record->kind == CUPTI_ACTIVITY_KIND_MEMSET ? sizeof(cupti_fill) : sizeof(cupti_kernel);
}

CUptiResult cuptiActivityGetNextRecord(uint8_t *from, size_t valid, CUpti_Activity **record) {
  uint8_t *next = *record == NULL ? from : (uint8_t *)*record + size_of(*record);
  if (next >= from + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = (CUpti_Activity *)(void *)next;
  return CUPTI_SUCCESS;
}

static void put(const void *record, size_t bytes) {
  if (buffer != NULL && used + bytes > capacity) give_back();
  if (buffer == NULL) {
    size_t most;
    used = 0;
    request(&buffer, &capacity, &most);
    if (buffer == NULL || bytes > capacity) fault("a buffer of %zu bytes for records", capacity);
  }
  memcpy(buffer + used, record, bytes);
  used += bytes;
}

void cupti_work_begins(void) {
  began = now();
}

/* Such records are of calls of the API, and only come where these are asked for. */
static void put_outside(void) {
  CUpti_ActivityExternalCorrelation record = {.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                              .externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0,
                                              .correlationId = calls};
  bool seen = enabled[CUPTI_ACTIVITY_KIND_RUNTIME] && enabled[CUPTI_ACTIVITY_KIND_DRIVER];
  if (n_outside == 0 || !seen || !enabled[record.kind]) return;
  record.externalId = outside[n_outside - 1];
  put(&record, sizeof record);
}

void cupti_work_ends(const char *name, int actor) {
  uint32_t stream = (uint32_t)actor;
  calls++;
  put_outside();
  if (strncmp(name, "cudaMemcpy", 10) == 0) {
    cupti_copy copy = {.kind = CUPTI_ACTIVITY_KIND_MEMCPY, .bytes = 4, .start = began, .end = now()};
    copy.streamId = stream;
    if (enabled[copy.kind]) put(&copy, sizeof copy);
  } else if (strncmp(name, "cudaMemset", 10) == 0) {
    cupti_fill fill = {.kind = CUPTI_ACTIVITY_KIND_MEMSET, .bytes = 4, .start = began, .end = now()};
    fill.streamId = stream;
    if (enabled[fill.kind]) put(&fill, sizeof fill);
  } else {
    cupti_kernel kernel = {.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, .start = began, .end = now(), .name = name};
    kernel.streamId = stream;
    kernel.correlationId = calls;
    if (enabled[kernel.kind]) put(&kernel, sizeof kernel);
  }
}

#else

void cupti_work_begins(void) {}
void cupti_work_ends(const char *name, int actor) {
  (void)name, (void)actor;
  (void)now();
}

#endif
