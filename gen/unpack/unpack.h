/* Bytes of compressed files: of gzip (RFC 1952), whose members follow each other, and of zstd (RFC 8878), whose frames
 * do. Knows nothing of files, so that it can be fuzzed. */
#ifndef ACCEL_UNPACK_UNPACK_H
#define ACCEL_UNPACK_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/problem.h"

enum packed { NOT_PACKED, PACKED_GZIP, PACKED_ZSTD };

/* How a file is compressed, by its first bytes. */
enum packed packed_as(const void *bytes, size_t size);

struct unpacker;

/* Begins with the `size` bytes of a compressed file, which stay the caller's; `path` is for messages and stays, too.
 * NULL with a problem. It takes no more memory than the format's window: 32 KiB of gzip, at most 128 MiB of zstd. */
struct unpacker *unpacker_new(const char *path, const void *bytes, size_t size, struct problem *problem);

/* The next `size` bytes of the content, fewer only at its end: *count of them. False with a problem, which names the
 * byte of the file, where it is cut or damaged, or where something else follows the compressed data; zeros may. */
bool unpacker_read(struct unpacker *unpacker, void *out, size_t size, size_t *count, struct problem *problem);

/* Bytes of the file that are read. */
size_t unpacker_done(const struct unpacker *unpacker);

void unpacker_free(struct unpacker *unpacker);

#endif
