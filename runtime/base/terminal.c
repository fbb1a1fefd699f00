#include "runtime/base/terminal.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

int rt_terminal_columns(int descriptor) {
  struct winsize size;
  if (isatty(descriptor) != 1 || ioctl(descriptor, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

static bool is_still;

void rt_terminal_be_still(void) {
  is_still = true;
}

bool rt_terminal_renews(int descriptor) {
  const char *kind = getenv("TERM");
  return !is_still && isatty(descriptor) == 1 && tcgetsid(descriptor) > 0 &&
         (kind == NULL || strcmp(kind, "dumb") != 0);
}

/* The end of whose output is such a line. A process has one terminal, so there is one such line. */
static FILE *renewed;

void rt_terminal_renew(FILE *out, const char *line) {
  fprintf(out, "\r\033[K%s", line);
  fflush(out);
  renewed = out;
}

void rt_terminal_clear(void) {
  if (renewed == NULL) return;
  fputs("\r\033[K", renewed);
  fflush(renewed);
  renewed = NULL;
}

/* The bytes that belong together at `text`: a character of UTF-8, or a sequence that sets colours. */
static int bytes_of_letter(const char *text) {
  int bytes = 1;
  if (text[0] == '\033') return 1 + (int)strcspn(text + 1, "m\n") + (text[1 + strcspn(text + 1, "m\n")] == 'm');
  while (((unsigned char)text[bytes] & 0xc0) == 0x80) bytes++;
  return bytes;
}

int rt_columns_of(const char *text, int bytes) {
  int columns = 0;
  for (int i = 0; i < bytes; i += bytes_of_letter(text + i)) columns += text[i] != '\033';
  return columns;
}

int rt_bytes_that_fit(const char *text, int columns) {
  int used = 0, last = 0; /* where the last blank after a word is */
  for (int at = 0; text[at] != '\0' && text[at] != '\n'; at += bytes_of_letter(text + at)) {
    if (text[at] == ' ' && used > 0 && used <= columns && text[at - 1] != ' ') last = at;
    if (text[at] == ' ' && last == 0 && used > columns) return at; /* a word that is longer */
    used += text[at] != '\033';
    if (used > columns && last > 0) return last;
  }
  return (int)strcspn(text, "\n");
}

enum { NARROW = 2 }; /* what continues a line where there is room for no more */

/* Where what continues a line begins. */
static int indent_of(const char *line, int length, int columns) {
  int blanks = (int)strspn(line, " "), indent = blanks + 2;
  for (int i = blanks; i + 2 < length && i + 2 <= columns / 2; i++)
    if (line[i] == ' ' && line[i + 1] == ' ' && line[i + 2] != ' ') indent = rt_columns_of(line, i + 2);
  return indent;
}

/* A line of `length` bytes; indent below 0: by its gaps. */
static void print_line(FILE *out, const char *line, int length, int indent, int columns) {
  if (columns > 0 && indent < 0) indent = indent_of(line, length, columns);
  if (columns <= 2 * indent) indent = NARROW;
  if (columns <= 2 * NARROW || rt_columns_of(line, length) <= columns) { /* no need, or no room */
    fprintf(out, "%.*s\n", length, line);
    return;
  }
  const char *end = line + length, *at = line + strspn(line, " ");
  int first = (int)(at - line) + rt_bytes_that_fit(at, columns - (int)(at - line));
  fprintf(out, "%.*s\n", first, line);
  for (at = line + first + strspn(line + first, " "); at < end; at += strspn(at, " ")) {
    int fits = rt_bytes_that_fit(at, columns - indent);
    fprintf(out, "%*s%.*s\n", indent, "", fits, at);
    at += fits;
  }
}

static void print_lines(FILE *out, const char *text, int indent) {
  const int columns = rt_terminal_columns(fileno(out));
  rt_terminal_clear();
  while (*text != '\0') {
    int length = (int)strcspn(text, "\n");
    print_line(out, text, length, indent, columns);
    text += length + (text[length] == '\n');
  }
}

void rt_print_text(FILE *out, const char *text) {
  print_lines(out, text, -1);
}

void rt_print(FILE *out, const char *format, ...) {
  va_list arguments;
  char *text = NULL;
  size_t size;
  FILE *memory = open_memstream(&text, &size);
  va_start(arguments, format);
  vfprintf(memory != NULL ? memory : out, format, arguments);
  va_end(arguments);
  if (memory != NULL && fclose(memory) == 0) rt_print_text(out, text);
  free(text);
}

void rt_print_line(FILE *out, const char *line, int indent) {
  rt_terminal_clear();
  if (line[0] == '\0')
    putc('\n', out);
  else
    print_lines(out, line, indent);
}
