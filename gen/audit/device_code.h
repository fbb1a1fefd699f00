/* What the audits of PTX and of SASS share: the claims about the code of kernels, and what is found against them. */
#ifndef ACCEL_AUDIT_DEVICE_CODE_H
#define ACCEL_AUDIT_DEVICE_CODE_H

#include "gen/audit/audit.h"
#include "gen/audit/device_source.h"

struct device_names {
  const char **items;
  int count, capacity;
};

/* Where something stands: of the source (line 0: the code does not say), and the line of the code itself. */
struct device_place {
  struct location where;
  int line;
};

struct device_code {
  struct audit *audit;
  struct arena *arena;
  const char *file, *text;
  size_t length;
  const char *function;        /* that is read; NULL: none */
  struct device_names defined; /* functions that can be called */
  struct device_names labels;  /* so far */
  struct device_sources sources;
  int n_kernels, n_instructions, n_calls, loops, others;
  int branches, indirect, externals, memory, clock, order; /* places of the claims in the list */
};

/* How the claims about one kind of code are named and said. */
struct device_words {
  const char *prefix;   /* of ids: "ptx" */
  const char *code;     /* "device code" */
  const char *subject;  /* the same where a sentence begins */
  const char *branches; /* "branch of device code" */
  const char *memory;   /* the id and the sentence of the claim that each kind has for itself */
  const char *memory_sentence;
};

/* Reads a file, unless its `text` is given. False with an error in `diags` when it cannot be read. */
bool device_code_open(struct arena *arena, const char *file, const char *text, struct diagnostics *diags,
                      struct device_code *code);

/* Adds the six claims to the audit, where they hold until something is found. */
void device_claims(struct device_code *code, const struct device_words *words);

/* Adds what they stand on, but for the claim about memory. */
void device_evidence(struct device_code *code);

void device_find(struct device_code *code, int claim, enum verdict verdict, const struct device_place *place,
                 const char *message);

/* A conditional branch, to a label or NULL. `mathematics`: it belongs to the toolkit's functions of numbers, which have
 * no lines. */
void device_branch(struct device_code *code, const struct device_place *place, const char *target, bool mathematics);

/* A call of a function; NULL: of one that a register names. */
void device_call(struct device_code *code, const struct device_place *place, const char *target);

#endif
