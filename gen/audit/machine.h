/* Machine code: the content of an object file of the program, by its disassembly and its line table. */
#ifndef ACCEL_AUDIT_MACHINE_H
#define ACCEL_AUDIT_MACHINE_H

#include "gen/audit/audit.h"

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
};

struct machine {
  struct machine_function *functions;
  int n_functions, functions_capacity;
  struct jump *jumps;
  int n_jumps, jumps_capacity;
  int n_instructions;
  bool has_lines;
};

/* Reads a relocatable object of x86-64. NULL, and *why for people, when it is none. */
struct machine *machine_read(struct arena *arena, const char *path, const char **why);

/* Adds the claims about the object file of the program. False, with an error in diags, when it cannot be read. */
bool machine_check(struct audit *audit, const char *path, struct diagnostics *diags);

#endif
