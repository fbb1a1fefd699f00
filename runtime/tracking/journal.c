#include "runtime/tracking/journal.h"

#include "runtime/files/files.h"
#include "runtime/files/mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool failed(const struct journal *journal, struct problem *problem) {
  rt_problem(problem, "%s: cannot be written: %s", journal->path, strerror(errno));
  return rt_help(problem, "check the free space, the quota and the rights of the folder, or choose another with "
                          "--project-dir");
}

int64_t rt_cut_lines(const uint8_t *bytes, size_t size, const char *before, int64_t keep) {
  const size_t length = strlen(before);
  size_t at = 0;
  while (at < size) {
    const uint8_t *line = bytes + at, *end = memchr(line, '\n', size - at);
    char head[24] = "";
    if (end == NULL) break; /* a killed process left it */
    const size_t count = (size_t)(end - line);
    if (count > length && memcmp(line, before, length) == 0) {
      snprintf(head, sizeof head, "%.*s", (int)(count - length < 20 ? count - length : 20), line + length);
      if (strtoll(head, NULL, 10) > keep) break;
    }
    at += count + 1;
  }
  return (int64_t)at;
}

bool rt_is_last(const uint8_t *bytes, size_t size, size_t end) {
  while (end < size && bytes[end] == 0) end++;
  return end >= size;
}

static bool damaged(const struct journal *journal, struct problem *problem) {
  rt_problem(problem, "%s: is damaged at byte %" PRId64 ": what is there is no entry of a run", journal->path,
             journal->whole);
  return rt_help(problem, "move it to another folder, where nothing of it is lost; the run then begins it anew");
}

/* Cuts the file to what the run resumes from. */
static bool keep_history(struct journal *journal, int64_t keep, journal_cut *cut, struct problem *problem) {
  static const char cure[] = "remove it, or choose another --project-dir";
  struct mapping mapping;
  if (!rt_map_file(&mapping, journal->file, journal->path, cure, problem)) return false;
  const bool good = keep < 0 || cut(mapping.bytes, mapping.size, keep, &journal->whole);
  rt_unmap(&mapping);
  if (!good) return damaged(journal, problem);
  return (ftruncate(journal->file, journal->whole) == 0 && lseek(journal->file, 0, SEEK_END) >= 0) ||
         failed(journal, problem);
}

/* Nothing waits for the other end of a pipe. */
static int open_file(const char *path, bool fresh) {
  static const int flags = O_RDWR | O_CREAT | O_NONBLOCK | O_CLOEXEC;
  if (!fresh) return open(path, flags, 0666);
  if (unlink(path) != 0 && errno != ENOENT) return -1;
  return open(path, flags | O_EXCL, 0666);
}

/* Closes the file again where it cannot be continued. */
static bool give_up(struct journal *journal) {
  if (journal->file >= 0) close(journal->file);
  *journal = (struct journal){.file = -1};
  return false;
}

bool rt_journal_open(struct journal *journal, const char *path, int64_t keep, journal_cut *cut,
                     struct problem *problem) {
  *journal = (struct journal){.file = -1};
  if (strlen(path) >= sizeof journal->path) return rt_problem(problem, "%.200s...: the path is too long", path);
  memcpy(journal->path, path, strlen(path) + 1);
  journal->file = open_file(path, keep < 0);
  const bool good = journal->file >= 0 ? keep_history(journal, keep, cut, problem) : failed(journal, problem);
  return good || give_up(journal);
}

bool rt_journal_rest(struct journal *journal, struct problem *problem) {
  const int file = journal->file;
  journal->file = -1;
  return close(file) == 0 || failed(journal, problem);
}

void rt_journal_add(struct journal *journal, struct bytes *entry) {
  if (entry->failed)
    journal->waiting.failed = true;
  else
    rt_bytes_add(&journal->waiting, entry->data, entry->count);
  rt_bytes_free(entry);
}

static bool write_all(int file, const struct bytes *bytes) {
  for (size_t at = 0; at < bytes->count;) {
    ssize_t written = write(file, bytes->data + at, bytes->count - at);
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) at += (size_t)written;
  }
  return true;
}

/* What was written of entries that are not whole is cut off again. */
static bool append(struct journal *journal, int file, struct problem *problem) {
  if (write_all(file, &journal->waiting)) {
    journal->whole += (int64_t)journal->waiting.count;
    journal->waiting.count = 0;
    return true;
  }
  failed(journal, problem);
  bool cut = ftruncate(file, journal->whole) == 0 && lseek(file, 0, SEEK_END) >= 0;
  (void)cut; /* nothing more can be done, and the problem is reported */
  return false;
}

bool rt_journal_flush(struct journal *journal, struct problem *problem) {
  if (journal->waiting.failed) {
    journal->waiting.failed = false;
    return rt_problem(problem, "%s: no memory for what is written", journal->path);
  }
  if (journal->waiting.count == 0) return true;
  if (journal->file >= 0) return append(journal, journal->file, problem);
  const int file = open(journal->path, O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return failed(journal, problem);
  bool good = append(journal, file, problem);
  return (close(file) == 0 || failed(journal, problem)) && good;
}

bool rt_journal_close(struct journal *journal, struct problem *problem) {
  if (journal->path[0] == '\0') return true;
  bool good = rt_journal_flush(journal, problem);
  if (good && journal->file >= 0) good = close(journal->file) == 0 || failed(journal, problem);
  rt_bytes_free(&journal->waiting);
  return good;
}
