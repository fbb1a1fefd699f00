/* PTX: the text of NVIDIA's virtual machine (NVIDIA, "PTX ISA", chapters 4, 10, 11) as statements, one at a time, each
 * with the line of CUDA C that it was made of. */
#ifndef ACCEL_PTX_READ_H
#define ACCEL_PTX_READ_H

#include <stdbool.h>

#include "gen/base/arena.h"
#include "gen/base/diag.h"

enum ptx_kind {
  PTX_END,
  PTX_FUNCTION,    /* the head of a function with a body */
  PTX_CLOSE,       /* the end of a function */
  PTX_SCOPE,       /* within a function, a scope of names opens */
  PTX_SCOPE_END,   /* and the last one that has opened ends */
  PTX_LABEL,       /* `name` */
  PTX_DECLARATION, /* of memory or of a function without a body; anywhere */
  PTX_INSTRUCTION,
  PTX_BROKEN /* the text ends within a statement, or is none */
};

struct ptx_statement {
  enum ptx_kind kind;
  const char *text;      /* white space is one blank, comments are gone */
  const char *name;      /* of a function or a label; of an instruction, all of it: "ld.global.f32" */
  const char *operands;  /* of an instruction */
  bool is_kernel;        /* PTX_FUNCTION: an entry */
  bool is_guarded;       /* an instruction under a predicate */
  int line;              /* of the PTX */
  struct location where; /* of the source; line 0: the PTX has none */
  struct location outer; /* where the function was called that it was put in from; else the same as `where` */
};

/* A position in the source that was put into a function, and at which one of it: numbers of a file, a line, a column.
 */
struct ptx_inlined {
  int at[3], into[3];
};

/* The sources that a PTX file names, which may follow the code that is made of them: another reader of
 * the same text takes them over. */
struct ptx_files {
  const char **items; /* by their numbers in the PTX; NULL: none has it */
  int count, capacity;
};

struct ptx_reader {
  struct arena *arena;
  const char *file, *at, *end;
  int line, depth; /* of braces, within a function */
  struct ptx_files files;
  struct {
    struct ptx_inlined *items;
    int count, capacity;
  } inlined;
  struct location where, outer;
};

/* A reader at the start of a PTX file's text, which stays where it is. */
struct ptx_reader ptx_open(struct arena *arena, const char *file, const char *text, size_t length);

/* The next statement; PTX_END after the last one, PTX_BROKEN once and then PTX_END where it cannot continue. */
struct ptx_statement ptx_next(struct ptx_reader *reader);

#endif
