/* Target: the device that a program is for, as facts that passes, gen/emit and commands read. Nothing else tests
 * which device it is. docs/architecture.md lists what a new device takes. */
#ifndef ACCEL_PROGRAM_TARGET_H
#define ACCEL_PROGRAM_TARGET_H

#include "gen/program/program.h"

/* Where the C of its programs comes from, read by gen/emit. A program is of one text or of two; the second is next
 * to the first, under its name with the other ending. */
struct target_texts {
  /* The folders of its templates: a template "device/NAME" is that of the first one that has it; ends with NULL. */
  const char *const *templates;
  const char *const *lacks; /* those of kernels in them that its compiler does not take; ends with NULL; NULL: none */
  int count;
  const char *suffixes[2];          /* what the names of their files end with */
  const char *compiler;             /* of the second one, with all its flags; NULL: there is none */
  const char *const *architectures; /* that it is compiled for, "sm_90a"; ends with NULL; NULL: it is not for any */
};

/* What its programs are built with, read by gen/commands. */
struct target_build {
  const char *packages[2];     /* what pkg-config calls the runtime: of programs for one rank, for several */
  const char *const *sources;  /* folders of the runtime that its programs take, and not all devices'; ends with NULL */
  const char *const *of_ranks; /* the same of programs for several ranks */
  const char *const *drivers;  /* files of which a machine with such a device has one; ends with NULL; NULL: all have */
};

/* Its memory, read by the report and by gen/emit. Sizes are of its arena. */
struct target_memory {
  bool separate;          /* from the host's: there is an arena in each, and files are written from the host's */
  bool reads_files;       /* its streams do work of the host, so that layers come from a disk */
  int64_t progress_bytes; /* what the device itself stores of a step: the number, the rate, the loss; 0: the host passes
                             it */
  int64_t partial_sums; /* numbers of float32 that a kernel leaves for another one to add up; 0: a kernel ends alone */
};

/* How its kernels run, read by passes that change or count them. */
struct target_kernels {
  bool cuda_autocast; /* PyTorch's autocast has one list of operations for GPUs and one for processors: the first */
  bool in_order;      /* one statement of a step ends before the next begins */
  bool adds_rows;     /* those over rows have each in registers, and can fuse additions before and after it */
  bool has_variants;  /* they have several variants */
  bool forks;         /* threads must be woken for a loop, which costs more than a short one takes */
  const char *const *lacks; /* kinds that are written out as others (op_kind.written_out); ends with NULL; NULL: none */
  bool traced;              /* its runtime sees what runs when, without marks in the program */
};

/* The library of its matmuls, read by passes that lay out operands in memory. */
struct target_library {
  unsigned parts;         /* which kernels it has in addition to matmuls, as bits of enum library_part */
  unsigned no_workspace;  /* of which of these its kernels, also those that are not the library's, need no workspace */
  unsigned epilogues;     /* what it can do with a result before that is written, as bits of enum epilogue */
  bool bits16_to_float32; /* factors of 16 bits give a result of float32, and no factor must be float32 */
  int64_t operand_bytes;  /* operands begin at multiples of so many bytes; 0: anywhere */
  int64_t bound_rows;     /* from which on a matmul that adds to float32 takes longer to compute than to read and write;
                             0: unknown */
  bool has_algorithms;    /* several for a matmul, of which its heuristic takes one */
  bool names_algorithms;  /* they have names that last, by which a program takes the one that was measured */
  bool packs;             /* it computes faster with a factor in a layout of its own */
  bool multiplies_fp8;    /* factors of 8 bits with a scale each, on some of the devices */
  int64_t workspace_bytes; /* of the arena: the least that it works in; 0: it has memory of its own */
};

/* How its ranks exchange, read by gen/plan/ranks and by what starts them. */
struct target_ranks {
  bool shared_memory;       /* those of one machine exchange through memory that they share */
  bool gathers_sums;        /* what adds up in one order is gathered, which overlaps with kernels, and each adds up */
  bool receives_separately; /* gradients of a micro-batch arrive while others are used; else they are sent with them */
  bool fixed_sizes;    /* collectives move as much in each step: how many rows are sent where, the device alone knows */
  bool opens_channels; /* between stages, when it starts: of neighbours in a ring, and of those that it is told of */
  bool meet_by_environment; /* by the variables of torchrun; else by MPI */
};

struct target {
  const char *name; /* "cuda" */
  /* How matmuls of 16 bits run, `name` being that of their type, as a line for people. */
  const char *(*matmuls)(const struct program *program, const char *name);
  /* What the name of its module's file ends with, ".mlir": a compiler of its own gives the graph kernels and memory, so
   * that a program has neither, and passes end with the graph's; NULL: its programs have all of that. */
  const char *module;
  bool is_host; /* it is the kind of device that the generator runs on, and measures kernels on */
  struct target_texts texts;
  struct target_build build;
  struct target_memory memory;
  struct target_kernels kernels;
  struct target_library library;
  struct target_ranks ranks;
};

/* One for each device, or for several that one compiler serves; only the table in target.c names them. */
extern const struct target target_cpu, target_cuda, target_hip, target_xla;

/* The device of a job's programs; the one that is the host. */
const struct target *target_of(const struct job *job);
const struct target *target_host(void);

/* The processes that a job's ranks are. Of a program with a module there is one, and each rank is a device of it. */
int64_t target_processes(const struct job *job);

/* The devices that a process runs a module on; 1 for other programs. */
int target_devices(const struct job *job);

/* Whether its programs are built with a file of the runtime, by the folder in `path`. */
bool target_takes(const struct target *target, const char *path, bool several_ranks);

/* The type of the weights' copies of 16 bits that are in the arena; DTYPE_FLOAT32: there are none. A module rounds
 * weights where it reads them. */
enum dtype target_copies(const struct program *program);

/* How matmuls of 16 bits run, as a line for people; "" where there are none. For a processor it says of this machine
 * what the runtime would choose on it; it is no part of a program's text, which is the same wherever it is made. */
const char *target_matmuls(const struct program *program);

#endif
