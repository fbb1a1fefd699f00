#define _DEFAULT_SOURCE /* madvise */
#include "runtime/files/mapping.h"

#include "runtime/process/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool cannot(struct problem *problem, const char *path, const char *what, const char *why, const char *cure) {
  rt_problem(problem, "%s: %s: %s", path, what, why);
  return rt_help(problem, "%s", cure);
}

static bool examine(int file, const char *path, size_t *size, const char *cure, struct problem *problem) {
  struct stat status;
  if (fstat(file, &status) != 0) return cannot(problem, path, "cannot be examined", strerror(errno), cure);
  if (!S_ISREG(status.st_mode)) return cannot(problem, path, "cannot be read", "not a regular file", cure);
  if ((uintmax_t)status.st_size > SIZE_MAX) return cannot(problem, path, "cannot be mapped", "too large", cure);
  *size = (size_t)status.st_size;
  return true;
}

bool rt_map_file(struct mapping *mapping, int file, const char *path, const char *cure, struct problem *problem) {
  *mapping = (struct mapping){0};
  if (!examine(file, path, &mapping->size, cure, problem)) return false;
  if (mapping->size == 0) return true;
  void *bytes = mmap(NULL, mapping->size, PROT_READ, MAP_PRIVATE, file, 0);
  if (bytes == MAP_FAILED) return cannot(problem, path, "cannot be mapped", strerror(errno), cure);
  mapping->bytes = bytes;
  return true;
}

static int open_for_reading(const char *path, const char *cure, struct problem *problem) {
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* not to wait for the writer of a pipe */
  if (file < 0) cannot(problem, path, "cannot be opened", strerror(errno), cure);
  return file;
}

int rt_open_regular(const char *path, size_t *size, const char *cure, struct problem *problem) {
  const int file = open_for_reading(path, cure, problem);
  if (file < 0 || examine(file, path, size, cure, problem)) return file;
  close(file);
  return -1;
}

bool rt_map(struct mapping *mapping, const char *path, const char *cure, struct problem *problem) {
  *mapping = (struct mapping){0};
  const int file = open_for_reading(path, cure, problem);
  if (file < 0) return false;
  bool mapped = rt_map_file(mapping, file, path, cure, problem);
  close(file);
  return mapped;
}

bool rt_map_part(struct mapping *mapping, int file, size_t first, size_t size, const uint8_t **at) {
  const size_t before = first % (size_t)sysconf(_SC_PAGESIZE);
  void *bytes = mmap(NULL, size + before, PROT_READ, MAP_PRIVATE, file, (off_t)(first - before));
  if (bytes == MAP_FAILED) return false;
  *mapping = (struct mapping){bytes, size + before};
  *at = mapping->bytes + before;
  return true;
}

void rt_map_ahead(const struct mapping *mapping) {
  if (mapping->size > 0) (void)madvise((void *)(uintptr_t)mapping->bytes, mapping->size, MADV_WILLNEED);
}

void rt_unmap(struct mapping *mapping) {
  if (mapping->bytes != NULL) munmap((void *)(uintptr_t)mapping->bytes, mapping->size);
  *mapping = (struct mapping){0};
}

void rt_map_forget(const uint8_t *from, size_t size) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  uintptr_t begin = ((uintptr_t)from + page - 1) / page * page, end = ((uintptr_t)from + size) / page * page;
  if (begin < end) (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
}

/* Made beforehand, as a signal handler may only call what is safe inside of one. */
static char cut_file[256];

static void on_bus_error(int number) {
  (void)number;
  if (write(STDERR_FILENO, cut_file, strlen(cut_file)) < 0) _exit(1);
  _exit(1);
}

void rt_guard_mappings(void) {
  struct sigaction action = {.sa_handler = on_bus_error};
  char speaker[SPEAKER];
  rt_speaker(speaker, sizeof speaker);
  snprintf(cut_file, sizeof cut_file,
           "%serror: a data or weights file became shorter while it was being read\n"
           "    help: start again, and leave the file as it is while the program runs\n",
           speaker);
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, NULL);
}
