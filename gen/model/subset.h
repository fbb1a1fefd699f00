/* Subset: what of C a model cannot use, and what to write instead. */
#ifndef ACCEL_MODEL_SUBSET_H
#define ACCEL_MODEL_SUBSET_H

#include "gen/c/tree.h"

struct outside {
  const char *what; /* "a model cannot use WHAT" */
  const char *help;
};

/* Why a node, without what is below it, is outside of the subset; NULL when it is inside. */
const struct outside *subset_outside(const struct syntax *node);

/* The same of a label, `case` or `default`, that is not directly in a switch's block. */
const struct outside *subset_label(void);

#endif
