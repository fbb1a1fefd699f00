/* The runtime's graphs of attention and of convolutions before cuDNN itself, which gets the properties of a GPU that is
 * absent by a descriptor of its properties: that its heuristic has engines for them, that it makes plans of these, and
 * what they work in.
 *
 * usage: engines PROPERTIES.json WORKSPACE DETERMINISTIC attention
 *          BATCH HEADS GROUPS LENGTH SIZE CAUSAL LENGTHS HALF BACKWARD
 *        engines PROPERTIES.json WORKSPACE DETERMINISTIC convolution
 *          BATCH CHANNELS HEIGHT WIDTH OUT KERNEL STRIDE PADDING DILATION GROUPS TYPE TF32 ACCUMULATE
 *
 * Prints the bytes of the runtime's own, and of the engine; of a convolution for y, dx and dw. Status 1, and why, where
 * there is no engine in WORKSPACE bytes, or for a convolution only one that is much slower than the first. */
#include "runtime/gpu/check.h"
#include "runtime/gpu/state.h"
#include "tests/cuda/packed_attention.h"

#include <cudnn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct cuda_device device;
static cudnnBackendDescriptor_t properties, heuristics, plans[4096];
static int n_plans;

/* ---- What needs a GPU ---- */

static cudnnStatus_t no_handle(cudnnHandle_t *handle) {
  *handle = (cudnnHandle_t)&device;
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t create_noted(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *made) {
  cudnnStatus_t status = cudnnBackendCreateDescriptor(type, made);
  if (type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR) heuristics = *made;
  if (type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR && n_plans < (int)(sizeof plans / sizeof *plans))
    plans[n_plans++] = *made;
  return status;
}

/* A handle is of a GPU; the properties are in place of it. */
static cudnnStatus_t set_unless_handle(cudnnBackendDescriptor_t made, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void *values) {
  if (type == CUDNN_TYPE_HANDLE) return CUDNN_STATUS_SUCCESS;
  return cudnnBackendSetAttribute(made, name, type, count, values);
}

static cudnnStatus_t finalize_with_properties(cudnnBackendDescriptor_t made) {
  bool is_plan = false;
  for (int i = 0; i < n_plans; i++) is_plan |= plans[i] == made;
  if (is_plan || made == heuristics) {
    cudnnBackendAttributeName_t name =
        is_plan ? CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP : CUDNN_ATTR_ENGINEHEUR_DEVICEPROP;
    cudnnStatus_t status = cudnnBackendSetAttribute(made, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &properties);
    if (status != CUDNN_STATUS_SUCCESS) return status;
  }
  return cudnnBackendFinalize(made);
}

static cudaError_t allocate(void **address, size_t bytes) {
  *address = malloc(bytes);
  return *address != NULL ? cudaSuccess : cudaErrorMemoryAllocation;
}

static cudaError_t copy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
  (void)kind;
  memcpy(to, from, bytes);
  return cudaSuccess;
}

#define cudnnCreate no_handle
#define cudnnBackendCreateDescriptor create_noted
#define cudnnBackendSetAttribute set_unless_handle
#define cudnnBackendFinalize finalize_with_properties
#define cudaMalloc allocate
#define cudaMemcpy copy
#include "runtime/cuda/engine.c"
#undef CHECK

#include "runtime/cuda/attention_graph.c"

#include "runtime/cuda/attention.c"

#include "runtime/cuda/convolution.c"
#include "runtime/process/fail.h"
#undef cudnnBackendCreateDescriptor
#undef cudnnBackendSetAttribute
#undef cudnnBackendFinalize

void (*rt_cuda_close_engines)(void);

struct cuda_device *rt_cuda_device(void) {
  return &device;
}

size_t rt_cuda_stride(size_t bytes) {
  return (bytes + 255) / 256 * 256;
}

void accel_gpu_zero(accel_stream stream, void *at, size_t bytes) {
  (void)stream, (void)at, (void)bytes;
}

cudaError_t cudaFree(void *address) {
  free(address);
  return cudaSuccess;
}

void rt_cuda_check(cudaError_t error, const char *call, const char *file, int line) {
  if (error == cudaSuccess) return;
  printf("%s:%d: %s\n", file, line, call);
  exit(1);
}

bool rt_problem(struct problem *problem, const char *format, ...) {
  va_list arguments;
  (void)problem;
  va_start(arguments, format);
  vprintf(format, arguments);
  va_end(arguments);
  return false;
}

bool rt_help(struct problem *problem, const char *format, ...) {
  (void)problem;
  printf("; %s\n", format);
  return false;
}

noreturn void rt_fail(const struct problem *problem, int status) {
  (void)problem;
  exit(status);
}

noreturn void rt_refused(const struct refusal *refusal, const char *help) {
  char text[2048];
  (void)help;
  cudnnGetLastErrorString(text, sizeof text);
  printf("%s: %s: %s\n", refusal->call, refusal->text, text);
  exit(1);
}

/* ---- The cases ---- */

static cudnnStatus_t read_properties(const char *path) {
  static char text[8192];
  FILE *in = fopen(path, "r");
  size_t length = in != NULL ? fread(text, 1, sizeof text, in) : 0;
  if (in != NULL) fclose(in);
  cudnnStatus_t status = cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &properties);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  status = cudnnBackendSetAttribute(properties, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                                    (int64_t)length, text);
  return status == CUDNN_STATUS_SUCCESS ? cudnnBackendFinalize(properties) : status;
}

static int open_attention(const long long *number) {
  struct accel_gpu_attention a =
      packed_attention(number[7] ? ACCEL_F16 : ACCEL_BF16, number[0], number[1], number[2], number[3], number[4]);
  a.name = "attention";
  a.scale = 0.125;
  a.causal = number[5];
  a.lengths = number[6];
  if (number[8])
    accel_gpu_open_attention_backward(&a);
  else
    accel_gpu_open_attention(&a);
  const struct accel_gpu_engine *engine = number[8] ? a.backward : a.forward;
  printf("%zu %zu\n", engine->own, engine->workspace);
  return 0;
}

/* Opens it in that much workspace. Returns how many engines were too large or not for this GPU; *bytes: what the first
 * that does works in. */
static int passed_over(struct accel_gpu_convolution c, size_t limit, size_t *bytes) {
  int before = n_plans;
  device.plan.workspace_bytes = limit;
  accel_gpu_open_convolution(&c);
  *bytes = c.engine->workspace;
  return n_plans - before - 1;
}

/* Better engines that the plan has no workspace for, at most. */
enum { FEW = 2 };

static int open_convolution(const long long *number) {
  struct accel_gpu_convolution c = {.name = "convolution",
                                    .type = (enum accel_element)number[10],
                                    .tf32 = number[11],
                                    .accumulate = number[12],
                                    .batch = number[0],
                                    .groups = number[9],
                                    .x_channels = number[1],
                                    .y_channels = number[4],
                                    .x = {number[2], number[3]},
                                    .kernel = {number[5], number[5]},
                                    .stride = {number[6], number[6]},
                                    .padding = {number[7], number[7]},
                                    .dilation = {number[8], number[8]}};
  const size_t limit = device.plan.workspace_bytes;
  for (int i = 0; i < 2; i++)
    c.y[i] = (c.x[i] + 2 * c.padding[i] - c.dilation[i] * (c.kernel[i] - 1) - 1) / c.stride[i] + 1;
  for (c.makes = ACCEL_MAKES_Y; c.makes <= ACCEL_MAKES_WEIGHTS; c.makes++) {
    size_t bytes, wanted;
    int more = passed_over(c, limit, &bytes) - passed_over(c, SIZE_MAX / 2, &wanted);
    printf("%zu ", bytes);
    if (more <= FEW) continue;
    printf("where %d engines for %d are passed over, of which the first works in %zu bytes, and the plan has %zu\n",
           more, (int)c.makes, wanted, limit);
    return 1;
  }
  printf("\n");
  return 0;
}

int main(int count, char **words) {
  enum { MOST = 13 };
  long long number[MOST] = {0};
  bool convolves = count > 4 && strcmp(words[4], "convolution") == 0;
  if (count != 5 + (convolves ? MOST : 9)) return 2;
  for (int i = 5; i < count; i++) number[i - 5] = atoll(words[i]);
  cudnnStatus_t status = read_properties(words[1]);
  if (status != CUDNN_STATUS_SUCCESS) {
    printf("%s of the GPU's properties\n", cudnnGetErrorString(status));
    return 3;
  }
  device.plan =
      (struct accel_gpu_plan){.workspace_bytes = (size_t)atoll(words[2]), .deterministic = atoi(words[3]) != 0};
  return convolves ? open_convolution(number) : open_attention(number);
}
