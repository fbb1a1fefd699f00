#include "runtime/files/checksum.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { STRIPE = 32 };
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words are read as they are");

static const uint64_t prime_1 = 0x9E3779B185EBCA87u, prime_2 = 0xC2B2AE3D27D4EB4Fu, prime_3 = 0x165667B19E3779F9u,
                      prime_4 = 0x85EBCA77C2B2AE63u, prime_5 = 0x27D4EB2F165667C5u;

static uint64_t rotate(uint64_t word, int by) {
  return word << by | word >> (64 - by);
}

static uint64_t word_at(const uint8_t *at) {
  uint64_t word;
  memcpy(&word, at, sizeof word);
  return word;
}

static uint64_t round_of(uint64_t lane, uint64_t word) {
  return rotate(lane + word * prime_2, 31) * prime_1;
}

static void add_stripes(uint64_t lane[4], const uint8_t *at, size_t stripes) {
  uint64_t a = lane[0], b = lane[1], c = lane[2], d = lane[3];
  for (; stripes > 0; stripes--, at += STRIPE) {
    a = round_of(a, word_at(at));
    b = round_of(b, word_at(at + 8));
    c = round_of(c, word_at(at + 16));
    d = round_of(d, word_at(at + 24));
  }
  lane[0] = a, lane[1] = b, lane[2] = c, lane[3] = d;
}

struct checksum rt_checksum_start(void) {
  return (struct checksum){.lane = {prime_1 + prime_2, prime_2, 0, (uint64_t)0 - prime_1}};
}

void rt_checksum_add(struct checksum *sum, const void *bytes, size_t size) {
  const uint8_t *at = bytes;
  if (size == 0) return;
  sum->total += size;
  if (sum->n_rest > 0) {
    size_t space = STRIPE - sum->n_rest, part = size < space ? size : space;
    memcpy(sum->rest + sum->n_rest, at, part);
    sum->n_rest += part;
    at += part;
    size -= part;
    if (sum->n_rest < STRIPE) return;
    add_stripes(sum->lane, sum->rest, 1);
    sum->n_rest = 0;
  }
  add_stripes(sum->lane, at, size / STRIPE);
  sum->n_rest = size % STRIPE;
  if (sum->n_rest > 0) memcpy(sum->rest, at + size - sum->n_rest, sum->n_rest);
}

static uint64_t join_lanes(const uint64_t lane[4]) {
  uint64_t joined = rotate(lane[0], 1) + rotate(lane[1], 7) + rotate(lane[2], 12) + rotate(lane[3], 18);
  for (int i = 0; i < 4; i++) joined = (joined ^ round_of(0, lane[i])) * prime_1 + prime_4;
  return joined;
}

static uint64_t add_rest(uint64_t sum, const uint8_t *at, size_t size) {
  for (; size >= 8; at += 8, size -= 8) sum = rotate(sum ^ round_of(0, word_at(at)), 27) * prime_1 + prime_4;
  if (size >= 4) {
    uint32_t word;
    memcpy(&word, at, sizeof word);
    sum = rotate(sum ^ word * prime_1, 23) * prime_2 + prime_3;
    at += 4;
    size -= 4;
  }
  for (; size > 0; at++, size--) sum = rotate(sum ^ *at * prime_5, 11) * prime_1;
  return sum;
}

uint64_t rt_checksum_end(const struct checksum *sum) {
  uint64_t all = (sum->total < STRIPE ? prime_5 : join_lanes(sum->lane)) + sum->total;
  all = add_rest(all, sum->rest, sum->n_rest);
  all = (all ^ all >> 33) * prime_2;
  all = (all ^ all >> 29) * prime_3;
  return all ^ all >> 32;
}

uint64_t rt_checksum(const void *bytes, size_t size) {
  struct checksum sum = rt_checksum_start();
  rt_checksum_add(&sum, bytes, size);
  return rt_checksum_end(&sum);
}

enum { PIECE = 1 << 16 };

/* The bytes of piece i, which begins at *at; 0: there are no more. */
static size_t piece_of(size_t size, int pieces, size_t i, size_t *at) {
  const bool whole = size / PIECE <= (size_t)pieces || pieces < 2;
  const size_t stride = whole ? PIECE : (size - PIECE) / (size_t)(pieces - 1);
  *at = i * stride;
  if (!whole && i + 1 == (size_t)pieces) *at = size - PIECE;
  if (whole ? *at >= size : i >= (size_t)pieces) return 0;
  return size - *at < PIECE ? size - *at : PIECE;
}

uint64_t rt_checksum_sampled(const void *bytes, size_t size, int pieces) {
  struct checksum sum = rt_checksum_start();
  size_t at, count;
  rt_checksum_add(&sum, &size, sizeof size);
  for (size_t i = 0; (count = piece_of(size, pieces, i, &at)) > 0; i++)
    rt_checksum_add(&sum, (const uint8_t *)bytes + at, count);
  return rt_checksum_end(&sum);
}

bool rt_checksum_sampled_file(int file, size_t size, int pieces, uint64_t *result) {
  uint8_t piece[PIECE];
  struct checksum sum = rt_checksum_start();
  size_t at, count;
  rt_checksum_add(&sum, &size, sizeof size);
  for (size_t i = 0; (count = piece_of(size, pieces, i, &at)) > 0; i++) {
    for (size_t done = 0; done < count;) {
      const ssize_t now = pread(file, piece + done, count - done, (off_t)(at + done));
      if (now == 0) errno = EIO; /* it was cut meanwhile */
      if (now == 0 || (now < 0 && errno != EINTR)) return false;
      if (now > 0) done += (size_t)now;
    }
    rt_checksum_add(&sum, piece, count);
  }
  *result = rt_checksum_end(&sum);
  return true;
}
