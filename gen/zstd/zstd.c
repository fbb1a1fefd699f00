#include "gen/zstd/zstd.h"

#include <zstd.h>
#include <zstd_errors.h>

struct zstd *zstd_new(struct problem *problem) {
  ZSTD_DStream *stream = ZSTD_createDStream();
  if (stream == NULL) rt_problem(problem, "no memory to unpack it");
  return (struct zstd *)stream;
}

bool zstd_step(struct zstd *zstd, const uint8_t *in, size_t size, uint8_t *out, size_t room, struct unpack_step *step,
               struct problem *problem) {
  ZSTD_inBuffer input = {.src = in, .size = size};
  ZSTD_outBuffer output = {.dst = out, .size = room};
  size_t left = ZSTD_decompressStream((ZSTD_DStream *)zstd, &output, &input);
  *step = (struct unpack_step){.used = input.pos, .made = output.pos, .is_end = left == 0};
  if (!ZSTD_isError(left)) return true;
  rt_problem(problem, "no frame of zstd: %s", ZSTD_getErrorName(left));
  /* The library's limit of a frame's window, 128 MiB, is what bounds the memory. */
  if (ZSTD_getErrorCode(left) == ZSTD_error_frameParameter_windowTooLarge)
    return rt_help(problem, "unpack it first: zstd -d --long=31 FILE");
  return rt_help(problem, "the file was cut or changed: copy it or write it again");
}

void zstd_free(struct zstd *zstd) {
  ZSTD_freeDStream((ZSTD_DStream *)zstd);
}
