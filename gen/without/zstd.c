#include "gen/zstd/zstd.h"

struct zstd *zstd_new(struct problem *problem) {
  rt_problem(problem, "this accel-gen was built without zstd");
  rt_help(problem, "unpack the file first (zstd -d FILE), or install libzstd-dev and build again: sh "
                   "tools/configure.sh build/config && ninja");
  return NULL;
}

bool zstd_step(struct zstd *zstd, const uint8_t *in, size_t size, uint8_t *out, size_t room, struct unpack_step *step,
               struct problem *problem) {
  (void)zstd;
  (void)in;
  (void)size;
  (void)out;
  (void)room;
  (void)step;
  return rt_problem(problem, "this accel-gen was built without zstd");
}

void zstd_free(struct zstd *zstd) {
  (void)zstd;
}
