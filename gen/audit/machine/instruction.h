/* One instruction of x86-64: its length, its operands that a linker may fill in, and whether a compiler makes it of C.
 */
#ifndef ACCEL_AUDIT_MACHINE_INSTRUCTION_H
#define ACCEL_AUDIT_MACHINE_INSTRUCTION_H

#include <capstone/capstone.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gen/base/arena.h"

/* Bytes of an instruction, from its first one on. */
struct field {
  size_t offset, size; /* size 0: it has none */
};

struct instruction {
  size_t length;             /* bytes */
  struct field displacement; /* of an address */
  struct field immediate;
  const char *refused; /* why no compiler makes it of C, human-readable: "'syscall' reaches the system"; or NULL */
};

/* Reads an instruction with a VEX or EVEX prefix, of which Capstone does not know the newest. False for another one. */
bool instruction_of_vectors(const uint8_t *bytes, size_t left, struct instruction *instruction);

/* The same of an instruction that Capstone has decoded, with details. */
struct instruction instruction_of(csh capstone, const cs_insn *insn, struct arena *arena);

/* Whether an instruction gives the stack pointer a value that does not follow from itself and constants, or from a
 * register in which the function keeps it. */
bool instruction_moves_stack(const cs_insn *insn);

#endif
