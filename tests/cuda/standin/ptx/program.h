/* A module of PTX as it is interpreted: kernels of decoded instructions, and the memory of its variables.
 *
 * "PTX ISA" in comments is NVIDIA's document of that name, for the version 9.0 of CUDA 13.0. */
#ifndef TESTS_CUDA_PTX_PROGRAM_H
#define TESTS_CUDA_PTX_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gen/ptx/ptx_read.h"

enum { LANES = 32, PREDICATE = 1, OPERANDS = 4, VECTOR = 8 };
#define ALL_LANES UINT32_MAX

struct warp;
struct instruction;

/* A register: 32 values of its type, one a lane, `at` bytes from the registers of a warp; of a predicate one word with
 * a bit a lane. Constants come before the registers. */
struct slot {
  int at;
  unsigned number; /* of its word in `defined` of a warp; 0: constants */
  bool negated;    /* a predicate that is read as !p */
};

/* Of an address that derives from something else than a kernel's parameter, a pointer that stands in memory, or than an
 * array that is counted. */
#define FROM_ELSEWHERE (UINT64_C(1) << 63)

enum space { GENERIC, GLOBAL, SHARED, LOCAL, CONSTANT, PARAMETER };

/* What the loop over instructions itself has to do with one. */
enum flow {
  ON,      /* the next one follows */
  BRANCH,  /* to another one */
  LEAVE,   /* the lane ends */
  TOGETHER /* lanes of a warp, or all warps of a block, wait for each other */
};

/* Which operands must have a value for the result to have one: all of them; of a choice, the predicate and what it
 * chooses; of predicates, either both or one that decides. */
enum keeps { BY_ALL, BY_CHOICE, BY_FALSE, BY_TRUE };

/* Of one lane of a plain operation: the bits of its result that have no value, from the values of its operands and
 * their bits without one (bits.h). */
typedef uint64_t bits_open(const struct instruction *of, const uint64_t *values, const uint64_t *open);

/* What an instruction is, by its name. */
struct form {
  const char *name; /* "add_rn_f32" of add.rn.f32 */
  void (*run)(struct warp *warp, const struct instruction *of);
  unsigned char to, from[OPERANDS]; /* bytes of the operands, PREDICATE, 0: there is none */
};

/* An operand [%rd1+16]. */
struct place {
  unsigned char operand;
  bool is_short; /* in a register of 32 bits */
  enum space space;
  int64_t offset;
  uint64_t derived; /* which words of 8 bytes of the kernel's parameters it is computed of, a bit each */
  uint64_t arrays;  /* the same of the arrays of the block */
};

struct instruction {
  void (*run)(struct warp *warp, const struct instruction *of);
  const struct form *form;                                /* NULL: it is no operation on single lanes */
  struct slot to[VECTOR], from[OPERANDS * VECTOR], guard; /* vectors are as many operands */
  unsigned char n_to, n_from;
  unsigned char to_bytes[VECTOR],
      from_bytes[OPERANDS * VECTOR]; /* of the registers, which may be wider than the type */
  bool is_guarded, has_result, is_signed, is_constant, is_plain;
  uint64_t arrays;        /* of the block that it names, a bit each */
  struct place places[2]; /* of addresses among the operands */
  unsigned char n_places;
  char combine; /* of setp: '&', '|', '^', with a predicate; 0: with none */
  enum flow flow;
  enum keeps keeps;            /* if `is_plain`: each lane computes for itself */
  bits_open *opens;            /* the same; NULL: of its result no bit has a value if one of an operand has none */
  unsigned char bytes, vector; /* of an element in memory, and how many there are */
  unsigned target;             /* of a branch: an instruction's number */
  int kind;                    /* of a collective; -1: of tensor cores */
  unsigned kind_of_matrix;
  const char *name;
  int line;                     /* of the PTX */
  struct location where, outer; /* of the source: see ptx_read.h */
};

/* A word that a lane finds: %tid.x and its like. */
enum special {
  TID_X,
  TID_Y,
  TID_Z,
  NTID_X,
  NTID_Y,
  NTID_Z,
  CTAID_X,
  CTAID_Y,
  CTAID_Z,
  NCTAID_X,
  NCTAID_Y,
  NCTAID_Z,
  LANEID,
  WARPID,
  SPECIALS
};

struct constant {
  uint64_t value;
  unsigned bytes;
  int at;
};

/* Memory that has a name. */
struct variable {
  const char *name;
  enum space space;
  size_t bytes, align;
  uint64_t address; /* of the host, or in its space */
};

struct variables {
  struct variable *items;
  int count, capacity;
};

struct statements {
  struct ptx_statement *items;
  int count, capacity;
};

/* A function with a body, as it is read. */
struct function {
  const char *name, *head;
  bool is_kernel;
  struct statements body;
};

struct kernel {
  const char *name;
  const struct function *function;
  struct module *module;
  bool is_decoded;
  struct {
    struct instruction *items;
    int count, capacity;
  } code;
  struct variables parameters, arrays; /* those of the block that it names */
  size_t parameter_bytes, shared_bytes, local_bytes;
  unsigned register_bytes, n_registers;
  struct {
    struct constant *items;
    int count, capacity;
  } constants;
  int constant_bytes;
  bool has_special[SPECIALS];
  struct slot specials[SPECIALS];
  struct count *counts; /* of each instruction; NULL: they are not counted */
  uint64_t launches, blocks, threads;
  struct kernel *next;
};

struct module {
  struct arena *arena;
  const char *file;
  struct {
    struct function *items;
    int count, capacity;
  } functions;
  struct variables variables;
  size_t shared_bytes; /* of those outside of functions */
  struct kernel *kernels;
};

/* Reads a module; a fault where the text is none. `file` is its name in messages. */
struct module *module_read(const char *file, const char *text, size_t length);

/* A kernel of the module, decoded; NULL: it has none of that name. A fault, which names the instruction, where it has
 * one that is not known. */
struct kernel *module_kernel(struct module *module, const char *name);

/* The form of an instruction by its name, "add.rn.f32"; NULL: none. */
const struct form *form_of(const char *name);

/* The parts of a table of forms. */
struct forms {
  const struct form *items;
  int count;
};
extern const struct forms arithmetic_forms, integer_forms, comparison_forms, conversion_forms;

/* Decodes what is no operation on single lanes; false: it is none of these either. */
bool decode_memory(const char *name, struct instruction *into);
bool decode_collective(const char *name, struct instruction *into);
bool decode_matrix(const char *name, struct instruction *into);

#endif
