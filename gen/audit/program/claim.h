/* The program that is audited, and the claims about it: each with a verdict and the locations that support or
 * contradict it. */
#ifndef ACCEL_AUDIT_PROGRAM_CLAIM_H
#define ACCEL_AUDIT_PROGRAM_CLAIM_H

#include "gen/audit/program/marks.h"

enum verdict { VERDICT_HOLDS, VERDICT_BROKEN, VERDICT_CANNOT_TELL };

/* A location that breaks a claim, or where its verdict cannot be decided. */
struct finding {
  enum verdict verdict; /* never VERDICT_HOLDS */
  struct location where;
  const char *message;
};

/* Something that the claim allows and lists, so that a person can look at it. */
struct fact {
  struct location where;
  const char *message;
};

struct claim {
  const char *id;       /* "no-allocation" */
  const char *sentence; /* the claim, as a sentence */
  enum verdict verdict; /* broken when any finding is; cannot tell when any other is */
  const char *evidence; /* what was looked at: "214 calls" */
  struct finding *findings;
  int n_findings, findings_capacity;
  struct fact *facts;
  int n_facts, facts_capacity;
};

/* What the audit learns of a function: tree->functions[i]->role, never NULL. */
struct role {
  int mark;                   /* for traversals of the call graph */
  bool in_step_path;          /* reachable from the root */
  bool is_used;               /* reachable from main */
  bool is_root;               /* it takes a step */
  bool exchanges_lasting;     /* it exchanges weights or states among ranks (interp/outside.c) */
  int gathers_in_place;       /* 1: it calls for that itself, -1: no, 0: not asked yet (interp/outside.c) */
  int is_kernel;              /* 1: yes, -1: no, 0: not asked yet (interp/call.c) */
  int orchestrates;           /* the same, of calling kernels */
  int touches_pointers;       /* the same, of using pointers that last */
  int does_tensor_work;       /* the same, of loops, matmuls and exchanges (interp/claims.c) */
  int writes;                 /* the same, of writing memory (interp/left_out.c) */
  int reaches_collective;     /* the same, of calling collectives (interp/collective.c) */
  int reaches_transfer;       /* the same, of starting what is waited for later, or of waiting (interp/transfer.c) */
  int reaches_launch;         /* the same, of collectives or of launching work that was recorded */
  bool is_followed;           /* the interpreter has followed its body */
  bool is_launched;           /* a kernel: it runs on the device */
  struct function *elsewhere; /* its definition in the device's half; NULL: none (device.h) */
};

struct audit {
  struct arena *arena;
  const struct tree *tree;
  struct marks marks;
  struct device *device; /* NULL: a program for processors */
  const char *root;      /* the step path's functions, human-readable: "step" */
  int n_functions;       /* defined */
  int n_step_functions;  /* of these, reachable from the root */
  int n_elsewhere;       /* functions that another file of the program defines */
  const char *scope;     /* what these are, human-readable: "on the step path" */
  struct claim *claims;
  int n_claims, claims_capacity;
};

/* A new claim at the end of the list, which holds until a finding says otherwise. The pointer is good until the next
 * claim is added. */
struct claim *audit_claim(struct audit *audit, const char *id, const char *sentence);

/* Adds a finding; the same message at the same location is added once. */
void claim_finding(struct audit *audit, struct claim *claim, enum verdict verdict, struct location where,
                   const char *format, ...) __attribute__((format(printf, 5, 6)));
void claim_fact(struct audit *audit, struct claim *claim, struct location where, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void claim_evidence(struct audit *audit, struct claim *claim, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* How many claims have this verdict. */
int audit_count(const struct audit *audit, enum verdict verdict);

/* "holds", "broken", "cannot tell" */
const char *verdict_word(enum verdict verdict);

#endif
