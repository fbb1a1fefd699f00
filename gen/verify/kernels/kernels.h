/* Kernels: a function of a program by itself. It was run on numbers of its own, and what it gave is compared with
 * formulas in float64. Its name says which formulas are tried; which one it is follows from the numbers alone. */
#ifndef ACCEL_VERIFY_KERNELS_KERNELS_H
#define ACCEL_VERIFY_KERNELS_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "gen/base/arena.h"
#include "gen/verify/tape/known.h"

enum { MOST_ARRAYS = 12 };

/* A function whose parameters are arrays of float or int32, and at most a key of random numbers. */
struct kernel {
  const char *name;
  int n_arrays;
  struct kernel_array {
    const char *name;
    bool whole, written; /* int32; not const */
    int64_t count;
    int64_t below; /* of whole numbers: they have to stay below it; and whether -100 may be among them */
    bool ignored;
    int64_t
        row; /* each is a position of such a row, at or before its own, where a document begins; 0: it is no such one */
  } arrays[MOST_ARRAYS];
  int workspace;   /* the number of a parameter for room to compute in, which is no array; -1: there is none */
  int key;         /* that of the key of random numbers, an unsigned number of 64 bits; -1: there is none */
  bool is_aligned; /* its text has the same index for all arrays of the results' extent */
};

struct tree;
struct function;

/* The kernel that a function of a program is. False: it has other parameters, or writes none. */
bool kernel_from(const struct tree *tree, const struct function *function, struct kernel *kernel);

/* One run of it: the key, and each array before and after, 4 bytes a number. */
struct kernel_round {
  uint64_t key;
  const void *before[MOST_ARRAYS], *after[MOST_ARRAYS];
};

/* How numbers of a program are to those of the second reading: the same bits, within the bound, outside of it; or
 * nobody can tell. */
enum comparison { COMPARED_EQUAL, COMPARED_AGREES, COMPARED_DIFFERS, COMPARED_UNKNOWN };

struct kernel_finding {
  enum comparison comparison;
  const char *formula;       /* that it computes, or that is the nearest; of an unknown one, why */
  const char *where;         /* of one that differs: the worst number */
  double worst;              /* in bounds */
  int variant;               /* of the formula */
  const struct chain *chain; /* that it is; NULL: it is none */
};

/* Finds `below` and `ignored` of the arrays. NULL, or why the function cannot be run. */
const char *kernel_bound_wholes(struct kernel *kernel);

/* Compares its runs. */
struct kernel_finding kernel_compare(struct arena *arena, const struct kernel *kernel,
                                     const struct kernel_round *rounds, int n_rounds,
                                     const struct known_numbers *known);

/* ---- For the formulas ---- */

/* An evaluation. */
struct kernel_case {
  const struct kernel *kernel;
  const double *in[MOST_ARRAYS]; /* of written ones: what was there before */
  double *out[MOST_ARRAYS];      /* of written ones */
  const struct known_numbers *known;
  uint64_t key;    /* of random numbers */
  int64_t dims[8]; /* of the name's end: "2x8x24" */
  int n_dims;
  double noise;   /* of each number that is computed on the way, relative to it */
  bool is_open;   /* the shapes may mean something else, too: numbers that are mostly different say nothing */
  bool selects;   /* some of the numbers become the result, or where they are: noise of these would select others */
  bool fits;      /* the shapes fit the variant: the formula says so */
  int64_t stride; /* every so many elements have been computed; 1: all */
  int64_t terms;  /* of a sum */
  const struct kernel_round *rounds; /* all runs: what a chain is found by */
  int n_rounds;
  struct chain *chain; /* the one that was found; freed by the caller */
  char formula[240];
};

/* Computes variant number `variant` of a formula. False: it has no such variant. */
typedef bool kernel_formula(struct kernel_case *c, int variant);

/* A number that is computed on the way, with the noise of the evaluation. */
double kernel_rounded(const struct kernel_case *c, double x);

/* Number i of an array as a function has it. */
double kernel_number(const struct kernel_array *array, const void *numbers, int64_t i);

/* The number of the array of a name; -1: there is none. */
int kernel_array_of(const struct kernel *kernel, const char *name);

/* A name without its shape, and the shape: its number of axes, 0 where it has none. */
int kernel_stem(const char *name, char stem[128], int64_t dims[8]);

/* The formulas of chains of operations on elements; of everything else, NULL where none has the name. */
bool kernel_chain(struct kernel_case *c, int variant);
bool kernel_is_chain(const char *stem);
kernel_formula *kernel_formula_of(const char *stem);

/* Formulas by the stems of their names; the last one has none. */
struct kernel_named_formula {
  const char *stem;
  kernel_formula *formula;
};
extern const struct kernel_named_formula kernel_formulas[], kernel_attention_formulas[], kernel_image_formulas[],
    kernel_channel_formulas[], kernel_pool_formulas[], kernel_sequence_formulas[], kernel_draw_formulas[];

#endif
