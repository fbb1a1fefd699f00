#include "gen/archive/archive.h"
#include "gen/archive/repack.h"

struct archive_reader *archive_reader_new(const char *path, archive_source *source, void *context,
                                          struct problem *problem) {
  (void)source;
  (void)context;
  rt_problem(problem, "%s: this accel-gen was built without libarchive, and reads no tar archives", path);
  rt_help(problem, "install libarchive-dev and build again: sh tools/configure.sh build/config && ninja");
  return NULL;
}

enum archive_found archive_reader_next(struct archive_reader *reader, struct archive_member *member,
                                       struct problem *problem) {
  (void)reader;
  (void)member;
  (void)problem;
  return ARCHIVE_BAD;
}

bool archive_reader_read(struct archive_reader *reader, void *out, size_t size, struct problem *problem) {
  (void)reader;
  (void)out;
  (void)size;
  (void)problem;
  return false;
}

void archive_reader_free(struct archive_reader *reader) {
  (void)reader;
}

bool archive_repack(const char *path, const void *bytes, size_t size, const char *ending, const char *magic,
                    struct archive_sink sink, int *files, struct problem *problem) {
  (void)bytes;
  (void)size;
  (void)ending;
  (void)magic;
  (void)sink;
  (void)files;
  rt_problem(problem, "%s: this accel-gen was built without libarchive, and unpacks no archives", path);
  return rt_help(problem, "install libarchive-dev and build again: sh tools/configure.sh build/config && ninja");
}
