#include "gen/spec/source.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { LARGEST = 1 << 20 }; /* bytes; a job is a page, and what is far larger was named by mistake */

/* Bytes of the UTF-8 character at `at`, before `end`; 0 when it is none. Overlong forms and surrogates are none. */
static int character_length(const unsigned char *at, const unsigned char *end) {
  unsigned char first = *at;
  if (first < 0x80) return 1;
  int length = first >= 0xc2 && first <= 0xdf ? 2 : (first & 0xf0) == 0xe0 ? 3 : first >= 0xf0 && first <= 0xf4 ? 4 : 0;
  if (length == 0 || end - at < length) return 0;
  for (int i = 1; i < length; i++)
    if ((at[i] & 0xc0) != 0x80) return 0;
  if (first == 0xe0 && at[1] < 0xa0) return 0;
  if (first == 0xed && at[1] > 0x9f) return 0;
  if (first == 0xf0 && at[1] < 0x90) return 0;
  if (first == 0xf4 && at[1] > 0x8f) return 0;
  return length;
}

/* What YAML 1.2 (section 5.1) does not allow in a text: ASCII and C1 controls, U+FFFE and U+FFFF. */
static bool is_control(const unsigned char *at) {
  if (*at < 0x80) return (*at < ' ' && *at != '\t' && *at != '\n' && *at != '\r') || *at == 0x7f;
  if (*at == 0xc2) return at[1] < 0xa0 && at[1] != 0x85;
  return *at == 0xef && at[1] == 0xbf && at[2] >= 0xbe;
}

static struct location location_of_byte(const struct spec_source *source, size_t at, size_t length) {
  if (source->whole) return (struct location){.file = source->name};
  int line = 1, end = source->lines + 1; /* the last line that starts at or before `at` */
  while (end - line > 1) {
    int middle = line + (end - line) / 2;
    if (source->line_starts[middle - 1] <= at)
      line = middle;
    else
      end = middle;
  }
  size_t column = at - source->line_starts[line - 1] + 1 + (line == 1 ? source->skipped : 0);
  return (struct location){source->name, line, (int)column, (int)length};
}

static void map_lines(struct arena *arena, struct spec_source *source) {
  int lines = 1;
  for (size_t i = 0; i < source->length; i++) lines += source->text[i] == '\n';
  source->line_starts = arena_alloc(arena, (size_t)lines * sizeof *source->line_starts);
  source->lines = 1;
  for (size_t i = 0; i < source->length; i++)
    if (source->text[i] == '\n') source->line_starts[source->lines++] = (uint32_t)i + 1;
}

/* Fills the map; false with an error where the bytes are no text. */
static bool map_characters(struct arena *arena, struct spec_source *source, struct diagnostics *diags) {
  const unsigned char *text = (const unsigned char *)source->text, *end = text + source->length;
  source->byte_of = arena_alloc(arena, (source->length + 1) * sizeof *source->byte_of);
  for (const unsigned char *at = text; at < end;) {
    int length = character_length(at, end);
    if (length == 0 || is_control(at)) {
      diag_error(diags, location_of_byte(source, (size_t)(at - text), 1),
                 length == 0 ? "byte 0x%02x is not UTF-8" : "control character (byte 0x%02x) in the text", *at);
      return false;
    }
    source->byte_of[source->characters++] = (uint32_t)(at - text);
    at += length;
  }
  source->byte_of[source->characters] = (uint32_t)source->length;
  return true;
}

static bool is_blank(const char *text) {
  return text[strspn(text, " \t\r\n")] == '\0';
}

struct spec_source *source_of(struct arena *arena, const char *name, const char *text, size_t length, bool whole,
                              struct diagnostics *diags) {
  struct spec_source *source = arena_alloc(arena, sizeof *source);
  source->name = name;
  source->whole = whole;
  if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) source->skipped = 3;
  source->text = text + source->skipped;
  source->length = length - source->skipped;
  map_lines(arena, source);
  if (!map_characters(arena, source, diags)) return NULL;
  if (!is_blank(source->text)) return source;
  diag_error(diags, (struct location){.file = name}, "the file is empty");
  return NULL;
}

char *source_read(struct arena *arena, const char *file, struct location where, size_t *length,
                  struct diagnostics *diags) {
  FILE *stream = fopen(file, "rb");
  if (stream == NULL) {
    diag_error(diags, where, "cannot open '%s': %s", file, strerror(errno));
    return NULL;
  }
  char *bytes = arena_alloc(arena, LARGEST + 2);
  *length = fread(bytes, 1, LARGEST + 1, stream);
  int problem = ferror(stream) ? errno : 0;
  fclose(stream);
  if (problem != 0)
    diag_error(diags, where, "cannot read '%s': %s", file, strerror(problem));
  else if (*length > LARGEST)
    diag_error(diags, where, "'%s' is larger than 1 MiB, so it is not a job", file);
  else
    return bytes;
  return NULL;
}

struct location source_location(const struct spec_source *source, size_t from, size_t to) {
  if (from > source->characters) from = source->characters;
  if (to > source->characters) to = source->characters;
  size_t start = source->byte_of[from], end = to > from ? source->byte_of[to] : start;
  size_t line_end = start + strcspn(source->text + start, "\r\n");
  if (end > line_end) end = line_end;
  return location_of_byte(source, start, end > start ? end - start : 0);
}
