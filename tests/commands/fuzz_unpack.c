/* Any bytes as a compressed file: what it unpacks to does not depend on how much is read at once, and a file that
 * unpacks to much more than it has is read no further than asked. */
#include <stdlib.h>
#include <string.h>

#include "gen/unpack/unpack.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { MOST = 1 << 20 };

/* Up to MOST bytes of the content, `step` at once; *size of them. Returns whether no problem came. */
static bool unpack(const uint8_t *bytes, size_t size, size_t step, uint8_t *out, size_t *made) {
  struct problem problem = {0};
  *made = 0;
  struct unpacker *unpacker = unpacker_new("fuzz.gz", bytes, size, &problem);
  if (unpacker == NULL) return false;
  bool good = true;
  for (size_t count = 1; good && count > 0 && *made < MOST; *made += count) {
    size_t left = MOST - *made;
    good = unpacker_read(unpacker, out + *made, left < step ? left : step, &count, &problem);
    if (count > left || unpacker_done(unpacker) > size) __builtin_trap();
  }
  if (!good && problem.what[0] == '\0') __builtin_trap();
  unpacker_free(unpacker);
  return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static uint8_t once[MOST], again[MOST];
  size_t made, remade;
  if (packed_as(bytes, size) == NOT_PACKED) return 0;
  bool good = unpack(bytes, size, MOST, once, &made);
  bool same = unpack(bytes, size, 4099, again, &remade) == good;
  if (!same || (good && (made != remade || memcmp(once, again, made) != 0))) __builtin_trap();
  return 0;
}
