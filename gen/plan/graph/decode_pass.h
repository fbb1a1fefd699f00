/* What the files of the pass "decode" share. */
#ifndef ACCEL_PLAN_GRAPH_DECODE_PASS_H
#define ACCEL_PLAN_GRAPH_DECODE_PASS_H

#include "gen/ir/builder.h"
#include "gen/ir/op.h"

/* Of a value that depends on the source alone, which a text is written from: it is the same for all positions. */
enum { AXIS_ONCE = AXIS_SORTED - 1 };

/* A region over `width` positions, made for callers whose inputs have these positions. */
struct form {
  const struct region *of;
  const struct timeline *inputs;
  int64_t width;
  bool first;
  struct region *region;
  struct timeline *results;
  bool partial; /* it needs the number of valid positions */
};

struct pass {
  struct graph *graph;
  struct builder *builder;
  struct arena *arena;
  int64_t length, width;
  const char *suffix;         /* of the regions that are made; NULL: none */
  bool first;                 /* these compute what depends on the source, and keep it; else they read it */
  bool moving;                /* a node at the current positions is being made */
  struct timeline *timelines; /* by id of a value: where its positions are; AXIS_WHOLE: it does not depend on the
                         tokens; AXIS_MIXED: each position of it depends on others in a way that cannot be cached */
  struct value **now;         /* by id of a value: its replacement */
  struct value **cuts;        /* by id of a value that is whole: its current positions, as in cut_timelines */
  struct timeline *cut_timelines;
  struct value **kept; /* by id of a value that depends on the source alone: the buffer that keeps it */
  struct {
    struct form *items;
    int count, capacity;
  } forms;
  const struct node *cause; /* the first that mixes positions */
  bool limited;             /* no more than `length` positions can follow on each other */
};

/* The region that is being made. */
struct making {
  struct region *to;
  struct value *at, *valid;
  int n_incremental, n_kept;
};

/* Where the positions of a value are, and what replaces it; of all outputs of a node, which have no replacement yet. */
struct timeline timeline_of(const struct pass *pass, const struct value *value);
void decode_set(struct pass *pass, const struct value *value, struct value *now, struct timeline timeline);
void decode_set_all(struct pass *pass, const struct node *node, struct timeline timeline);

/* Whether the regions that are made do not have a value: mixed ones, and where these read what was kept, what makes
 * that. */
bool decode_leaves_out(const struct pass *pass, struct timeline timeline);

/* The elements of `width` positions. */
int64_t timeline_extent(struct timeline timeline, int64_t width);

bool same_timeline(struct timeline a, struct timeline b);

/* Makes a node, which is no call, over the current positions, and sets the replacements of its outputs. The first node
 * that cannot be made is pass->cause. */
void decode_node(struct pass *pass, struct making *making, const struct node *node);

#endif
