#define _GNU_SOURCE /* O_TMPFILE, O_DIRECT */
#include "runtime/files/scratch.h"

#include "runtime/files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

static bool cannot(struct problem *problem, const char *folder, const char *what, int error) {
  rt_problem(problem, "%s: %s: %s", folder, what, strerror(error));
  return rt_help(problem, "name a folder on a disk with space that this process may write to");
}

/* Where a file system makes no files without names, a name is there for a moment. */
static int make_file(const char *folder, struct problem *problem) {
  char path[4096];
  int file = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return file;
  if (!rt_join(path, sizeof path, folder, ".accel-XXXXXX", problem)) {
    errno = ENAMETOOLONG;
    return -1;
  }
  file = mkostemp(path, O_CLOEXEC);
  if (file >= 0) unlink(path);
  return file;
}

static int open_direct(int file) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  return open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
}

static bool no_space(const char *folder, size_t size, int error, struct problem *problem) {
  struct statvfs status;
  if (error != ENOSPC || statvfs(folder, &status) != 0) return cannot(problem, folder, "no file can be made", error);
  rt_problem(problem, "%s: a file of %.1f MiB does not fit: %.1f MiB are free", folder, (double)size / 0x1p20,
             (double)status.f_bavail * (double)status.f_frsize / 0x1p20);
  return rt_help(problem, "free space there, or name a folder on another disk");
}

bool rt_scratch_open(struct scratch *scratch, const char *folder, size_t size, struct problem *problem) {
  *scratch = (struct scratch){.file = -1, .direct = -1, .size = size};
  if (!rt_make_folders(folder, problem)) return false;
  scratch->file = make_file(folder, problem);
  if (scratch->file < 0) return cannot(problem, folder, "no file can be made", errno);
  const int error = posix_fallocate(scratch->file, 0, (off_t)size);
  if (error != 0) {
    rt_scratch_close(scratch);
    return no_space(folder, size, error, problem);
  }
  void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, scratch->file, 0);
  if (bytes == MAP_FAILED) {
    const int cause = errno;
    rt_scratch_close(scratch);
    return cannot(problem, folder, "the file cannot be mapped", cause);
  }
  scratch->bytes = bytes;
  scratch->direct = open_direct(scratch->file);
  return true;
}

bool rt_scratch_read(const struct scratch *scratch, const char *bytes, void *to, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t count = pread(scratch->file, (char *)to + done, size - done, bytes - scratch->bytes + (off_t)done);
    if (count == 0) errno = ENODATA;
    if (count == 0 || (count < 0 && errno != EINTR)) return false;
    if (count > 0) done += (size_t)count;
  }
  return true;
}

bool rt_scratch_write(const struct scratch *scratch, const char *bytes, const void *from, size_t size) {
  for (size_t done = 0; done < size;) {
    const off_t at = bytes - scratch->bytes + (off_t)done;
    const ssize_t count = pwrite(scratch->file, (const char *)from + done, size - done, at);
    if (count < 0 && errno != EINTR) return false;
    if (count > 0) done += (size_t)count;
  }
  return true;
}

void rt_scratch_close(struct scratch *scratch) {
  if (scratch->bytes != NULL) munmap(scratch->bytes, scratch->size);
  if (scratch->direct >= 0) close(scratch->direct);
  if (scratch->file >= 0) close(scratch->file);
  *scratch = (struct scratch){.file = -1, .direct = -1};
}
