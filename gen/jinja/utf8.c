/* UTF-8, and as much of Unicode as case and character classes need: ASCII, Latin, Greek and Cyrillic. */
#include "gen/jinja/value.h"

size_t jj_utf8_count(const char *bytes, size_t length) {
  size_t count = 0;
  for (size_t i = 0; i < length; i++) count += ((unsigned char)bytes[i] & 0xC0) != 0x80;
  return count;
}

size_t jj_utf8_offset(const char *bytes, size_t length, size_t index) {
  size_t at = 0;
  while (index > 0 && at < length) {
    at++;
    while (at < length && ((unsigned char)bytes[at] & 0xC0) == 0x80) at++;
    index--;
  }
  return at;
}

uint32_t jj_utf8_decode(const char *bytes, size_t length, int *size) {
  const unsigned char *b = (const unsigned char *)bytes;
  int need = b[0] >= 0xF0 ? 3 : b[0] >= 0xE0 ? 2 : b[0] >= 0xC0 ? 1 : 0;
  *size = 1;
  if (need == 0 || (size_t)need >= length) return b[0];
  uint32_t code = b[0] & (0x3Fu >> need);
  for (int i = 1; i <= need; i++) {
    if ((b[i] & 0xC0) != 0x80) return b[0];
    code = code << 6 | (b[i] & 0x3Fu);
  }
  *size = need + 1;
  return code;
}

int jj_utf8_encode(uint32_t code, char out[4]) {
  if (code < 0x80) {
    out[0] = (char)code;
    return 1;
  }
  if (code < 0x800) {
    out[0] = (char)(0xC0 | code >> 6);
    out[1] = (char)(0x80 | (code & 0x3F));
    return 2;
  }
  if (code < 0x10000) {
    out[0] = (char)(0xE0 | code >> 12);
    out[1] = (char)(0x80 | (code >> 6 & 0x3F));
    out[2] = (char)(0x80 | (code & 0x3F));
    return 3;
  }
  out[0] = (char)(0xF0 | (code >> 18 & 7));
  out[1] = (char)(0x80 | (code >> 12 & 0x3F));
  out[2] = (char)(0x80 | (code >> 6 & 0x3F));
  out[3] = (char)(0x80 | (code & 0x3F));
  return 4;
}

/* Latin Extended-A pairs an even capital with the odd small letter after it, but for two stretches and a few single
 * letters. */
static bool capital_is_odd(uint32_t c) {
  return (c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17E);
}

uint32_t jj_upper_code(uint32_t c) {
  if (c < 0x80) return c >= 'a' && c <= 'z' ? c - 32 : c;
  if (c == 0xB5) return 0x39C;
  if (c == 0xFF) return 0x178;
  if (c >= 0xE0 && c <= 0xFE && c != 0xF7) return c - 32;
  if (c == 0x131) return 'I';
  if (c == 0x17F) return 'S';
  if (c >= 0x100 && c <= 0x17E && c != 0x138 && c != 0x149 && c != 0x130) {
    return capital_is_odd(c) ? (c % 2 == 0 ? c - 1 : c) : (c % 2 == 1 ? c - 1 : c);
  }
  if (c == 0x3C2) return 0x3A3;
  if (c >= 0x3B1 && c <= 0x3CB) return c - 32;
  if (c >= 0x430 && c <= 0x44F) return c - 32;
  if (c >= 0x450 && c <= 0x45F) return c - 80;
  return c;
}

uint32_t jj_lower_code(uint32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
  if (c == 0x178) return 0xFF;
  if (c >= 0xC0 && c <= 0xDE && c != 0xD7) return c + 32;
  if (c >= 0x100 && c <= 0x17E && c != 0x138 && c != 0x149 && c != 0x130 && c != 0x131) {
    return capital_is_odd(c) ? (c % 2 == 1 ? c + 1 : c) : (c % 2 == 0 ? c + 1 : c);
  }
  if (c >= 0x391 && c <= 0x3AB && c != 0x3A2) return c + 32;
  if (c >= 0x410 && c <= 0x42F) return c + 32;
  if (c >= 0x400 && c <= 0x40F) return c + 80;
  return c;
}

bool jj_is_alpha_code(uint32_t c) {
  if (c < 0x80) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  if (c < 0xC0) return c == 0xAA || c == 0xB5 || c == 0xBA;
  return c != 0xD7 && c != 0xF7 && !(c >= 0x2000 && c <= 0x2BFF) && !(c >= 0x3000 && c <= 0x3004) &&
         !(c >= 0x1F000 && c <= 0x1FAFF) && !(c >= 0xE000 && c <= 0xF8FF) && c != 0xFFFD;
}

bool jj_is_space_code(uint32_t c) {
  return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}
