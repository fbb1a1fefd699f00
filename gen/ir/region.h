/* Regions as data: making, comparing and editing them. Passes and the builder share these. */
#ifndef ACCEL_IR_REGION_H
#define ACCEL_IR_REGION_H

#include "gen/ir/graph.h"

/* An empty region, not yet in a graph. */
struct region *region_new(struct arena *arena, const char *name, struct location where, int n_scopes);

/* Adds a region at the end of the graph and makes its name unique there. */
void graph_add(struct graph *graph, struct region *region);

/* Whether two regions are the same in all but identity. */
bool region_equal(const struct region *a, const struct region *b);

/* Numbers the region's calls in their order, as keys of random numbers count them. */
void region_number_calls(struct region *region);

/* A region of the graph that is `region` in all but identity: name, inputs, parameters, nodes, results; or NULL. */
struct region *graph_find_equal(const struct graph *graph, const struct region *region);

/* The backward of `region`; NULL: there is none. */
struct region *graph_backward_of(const struct graph *graph, const struct region *region);

/* The only node that calls `callee`, in one iteration or several; NULL where several nodes do, or none. */
const struct node *graph_only_call(const struct graph *graph, const struct region *callee);

/* A value of `region`; the caller enters it into the list that `kind` names. */
struct value *value_new(struct graph *graph, struct region *region, enum value_kind kind, int index, struct shape shape,
                        enum dtype dtype);

/* A value's name in another type, "c_fc_weight_bf16"; NULL where it has no name. */
const char *value_typed_name(struct arena *arena, const struct value *value, enum dtype dtype);

/* The copy of 16 bits of a region's parameter, which is made where there is none. */
struct value *region_bits16_parameter(struct graph *graph, struct region *region, int parameter, enum dtype dtype);

/* A new input at the end of the region's inputs. */
struct value *region_input(struct graph *graph, struct region *region, struct shape shape, enum dtype dtype);

/* A node without outputs, not yet in a region. `inputs` is copied. */
struct node *node_new(struct graph *graph, const struct op_kind *kind, struct value *const *inputs, int n_inputs,
                      struct location where);

/* A new output at the end of the node's outputs. */
struct value *node_output(struct graph *graph, struct node *node, struct shape shape, enum dtype dtype);

/* Moves a region of the graph, or one that is new, to position `index` among the regions. */
void graph_insert(struct graph *graph, struct region *region, int index);

/* Makes a value, of whatever node of the same region, the node's next output. */
void node_take_output(struct graph *graph, struct node *node, struct value *value);

/* A node's position among those of its region. */
int region_position(const struct node *node);

/* Puts a node at the end of a region, or at position `index` there, or takes one out. */
void region_append(struct graph *graph, struct region *region, struct node *node);
void region_insert(struct graph *graph, struct region *region, int index, struct node *node);
void region_remove(struct region *region, const struct node *node);

/* Whether a node other than `but` (may be NULL), or the region's results, uses the value. */
bool value_is_used(const struct region *region, const struct value *value, const struct node *but);

/* Whether the value is one of the node's outputs. */
bool node_makes(const struct node *node, const struct value *value);

/* Lets every node and result of the region that uses `old` use `now`. */
void region_replace(struct region *region, const struct value *old, struct value *now);

/* A copy of a node at the end of region `to`: inputs and outputs by the map, which has by value id the counterpart of a
 * value (NULL: the value itself) and gets the new outputs. */
struct node *node_copy(struct graph *graph, const struct node *node, struct region *to, struct value **map);

/* The index of this input's history in a repeated call; -1: it has none. */
int history_index(const struct call *call, int input);

/* Whether two paths are equal, or differ in one number between dots; then *end is where it ends in `a`, else -1. */
bool paths_progress(const char *a, const char *b, int *end);

/* Whether the scopes of a loop's iterations are all the same, or differ in one number that grows by a constant. */
bool scopes_progress(struct scope *const *scopes, int count);

#endif
