/* The functions of accel/model.h, each with a way to call it on random shapes. */
#ifndef TESTS_OPS_CASES_H
#define TESTS_OPS_CASES_H

#include "tests/ops/lab.h"

struct op_case {
  const char *function;
  void (*arrange)(struct lab *lab); /* adds random arguments */
};

extern const struct op_case op_cases[];
extern const int op_case_count;

#endif
