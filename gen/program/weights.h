/* Weights: what a tree of parameters says of each: where it is, and how functions reach it. */
#ifndef ACCEL_PROGRAM_WEIGHTS_H
#define ACCEL_PROGRAM_WEIGHTS_H

#include "gen/program/program.h"

/* Bytes from the start of a tree's parameters to where the one of this name, which it must have, is in use. */
int64_t weight_offset(const struct weight_tree *tree, const char *path);

/* Which element of its array a node is. */
int weight_element(const struct weight_node *node);

/* Where an element of an array is among those in memory. */
int weight_position(const struct weight_array *array, int element);

/* The elements of an array that are in memory. */
int weight_array_length(const struct weight_array *array);

/* The structure of the whole tree. */
const struct weight_struct *weights_type(const struct weight_tree *tree);

/* The scope of what stays in memory of layers whose weights may leave it (gen/plan/graph/resident.h): of layer "h.3" it
 * is "cache.h.3" or "(trained).h.3". */
const char *resident_scope(const struct program *program);

/* Whether it is a parameter of that scope that files have under its name: weight->place is below the scope,
 * weight->path is not. */
bool weight_stays(const struct weight *weight);

/* The parameter of an absolute path, or of that name; NULL where there is none. */
struct weight *weight_named(const struct weight_tree *tree, const char *path);

/* The structure to which the pointer for scope `formal` of a region points. */
const struct weight_struct *region_scope_type(const struct weight_tree *tree, const struct region *region, int formal);

/* Parameters before the one, or the scope, `path` below scope `formal` of a region, from that scope's first.
 */
int64_t weight_row(const struct weight_tree *tree, const struct region *region, int formal, const char *path);

/* How a parameter or a scope is reached from that pointer: members with array indices. `path` is below the scope;
 * `next` is the path in the following iteration of a loop (NULL or equal: none), whose differing index becomes
 * first + step * iteration. Returns the number of parts; 0 for the pointer itself. */
struct access_part {
  const char *member;
  bool indexed;
  int64_t first, step;
  int64_t modulo;   /* elements of the array in memory, reused in turn; 0: all */
  int64_t resident; /* and the first ones, which have memory of their own */
};
int weight_access(const struct weight_tree *tree, const struct region *region, int formal, const char *path,
                  const char *next, struct access_part parts[8]);

/* The region whose scopes a region has: a backward region those of its forward region. */
const struct region *named_region(const struct region *region);

/* Of a scope of a region: the node of the tree with which it was first bound. */
struct weight_node **weight_binding(const struct weight_tree *tree, const struct region *region, int formal);

#endif
