/* Machine code: the content of an object file of the program, by its disassembly and its line table. */
#ifndef ACCEL_AUDIT_MACHINE_MACHINE_H
#define ACCEL_AUDIT_MACHINE_MACHINE_H

#include "gen/audit/machine/object.h"
#include "gen/audit/program/claim.h"
#include "gen/audit/program/options.h"

enum jump_kind { JUMP_CONDITIONAL, JUMP_INDIRECT, JUMP_CALL_INDIRECT, JUMP_CALL };

enum { MAX_CALLERS = 8 };

/* An instruction that may transfer control. */
struct jump {
  enum jump_kind kind;
  const char *function; /* that contains it */
  const char *target;   /* of a call: a symbol's name; NULL where it has none */
  bool is_external;     /* a call: the symbol is not defined in the object */
  bool is_backward;
  struct location where;    /* line 0: the line table has none */
  int callers[MAX_CALLERS]; /* lines of the inlined calls around it, innermost first; then 0 */
};

struct machine_function {
  const char *name;
  uint64_t address, size;
  int64_t frame; /* bytes of stack, at most; -1: not bounded */
  int *callees;  /* among the machine's functions */
  int n_callees, callees_capacity;
  int64_t depth;    /* bytes with its callees; -1: not bounded */
  bool is_visiting; /* while its depth is computed */
  int n_undecoded;
  bool is_alias; /* another name of a function before it */
};

/* What the decoder found, by the claim that it breaks. */
enum remark_kind {
  REMARK_FUNCTION,    /* code that is of no function, or of two */
  REMARK_INSTRUCTION, /* one that no compiler makes of C, or a jump to what is none */
  REMARK_RELOCATION,  /* the linker would change what is no operand, or an address of code is taken */
  REMARK_STACK        /* the stack pointer gets another value */
};

struct remark {
  enum remark_kind kind;
  struct location where;
  const char *message;
};

/* Instructions of a function at one location of the source. */
struct machine_line {
  int function;          /* among the machine's */
  struct location where; /* line 0: what the compiler made of several lines; file NULL: the line table has none */
  uint64_t offset;       /* of the first one, from the function's start */
  int count;
};

struct machine {
  const struct object_file *object;
  const char *producer; /* the compiler by its own words, DW_AT_producer; "" where the object does not say */
  const char *folder;   /* in which it ran, DW_AT_comp_dir; "" likewise */
  const char *source;   /* what it was given, DW_AT_name; "" likewise */
  struct machine_function *functions;
  int n_functions, functions_capacity;
  struct jump *jumps;
  int n_jumps, jumps_capacity;
  struct remark *remarks;
  int n_remarks, remarks_capacity;
  struct machine_line *lines;
  int n_lines, lines_capacity;
  int n_instructions;
  bool has_lines;
};

/* A check of a program's object. */
struct machine_check {
  struct audit *audit;
  const struct audit_options *options;
  const struct machine *machine;
};

/* Reads a relocatable object of x86-64. NULL, and *why for people, when it is none. */
struct machine *machine_read(struct arena *arena, const char *path, const char **why);

/* The function of the source that a function of the object was made of: without a compiler's ending. NULL: none. */
const struct function *machine_source(const struct audit *audit, const char *name);

/* Whether a compiler gives this name to the body of a parallel region, whose address it passes to OpenMP's library. */
bool machine_is_outlined(const char *name);

/* Whether a compiler may call the function on its own, for C and OpenMP. */
bool machine_is_compilers(const char *name);

/* The claims about an object's tables (tables.c), its line table (lines.c), and whether the compiler
 * that it names makes it of the program's text (rebuilt.c). */
void machine_check_tables(const struct machine_check *check);
void machine_check_lines(const struct machine_check *check);
void machine_check_rebuilt(const struct machine_check *check);

/* Adds the claims about the object file of the program. False, with an error in diags, when it cannot be read. */
bool machine_check(struct audit *audit, const struct audit_options *options, struct diagnostics *diags);

#endif
