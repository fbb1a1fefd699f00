/* Which addresses of the arena have memory: of a stage of a pipeline, those that it uses. */
#include "runtime/gpu/state.h"
#include "runtime/process/fail.h"
#include "runtime/process/world.h"

#include <stdlib.h>
#include <string.h>

/* One byte for each granule: whether the rank does not use it. */
static void mark_unused(const struct cuda_device *device, size_t granularity, char *unused) {
  const struct accel_gpu_plan *plan = &device->plan;
  const int ranks = device->program->mesh[ACCEL_PP];
  const int rank = ranks > 1 ? rt_world()->rank / rt_stride_along(device->program, ACCEL_PP) % ranks : 0;
  for (size_t i = 0; i < plan->n_unused; i++) {
    const struct accel_unused_range *range = &plan->unused[i];
    const size_t first = (range->first + granularity - 1) / granularity;
    const size_t end = (range->first + range->bytes) / granularity;
    if (range->rank == rank && end > first) memset(unused + first, 1, end - first);
  }
}

void rt_cuda_find_segments(struct cuda_device *device, size_t granularity) {
  const size_t granules = device->reserved / granularity;
  char *unused = calloc(granules, 1);
  device->segments = calloc(device->plan.n_unused + 1, sizeof *device->segments); /* one more than there are gaps */
  if (unused == NULL || device->segments == NULL) {
    struct problem problem;
    rt_problem(&problem, "no memory for %zu bytes", granules);
    rt_fail(&problem, 1);
  }
  mark_unused(device, granularity, unused);
  for (size_t i = 0; i < granules; i++) {
    if (unused[i]) continue;
    if (i == 0 || unused[i - 1]) device->segments[device->n_segments++].first = i * granularity;
    device->segments[device->n_segments - 1].bytes += granularity;
  }
  free(unused);
}

size_t rt_cuda_mapped(const struct cuda_device *device) {
  size_t bytes = 0;
  for (int i = 0; i < device->n_segments; i++) bytes += device->segments[i].bytes;
  return bytes;
}

struct segment rt_cuda_within(const struct cuda_device *device, int number, size_t first, size_t bytes) {
  const struct segment *segment = &device->segments[number];
  const size_t from = segment->first > first ? segment->first : first;
  const size_t end = segment->first + segment->bytes < first + bytes ? segment->first + segment->bytes : first + bytes;
  return (struct segment){from, end > from ? end - from : 0};
}
