/* The tree of the parameters' names, "h.0.attn.weight", which gen/plan/memory/weights.c makes. */
#ifndef ACCEL_PROGRAM_WEIGHT_NAMES_H
#define ACCEL_PROGRAM_WEIGHT_NAMES_H

#include "gen/program/program.h"

/* Files of states put more around a name, and readers take at most 1,023 letters. */
enum { LONGEST_WEIGHT_NAME = 500 };

/* The node at a dotted path below `node`; NULL where there is none. */
struct weight_node *weight_node_at(struct weight_node *node, const char *path);

/* The node of a path, which is made where it is missing, with those above it. */
struct weight_node *weight_node_make(struct arena *arena, struct weight_node *root, const char *path);

/* The parameter of whose name the beginning of a path is, which therefore has no others below it; NULL: none. */
const struct parameter *weight_parameter_above(const struct weight_node *root, const char *path);

#endif
