#include "runtime/files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char space_help[] = "check the free space, the quota and the rights of the folder, or choose another, of "
                                 "a run with --project-dir";

static bool cannot(struct problem *problem, const char *path, const char *what, int error) {
  rt_problem(problem, "%s: %s: %s", path, what, strerror(error));
  return rt_help(problem, "%s", space_help);
}

static bool too_long(struct problem *problem, const char *path) {
  rt_problem(problem, "%.200s…: the path is too long", path);
  return rt_help(problem, "choose a shorter folder, of a run with --project-dir");
}

bool rt_join(char *out, size_t size, const char *folder, const char *name, struct problem *problem) {
  int length = snprintf(out, size, "%s/%s", folder, name);
  return (length >= 0 && (size_t)length < size) || too_long(problem, folder);
}

/* A file of its own: what a link of this name leads to, and what a file of it is linked with, keep their bytes. */
static int create(const char *path) {
  static const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  int file = open(path, flags, 0666);
  return file < 0 && errno == EEXIST && unlink(path) == 0 ? open(path, flags, 0666) : file;
}

/* Whether a rename may replace what stands at the path. Of a link it is what the link leads to that counts, so that a
 * link to a device stays. */
static bool may_replace(const char *path, struct problem *problem) {
  struct stat status;
  if (stat(path, &status) != 0 || S_ISREG(status.st_mode)) return true;
  rt_problem(problem, S_ISDIR(status.st_mode) ? "%s: is a folder" : "%s: is not a regular file, and would be replaced",
             path);
  return rt_help(problem, "choose the name of a file, or one that nothing has yet");
}

static bool name_files(struct writer *writer, const char *path, enum placing placing, struct problem *problem) {
  int length = snprintf(writer->path, sizeof writer->path, "%s", path);
  if (length < 0 || (size_t)length >= sizeof writer->path) return too_long(problem, path);
  snprintf(writer->partial, sizeof writer->partial, "%s%s", writer->path, placing == BY_RENAME ? ".partial" : "");
  writer->checksums = rt_prefix_checksums_start();
  writer->stream = NULL;
  writer->progress = NULL;
  return placing == IN_PLACE || may_replace(path, problem);
}

bool rt_writer_open(struct writer *writer, const char *path, enum placing placing, struct problem *problem) {
  if (!name_files(writer, path, placing, problem)) return false;
  writer->file = create(writer->partial);
  return writer->file >= 0 || cannot(problem, writer->partial, "cannot be created", errno);
}

bool rt_writer_resume(struct writer *writer, const char *path, size_t size, struct problem *problem) {
  struct stat status;
  if (!name_files(writer, path, BY_RENAME, problem)) return false;
  writer->file = open(writer->partial, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
  if (writer->file < 0) return cannot(problem, writer->partial, "cannot be opened", errno);
  if (fstat(writer->file, &status) == 0 && status.st_size >= (off_t)size && ftruncate(writer->file, (off_t)size) == 0 &&
      lseek(writer->file, 0, SEEK_END) >= 0)
    return true;
  close(writer->file);
  return cannot(problem, writer->partial, "cannot be gone on with", errno);
}

void rt_writer_stream(struct writer *writer) {
  writer->stream = rt_stream_open(writer->file);
}

/* Writes what the stream holds. */
static bool end_stream(struct writer *writer) {
  bool ended = writer->stream == NULL || rt_stream_end(writer->stream);
  writer->stream = NULL;
  return ended;
}

bool rt_writer_give_up(struct writer *writer, const char *what, struct problem *problem) {
  int error = errno;
  end_stream(writer);
  if (writer->file >= 0) close(writer->file);
  writer->file = -1;
  unlink(writer->partial);
  return cannot(problem, writer->path, what, error);
}

static bool write_all(struct writer *writer, const char *bytes, size_t size) {
  if (writer->stream != NULL) return rt_stream_add(writer->stream, bytes, size);
  while (size > 0) {
    ssize_t written = write(writer->file, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes += written;
    size -= (size_t)written;
  }
  return true;
}

bool rt_writer_add(struct writer *writer, const void *bytes, size_t size, struct problem *problem) {
  static const size_t most = (size_t)1 << 20; /* what is summed is still in the cache when it is written */
  for (const char *at = bytes; size > 0;) {
    size_t part = size < most ? size : most;
    rt_prefix_checksums_add(&writer->checksums, at, part);
    if (!write_all(writer, at, part)) return rt_writer_give_up(writer, "cannot be written", problem);
    if (writer->progress != NULL) rt_progress_add(writer->progress, part);
    at += part;
    size -= part;
  }
  return true;
}

/* A file system that cannot sync a folder says EINVAL: nothing to be done there. */
bool rt_sync_folder(const char *path, struct problem *problem) {
  int file = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return cannot(problem, path, "cannot be opened", errno);
  int status = fsync(file), error = errno;
  close(file);
  return status == 0 || error == EINVAL || cannot(problem, path, "cannot be synced", error);
}

/* Makes the rename itself durable. */
static bool sync_folder_of(const char *path, struct problem *problem) {
  char folder[4096];
  snprintf(folder, sizeof folder, "%s", path);
  char *slash = strrchr(folder, '/');
  if (slash == NULL)
    strcpy(folder, ".");
  else
    slash[slash == folder] = '\0';
  return rt_sync_folder(folder, problem);
}

struct file_sum rt_writer_sum(const struct writer *writer) {
  const struct prefix_checksums *checksums = &writer->checksums;
  return (struct file_sum){checksums->checksum.total, rt_checksum_end(&checksums->checksum), checksums->marks};
}

bool rt_write_file(const char *path, enum placing placing, const void *bytes, size_t size, struct file_sum *sum,
                   struct problem *problem) {
  struct writer writer;
  if (!rt_writer_open(&writer, path, placing, problem) || !rt_writer_add(&writer, bytes, size, problem)) return false;
  if (sum != NULL) *sum = rt_writer_sum(&writer);
  return rt_writer_commit(&writer, problem);
}

bool rt_writer_commit(struct writer *writer, struct problem *problem) {
  if (!end_stream(writer)) return rt_writer_give_up(writer, "cannot be written", problem);
  if (fsync(writer->file) != 0) return rt_writer_give_up(writer, "cannot be synced", problem);
  int status = close(writer->file);
  writer->file = -1;
  if (status != 0) return rt_writer_give_up(writer, "cannot be closed", problem);
  if (strcmp(writer->partial, writer->path) == 0) return true;
  if (rename(writer->partial, writer->path) != 0) return rt_writer_give_up(writer, "cannot be replaced", problem);
  return sync_folder_of(writer->path, problem);
}

bool rt_is_same_file(const char *a, const char *b) {
  struct stat one, other;
  return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

static bool make_folder(const char *path, struct problem *problem) {
  struct stat status;
  if (mkdir(path, 0777) == 0) return true;
  int error = errno;
  bool exists = stat(path, &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) return true;
  return cannot(problem, path, "the folder cannot be made", exists ? ENOTDIR : error);
}

bool rt_make_folders(const char *path, struct problem *problem) {
  char upper[4096];
  int length = snprintf(upper, sizeof upper, "%s", path);
  if (length < 0 || (size_t)length >= sizeof upper) return too_long(problem, path);
  for (char *at = upper + 1; length > 0 && *at != '\0'; at++) {
    if (*at != '/') continue;
    *at = '\0';
    if (!make_folder(upper, problem)) return false;
    *at = '/';
  }
  return make_folder(path, problem);
}
