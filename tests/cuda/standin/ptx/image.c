#define _GNU_SOURCE /* memmem, strdup */
#include "tests/cuda/standin/ptx/image.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/standin/core.h"
#include "tests/cuda/standin/ptx/checks.h"
#include "tests/cuda/standin/ptx/operations.h"

/* ---- Fat binaries: the heads of the file and of its entries, as far as they are looked at ---- */

struct wrapper {
  uint32_t mark, version;
  const char *data;
};
struct head {
  uint32_t mark;
  uint16_t version, head_bytes;
  uint64_t bytes;
};
struct entry {
  uint16_t kind, version;
  uint32_t head_bytes;
  uint64_t bytes;
};
enum { WRAPPER_MARK = 0x466243b1, PTX_KIND = 1 };
#define HEAD_MARK UINT32_C(0xba55ed50)

const char *image_text(const void *fat_binary, size_t *length) {
  struct wrapper wrapper;
  struct head head;
  memcpy(&wrapper, fat_binary, sizeof wrapper);
  if (wrapper.mark != WRAPPER_MARK) return NULL;
  memcpy(&head, wrapper.data, sizeof head);
  if (head.mark != HEAD_MARK) return NULL;
  const char *at = wrapper.data + head.head_bytes, *end = at + head.bytes;
  while (at + sizeof(struct entry) < end) {
    struct entry entry;
    memcpy(&entry, at, sizeof entry);
    const char *text = at + entry.head_bytes;
    *length = strnlen(text, entry.bytes);
    if (entry.kind == PTX_KIND && memmem(text, *length, ".address_size", 13) != NULL)
      return text; /* it is not compressed */
    at = text + entry.bytes;
  }
  return NULL;
}

const char *image_file(const char *path, size_t *length) {
  FILE *file = fopen(path, "r");
  char *text = NULL;
  size_t capacity = 0;
  if (file == NULL) fault("STANDIN_PTX: %s cannot be read", path);
  const ssize_t read = getdelim(&text, &capacity, '\0', file);
  fclose(file);
  if (read <= 0) fault("STANDIN_PTX: %s is empty", path);
  *length = (size_t)read;
  return text;
}

/* ---- Launches ---- */

static size_t parameters_at(void) {
  return (sizeof(struct ptx_launch) + 63) / 64 * 64;
}

/* .maxntid 256, 1, 1 */
static void check_block(const struct kernel *kernel, const uint32_t block[3]) {
  const char *most = strstr(kernel->function->head, ".maxntid ");
  uint32_t threads = 1, count = 1;
  if (most == NULL) return;
  for (char *at = (char *)(uintptr_t)most + 8; *at == ' ' || *at == ',';)
    if (*at == ',' || !isdigit((unsigned char)at[1]))
      at++;
    else
      threads *= (uint32_t)strtoul(at, &at, 10);
  for (int i = 0; i < 3; i++) count *= block[i];
  if (count > threads) fault("%s: a block of %u threads, of at most %u", kernel->name, count, threads);
}

void *ptx_launch_of(struct kernel *kernel, const uint32_t grid[3], const uint32_t block[3], uint32_t shared,
                    void **arguments, size_t *bytes) {
  check_block(kernel, block);
  *bytes = parameters_at() + kernel->parameter_bytes;
  char *made = calloc(1, *bytes + 8);
  if (made == NULL) fault("no memory");
  struct ptx_launch *launch = (struct ptx_launch *)(void *)made;
  launch->kernel = kernel;
  memcpy(launch->grid, grid, sizeof launch->grid);
  memcpy(launch->block, block, sizeof launch->block);
  launch->shared = shared;
  for (int i = 0; i < kernel->parameters.count; i++) {
    const struct variable *parameter = &kernel->parameters.items[i];
    memcpy(made + parameters_at() + parameter->address, arguments[i], parameter->bytes);
  }
  return made;
}

/* ---- Arrays ----
 *
 * STANDIN_ARRAYS names a file with a line for each array of a program's arena: its offset, its bytes, its name. Those
 * that are saved and scratch are of one micro-batch alone, which begins with the feed. */

static struct array {
  struct extent at;
  char *name;
  bool is_passing; /* saved or scratch: what is there at a time is not one array's alone */
} *arrays;
static int n_arrays;

static void read_arrays(void) {
  static bool is_read;
  const char *path = is_read ? NULL : getenv("STANDIN_ARRAYS");
  unsigned long long offset, bytes, feed = 0, from = UINT64_MAX, to = 0;
  char name[512];
  is_read = true;
  if (path == NULL) return;
  const char *const base = driver_range();
  FILE *file = fopen(path, "r");
  if (file == NULL) fault("STANDIN_ARRAYS: %s cannot be read", path);
  while (fscanf(file, "%llu %llu %511[^\n]", &offset, &bytes, name) == 3) {
    const bool is_passing = strncmp(name, "saved.", 6) == 0 || strncmp(name, "scratch.", 8) == 0;
    arrays = realloc(arrays, ((size_t)n_arrays + 1) * sizeof *arrays);
    if (arrays == NULL) fault("no memory");
    arrays[n_arrays++] = (struct array){{offset, offset + bytes, 0, 0}, strdup(name), is_passing};
    if (strncmp(name, "feed.", 5) == 0 && feed == 0) feed = offset;
    if (strcmp(name, "sums") == 0 && base != NULL) operations_keep(base + offset, bytes);
    if (!is_passing) continue;
    if (offset < from) from = offset;
    if (offset + bytes > to) to = offset + bytes;
  }
  fclose(file);
  if (base != NULL && feed > 0 && from < to) order_batches(base + feed, base + from, base + to);
}

static void widen(struct extent *extent, const struct extent *by) {
  if (by->from < extent->from) extent->from = by->from;
  if (by->to > extent->to) extent->to = by->to;
}

/* What a pointer points into: the largest array of the arena that begins there or, if none does, all that are around
 * it; else the allocation. Where arrays take turns in the same memory, it may also be a part of another one. */
static struct extent extent_of(uint64_t pointer) {
  const void *address = (const void *)(uintptr_t)pointer;
  const char *from;
  size_t bytes;
  if (!memory_around(address, &from, &bytes)) return (struct extent){0};
  struct extent found = {(uint64_t)(uintptr_t)from, (uint64_t)(uintptr_t)from + bytes, 0, 0};
  if (n_arrays == 0 || !driver_reserves(address)) return found;
  const uint64_t base = (uint64_t)(uintptr_t)driver_range(), offset = pointer - base;
  const struct array *begins = NULL;
  struct extent around = {offset, 0, 0, 0}, passing = around;
  for (int i = 0; i < n_arrays; i++) {
    const struct extent *at = &arrays[i].at;
    if (at->from == offset && (begins == NULL || at->to > begins->at.to)) begins = &arrays[i];
  }
  for (int i = 0; i < n_arrays; i++) {
    const struct array *array = &arrays[i];
    if (offset < array->at.from || offset >= array->at.to) continue;
    widen(&around, &array->at);
    const bool is_part = begins == NULL || strncmp(begins->name, array->name, strlen(array->name)) == 0;
    if (array->is_passing && !is_part) widen(&passing, &array->at);
  }
  const struct extent *best = begins != NULL ? &begins->at : &around;
  if (best->to == 0) return found;
  return (struct extent){base + best->from, base + best->to, base + passing.from, base + passing.to};
}

void ptx_launch_run(const void *bytes) {
  const struct ptx_launch *of = bytes;
  const struct kernel *kernel = of->kernel;
  struct extent extents[64] = {{0}};
  struct launch launch = {.kernel = of->kernel,
                          .parameters = (const char *)bytes + parameters_at(),
                          .shared_bytes = kernel->shared_bytes + of->shared,
                          .extents = extents};
  memcpy(launch.grid, of->grid, sizeof launch.grid);
  memcpy(launch.block, of->block, sizeof launch.block);
  read_arrays();
  for (size_t i = 0; i < 63 && 8 * i < kernel->parameter_bytes; i++) {
    uint64_t word;
    memcpy(&word, launch.parameters + 8 * i, sizeof word);
    extents[i] = extent_of(word);
  }
  operations_launch(of->operation);
  launch_run(&launch);
}
