#include "runtime/report/terminal.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

int rt_terminal_columns(int descriptor) {
  struct winsize size;
  if (isatty(descriptor) != 1 || ioctl(descriptor, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

/* How many bytes of a line go into `columns`, up to a blank; all of a word that is longer. */
static int bytes_that_fit(const char *line, int columns) {
  int length = (int)strlen(line), end = columns;
  if (length <= columns) return length;
  while (end > 0 && line[end] != ' ') end--;
  return end > 0 ? end : (int)strcspn(line, " ");
}

void rt_print_line(const char *line, int indent) {
  int columns = rt_terminal_columns(STDOUT_FILENO);
  if (columns <= 2 * indent) columns = (int)strlen(line) + 1; /* nothing to break for */
  int fits = bytes_that_fit(line, columns);
  printf("%.*s\n", fits, line);
  while (line[fits] != '\0') {
    line += fits + strspn(line + fits, " ");
    if (line[0] == '\0') return;
    fits = bytes_that_fit(line, columns - indent);
    printf("%*s%.*s\n", indent, "", fits, line);
  }
}
