#include "gen/base/text.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

struct text text_in(struct arena *arena) {
  return (struct text){.arena = arena};
}

void text_add(struct text *text, const void *bytes, size_t count) {
  if (text->length + count + 1 > text->capacity) {
    size_t wider = text->capacity > 0 ? text->capacity : 256;
    while (wider < text->length + count + 1) wider *= 2;
    char *copy = arena_alloc(text->arena, wider);
    if (text->length > 0) memcpy(copy, text->bytes, text->length);
    text->bytes = copy;
    text->capacity = wider;
  }
  if (count > 0) memcpy(text->bytes + text->length, bytes, count);
  text->length += count;
  text->bytes[text->length] = '\0';
}

void text_puts(struct text *text, const char *string) {
  text_add(text, string, strlen(string));
}

void text_printf(struct text *text, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const char *more = arena_vprintf(text->arena, format, args);
  va_end(args);
  text_puts(text, more);
}

bool text_names(const char *words, const char *word, bool any_case) {
  size_t length = strlen(word);
  for (const char *at = words; length > 0 && at != NULL && at[0] == ' '; at = strchr(at + 1, ' ')) {
    int order = any_case ? strncasecmp(at + 1, word, length) : strncmp(at + 1, word, length);
    if (order == 0 && at[length + 1] == ' ') return true;
  }
  return false;
}

bool text_lists(const char *names, const char *name, bool any_rest) {
  const size_t length = strlen(name);
  for (const char *at = names + 1; *at != '\0';) {
    const char *end = strchr(at, ' ');
    const bool open = end[-1] == '*';
    const size_t size = (size_t)(end - at) - open;
    if ((open && any_rest ? length >= size : length == size) && memcmp(at, name, size) == 0) return true;
    at = end + 1;
  }
  return false;
}

bool text_begins(const char *text, const char *beginning) {
  return strncmp(text, beginning, strlen(beginning)) == 0;
}

const char *text_string(const struct text *text) {
  return text->length > 0 ? text->bytes : "";
}

void text_fold(struct text *text, const char *words, int column, int indent, int width) {
  bool fresh = true; /* no word is on this line yet */
  for (const char *at = words; *at != '\0';) {
    int blanks = (int)strspn(at, " "), length = (int)strcspn(at + blanks, " \n");
    bool wraps = !fresh && column + blanks + length > width;
    if (wraps) text_printf(text, "\n%*s", indent, "");
    text_printf(text, "%.*s", wraps ? length : blanks + length, wraps ? at + blanks : at);
    column = (wraps ? indent : column + blanks) + length;
    fresh = false;
    at += blanks + length;
    if (*at != '\n') continue;
    at++;
    if (*at != '\0') text_printf(text, "\n%*s", indent, "");
    column = indent, fresh = true;
  }
}
