/* Any bytes as a shard of WebDataset: every sample is in memory that is there, a reading that begins where a sample
 * does gives the same sample, and so does a reading of the archive compressed. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "gen/unpack/shard.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const char *const wanted[] = {"txt", "json", "png", NULL};

static void compare(const struct shard_sample *a, const struct shard_sample *b) {
  if (strcmp(a->key, b->key) != 0 || a->at != b->at || a->size != b->size || a->n_files != b->n_files) __builtin_trap();
  if (a->size > 0 && memcmp(a->content, b->content, a->size) != 0) __builtin_trap();
  for (int i = 0; i < a->n_files; i++)
    if (a->files[i].from + a->files[i].size >= a->size || strcmp(a->files[i].ending, b->files[i].ending) != 0)
      __builtin_trap();
}

static void read_again(const char *bytes, size_t size, const struct shard_sample *found) {
  struct problem problem;
  const struct shard_sample *sample;
  struct shard *again = shard_new("fuzz.tar", bytes, size, wanted, &problem);
  if (again == NULL || !shard_seek(again, found->at, &problem)) __builtin_trap();
  if (shard_next(again, &sample, &problem) != SHARD_NEXT) __builtin_trap();
  compare(sample, found);
  shard_free(again);
}

static size_t compress_copy(const void *bytes, size_t size, char *out, size_t room) {
  enum { GZIP = 16, LEAST_MEMORY = 8 };
  z_stream stream = {
      .next_in = (Bytef *)(uintptr_t)bytes, .avail_in = (uInt)size, .next_out = (Bytef *)out, .avail_out = (uInt)room};
  if (deflateInit2(&stream, 1, Z_DEFLATED, MAX_WBITS + GZIP, LEAST_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK) abort();
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) abort();
  deflateEnd(&stream);
  return room - stream.avail_out;
}

static void read_all(const char *bytes, size_t size, const char *packed, size_t packed_size) {
  struct problem problem;
  const struct shard_sample *sample, *unpacked;
  struct shard *shard = shard_new("fuzz.tar", bytes, size, wanted, &problem);
  struct shard *other = shard_new("fuzz.tar", packed, packed_size, wanted, &problem);
  if ((shard == NULL) != (other == NULL)) __builtin_trap();
  enum shard_found found = shard != NULL ? SHARD_NEXT : SHARD_BAD;
  for (int i = 0; found == SHARD_NEXT; i++) {
    uint64_t before = shard_position(shard);
    found = shard_next(shard, &sample, &problem);
    if (shard_next(other, &unpacked, &problem) != found || shard_done(shard) > size) __builtin_trap();
    if (found != SHARD_NEXT) break;
    compare(sample, unpacked);
    if (sample->at < before) __builtin_trap();
    if (i < 4) read_again(bytes, size, sample);
  }
  shard_free(shard);
  shard_free(other);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  size_t room = compressBound((uLong)size) + 64;
  char *copy = malloc(size + 1), *packed = malloc(room);
  if (copy == NULL || packed == NULL) abort();
  memcpy(copy, bytes, size);
  read_all(copy, size, packed, compress_copy(bytes, size, packed, room));
  free(copy);
  free(packed);
  return 0;
}
