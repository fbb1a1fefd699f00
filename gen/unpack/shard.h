/* Shards of WebDataset: tar archives, plain or compressed, whose samples are the files in a row that have one name
 * before their endings. "train/00012.seg.png" is the file "seg.png" of sample "train/00012", as webdataset's
 * base_plus_ext has it; endings are compared without regard to case. Passed over are files without an ending, and
 * webdataset's own ("__meta__").
 */
#ifndef ACCEL_UNPACK_SHARD_H
#define ACCEL_UNPACK_SHARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/problem.h"

enum {
  SHARD_FILES = 16,        /* of a sample, those that are wanted */
  SHARD_ENDING = 64,       /* the longest ending, with its NUL */
  SHARD_SAMPLE = 64 << 20, /* bytes of the files of a sample that are wanted */
};

struct shard_file {
  char ending[SHARD_ENDING];
  size_t from, size; /* of its content in the sample's */
};

struct shard_sample {
  char *key;     /* the name before the endings */
  uint64_t at;   /* the byte of the archive where its first file begins */
  char *content; /* of the files that are wanted, each with a NUL after it */
  size_t size, capacity;
  struct shard_file files[SHARD_FILES];
  int n_files;
};

struct shard;

/* Whether bytes, of which SHARD_HEADER are enough, are the beginning of a tar archive, but for one of V7, which has no
 * magic. */
enum { SHARD_HEADER = 512 };
bool shard_is(const char *bytes, size_t size);

/* Begins with the `size` bytes of a file, compressed or not, which stay the caller's as `path`, for messages, does.
 * wanted: the endings of the files that are read, which end with NULL; others are passed over. NULL with a problem. */
struct shard *shard_new(const char *path, const char *bytes, size_t size, const char *const *wanted,
                        struct problem *problem);

enum shard_found { SHARD_NONE, SHARD_NEXT, SHARD_BAD };

/* The next sample that has a file which is wanted, or any file, in memory that is the next one's, too. SHARD_BAD with a
 * problem: the archive is cut or damaged; a sample has a file twice, or is larger than a sample may be. Then no sample
 * follows. */
enum shard_found shard_next(struct shard *shard, const struct shard_sample **sample, struct problem *problem);

/* Goes to the sample that begins at byte `at` of the archive, or to its end. False with a problem. */
bool shard_seek(struct shard *shard, uint64_t at, struct problem *problem);

/* Where in the archive the next sample begins. */
uint64_t shard_position(const struct shard *shard);

/* Bytes of the file, packed or not, that are not needed any more. */
size_t shard_done(const struct shard *shard);

/* A file of the sample by its ending; NULL: it has none. */
const struct shard_file *shard_file_of(const struct shard_sample *sample, const char *ending);

void shard_free(struct shard *shard);

#endif
