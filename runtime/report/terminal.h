/* Terminal: lines for somebody who looks at them. */
#ifndef ACCEL_REPORT_TERMINAL_H
#define ACCEL_REPORT_TERMINAL_H

/* The columns of the terminal that a descriptor leads to; 0 for a file or a pipe. */
int rt_terminal_columns(int descriptor);

/* Prints a line on standard output. On a terminal that is narrower it is broken at blanks, with `indent` blanks before
 * what continues it; elsewhere it stays one line. */
void rt_print_line(const char *line, int indent);

#endif
