#include "gen/archive/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

struct archive_reader {
  const char *path;
  archive_source *source;
  void *context;
  struct archive *archive;
  struct archive_entry *entry;
  struct problem problem; /* of the source */
  bool failed;            /* it has one */
};

enum { BLOCK = 512 };

static const char cut_remedy[] = "the archive was cut or changed: copy it or write it again";

/* What libarchive calls for more of the archive. */
static la_ssize_t read_more(struct archive *archive, void *context, const void **bytes) {
  struct archive_reader *of = context;
  size_t size = 0;
  of->failed = !of->source(of->context, bytes, &size, &of->problem);
  if (!of->failed) return (la_ssize_t)size;
  archive_set_error(archive, EIO, "the archive cannot be read");
  return ARCHIVE_FATAL;
}

/* A problem where the archive was read last. */
static enum archive_found bad(const struct archive_reader *of, const char *what, const char *remedy,
                              struct problem *problem) {
  rt_problem(problem, "%s: byte %" PRId64 " of the archive: %s", of->path,
             (int64_t)archive_filter_bytes(of->archive, 0), what);
  rt_help(problem, "%s", remedy);
  return ARCHIVE_BAD;
}

/* What libarchive says, or what was wrong with its source. */
static enum archive_found bad_archive(const struct archive_reader *of, struct problem *problem) {
  const char *what = archive_error_string(of->archive);
  if (!of->failed) return bad(of, what != NULL ? what : "it ends within a member, or is damaged", cut_remedy, problem);
  *problem = of->problem;
  return ARCHIVE_BAD;
}

struct archive_reader *archive_reader_new(const char *path, archive_source *source, void *context,
                                          struct problem *problem) {
  struct archive_reader *of = calloc(1, sizeof *of);
  if (of != NULL) *of = (struct archive_reader){.path = path, .source = source, .context = context};
  if (of != NULL) of->archive = archive_read_new();
  if (of == NULL || of->archive == NULL || archive_read_support_format_tar(of->archive) != ARCHIVE_OK) {
    rt_problem(problem, "%s: no memory to read it", path);
  } else if (archive_read_open(of->archive, of, NULL, read_more, NULL) != ARCHIVE_OK) {
    bad_archive(of, problem);
  } else {
    return of;
  }
  archive_reader_free(of);
  return NULL;
}

void archive_reader_free(struct archive_reader *reader) {
  if (reader != NULL) archive_read_free(reader->archive);
  free(reader);
}

/* A name as it is: of pax it is UTF-8, of the others any bytes, which have no form in the locale C. */
static const char *name_of(struct archive_entry *entry) {
  const char *name = archive_entry_pathname_utf8(entry);
  return name != NULL ? name : archive_entry_pathname(entry);
}

/* An archive ends with blocks of zeros. One without them was cut between two members, or is still written. */
static enum archive_found end(const struct archive_reader *of, struct problem *problem) {
  const int64_t read = archive_filter_bytes(of->archive, 0), last = archive_read_header_position(of->archive);
  if (read - last >= BLOCK) return ARCHIVE_NO_MEMBER;
  return bad(of, "the archive has no mark of its end", cut_remedy, problem);
}

enum archive_found archive_reader_next(struct archive_reader *reader, struct archive_member *member,
                                       struct problem *problem) {
  for (;;) {
    int code = archive_read_next_header(reader->archive, &reader->entry);
    if (code == ARCHIVE_EOF) return end(reader, problem);
    if (code != ARCHIVE_OK && code != ARCHIVE_WARN) return bad_archive(reader, problem);
    struct archive_entry *entry = reader->entry;
    if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry) != NULL) continue;
    if (archive_entry_sparse_count(entry) > 0)
      return bad(reader, "a sparse file", "write the archive without --sparse", problem);
    if (archive_entry_size(entry) < 0) return bad(reader, "a member with a negative size", cut_remedy, problem);
    *member = (struct archive_member){.name = name_of(entry),
                                      .size = (uint64_t)archive_entry_size(entry),
                                      .at = (uint64_t)archive_read_header_position(reader->archive)};
    if (member->name != NULL) return ARCHIVE_MEMBER;
    return bad(reader, "a member without a name", cut_remedy, problem);
  }
}

bool archive_reader_read(struct archive_reader *reader, void *out, size_t size, struct problem *problem) {
  for (size_t at = 0; at < size;) {
    la_ssize_t count = archive_read_data(reader->archive, (char *)out + at, size - at);
    if (count < 0) return bad_archive(reader, problem) == ARCHIVE_MEMBER;
    if (count == 0) return bad(reader, "a member is shorter than it says", cut_remedy, problem) == ARCHIVE_MEMBER;
    at += (size_t)count;
  }
  return true;
}
