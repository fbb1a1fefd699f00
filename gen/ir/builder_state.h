/* The state of a builder, for the files that implement it. */
#ifndef ACCEL_IR_BUILDER_STATE_H
#define ACCEL_IR_BUILDER_STATE_H

#include "gen/ir/builder.h"
#include "gen/ir/loops.h"

/* A region under construction and the call that opened it. */
struct frame {
  struct frame *caller;
  struct region *region;
  struct location call_site;
  struct scope **actual_scopes;
  struct value **actual_tensors;
  struct loop_list loops;
  int open_loops[16]; /* indices of the loops that are running now */
  int n_open_loops;
};

struct builder {
  struct arena *arena;
  struct diagnostics *diags;
  struct graph *graph;
  struct frame *frame;
  struct location where;
  bool rules; /* the function being built has a rule for its nodes */
  struct autocast rule;
};

/* A scope of the region under construction. */
struct scope *builder_scope_new(struct builder *builder, int formal, const char *path, struct initializer init);

#endif
