#include "gen/commands/data/npz_unpack.h"

#include <stdio.h>

#include "gen/archive/repack.h"
#include "gen/commands/data/watch.h"
#include "runtime/base/terminal.h"
#include "runtime/files/files.h"
#include "runtime/files/mapping.h"

static bool add(void *context, const void *bytes, size_t size, struct problem *problem) {
  return rt_writer_add(context, bytes, size, problem);
}

static bool unpack(const char *path, const struct watch *watch, const char *output, int *files,
                   struct problem *problem) {
  struct mapping file;
  struct writer out;
  struct problem ignored;
  if (!rt_map(&file, path, "give an existing file", problem)) return false;
  bool good = rt_writer_open(&out, output, BY_RENAME, problem);
  if (good) {
    good = archive_repack(path, file.bytes, file.size, ".npy", "\x93NUMPY", (struct archive_sink){add, &out}, files,
                          problem);
    good = watch_check(watch, problem) && good; /* what looks bad may be what was changed */
    good = good ? rt_writer_commit(&out, problem) : rt_writer_give_up(&out, "", &ignored);
  }
  rt_unmap(&file);
  return good;
}

bool npz_unpack(const char *path, const char *output, struct problem *problem) {
  struct watch watch;
  int files = 0;
  bool good = watch_begin(&watch, &path, 1, problem) && unpack(path, &watch, output, &files, problem);
  watch_end(&watch);
  if (good) rt_print(stdout, "%s: %d arrays\n", output, files);
  return good;
}
