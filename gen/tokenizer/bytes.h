/* Bytes: a text that grows at its end, in memory of its own. */
#ifndef ACCEL_TOKENIZER_BYTES_H
#define ACCEL_TOKENIZER_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes {
  char *text;
  size_t size, capacity;
  bool failed; /* there was no memory: nothing is added any more */
};

/* Adds `count` bytes. */
void bytes_add(struct bytes *bytes, const char *text, size_t count);

/* Adds a character in UTF-8. */
void bytes_put(struct bytes *bytes, int32_t character);

void bytes_free(struct bytes *bytes);

/* Whether a text is UTF-8; *at: its first byte that is not. */
bool is_utf8(const char *text, size_t size, size_t *at);

/* The character that begins at `text`, valid UTF-8 of `size` > 0 bytes; *length: its bytes. */
int32_t character_at(const char *text, size_t size, size_t *length);

#endif
