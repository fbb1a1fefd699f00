/* Collectives over MPI between parts of a tensor, one on each rank, and the whole. */
#include "include/accel/collectives.h"

#include "runtime/base/half.h"
#include "runtime/mpi/channel.h"
#include "runtime/mpi/waiting.h"

/* A tensor that ranks along an axis divide: of each of `outer` blocks a rank has `length` elements in a row. */
struct parts {
  MPI_Comm channel;
  MPI_Datatype element;
  size_t width, outer, length;
  int ranks;
};

static struct parts parts_of(enum accel_axis axis, MPI_Datatype element, size_t outer, size_t length) {
  int width;
  struct parts parts = {.channel = rt_channel_along(axis), .element = element, .outer = outer, .length = length};
  MPI_Type_size(element, &width);
  MPI_Comm_size(parts.channel, &parts.ranks);
  parts.width = (size_t)width;
  return parts;
}

/* A rank's part of the whole, where the next rank's begins after its first range. */
static MPI_Datatype part_in_whole(const struct parts *parts, const char *what) {
  MPI_Datatype ranges, part;
  MPI_Aint range = (MPI_Aint)(parts->length * parts->width);
  rt_mpi_check(
      MPI_Type_create_hvector((int)parts->outer, (int)parts->length, range * parts->ranks, parts->element, &ranges),
      what);
  rt_mpi_check(MPI_Type_create_resized(ranges, 0, range, &part), what);
  rt_mpi_check(MPI_Type_commit(&part), what);
  MPI_Type_free(&ranges);
  return part;
}

static MPI_Datatype part_in_a_row(const struct parts *parts, const char *what) {
  MPI_Datatype part;
  rt_mpi_check(MPI_Type_create_hvector((int)parts->outer, (int)parts->length, (MPI_Aint)(parts->length * parts->width),
                                       parts->element, &part),
               what);
  rt_mpi_check(MPI_Type_commit(&part), what);
  return part;
}

static void gather(const struct parts *parts, const void *x, void *y) {
  static const char what[] = "parts of activations";
  MPI_Datatype own = part_in_a_row(parts, what), part = part_in_whole(parts, what);
  MPI_Request request;
  rt_mpi_check(MPI_Iallgather(x, 1, own, y, 1, part, parts->channel, &request), what);
  rt_mpi_wait(&request, what);
  MPI_Type_free(&part);
  MPI_Type_free(&own);
}

void accel_all_gather_parts(enum accel_axis axis, const float *x, float *y, size_t outer, size_t length) {
  struct parts parts = parts_of(axis, MPI_FLOAT, outer, length);
  gather(&parts, x, y);
}

void accel_all_gather_bfloat16_parts(enum accel_axis axis, const uint16_t *x, uint16_t *y, size_t outer,
                                     size_t length) {
  struct parts parts = parts_of(axis, MPI_UINT16_T, outer, length);
  gather(&parts, x, y);
}

void accel_all_gather_float16_parts(enum accel_axis axis, const uint16_t *x, uint16_t *y, size_t outer, size_t length) {
  accel_all_gather_bfloat16_parts(axis, x, y, outer, length);
}

/* Each rank's part of x goes to that rank: work[] has this rank's part of all of them, in their order. */
static void exchange(const struct parts *parts, const void *x, void *work) {
  static const char what[] = "the sum of parts of activations";
  MPI_Datatype part = part_in_whole(parts, what), own = part_in_a_row(parts, what);
  MPI_Request request;
  rt_mpi_check(MPI_Ialltoall(x, 1, part, work, 1, own, parts->channel, &request), what);
  rt_mpi_wait(&request, what);
  MPI_Type_free(&own);
  MPI_Type_free(&part);
}

void accel_reduce_scatter_parts(enum accel_axis axis, const float *x, float *y, float *work, size_t outer,
                                size_t length) {
  struct parts parts = parts_of(axis, MPI_FLOAT, outer, length);
  const size_t count = outer * length;
  exchange(&parts, x, work);
#pragma omp parallel for simd
  for (size_t i = 0; i < count; i++) {
    float sum = work[i];
    for (size_t r = 1; r < (size_t)parts.ranks; r++) sum += work[r * count + i];
    y[i] = sum;
  }
}

void accel_reduce_scatter_bfloat16_parts(enum accel_axis axis, const uint16_t *x, uint16_t *y, uint16_t *work,
                                         size_t outer, size_t length) {
  struct parts parts = parts_of(axis, MPI_UINT16_T, outer, length);
  const size_t count = outer * length;
  exchange(&parts, x, work);
#pragma omp parallel for simd
  for (size_t i = 0; i < count; i++) {
    float sum = rt_widen_bfloat16(work[i]);
    for (size_t r = 1; r < (size_t)parts.ranks; r++) sum += rt_widen_bfloat16(work[r * count + i]);
    y[i] = rt_narrow_bfloat16(sum);
  }
}

void accel_reduce_scatter_float16_parts(enum accel_axis axis, const uint16_t *x, uint16_t *y, uint16_t *work,
                                        size_t outer, size_t length) {
  struct parts parts = parts_of(axis, MPI_UINT16_T, outer, length);
  const size_t count = outer * length;
  exchange(&parts, x, work);
#pragma omp parallel for simd
  for (size_t i = 0; i < count; i++) {
    float sum = rt_widen_float16(work[i]);
    for (size_t r = 1; r < (size_t)parts.ranks; r++) sum += rt_widen_float16(work[r * count + i]);
    y[i] = rt_narrow_float16(sum);
  }
}
