/* Preloaded into a program: call number FAULT_AT among all write, fsync and rename fails with FAULT_ERRNO, or, where
 * that is 0 and it is a write, takes one byte only. Counts are told in the file that FAULT_COUNT names. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static long calls;

static void tell(void) {
  const char *path = getenv("FAULT_COUNT");
  FILE *file = path != NULL ? fopen(path, "w") : NULL;
  if (file == NULL) return;
  fprintf(file, "%ld\n", calls);
  fclose(file);
}

__attribute__((constructor)) static void begin(void) {
  atexit(tell);
}

/* Whether this call is the one; errno is set when it is to fail. */
static int is_the_one(void) {
  const char *at = getenv("FAULT_AT"), *error = getenv("FAULT_ERRNO");
  if (++calls != (at != NULL ? strtol(at, NULL, 10) : -1)) return 0;
  errno = error != NULL ? (int)strtol(error, NULL, 10) : EIO;
  return 1;
}

ssize_t write(int file, const void *bytes, size_t size) {
  if (file > STDERR_FILENO && is_the_one()) {
    if (errno != 0) return -1;
    size = size > 1 ? 1 : size;
  }
  return syscall(SYS_write, file, bytes, size);
}

int fsync(int file) {
  if (is_the_one() && errno != 0) return -1;
  return (int)syscall(SYS_fsync, file);
}

int rename(const char *from, const char *to) {
  if (is_the_one() && errno != 0) return -1;
  return (int)syscall(SYS_rename, from, to);
}
