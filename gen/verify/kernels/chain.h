/* Chains of operations on elements: what was found of one. */
#ifndef ACCEL_VERIFY_KERNELS_CHAIN_H
#define ACCEL_VERIFY_KERNELS_CHAIN_H

#include "gen/verify/kernels/kernels.h"

enum { MOST_OPERATIONS = 6 };

/* What an operation is: of two operands; of one; of one and a constant; a gradient, and what the slope is of. */
enum form { PAIR, SINGLE, BY_CONSTANT, BACKWARD };

/* Values: the arrays of the function by their numbers, then the results of the operations, then 0 and 1. */
enum { VALUE_ZERO = MOST_ARRAYS + MOST_OPERATIONS, VALUE_ONE, MOST_VALUES };

struct chain {
  int n_operations;
  struct link {
    const struct named_operation *operation;
    const char *name;
    enum form form;
    int a, b;
    double constant;
  } links[MOST_OPERATIONS];
  int result[MOST_ARRAYS];    /* of each written array, the operation; else -1 */
  int64_t inner[MOST_ARRAYS]; /* so many elements in a row have the same element of a smaller operand */
  bool found;
};

/* Chains that a name and the arrays suggest, of which nothing was run: how many, 0 where the name is none of a chain;
 * and number `at`. False: there is no such chain. */
int kernel_chain_guesses(const struct kernel *kernel, const struct known_numbers *known);
bool kernel_chain_guess(const struct kernel *kernel, const struct known_numbers *known, int at, struct chain *chain);

#endif
