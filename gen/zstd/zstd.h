/* Frames of zstd (RFC 8878), unpacked by libzstd. A build without that library has gen/without/zstd.c instead. */
#ifndef ACCEL_ZSTD_ZSTD_H
#define ACCEL_ZSTD_ZSTD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/problem.h"

struct zstd;

/* Begins before a frame. NULL with a problem that does not name the file, such as that the library is missing. */
struct zstd *zstd_new(struct problem *problem);

/* How far a step came. */
struct unpack_step {
  size_t used, made; /* bytes of the input and of the output */
  bool is_end;       /* of a frame, or of a member */
};

/* Unpacks from the `size` bytes at `in` into the `room` bytes at `out`. False with a problem that does not name the
 * file where the bytes are no frame. */
bool zstd_step(struct zstd *zstd, const uint8_t *in, size_t size, uint8_t *out, size_t room, struct unpack_step *step,
               struct problem *problem);

void zstd_free(struct zstd *zstd);

#endif
