#define _DEFAULT_SOURCE /* on_exit */
#include "tests/cuda/standin/core.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Fault ---- */

int own_rank(void) {
  static const char *const names[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (getenv(names[i]) != NULL) return atoi(getenv(names[i]));
  return 0;
}

/* One write: other ranks say what is wrong, too. */
static void say_wrong(const char *format, va_list arguments) {
  char text[1024];
  vsnprintf(text, sizeof text, format, arguments);
  fflush(stdout);
  fprintf(stderr, "stand-in: rank %d: %s\n", own_rank(), text);
}

void complain(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  say_wrong(format, arguments);
  va_end(arguments);
}

void fault(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  say_wrong(format, arguments);
  va_end(arguments);
  _exit(STANDIN_STATUS);
}

long long setting(const char *name, long long otherwise) {
  const char *value = getenv(name);
  return value != NULL ? atoll(value) : otherwise;
}

static void trace(const char *name) {
  static FILE *file;
  static bool opened;
  const char *path = opened ? NULL : getenv("STANDIN_TRACE");
  opened = true;
  if (path != NULL) file = fopen(path, "w");
  if (file != NULL) fprintf(file, "%s\n", name), fflush(file);
}

bool call(const char *name) {
  static long long made;
  const char *failing = getenv("STANDIN_FAIL");
  trace(name);
  if (failing == NULL) return false;
  size_t length = strcspn(failing, ":");
  if (strlen(name) != length || strncmp(name, failing, length) != 0) return false;
  return ++made == (failing[length] == ':' ? atoll(failing + length + 1) : 1);
}

/* ---- Objects ---- */

static const char *const object_names[] = {"stream",          "event",
                                           "graph",           "executable graph",
                                           "cuBLASLt handle", "cuBLASLt description",
                                           "cuBLASLt layout", "cuBLASLt preference",
                                           "cuDNN handle",    "cuDNN descriptor",
                                           "communicator",    "window"};
static_assert(sizeof object_names / sizeof *object_names == OBJECTS, "a name each");

struct header {
  uint32_t mark, kind;
  struct header *next;
};
enum { ALIVE = 0x57a4d1b0, ENDED = 0x57a4dead };

static struct header *objects;
static long long alive[OBJECTS];

/* In a process that ends well nothing may be left. */
static void look_for_leaks(int status, void *unused) {
  (void)unused;
  if (status != 0) return;
  for (int i = 0; i < OBJECTS; i++)
    if (alive[i] > 0) fault("%lld %s%s left at the end", alive[i], object_names[i], alive[i] > 1 ? "s are" : " is");
  if (memory_used() > 0) fault("%zu bytes of memory are left at the end", memory_used());
}

static void watch_the_end(void) {
  static bool watched;
  if (!watched) on_exit(look_for_leaks, NULL);
  watched = true;
}

void *object_new(enum object kind, size_t bytes) {
  watch_the_end();
  struct header *made = calloc(1, sizeof *made + bytes);
  if (made == NULL) fault("no memory");
  *made = (struct header){ALIVE, kind, objects};
  objects = made;
  alive[kind]++;
  return made + 1;
}

/* Memory of objects is never given back, so that one that has ended is known. */
static struct header *header_of(const void *object) {
  for (struct header *at = objects; at != NULL; at = at->next)
    if (at + 1 == object) return at;
  return NULL;
}

void *object_of(const void *object, enum object kind, const char *what) {
  struct header *header = object == NULL ? NULL : header_of(object);
  if (header == NULL) fault("%s: %p is no %s", what, object, object_names[kind]);
  if (header->kind != kind)
    fault("%s: the handle is of kind %s, not of kind %s", what, object_names[header->kind], object_names[kind]);
  if (header->mark != ALIVE) fault("%s: the %s has ended", what, object_names[kind]);
  return (void *)(header + 1);
}

long long objects_alive(enum object kind) {
  return alive[kind];
}

void object_end(void *object, enum object kind, const char *what) {
  object_of(object, kind, what);
  header_of(object)->mark = ENDED;
  alive[kind]--;
}

/* ---- Memory ---- */

struct block {
  char *address;
  size_t bytes;
  enum memory_kind kind;
  const char *made_by;
};
enum { BLOCKS = 1024 };
static struct block blocks[BLOCKS];
static int n_blocks;

static struct block *block_at(const void *address) {
  for (int i = 0; i < n_blocks; i++)
    if ((const char *)address >= blocks[i].address && (const char *)address < blocks[i].address + blocks[i].bytes)
      return &blocks[i];
  return NULL;
}

void memory_add(void *address, size_t bytes, enum memory_kind kind, const char *made_by) {
  if (n_blocks == BLOCKS) fault("%s: more than %d allocations", made_by, BLOCKS);
  blocks[n_blocks++] = (struct block){address, bytes, kind, made_by};
  order_watch(address, bytes);
  watch_the_end();
}

void memory_remove(void *address, const char *what) {
  struct block *block = block_at(address);
  if (block == NULL || block->address != address) fault("%s: %p is not allocated, or was given back", what, address);
  order_forget(address, block->bytes);
  *block = blocks[--n_blocks];
}

enum memory_kind memory_kind_of(const void *address) {
  const struct block *block = block_at(address);
  return block == NULL ? PAGEABLE : block->kind;
}

bool memory_pinned(int number, char **from, size_t *bytes) {
  for (int i = 0; i < n_blocks; i++) {
    if (blocks[i].kind != PINNED || number-- > 0) continue;
    *from = blocks[i].address;
    *bytes = blocks[i].bytes;
    return true;
  }
  return false;
}

void memory_require(const void *address, size_t bytes, enum memory_kind kind, const char *what) {
  static const char *const names[] = {"pageable", "pinned", "device"};
  const struct block *block = block_at(address);
  if (bytes == 0) return;
  if (block == NULL || block->kind != kind)
    fault("%s: %p is not %s memory but %s", what, address, names[kind],
          block == NULL ? "the host's, or none" : names[block->kind]);
  size_t left = (size_t)(block->address + block->bytes - (const char *)address);
  if (bytes > left)
    fault("%s: %zu bytes from %p reach %zu bytes beyond their allocation", what, bytes, address, bytes - left);
}

bool memory_around(const void *address, const char **from, size_t *bytes) {
  const struct block *block = block_at(address);
  if (block == NULL) return false;
  *from = block->address;
  *bytes = block->bytes;
  return true;
}

size_t memory_left(const void *address) {
  const char *from;
  size_t bytes;
  return memory_around(address, &from, &bytes) ? bytes - (size_t)((const char *)address - from) : 0;
}

size_t memory_used(void) {
  size_t sum = 0;
  for (int i = 0; i < n_blocks; i++) sum += blocks[i].bytes;
  return sum;
}
