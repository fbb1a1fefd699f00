/* Terminal: the one place that writes lines for people, of the command and of its programs. */
#ifndef RUNTIME_BASE_TERMINAL_H
#define RUNTIME_BASE_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

/* The columns of the terminal that a descriptor leads to; 0 for a file or a pipe, and for a terminal that has none, as
 * mpirun gives one to each rank. */
int rt_terminal_columns(int descriptor);

/* Whether a line at the end of a descriptor's output can be renewed: it leads to the terminal of this process's
 * session, which moves its cursor. mpirun's terminals are of no session, and TERM=dumb has no cursor to move. */
bool rt_terminal_renews(int descriptor);

/* From here on nothing is renewed, whoever looks. */
void rt_terminal_be_still(void);

/* Shows a line without its end on a terminal, in place of the one that was shown so before. What is printed by the
 * functions below takes its place; what is printed otherwise needs rt_terminal_clear first. */
void rt_terminal_renew(FILE *out, const char *line);

/* Takes that line away. */
void rt_terminal_clear(void);

/* How many bytes of a text go into `columns`, up to a blank; all of a word that is longer. A newline ends it. */
int rt_bytes_that_fit(const char *text, int columns);

/* Columns that `bytes` bytes of UTF-8 take, for letters that take one. */
int rt_columns_of(const char *text, int bytes);

/* Prints whole lines. On a terminal that is narrower, a line is broken at blanks; what continues it is below what
 * follows its last gap of two blanks or more, of those in its first half, or else two columns further to the right than
 * its beginning. Elsewhere it stays one line. */
void rt_print(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same of a text. */
void rt_print_text(FILE *out, const char *text);

/* The same of one line without its newline, with `indent` blanks before what continues it. */
void rt_print_line(FILE *out, const char *line, int indent);

#endif
