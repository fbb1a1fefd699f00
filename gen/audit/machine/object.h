/* An object file's tables, as a linker reads them: sections, symbols, relocations. The file is a stranger's: what does
 * not fit into it is left out, and said in `problems`. */
#ifndef ACCEL_AUDIT_MACHINE_OBJECT_H
#define ACCEL_AUDIT_MACHINE_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gen/base/arena.h"

struct object_section {
  const char *name;
  uint32_t type, link, info; /* SHT_*; numbers of other sections, or what the type says */
  uint64_t flags, size;      /* SHF_*; bytes */
  const uint8_t *bytes;      /* `size` of them; NULL: the file holds none (SHT_NOBITS), or not all */
};

struct object_symbol {
  const char *name;
  uint8_t type, binding; /* STT_*, STB_* */
  uint16_t section;      /* SHN_UNDEF, SHN_ABS, ...: as ELF numbers them */
  uint64_t value, size;  /* bytes from the section's start; bytes */
};

struct object_relocation {
  size_t section;  /* whose bytes the linker changes */
  uint64_t offset; /* of the first of them */
  uint32_t type;   /* R_X86_64_* */
  size_t symbol;   /* among the object's */
  int64_t addend;
};

struct object_file {
  uint8_t abi;                     /* ELFOSABI_* */
  struct object_section *sections; /* by ELF's numbers: the first is no section */
  size_t n_sections;
  struct object_symbol *symbols; /* the same of symbols */
  size_t n_symbols;
  struct object_relocation *relocations; /* ordered by section and offset */
  size_t n_relocations;
  const char **problems; /* human-readable */
  int n_problems, problems_capacity;
};

/* Reads a relocatable object of x86-64. NULL, and *why for people, when it is none. */
struct object_file *object_read(struct arena *arena, const char *path, const char **why);

/* Whether a section is in the memory of the program that runs, and whether it is code. */
bool section_is_loaded(const struct object_section *section);
bool section_is_code(const struct object_section *section);

/* How many bytes the linker writes for a relocation of this type; 0: the type is not one that compilers use for C. */
size_t relocation_size(uint32_t type);

/* The first relocation of a section at or after `from` and before `to`; NULL: there is none. */
const struct object_relocation *object_relocation(const struct object_file *object, size_t section, uint64_t from,
                                                  uint64_t to);

/* What the compiler left of itself in .comment; "" where it left nothing. */
const char *object_comment(struct arena *arena, const struct object_file *object);

#endif
