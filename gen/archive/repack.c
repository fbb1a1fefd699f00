#include "gen/archive/repack.h"

#include <archive.h>
#include <archive_entry.h>
#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/ending.h"

enum { CHUNK = 1 << 16 };

struct repacking {
  const char *path, *ending, *magic;
  struct archive *in, *out;
  struct archive_sink sink;
  struct problem problem; /* of the sink */
  bool failed;            /* it has one */
  char chunk[CHUNK];
};

static bool bad(const struct repacking *of, const char *name, const char *what, struct problem *problem) {
  rt_problem(problem, "%s: %.300s: %s", of->path, name, what);
  return rt_help(problem, "give an archive as numpy.savez or numpy.savez_compressed writes it");
}

/* What libarchive says of either archive, or what was wrong with the sink. */
static bool bad_archive(const struct repacking *of, struct archive *archive, struct problem *problem) {
  const char *what = archive_error_string(archive);
  if (of->failed) *problem = of->problem;
  return !of->failed && bad(of, "the archive", what != NULL ? what : "no memory for it", problem);
}

static la_ssize_t take(struct archive *archive, void *context, const void *bytes, size_t size) {
  struct repacking *of = context;
  of->failed = of->failed || !of->sink.add(of->sink.context, bytes, size, &of->problem);
  if (!of->failed) return (la_ssize_t)size;
  archive_set_error(archive, EIO, "it cannot be written");
  return -1;
}

static bool open_both(struct repacking *of, const void *bytes, size_t size, struct problem *problem) {
  of->in = archive_read_new();
  of->out = archive_write_new();
  if (of->in == NULL || of->out == NULL) return rt_problem(problem, "%s: no memory for it", of->path);
  if (archive_read_support_format_zip_seekable(of->in) != ARCHIVE_OK ||
      archive_read_open_memory(of->in, bytes, size) != ARCHIVE_OK)
    return bad_archive(of, of->in, problem);
  return (archive_write_set_format_zip(of->out) == ARCHIVE_OK &&
          archive_write_zip_set_compression_store(of->out) == ARCHIVE_OK &&
          archive_write_set_bytes_in_last_block(of->out, 1) == ARCHIVE_OK &&
          archive_write_open(of->out, of, NULL, take, NULL) == ARCHIVE_OK) ||
         bad_archive(of, of->out, problem);
}

static bool is_printable(const char *name) {
  while (*name != '\0' && !iscntrl((unsigned char)*name)) name++;
  return *name == '\0';
}

/* Begins a file with nothing but its name and its size, so that the same files give the same bytes. */
static bool begin_file(struct repacking *of, const char *name, int64_t size, struct problem *problem) {
  struct archive_entry *entry = archive_entry_new();
  if (entry == NULL) return rt_problem(problem, "%s: no memory for it", of->path);
  archive_entry_set_pathname(entry, name);
  archive_entry_set_size(entry, size);
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_entry_set_perm(entry, 0644);
  archive_entry_set_mtime(entry, 0, 0);
  bool good = archive_write_header(of->out, entry) == ARCHIVE_OK || bad_archive(of, of->out, problem);
  archive_entry_free(entry);
  return good;
}

/* Copies the content of the newest file, which has `size` bytes. */
static bool copy_file(struct repacking *of, const char *name, int64_t size, struct problem *problem) {
  int64_t at = 0;
  if (size <= 0) return bad(of, name, "no array of NumPy", problem);
  for (la_ssize_t count; (count = archive_read_data(of->in, of->chunk, CHUNK)) != 0; at += count) {
    if (count < 0) return bad_archive(of, of->in, problem);
    if (at == 0 && ((size_t)count < strlen(of->magic) || memcmp(of->chunk, of->magic, strlen(of->magic)) != 0))
      return bad(of, name, "no array of NumPy", problem);
    if (at == 0 && !begin_file(of, name, size, problem)) return false;
    if (archive_write_data(of->out, of->chunk, (size_t)count) != count) return bad_archive(of, of->out, problem);
  }
  return at == size || bad(of, name, "it does not have the size that the archive says", problem);
}

static bool copy_files(struct repacking *of, int *files, struct problem *problem) {
  struct archive_entry *entry;
  for (*files = 0;; ++*files) {
    int code = archive_read_next_header(of->in, &entry);
    if (code == ARCHIVE_EOF) break;
    if (code != ARCHIVE_OK && code != ARCHIVE_WARN) return bad_archive(of, of->in, problem);
    const char *name = archive_entry_pathname_utf8(entry);
    if (name == NULL) name = archive_entry_pathname(entry);
    if (name == NULL || !is_printable(name) || !rt_has_ending(name, of->ending))
      return bad(of, name != NULL && is_printable(name) ? name : "a file", "no array of NumPy, whose name ends in .npy",
                 problem);
    if (archive_entry_is_encrypted(entry)) return bad(of, name, "it is encrypted", problem);
    if (!copy_file(of, name, archive_entry_size(entry), problem)) return false;
  }
  if (*files == 0) return bad(of, "the archive", "it has no file", problem);
  return archive_write_close(of->out) == ARCHIVE_OK || bad_archive(of, of->out, problem);
}

bool archive_repack(const char *path, const void *bytes, size_t size, const char *ending, const char *magic,
                    struct archive_sink sink, int *files, struct problem *problem) {
  struct repacking *of = calloc(1, sizeof *of);
  if (of == NULL) return rt_problem(problem, "%s: no memory for it", path);
  of->path = path;
  of->ending = ending;
  of->magic = magic;
  of->sink = sink;
  /* libarchive has names in the characters of the locale. */
  locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
  locale_t before = uselocale(utf8);
  bool good = open_both(of, bytes, size, problem) && copy_files(of, files, problem);
  of->failed = of->failed || !good; /* what is left in libarchive is not written any more */
  if (of->in != NULL) archive_read_free(of->in);
  if (of->out != NULL) archive_write_free(of->out);
  uselocale(before);
  if (utf8 != (locale_t)0) freelocale(utf8);
  free(of);
  return good;
}
