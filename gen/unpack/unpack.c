#include "gen/unpack/unpack.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "gen/zstd/zstd.h"
#include "runtime/data/foreign.h"

struct unpacker {
  enum packed kind;
  const char *path;
  const uint8_t *bytes;
  size_t size, at;
  bool inside; /* a member or a frame, so that the file must not end */
  bool is_done;
  z_stream gzip;
  struct zstd *zstd;
};

static const char cut_remedy[] = "the file was cut or changed: copy it or write it again";

enum packed packed_as(const void *bytes, size_t size) {
  enum foreign kind = rt_foreign_as(bytes, size);
  return kind == FOREIGN_GZIP ? PACKED_GZIP : kind == FOREIGN_ZSTD ? PACKED_ZSTD : NOT_PACKED;
}

/* A problem at the byte that is read next. */
static bool bad(const struct unpacker *of, const char *what, const char *remedy, struct problem *problem) {
  rt_problem(problem, "%s: byte %zu: %s", of->path, of->at, what);
  return rt_help(problem, "%s", remedy);
}

static bool begin_gzip(struct unpacker *of, struct problem *problem) {
  enum { GZIP_HEADERS = 16 };
  return inflateInit2(&of->gzip, MAX_WBITS + GZIP_HEADERS) == Z_OK ||
         rt_problem(problem, "%s: no memory to unpack it", of->path);
}

static bool begin_zstd(struct unpacker *of, struct problem *problem) {
  struct problem why = {0};
  of->zstd = zstd_new(&why);
  if (of->zstd != NULL) return true;
  rt_problem(problem, "%s: %s", of->path, why.what);
  return rt_help(problem, "%s", why.help);
}

struct unpacker *unpacker_new(const char *path, const void *bytes, size_t size, struct problem *problem) {
  struct unpacker *of = calloc(1, sizeof *of);
  if (of == NULL) {
    rt_problem(problem, "%s: no memory to unpack it", path);
    return NULL;
  }
  *of = (struct unpacker){.kind = packed_as(bytes, size), .path = path, .bytes = bytes, .size = size};
  if (of->kind == PACKED_ZSTD ? begin_zstd(of, problem) : begin_gzip(of, problem)) return of;
  free(of);
  return NULL;
}

static bool step_gzip(struct unpacker *of, uint8_t *out, size_t room, struct unpack_step *step,
                      struct problem *problem) {
  size_t left = of->size - of->at;
  uInt in = left < UINT_MAX ? (uInt)left : UINT_MAX, most = room < UINT_MAX ? (uInt)room : UINT_MAX;
  of->gzip.next_in = (Bytef *)(uintptr_t)(of->bytes + of->at);
  of->gzip.avail_in = in;
  of->gzip.next_out = out;
  of->gzip.avail_out = most;
  int code = inflate(&of->gzip, Z_NO_FLUSH);
  *step = (struct unpack_step){in - of->gzip.avail_in, most - of->gzip.avail_out, code == Z_STREAM_END};
  if (code == Z_OK || code == Z_BUF_ERROR) return true;
  if (code == Z_STREAM_END) return inflateReset(&of->gzip) == Z_OK || bad(of, "no memory to unpack it", "", problem);
  char what[160] = "no data of gzip: ";
  strncat(what, of->gzip.msg != NULL ? of->gzip.msg : "no memory", 100);
  of->at += step->used;
  return bad(of, what, cut_remedy, problem);
}

static bool step_zstd(struct unpacker *of, uint8_t *out, size_t room, struct unpack_step *step,
                      struct problem *problem) {
  struct problem why = {0};
  return zstd_step(of->zstd, of->bytes + of->at, of->size - of->at, out, room, step, &why) ||
         bad(of, why.what, why.help, problem);
}

/* Whether another member or frame follows; false without a problem at the file's end. Zeros fill the last block of a
 * tape, and what gzip writes may be followed by them. */
static bool goes_on(struct unpacker *of, bool *follows, struct problem *problem) {
  size_t zeros = of->at;
  *follows = of->at < of->size;
  if (!*follows || packed_as(of->bytes + of->at, of->size - of->at) == of->kind) return true;
  while (zeros < of->size && of->bytes[zeros] == 0) zeros++;
  *follows = false;
  if (zeros == of->size) return true;
  return bad(of, "something that is not compressed follows the compressed data",
             "the file was changed: remove what follows, or write it again", problem);
}

bool unpacker_read(struct unpacker *of, void *out, size_t size, size_t *count, struct problem *problem) {
  struct unpack_step step;
  uint8_t *to = out;
  for (*count = 0; *count < size && !of->is_done;) {
    if (!of->inside) {
      bool follows;
      if (!goes_on(of, &follows, problem)) return false;
      of->inside = follows;
      of->is_done = !follows;
      continue;
    }
    bool good = of->kind == PACKED_ZSTD ? step_zstd(of, to + *count, size - *count, &step, problem)
                                        : step_gzip(of, to + *count, size - *count, &step, problem);
    if (!good) return false;
    of->at += step.used;
    *count += step.made;
    of->inside = !step.is_end;
    if (of->inside && step.made == 0 && of->at == of->size)
      return bad(of, "the file ends within its compressed data", cut_remedy, problem);
  }
  return true;
}

size_t unpacker_done(const struct unpacker *of) {
  return of->at;
}

void unpacker_free(struct unpacker *of) {
  if (of == NULL) return;
  if (of->kind == PACKED_ZSTD)
    zstd_free(of->zstd);
  else
    inflateEnd(&of->gzip);
  free(of);
}
