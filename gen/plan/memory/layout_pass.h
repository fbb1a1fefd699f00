/* The layout pass's own helpers: views, storages, and the rows of repeated calls. gen/plan/memory/layout.h is for
 * others. */
#ifndef ACCEL_PLAN_MEMORY_LAYOUT_PASS_H
#define ACCEL_PLAN_MEMORY_LAYOUT_PASS_H

#include "gen/plan/memory/layout.h"

struct layout_pass {
  struct program *program;
  struct arena *arena;
  struct function *function; /* the current one */
  struct region *region;
  bool deferred;    /* the current node runs later: its statements, too */
  int *uses;        /* by value id, over the whole graph */
  bool *saved;      /* by value id: the backward region needs it */
  bool *accumulate; /* by value id: its producer adds to what is there */
  int n_values;     /* of the graph when the pass began */
};

/* New memory of the current function. */
struct storage *new_storage(struct layout_pass *pass, enum storage_kind kind, const char *name, enum dtype dtype,
                            int64_t count, int copies);

/* The same for one value; index is the input, result or parameter that it is. */
struct storage *operand_storage(struct layout_pass *pass, enum storage_kind kind, const struct value *value, int index);

/* New memory for a value that the function makes: saved when the backward needs it, else scratch. */
struct view fresh_view(struct layout_pass *pass, const struct value *value);

/* Row-major at `offset` of a storage. */
struct view dense_view(struct storage *storage, int64_t offset, struct shape shape);

/* Whether a view begins where the device's library takes operands (target->library.operand_bytes), in each copy of its
 * storage: memory of inputs and results does, which the caller ensures. */
bool is_aligned(const struct layout_pass *pass, const struct view *view);

/* Whether a node hands its operands to the device's library, or to a function that may do so. */
bool reaches_library(const struct node *node);

/* Whether two views are the same elements, for a value of this shape. */
bool same_view(const struct view *a, const struct view *b, struct shape shape);

/* Whether a value is saved for backward, itself or through a view of it. */
bool needs_saving(const struct layout_pass *pass, const struct value *value);

/* Whether a node of the current region makes the value. */
bool is_local(const struct layout_pass *pass, const struct value *value);

/* The copy of a row in which iteration 0 of a repeated call finds its input, and the one that holds the final result.
 * Backward calls run from the last iteration to the first. */
int first_copy(const struct call *call, int copies);
int final_copy(const struct call *call, int copies);

#endif
