/* Arrays in the device's memory: struct xla_buffer is the API's PJRT_Buffer. */
#include "runtime/xla/state.h"

static PJRT_Buffer_Type type_of(enum accel_dtype dtype) {
  static const PJRT_Buffer_Type types[ACCEL_DTYPES] = {
      [ACCEL_FLOAT32] = PJRT_Buffer_Type_F32,   [ACCEL_FLOAT16] = PJRT_Buffer_Type_F16,
      [ACCEL_BFLOAT16] = PJRT_Buffer_Type_BF16, [ACCEL_INT32] = PJRT_Buffer_Type_S32,
      [ACCEL_INT64] = PJRT_Buffer_Type_S64,     [ACCEL_UINT8] = PJRT_Buffer_Type_U8,
      [ACCEL_FLOAT64] = PJRT_Buffer_Type_F64,   [ACCEL_INT8] = PJRT_Buffer_Type_S8,
      [ACCEL_INT16] = PJRT_Buffer_Type_S16,     [ACCEL_BOOL] = PJRT_Buffer_Type_PRED};
  return types[dtype];
}

bool rt_xla_put(struct xla *xla, int device, enum accel_dtype dtype, const int64_t *dims, int rank, const void *values,
                struct xla_buffer **put, struct problem *problem) {
  PJRT_Client_BufferFromHostBuffer_Args arguments = RT_PJRT(
      PJRT_Client_BufferFromHostBuffer_Args, .client = xla->client, .data = values, .type = type_of(dtype),
      .dims = dims, .num_dims = (size_t)rank,
      .host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableOnlyDuringCall, .device = xla->addressable[device]);
  static const char what[] = "copy an array to the device";
  if (!rt_xla_good(xla->api, xla->api->PJRT_Client_BufferFromHostBuffer(&arguments), what, problem)) return false;
  *put = (struct xla_buffer *)arguments.buffer;
  if (rt_xla_await(xla->api, arguments.done_with_host_buffer, what, problem)) return true;
  rt_xla_drop(xla, *put);
  return false;
}

/* Strides of a dense row-major array: a device may have another order in its memory. */
static bool copy(struct xla *xla, PJRT_Buffer *buffer, void *values, size_t size, struct problem *problem) {
  static const char what[] = "copy an array from the device";
  PJRT_Buffer_Dimensions_Args shape = RT_PJRT(PJRT_Buffer_Dimensions_Args, .buffer = buffer);
  if (!rt_xla_good(xla->api, xla->api->PJRT_Buffer_Dimensions(&shape), what, problem)) return false;
  int64_t order[16];
  if (shape.num_dims > sizeof order / sizeof *order) return rt_problem(problem, "an array of XLA has many dimensions");
  for (size_t i = 0; i < shape.num_dims; i++) order[i] = (int64_t)(shape.num_dims - 1 - i);
  PJRT_Buffer_MemoryLayout layout = RT_PJRT(
      PJRT_Buffer_MemoryLayout, .type = PJRT_Buffer_MemoryLayout_Type_Tiled,
      .tiled = RT_PJRT(PJRT_Buffer_MemoryLayout_Tiled, .minor_to_major = order, .minor_to_major_size = shape.num_dims));
  PJRT_Buffer_ToHostBuffer_Args arguments =
      RT_PJRT(PJRT_Buffer_ToHostBuffer_Args, .src = buffer, .host_layout = &layout);
  if (!rt_xla_good(xla->api, xla->api->PJRT_Buffer_ToHostBuffer(&arguments), what, problem)) return false;
  if (arguments.dst_size > size)
    return rt_problem(problem, "an array of XLA has %zu bytes, where %zu are expected", arguments.dst_size, size);
  arguments.dst = values;
  arguments.dst_size = size;
  if (!rt_xla_good(xla->api, xla->api->PJRT_Buffer_ToHostBuffer(&arguments), what, problem)) return false;
  return rt_xla_await(xla->api, arguments.event, what, problem);
}

bool rt_xla_get(struct xla *xla, struct xla_buffer *buffer, void *values, size_t size, struct problem *problem) {
  return copy(xla, (PJRT_Buffer *)buffer, values, size, problem);
}

void rt_xla_drop(struct xla *xla, struct xla_buffer *buffer) {
  struct problem ignored;
  PJRT_Buffer_Destroy_Args destroy = RT_PJRT(PJRT_Buffer_Destroy_Args, .buffer = (PJRT_Buffer *)buffer);
  if (buffer != NULL) rt_xla_good(xla->api, xla->api->PJRT_Buffer_Destroy(&destroy), "free an array", &ignored);
}
