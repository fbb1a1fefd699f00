#include "gen/base/file.h"

#include <errno.h>

#include "gen/base/text.h"

enum { MOST_BYTES = 1 << 28 }; /* what is read whole is far shorter; a device may have no end */

const char *read_stream(struct arena *arena, FILE *file, size_t *length) {
  struct text text = text_in(arena);
  char buffer[1 << 16];
  for (size_t got = sizeof buffer; got == sizeof buffer;) { /* fewer: the end, or an error */
    got = fread(buffer, 1, sizeof buffer, file);
    text_add(&text, buffer, got);
    if (text.length <= MOST_BYTES) continue;
    errno = EFBIG;
    return NULL;
  }
  *length = text.length;
  return ferror(file) ? NULL : text_string(&text);
}

const char *read_bytes(struct arena *arena, const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) return NULL;
  const char *bytes = read_stream(arena, file, length);
  int problem = errno;
  fclose(file);
  errno = problem;
  return bytes;
}
