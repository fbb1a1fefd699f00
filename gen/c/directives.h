/* Directives of OpenMP: each with the statement that it is for. The compiler's tree does not show them. */
#ifndef ACCEL_C_DIRECTIVES_H
#define ACCEL_C_DIRECTIVES_H

#include "gen/c/tree.h"

enum directive_part {
  DIRECTIVE_PARALLEL = 1,
  DIRECTIVE_LOOP = 2, /* iterations are divided among threads */
  DIRECTIVE_SIMD = 4,
  DIRECTIVE_BARRIER = 8, /* before the statement */
  DIRECTIVE_SINGLE = 16,
  DIRECTIVE_MASTER = 32,
  DIRECTIVE_CRITICAL = 64,
  DIRECTIVE_ATOMIC = 128
};

/* A variable in a clause: each thread has its own, and of a reduction, all are combined by an operator at the end. */
struct directive_name {
  const char *name;
  const char *operation; /* "+", "max"; NULL: it is private */
};

struct directive {
  struct location where;
  const char *text; /* after "omp" */
  unsigned parts;   /* of directive_part */
  bool nowait;
  int collapse;        /* loops whose iterations are divided, 1 at least */
  const char *unknown; /* what is not followed: a directive or a clause; NULL: nothing */
  struct directive_name *names;
  int n_names, names_capacity;
  int line;                     /* where the statement begins; where a block ends, of one without a statement */
  bool is_placed;               /* the statement has been found */
  const struct directive *next; /* another one for the same statement; NULL: none */
};

/* Those of a file, in the order of their lines. */
struct directives {
  const char *file;
  struct directive *items;
  int count, capacity;
};

/* Reads those of a text. */
struct directives directives_read(struct arena *arena, const char *file, const char *text);

/* Finds the statements of a function in that file: calls `place` with each of them and its first directive, or with a
 * block and a barrier at its end. */
void directives_place(struct directives *directives, struct function *function,
                      void (*place)(struct syntax *node, const struct directive *directive, bool at_end, void *data),
                      void *data);

#endif
