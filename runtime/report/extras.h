/* Numbers beyond those of every line: metrics of an evaluation, what user code logs. A number waits for the next line
 * and is logged once. */
#ifndef RUNTIME_REPORT_EXTRAS_H
#define RUNTIME_REPORT_EXTRAS_H

#include <stdbool.h>
#include <stdio.h>

struct extra {
  char *name;
  double value;
  bool printed; /* on the terminal too */
  bool waits;
};

struct extras {
  struct extra *items;
  int count, capacity;
};

/* Lets `value` wait under `name`, of which it takes a copy, instead of one that waits there. False without memory. */
bool rt_extras_set(struct extras *extras, const char *name, double value, bool printed);

/* The value that waits under `name`; false where none does. */
bool rt_extras_find(const struct extras *extras, const char *name, double *value);

/* Nothing waits any more. */
void rt_extras_logged(struct extras *extras);

void rt_extras_free(struct extras *extras);

#endif
