/* The device's arena: one range of addresses, with physical memory where the rank uses it. */
#include "runtime/gpu/state.h"
#include "runtime/process/fail.h"
#include "runtime/process/world.h"

#include <cuda.h>
#include <stdlib.h>

static const size_t huge_page = (size_t)2 << 20;

/* The driver's own functions come through the runtime library, so that a program starts, and can say what is missing,
 * where no driver is. */
struct driver {
  CUresult (*attribute)(int *, CUdevice_attribute, CUdevice);
  CUresult (*granularity)(size_t *, const CUmemAllocationProp *, CUmemAllocationGranularity_flags);
  CUresult (*reserve)(CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long);
  CUresult (*create)(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *, unsigned long long);
  CUresult (*map)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long);
  CUresult (*access)(CUdeviceptr, size_t, const CUmemAccessDesc *, size_t);
  CUresult (*release)(CUmemGenericAllocationHandle);
  CUresult (*unmap)(CUdeviceptr, size_t);
  CUresult (*free_range)(CUdeviceptr, size_t);
  CUresult (*error_name)(CUresult, const char **);
  CUresult (*error_text)(CUresult, const char **);
};

static void find(const char *name, void *function) {
  enum cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
  RT_CUDA(cudaGetDriverEntryPointByVersion(name, function, 12000, cudaEnableDefault, &found));
#else
  RT_CUDA(cudaGetDriverEntryPoint(name, function, cudaEnableDefault, &found));
#endif
  if (found == cudaDriverEntryPointSuccess) return;
  struct problem problem;
  rt_problem(&problem, "the NVIDIA driver has no %s", name);
  rt_help(&problem, "update the driver to one for CUDA 12 or later");
  rt_fail(&problem, 1);
}

static const struct driver *driver(void) {
  static struct driver found;
  if (found.error_text != NULL) return &found;
  find("cuDeviceGetAttribute", &found.attribute);
  find("cuMemGetAllocationGranularity", &found.granularity);
  find("cuMemAddressReserve", &found.reserve);
  find("cuMemCreate", &found.create);
  find("cuMemMap", &found.map);
  find("cuMemSetAccess", &found.access);
  find("cuMemRelease", &found.release);
  find("cuMemUnmap", &found.unmap);
  find("cuMemAddressFree", &found.free_range);
  find("cuGetErrorName", &found.error_name);
  find("cuGetErrorString", &found.error_text);
  return &found;
}

static void check(CUresult code, const char *call, int line) {
  const char *name = "?", *text = "?";
  if (code == CUDA_SUCCESS) return;
  driver()->error_name(code, &name);
  driver()->error_text(code, &text);
  struct refusal refusal = {"CUDA's driver", call, __FILE__, line, name, text};
  rt_refused(&refusal, NULL);
}
#define CHECK(call, name) check((call), name, __LINE__)

/* The device's number is that of the driver's too. What a driver does not know, no device of it has. */
static bool has(CUdevice_attribute what, int number) {
  int value = 0;
  return driver()->attribute(&value, what, number) == CUDA_SUCCESS && value != 0;
}

/* Of one rank plain memory; of several as ncclMemAlloc makes it, so that NCCL may use it where it is: GPUDirect RDMA
 * lets the network's adapters of other machines reach it, where the GPU has that for memory of this kind; handles other
 * processes here, and over NVLink those of other machines. */
static CUmemAllocationProp kind_of_memory(int number) {
  CUmemAllocationProp kind = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                              .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = number}};
  int handles = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  if (rt_world()->ranks == 1) return kind;
  if (has(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, number)) handles |= CU_MEM_HANDLE_TYPE_FABRIC;
  kind.requestedHandleTypes = (CUmemAllocationHandleType)handles;
  kind.allocFlags.gpuDirectRDMACapable = has(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, number);
  return kind;
}

/* A GPU that has handles for other machines may still not give them: where nobody set up the exchange between machines,
 * or a container leaves it out. */
static CUmemGenericAllocationHandle create(size_t bytes, CUmemAllocationProp kind) {
  CUmemGenericAllocationHandle memory = 0;
  CUresult code = driver()->create(&memory, bytes, &kind, 0);
  if (code != CUDA_SUCCESS && (kind.requestedHandleTypes & CU_MEM_HANDLE_TYPE_FABRIC) != 0) {
    kind.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    code = driver()->create(&memory, bytes, &kind, 0);
  }
  CHECK(code, "cuMemCreate");
  return memory;
}

/* Each segment is one piece of memory, so that what NCCL registers is one, too. */
static void map_segment(const struct cuda_device *device, struct segment segment, const CUmemAllocationProp *kind) {
  const CUmemAccessDesc access = {kind->location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  char *address = device->arena + segment.first;
  const CUdeviceptr range = (CUdeviceptr)(uintptr_t)address;
  const CUmemGenericAllocationHandle memory = create(segment.bytes, *kind);
  CHECK(driver()->map(range, segment.bytes, 0, memory, 0), "cuMemMap");
  CHECK(driver()->access(range, segment.bytes, &access, 1), "cuMemSetAccess");
  CHECK(driver()->release(memory), "cuMemRelease"); /* it lives as long as it is mapped */
  RT_CUDA(cudaMemset(address, 0, segment.bytes));
}

bool rt_cuda_map(struct cuda_device *device, size_t bytes, struct problem *problem) {
  const struct driver *call = driver();
  const CUmemAllocationProp kind = kind_of_memory(device->number);
  CUdeviceptr range;
  size_t granularity;
  CHECK(call->granularity(&granularity, &kind, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED), "cuMemGetAllocationGranularity");
  device->reserved = (bytes + granularity - 1) / granularity * granularity;
  rt_cuda_find_segments(device, granularity);
  if (!rt_cuda_fits(device, rt_cuda_mapped(device), problem)) return false;
  const size_t alignment = granularity > huge_page ? granularity : huge_page;
  CHECK(call->reserve(&range, device->reserved, alignment, 0, 0), "cuMemAddressReserve");
  device->arena = (char *)(uintptr_t)range;
  for (int i = 0; i < device->n_segments; i++) map_segment(device, device->segments[i], &kind);
  return true;
}

void rt_cuda_unmap(struct cuda_device *device) {
  const CUdeviceptr range = (CUdeviceptr)(uintptr_t)device->arena;
  for (int i = 0; i < device->n_segments; i++)
    CHECK(driver()->unmap(range + device->segments[i].first, device->segments[i].bytes), "cuMemUnmap");
  CHECK(driver()->free_range(range, device->reserved), "cuMemAddressFree");
  free(device->segments);
  device->arena = NULL;
}
