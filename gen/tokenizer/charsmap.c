#include "gen/tokenizer/charsmap.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

/* ---- Reading ---- */

static int digit_of(char c) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const char *at = c != '\0' ? strchr(digits, c) : NULL;
  return at != NULL ? (int)(at - digits) : -1;
}

/* Base64 (RFC 4648) to bytes, of which `out` has space for 3 to each 4 characters. False where it is none. */
static bool decode(const char *text, size_t size, unsigned char *out, size_t *count) {
  uint32_t bits = 0;
  int n_bits = 0;
  while (size > 0 && text[size - 1] == '=') size--;
  for (size_t i = *count = 0; i < size; i++) {
    int digit = digit_of(text[i]);
    if (digit < 0) return false;
    bits = bits << 6 | (uint32_t)digit;
    n_bits += 6;
    if (n_bits < 8) continue;
    n_bits -= 8;
    out[(*count)++] = (unsigned char)(bits >> n_bits);
  }
  return true;
}

static uint32_t number_at(const unsigned char *bytes) {
  return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

bool charsmap_read(struct charsmap *charsmap, const char *base64, size_t size) {
  size_t count;
  *charsmap = (struct charsmap){.bytes = malloc(size / 4 * 3 + 4)};
  if (charsmap->bytes == NULL || !decode(base64, size, charsmap->bytes, &count) || count < 8) return false;
  size_t trie = number_at(charsmap->bytes);
  if (trie == 0 || trie % 4 != 0 || trie > count - 4) return false;
  charsmap->units = charsmap->bytes + 4;
  charsmap->n_units = trie / 4;
  charsmap->texts = charsmap->units + trie;
  charsmap->n_texts = count - 4 - trie;
  return charsmap->n_texts > 0 && charsmap->texts[charsmap->n_texts - 1] == '\0';
}

void charsmap_free(struct charsmap *charsmap) {
  free(charsmap->bytes);
  *charsmap = (struct charsmap){0};
}

/* ---- Looking up ---- */

/* A unit of the double array (darts-clone, darts.h, DoubleArrayUnit): whether the key that ends at it has a value, the
 * value where it is one, the byte that leads to it, and where the units of the next bytes are. */
static bool has_value(uint32_t unit) {
  return (unit >> 8 & 1) != 0;
}

static uint32_t value_of(uint32_t unit) {
  return unit & 0x7fffffff;
}

static uint32_t label_of(uint32_t unit) {
  return unit & (UINT32_C(1) << 31 | 0xff);
}

static size_t offset_of(uint32_t unit) {
  return (size_t)(unit >> 10) << ((unit & UINT32_C(1) << 9) >> 6);
}

/* What replaces the text, by its shortest beginning that has an entry; NULL: it has none. */
static const char *replacement(const struct charsmap *charsmap, const char *text, size_t size) {
  size_t at = offset_of(number_at(charsmap->units));
  for (size_t i = 0; i < size; i++) {
    unsigned char byte = (unsigned char)text[i];
    at ^= byte;
    if (byte == 0 || at >= charsmap->n_units) return NULL;
    uint32_t unit = number_at(charsmap->units + 4 * at);
    if (label_of(unit) != byte) return NULL;
    at ^= offset_of(unit);
    if (!has_value(unit)) continue;
    if (at >= charsmap->n_units) return NULL;
    uint32_t value = value_of(number_at(charsmap->units + 4 * at));
    return value < charsmap->n_texts ? (const char *)charsmap->texts + value : NULL;
  }
  return NULL;
}

static bool replace(const struct charsmap *charsmap, const char *text, size_t size, struct bytes *form) {
  const char *by = replacement(charsmap, text, size);
  if (by != NULL) bytes_add(form, by, strlen(by));
  return by != NULL;
}

/* The bytes of the grapheme cluster (UAX #29) at the beginning of a text. */
static size_t cluster(const char *text, size_t size) {
  utf8proc_int32_t state = 0;
  size_t length, next, at;
  int32_t before = character_at(text, size, &length);
  for (at = length; at < size; at += next) {
    int32_t after = character_at(text + at, size - at, &next);
    if (utf8proc_grapheme_break_stateful(before, after, &state)) break;
    before = after;
  }
  return at;
}

void charsmap_apply(const struct charsmap *charsmap, const char *text, size_t size, struct bytes *form) {
  for (size_t at = 0, count; at < size; at += count) {
    count = cluster(text + at, size - at);
    if (count < 6 && replace(charsmap, text + at, count, form)) continue;
    for (size_t i = 0, length; i < count; i += length) {
      character_at(text + at + i, count - i, &length);
      if (!replace(charsmap, text + at + i, length, form)) bytes_add(form, text + at + i, length);
    }
  }
}
