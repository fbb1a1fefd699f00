#include "gen/commands/files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool complain(const char *path) {
  fprintf(stderr, "accel-gen: cannot write %s: %s\n", path, strerror(errno));
  return false;
}

static bool write_all(int file, const char *bytes, size_t length) {
  while (length > 0) {
    ssize_t written = write(file, bytes, length);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes += written;
    length -= (size_t)written;
  }
  return true;
}

/* The permissions that a plain open would have given. */
static mode_t plain_mode(void) {
  mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

/* Whether `path` is something to write into as it is, such as /dev/null or a pipe, and not a file to replace. */
static bool is_device(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

static bool write_stream(const char *path, const char *bytes, size_t length) {
  FILE *out = strcmp(path, "-") == 0 ? stdout : fopen(path, "wb");
  if (out == NULL) return complain(path);
  bool good = fwrite(bytes, 1, length, out) == length && fflush(out) == 0;
  if (out != stdout && fclose(out) != 0) good = false;
  return good || complain(path);
}

bool write_file(struct arena *arena, const char *path, const char *bytes, size_t length) {
  if (strcmp(path, "-") == 0 || is_device(path)) return write_stream(path, bytes, length);
  char *beside = arena_printf(arena, "%s.XXXXXX", path);
  int file = mkstemp(beside);
  if (file < 0) return complain(path);
  bool good = write_all(file, bytes, length) && fchmod(file, plain_mode()) == 0 && fsync(file) == 0;
  if (close(file) != 0) good = false;
  if (good && rename(beside, path) == 0) return true;
  int reason = errno;
  unlink(beside);
  errno = reason;
  return complain(path);
}
