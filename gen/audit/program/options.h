/* What an audit is asked to read: the program's text, the commands that compile it, an object. */
#ifndef ACCEL_AUDIT_PROGRAM_OPTIONS_H
#define ACCEL_AUDIT_PROGRAM_OPTIONS_H

#include <stdbool.h>

#include "gen/base/diag.h"

/* A command that compiles a program, as a POSIX shell reads it. */
struct audit_command {
  const char *text;
  struct location where; /* of its first byte */
};

/* A module of the program as its manifest has it. */
struct audit_module {
  const char *name, *sha256; /* of its file; 64 hexadecimal digits */
  struct location where;     /* in the manifest */
};

/* A compilation of the program that an object states, as far as the audit has found it to leave the program as it is.
 */
struct audit_compilation {
  const char *const *names; /* of the compiler: the first that there is */
  int n_names;
  const char *const *flags;
  int n_flags;
  const char *const *folders; /* of headers, as they were given: good where the audit has read the same ones */
  int n_folders;
  const char *source;  /* the program's path, as the compiler was given it and may write it; "" where it is not known */
  bool is_linked;      /* it makes a program, with the runtime */
  const char *runtime; /* what pkg-config calls the runtime; NULL: the command names none */
  bool has_ranks, has_sqlite; /* the runtime of several ranks, and SQLite */
};

/* Who compiles the program once more, for the comparison with its object. */
struct audit_compiler {
  /* The path of the object. NULL, and why for people: there is no such compiler, or it fails. */
  const char *(*compile)(void *context, const struct audit_compilation *compilation, const char **why);
  void *context;
};

struct audit_options {
  const char *text;         /* of the program, which is named all the same; NULL: to be read */
  const char *const *flags; /* of the compiler, as far as they change what the text means: "-I", "DIR" */
  int n_flags;
  const char *root; /* the step path's function; NULL: step, or else what the loops of main call, or of what it calls */
  const struct audit_command *commands; /* by which it is compiled, in addition to what its first comment says */
  int n_commands;
  const struct audit_module *modules; /* that a manifest says it has; NULL: there is no manifest */
  int n_modules;
  const char *object;                    /* an object file of the program, which has claims too; NULL: none */
  const struct audit_compiler *compiler; /* NULL: the object is compared with nothing */
};

#endif
