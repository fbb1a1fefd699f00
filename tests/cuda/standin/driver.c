#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
/* The driver: virtual memory, through the entry points that the runtime library gives. */
#include "tests/cuda/standin/core.h"

#include <cuda.h>
#include <string.h>
#include <sys/mman.h>

/* A reserved range of addresses. What is mapped of it is in core.c's list of memory. */
static struct {
  char *address;
  size_t bytes, mapped;
} range;

/* Memory that was created, by its handle less 1. */
enum { PIECES = 1024 };
static struct piece {
  size_t bytes;
  bool is_mapped, is_released;
  char *address; /* where it is mapped */
  bool is_open;  /* to reads and writes */
} pieces[PIECES];
static int n_pieces;

/* Less than a page for tests of small arenas, whose stages then differ. */
static size_t granule(void) {
  return (size_t)setting("STANDIN_GRANULARITY", 2 << 20);
}

static struct piece *piece_at(const char *address, size_t bytes) {
  for (int i = 0; i < n_pieces; i++)
    if (pieces[i].is_mapped && pieces[i].address == address && pieces[i].bytes == bytes) return &pieces[i];
  return NULL;
}

/* Opens or closes the pages that have some of it, for which no instrumentation is needed. */
static void protect(char *address, size_t bytes, int protection) {
  const uintptr_t page = 4096, from = (uintptr_t)address / page * page, end = (uintptr_t)address + bytes;
  if (mprotect((void *)from, (end - from + page - 1) / page * page, protection) != 0) fault("mprotect failed");
}

const char *driver_range(void) {
  return range.address;
}

bool driver_reserves(const void *address) {
  return range.address != NULL && (const char *)address >= range.address &&
         (const char *)address < range.address + range.bytes;
}

static CUresult granularity(size_t *bytes, const CUmemAllocationProp *kind, CUmemAllocationGranularity_flags which) {
  (void)kind, (void)which;
  *bytes = granule();
  return CUDA_SUCCESS;
}

static CUresult reserve(CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr wish, unsigned long long f) {
  (void)wish, (void)f;
  if (!standin_has_device) fault("cuMemAddressReserve without a device");
  if (bytes % granule() != 0) fault("cuMemAddressReserve of %zu bytes, not a multiple of the granularity", bytes);
  if (range.address != NULL) fault("cuMemAddressReserve of a second range");
  if (call("cuMemAddressReserve")) return CUDA_ERROR_OUT_OF_MEMORY;
  char *all = mmap(NULL, bytes + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) fault("no memory");
  range.address = all + (alignment - (uintptr_t)all % alignment) % alignment;
  range.bytes = bytes;
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
  if (bytes % granule() != 0) fault("cuMemCreate of %zu bytes, not a multiple of the granularity", bytes);
  if (call("cuMemCreate")) return CUDA_ERROR_OUT_OF_MEMORY;
  if (n_pieces == PIECES) fault("cuMemCreate of more than %d pieces", PIECES);
  pieces[n_pieces++] = (struct piece){.bytes = bytes};
  *handle = (CUmemGenericAllocationHandle)n_pieces;
  return CUDA_SUCCESS;
}

static struct piece *piece_of(CUmemGenericAllocationHandle handle, const char *what) {
  if (handle < 1 || handle > (CUmemGenericAllocationHandle)n_pieces || pieces[handle - 1].is_released)
    fault("%s of what was not created, or was released", what);
  return &pieces[handle - 1];
}

static CUresult map(CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                    unsigned long long flags) {
  struct piece *piece = piece_of(handle, "cuMemMap");
  char *address = (char *)(uintptr_t)at;
  if (!driver_reserves(address) || bytes > range.bytes - (size_t)(address - range.address) ||
      (size_t)(address - range.address) % granule() != 0 || offset != 0 || flags != 0 || piece->bytes != bytes ||
      piece->is_mapped)
    fault("cuMemMap of another range than was reserved and backed");
  for (int i = 0; i < n_pieces; i++)
    if (pieces[i].is_mapped && address < pieces[i].address + pieces[i].bytes && pieces[i].address < address + bytes)
      fault("cuMemMap over what is mapped");
  piece->is_mapped = true;
  piece->address = address;
  range.mapped += bytes;
  return CUDA_SUCCESS;
}

static CUresult open_range(CUdeviceptr at, size_t bytes, const CUmemAccessDesc *access, size_t count) {
  struct piece *piece = piece_at((char *)(uintptr_t)at, bytes);
  if (piece == NULL || piece->is_open || count != 1 || access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
    fault("cuMemSetAccess of what is not mapped, or not to read and write");
  piece->is_open = true;
  protect(piece->address, bytes, PROT_READ | PROT_WRITE);
  memset(piece->address, 0xff, bytes);
  memory_add(piece->address, bytes, DEVICE, "cuMemMap");
  return CUDA_SUCCESS;
}

static CUresult release(CUmemGenericAllocationHandle handle) {
  piece_of(handle, "cuMemRelease")->is_released = true;
  return CUDA_SUCCESS;
}

static CUresult unmap(CUdeviceptr at, size_t bytes) {
  struct piece *piece = piece_at((char *)(uintptr_t)at, bytes);
  if (piece == NULL || !piece->is_open) fault("cuMemUnmap of what is not mapped");
  no_capture("cuMemUnmap");
  memory_remove(piece->address, "cuMemUnmap");
  if (granule() >= 4096) protect(piece->address, bytes, PROT_NONE);
  piece->is_mapped = false;
  range.mapped -= bytes;
  return CUDA_SUCCESS;
}

static CUresult free_range(CUdeviceptr address, size_t bytes) {
  if (range.mapped > 0) fault("cuMemAddressFree of a range that is mapped");
  if ((char *)(uintptr_t)address != range.address || bytes != range.bytes) fault("cuMemAddressFree of another range");
  munmap(range.address, bytes);
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
