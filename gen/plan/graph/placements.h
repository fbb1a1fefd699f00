/* Placements: which tensors of a graph ranks along one axis of the mesh divide, found from the operations' own rules
 * (op_place), as GSPMD propagates shardings (Xu et al., arXiv:2105.04663, section 3.5). */
#ifndef ACCEL_PLAN_GRAPH_PLACEMENTS_H
#define ACCEL_PLAN_GRAPH_PLACEMENTS_H

#include "gen/program/program.h"

struct placements {
  struct program *program;
  int64_t ranks;
  int64_t others;           /* ranks along another axis that exchange parts of one dimension for parts of another */
  struct placement *values; /* by value id */
  int divided;              /* operations for which a split was tried and made (op_ranks.tried) */
  const struct node *needs; /* the first operation that needs whole what was split for another; NULL: none */
  /* The newest splits, which are undone where an operation does not accept them. */
  struct {
    int *items;
    int count, capacity;
  } trial;
  const struct value **tied; /* by id of a parameter's value: the first one of the same name */
};

/* Finds what can be divided: for each operation that asks for it (op_ranks.tried), the longest dimension first, an
 * input and with it everything that must be split for that, unless an operation needs it whole. Of a matmul by a
 * parameter it is the depth: so a matmul that is followed by another, with elementwise operations or heads of attention
 * between them, has its columns split and the other one its rows, and what the second gives is a partial sum. Of an
 * embedding it is the rows, of a cross-entropy the classes, and so a vocabulary. Where `others` ranks along an axis
 * that was divided before exchange parts of tensors (all_to_all), a split may be of that many blocks; 1: none do. */
void find_placements(struct placements *placements, struct program *program, int64_t ranks, int64_t others);

/* The placement of a value. */
struct placement placement_of(const struct placements *placements, const struct value *value);

/* The first of the parameters that have the name of a parameter's value: they are one tensor. */
const struct value *first_of_name(const struct placements *placements, const struct value *value);

/* The placements of a node's operands, its inputs and then output 0, into `operands`. False: none is split. */
bool node_placements(const struct placements *placements, const struct node *node, struct placement *operands);

#endif
