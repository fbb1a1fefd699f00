#include "gen/tokenizer/bytes.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

static bool reserve(struct bytes *bytes, size_t count) {
  if (bytes->failed) return false;
  if (bytes->size + count <= bytes->capacity) return true;
  size_t capacity = bytes->size + bytes->size / 2 + count + 64;
  char *grown = realloc(bytes->text, capacity);
  if (grown == NULL) {
    bytes->failed = true;
    return false;
  }
  bytes->text = grown;
  bytes->capacity = capacity;
  return true;
}

void bytes_add(struct bytes *bytes, const char *text, size_t count) {
  if (!reserve(bytes, count)) return;
  if (count > 0) memcpy(bytes->text + bytes->size, text, count);
  bytes->size += count;
}

void bytes_put(struct bytes *bytes, int32_t character) {
  if (!reserve(bytes, 4)) return;
  bytes->size += (size_t)utf8proc_encode_char(character, (utf8proc_uint8_t *)bytes->text + bytes->size);
}

void bytes_free(struct bytes *bytes) {
  free(bytes->text);
  *bytes = (struct bytes){0};
}

int32_t character_at(const char *text, size_t size, size_t *length) {
  utf8proc_int32_t character = 0;
  utf8proc_ssize_t left = (utf8proc_ssize_t)(size < 4 ? size : 4);
  utf8proc_ssize_t count = utf8proc_iterate((const utf8proc_uint8_t *)text, left, &character);
  *length = count > 0 ? (size_t)count : 1; /* a byte that is none moves on all the same */
  return count > 0 ? character : 0xfffd;
}

/* Where the first byte that is not ASCII may be: before it, from `at` on, all are. */
static size_t pass_ascii(const char *text, size_t size, size_t at) {
  for (uint64_t eight; at + sizeof eight <= size; at += sizeof eight) {
    memcpy(&eight, text + at, sizeof eight);
    if ((eight & UINT64_C(0x8080808080808080)) != 0) break;
  }
  return at;
}

bool is_utf8(const char *text, size_t size, size_t *at) {
  utf8proc_int32_t character;
  for (*at = pass_ascii(text, size, 0); *at < size; *at = pass_ascii(text, size, *at)) {
    utf8proc_ssize_t left = (utf8proc_ssize_t)(size - *at < 4 ? size - *at : 4);
    utf8proc_ssize_t length = utf8proc_iterate((const utf8proc_uint8_t *)text + *at, left, &character);
    if (length <= 0) return false;
    *at += (size_t)length;
  }
  return true;
}
