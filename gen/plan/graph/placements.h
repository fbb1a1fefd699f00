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
  int n_split;              /* operations for which a split was tried and made (op_ranks.tried) */
  const struct node *needs; /* the first operation that needs whole what was split for another; NULL: none */
  const struct node *
      *reasons; /* by node id: the same of the split that it requested (op_ranks.tried) and did not get */
  /* The newest splits, which are undone where an operation does not accept them. */
  struct {
    int *items;
    int count, capacity;
  } trial;
  const struct value **tied; /* by id of a parameter's value: the first one of the same name */
  bool *stays_whole;         /* by value id: it stays whole */
  /* By node id: ranks gather what a node gives as parts, or take their parts of its first input, which is whole. */
  bool *gathers, *takes;
};

/* Sets all values whole. Where `others` ranks along an axis that was divided before exchange parts of tensors
 * (all_to_all), a split may be of that many blocks; 1: none do. */
void open_placements(struct placements *placements, struct program *program, int64_t ranks, int64_t others);

/* Splits a dimension of a value and with it everything that must be split for that, in one block or the fewest of at
 * most `blocks` that can be. False: an operation needs it whole, which is `needs` if that is NULL; nothing is split
 * then. */
bool try_placement(struct placements *placements, const struct value *value, int dim, int64_t blocks);

/* Finds what can be divided: for each operation that asks for it (op_ranks.tried), the longest dimension first, an
 * input and with it everything that must be split for that, unless an operation needs it whole. Of a matmul by a
 * parameter it is the depth: so a matmul that is followed by another, with elementwise operations or heads of attention
 * between them, has its columns split and the other one its rows, and what the second gives is a partial sum. Of an
 * embedding it is the rows, of a cross-entropy the classes, and so a vocabulary. */
void find_placements(struct placements *placements);

/* The placement of a value. */
struct placement placement_of(const struct placements *placements, const struct value *value);

/* The first of the parameters that have the name of a parameter's value: they are one tensor. */
const struct value *first_of_name(const struct placements *placements, const struct value *value);

/* The placements of a node's operands, its inputs and then output 0, into `operands`. False: none is split. */
bool node_placements(const struct placements *placements, const struct node *node, struct placement *operands);

#endif
