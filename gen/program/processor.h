/* Processor: what devices.arch names: how programs for it are compiled, and what its registers hold. */
#ifndef ACCEL_PROGRAM_PROCESSOR_H
#define ACCEL_PROGRAM_PROCESSOR_H

#include "gen/spec/job.h"

struct processor {
  const char *name;   /* as devices.arch has it: "avx512" */
  const char *title;  /* for people: "AVX-512" */
  const char *flags;  /* of cc and of clang: "-march=x86-64-v4" */
  const char *tuning; /* flags that change speed alone; "": none */
  const char *triple; /* of the machines that have it; "": those like the current one */
  int lanes;          /* floats of a vector register; 0: the compiler knows */
  bool multiplies;    /* dot products of bfloat16 are instructions */
};

/* That of a job's programs. */
const struct processor *processor_of(const struct job *job);

/* The one with this name; NULL: none has it. */
const struct processor *processor_named(const char *name);

/* Whether its machines are of another kind than the current one, whose compiler makes nothing for them. */
bool processor_is_foreign(const struct processor *processor);

/* The flags of cc for programs: "-std=c17 -O3 -march=native -mprefer-vector-width=512". */
const char *processor_cflags(struct arena *arena, const struct processor *processor);

#endif
