/* What the audits of PTX and of SASS share: the claims about the code of kernels, and their findings. */
#ifndef ACCEL_DEVICE_CODE_DEVICE_CODE_H
#define ACCEL_DEVICE_CODE_DEVICE_CODE_H

#include "gen/audit/program/claim.h"
#include "gen/device_code/device_source.h"

struct device_names {
  const char **items;
  int count, capacity;
};

/* A location of the source (line 0: the code has none), and the line of the code itself. */
struct code_location {
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
  int branches, indirect, externals, memory, clock, order; /* indices of the claims in the audit's list */
};

/* Names and wording of the claims about one kind of code. */
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

/* Adds the six claims to the audit; each holds until it has a finding. */
void device_claims(struct device_code *code, const struct device_words *words);

/* Adds the evidence of the claims, except the one about memory. */
void device_evidence(struct device_code *code);

void device_find(struct device_code *code, int claim, enum verdict verdict, const struct code_location *location,
                 const char *message);

/* Checks a conditional branch, to a label or NULL. `mathematics`: it belongs to the toolkit's functions of numbers,
 * which have no lines. */
void device_branch(struct device_code *code, const struct code_location *location, const char *target,
                   bool mathematics);

/* Checks a call of a function; target NULL: the address is in a register. */
void device_call(struct device_code *code, const struct code_location *location, const char *target);

#endif
