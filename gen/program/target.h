/* Target: the device that a program is for: where its C is spelled, and what is known of it. */
#ifndef ACCEL_PROGRAM_TARGET_H
#define ACCEL_PROGRAM_TARGET_H

#include "gen/program/program.h"

struct target {
  const char *name; /* "cuda" */
  /* The folders of its templates: a template "device/NAME" is that of the first one that has it; ends with NULL. */
  const char *const *templates;
  bool casts_as_cuda; /* autocast has one list of operations for it, and one for processors */
  unsigned epilogues; /* what its matmuls can do before they are written, as bits of enum epilogue */
  bool takes_sums;    /* its kernels over rows can add what goes into them, and what their results go into */
  /* What the names of a program's files end with. The first is the one that is asked for; another lies next to it,
   * under its name with this ending instead. */
  const char *suffixes[2];
  int n_texts;
  const char *compiler;             /* of the second one, with its flags; NULL: there is none */
  const char *const *architectures; /* that it is compiled for, "90a"; NULL after the last */
  bool gathers;                     /* sums that have one order: it adds up what it has gathered of all ranks */
  bool has_variants;                /* its kernels have several variants */
  bool sequential;         /* the statements of a step run one after the other: memory can be reused between them */
  bool bits16_chunks;      /* a loss over a matmul's chunks takes factors of 16 bits as they are; else in float32 */
  int64_t chunk_rows;      /* such chunks are its own way, of no fewer rows unless the job says so; 0: they are not */
  int64_t operand_bytes;   /* its library's operands begin at multiples of so many bytes; 0: anywhere */
  bool library_chooses;    /* its library has several algorithms for a matmul, which can be measured */
  bool shares;             /* ranks of one machine exchange through memory that they share */
  bool receives_apart;     /* gradients of a micro-batch arrive while others are used; else they are sent with them */
  bool traces;             /* its runtime sees what runs when: a profile need not measure parts unless it rates them */
  int64_t progress_bytes;  /* of a trainer's arena: where the device itself keeps what a step ends with */
  int64_t workspace_bytes; /* of the arena: the least that its libraries work in */
  int64_t sums;            /* numbers of the arena: partial sums of kernels; 0: they have memory of their own */
};

/* The device of a job's programs. */
const struct target *target_of(const struct job *job);

/* How matmuls of 16 bits run, as a line for people; "" where there are none. For a processor it says of this machine
 * what the runtime would choose on it; it is no part of a program's text, which is the same wherever it is made. */
const char *target_matmuls(const struct program *program);

#endif
