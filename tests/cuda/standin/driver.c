/* The driver: virtual memory, through the entry points that the runtime library gives. */
#include "tests/cuda/standin/core.h"

#include <cuda.h>
#include <stdlib.h>
#include <string.h>

enum { GRANULARITY = 2 << 20 };

static struct {
  char *address;
  size_t bytes;
  bool is_mapped;
} range;
static size_t physical; /* bytes of memory that was created and not released */

static CUresult granularity(size_t *bytes, const CUmemAllocationProp *kind, CUmemAllocationGranularity_flags which) {
  (void)kind, (void)which;
  *bytes = GRANULARITY;
  return CUDA_SUCCESS;
}

static CUresult reserve(CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr wish, unsigned long long f) {
  (void)wish, (void)f;
  if (!standin_has_device) fault("cuMemAddressReserve without a device");
  if (bytes % GRANULARITY != 0) fault("cuMemAddressReserve of %zu bytes, not a multiple of the granularity", bytes);
  if (range.address != NULL) fault("cuMemAddressReserve of a second range");
  if (call("cuMemAddressReserve")) return CUDA_ERROR_OUT_OF_MEMORY;
  range.address = aligned_alloc(alignment, bytes);
  range.bytes = bytes;
  if (range.address == NULL) fault("no memory");
  *address = (CUdeviceptr)(uintptr_t)range.address;
  return CUDA_SUCCESS;
}

static CUresult create(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *kind,
                       unsigned long long flags) {
  if (kind->type != CU_MEM_ALLOCATION_TYPE_PINNED || kind->location.type != CU_MEM_LOCATION_TYPE_DEVICE || flags != 0)
    fault("cuMemCreate of memory that is not the device's");
  bool fabric = (kind->requestedHandleTypes & CU_MEM_HANDLE_TYPE_FABRIC) != 0;
  if (fabric && setting("STANDIN_FABRIC", 2) == 0) fault("cuMemCreate with handles for a fabric");
  if (fabric && setting("STANDIN_FABRIC", 2) == 1) return CUDA_ERROR_OPERATING_SYSTEM;
  if (kind->requestedHandleTypes != 0 && !setting("STANDIN_HANDLES", 1)) return CUDA_ERROR_NOT_SUPPORTED;
  if (kind->allocFlags.gpuDirectRDMACapable && !setting("STANDIN_RDMA", 1)) fault("cuMemCreate for GPUDirect RDMA");
  if (bytes % GRANULARITY != 0) fault("cuMemCreate of %zu bytes, not a multiple of the granularity", bytes);
  if (call("cuMemCreate")) return CUDA_ERROR_OUT_OF_MEMORY;
  physical += bytes;
  *handle = 1;
  return CUDA_SUCCESS;
}

static CUresult map(CUdeviceptr address, size_t bytes, size_t at, CUmemGenericAllocationHandle h,
                    unsigned long long flags) {
  (void)h;
  if ((char *)(uintptr_t)address != range.address || bytes != range.bytes || at != 0 || flags != 0 || physical < bytes)
    fault("cuMemMap of another range than was reserved and backed");
  range.is_mapped = true;
  return CUDA_SUCCESS;
}

static CUresult open_range(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t count) {
  if (!range.is_mapped || (char *)(uintptr_t)address != range.address || bytes != range.bytes || count != 1 ||
      access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
    fault("cuMemSetAccess of what is not mapped, or not to read and write");
  memset(range.address, 0xff, range.bytes);
  memory_add(range.address, range.bytes, DEVICE, "cuMemMap");
  return CUDA_SUCCESS;
}

static CUresult release(CUmemGenericAllocationHandle handle) {
  if (handle != 1 || physical == 0) fault("cuMemRelease of what was not created, or twice");
  physical = 0;
  return CUDA_SUCCESS;
}

static CUresult unmap(CUdeviceptr address, size_t bytes) {
  if (!range.is_mapped || (char *)(uintptr_t)address != range.address || bytes != range.bytes)
    fault("cuMemUnmap of what is not mapped");
  no_capture("cuMemUnmap");
  memory_remove(range.address, "cuMemUnmap");
  range.is_mapped = false;
  return CUDA_SUCCESS;
}

static CUresult free_range(CUdeviceptr address, size_t bytes) {
  if (range.is_mapped) fault("cuMemAddressFree of a range that is mapped");
  if ((char *)(uintptr_t)address != range.address || bytes != range.bytes) fault("cuMemAddressFree of another range");
  free(range.address);
  range.address = NULL;
  return CUDA_SUCCESS;
}

/* What memory of the driver's own interface may be for; no other attribute is asked for. */
static CUresult attribute(int *value, CUdevice_attribute which, CUdevice number) {
  (void)number;
  if (call("cuDeviceGetAttribute")) return CUDA_ERROR_INVALID_VALUE;
  if (which == CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED)
    *value = setting("STANDIN_RDMA", 1) != 0;
  else if (which == CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED)
    *value = setting("STANDIN_FABRIC", 2) > 0;
  else
    fault("cuDeviceGetAttribute of %d", (int)which);
  return CUDA_SUCCESS;
}

static CUresult error_text(CUresult code, const char **text) {
  *text = code == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "an error of the driver";
  return CUDA_SUCCESS;
}

static void *entry(const char *name) {
  static const struct {
    const char *name;
    void (*function)(void);
  } entries[] = {
      {"cuDeviceGetAttribute", (void (*)(void))attribute},
      {"cuMemGetAllocationGranularity", (void (*)(void))granularity},
      {"cuMemAddressReserve", (void (*)(void))reserve},
      {"cuMemCreate", (void (*)(void))create},
      {"cuMemMap", (void (*)(void))map},
      {"cuMemSetAccess", (void (*)(void))open_range},
      {"cuMemRelease", (void (*)(void))release},
      {"cuMemUnmap", (void (*)(void))unmap},
      {"cuMemAddressFree", (void (*)(void))free_range},
      {"cuGetErrorName", (void (*)(void))error_text},
      {"cuGetErrorString", (void (*)(void))error_text},
  };
  for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
    if (strcmp(entries[i].name, name) == 0) return *(void *const *)&entries[i].function;
  return NULL;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version,
                                             unsigned long long flags, enum cudaDriverEntryPointQueryResult *found) {
  (void)version, (void)flags;
  *function = entry(name);
  *found = *function != NULL ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
