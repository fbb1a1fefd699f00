/* Builder: makes graphs. The model reader opens and closes regions with it, operations make nodes with it, and
 * differentiation makes backward regions with it. */
#ifndef ACCEL_IR_BUILDER_H
#define ACCEL_IR_BUILDER_H

#include "gen/ir/op.h"

struct builder;

/* A builder for a new graph. Errors go to `diags`. */
struct builder *builder_new(struct arena *arena, struct diagnostics *diags);

/* A builder that continues with a graph that is finished, as passes do. */
struct builder *builder_on(struct graph *graph, struct diagnostics *diags);

struct arena *builder_arena(const struct builder *builder);
struct graph *builder_graph(const struct builder *builder);

/* The location that nodes and errors made from now on get: the call in the model's source. */
void builder_at(struct builder *builder, struct location where);

/* Reports an error at that location, followed by the chain of model functions that led there as notes. */
void builder_error(struct builder *builder, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- Regions (for the model reader) ---- */

/* Opens the region of a call of the model's function `name`, defined at `definition`, from `call_site`. scopes and
 * tensors are the actual arguments, in the current region; the new region's own are written back into `formal_scopes`
 * and `formal_tensors`. */
void builder_begin_region(struct builder *builder, const char *name, struct location definition,
                          struct location call_site, struct scope *const *scopes, int n_scopes,
                          struct value *const *tensors, int n_tensors, struct scope **formal_scopes,
                          struct value **formal_tensors);

/* Closes it with its results (values of that region) and continues the calling region. A region with parameters becomes
 * one call node there, an equal region made before being used again; one without is dissolved into its caller. The
 * values in the calling region are written to `outer`. Closing the outermost region makes it the graph's entry;
 * `outer` is not written then. */
void builder_end_region(struct builder *builder, struct value *const *results, int n_results, struct value **outer);

/* Works inside a region that is made by hand, as differentiation does: nodes go to its end until builder_leave. */
void builder_enter(struct builder *builder, struct region *region);
void builder_leave(struct builder *builder);

/* Drops all open regions after an error. */
void builder_abandon(struct builder *builder);

/* The entry: a region without a caller, one root scope, inputs by shape and dtype; `where` is its definition. */
void builder_begin_entry(struct builder *builder, const char *name, struct location where, struct scope **root);
struct value *builder_input(struct builder *builder, const char *name, struct shape shape, enum dtype dtype);

/* Around a loop of the model: begin, then iteration before each pass, then end. When the region is closed, a loop
 * whose iterations are one call of the same region each, chained by their results, becomes one call node with a count;
 * every other loop stays as the nodes that it made. */
void builder_loop_begin(struct builder *builder);
void builder_loop_iteration(struct builder *builder);
void builder_loop_end(struct builder *builder);

/* ---- Scopes ---- */

/* The scope `name` below `scope`; name may hold dots. The initializer is inherited. */
struct scope *builder_scope(struct builder *builder, const struct scope *scope, const char *name);
struct scope *builder_scope_init(struct builder *builder, const struct scope *scope, struct initializer init);

/* ---- Nodes (for operations) ---- */

/* The parameter `name` below `scope`. Naming it twice gives the same value; another shape is an error (NULL).
 * init.kind INIT_DEFAULT takes the scope's initializer, or `fallback` where the scope has none. */
struct value *builder_parameter(struct builder *builder, const struct scope *scope, const char *name,
                                struct shape shape, struct initializer fallback);

/* The same for numbers that are not trained: nothing is differentiable by them, and nothing changes them. */
struct value *builder_fixed(struct builder *builder, const struct scope *scope, const char *name, struct shape shape,
                            struct initializer fallback);

/* The same for a buffer, of any type: state that is no parameter. */
struct value *builder_buffer(struct builder *builder, const struct scope *scope, const char *name, struct shape shape,
                             enum dtype dtype, enum initializer_kind init);

/* The same for one run of a program, from zero: no file has it. */
struct value *builder_passing(struct builder *builder, const struct scope *scope, const char *name, struct shape shape);

/* A node of the kind called `kind` over `inputs`; its outputs by the kind's rule. NULL after an error (reported). Any
 * NULL among the inputs gives NULL silently, so that calls nest without checks. */
struct node *builder_node(struct builder *builder, const char *kind, struct value *const *inputs, int n_inputs,
                          const struct attribute *attributes, int n_attributes);

/* The rule of all nodes that the current function of accel/model.h makes from now on, instead of their kinds': that of
 * a function which PyTorch's lists name and which is several operations here. */
void builder_autocast(struct builder *builder, struct autocast rule);

/* The result of a function of accel/model.h, called by another one or by the model; NULL after an error (reported). */
struct value *builder_function(struct builder *builder, const struct op_function *function,
                               const struct argument *arguments, int count);
struct value *builder_call(struct builder *builder, const struct op_function *function,
                           const struct argument *arguments, int count);

/* The first output of such a node; with one, two or three inputs. `attributes` may be NULL. */
struct value *builder_op(struct builder *builder, const char *kind, struct value *const *inputs, int n_inputs,
                         const struct attribute *attributes, int n_attributes);
struct value *builder_unary(struct builder *builder, const char *kind, struct value *x);
struct value *builder_binary(struct builder *builder, const char *kind, struct value *x, struct value *y);

/* x in a floating-point type; x itself when that is its own. */
struct value *builder_cast(struct builder *builder, struct value *x, enum dtype dtype);

/* Whether the gradient of `value` is wanted (in an operation's gradient function). */
bool builder_wants_gradient(const struct builder *builder, const struct value *value);

/* How many random nodes the open region has so far: the next one's position among them, which separates its draws from
 * theirs (attribute "site"). */
int64_t builder_random_count(const struct builder *builder);

/* A name for a value that helps a reader of the program: the model's variable. Kept if the value has none yet. */
void builder_name(struct builder *builder, struct value *value, const char *name);

#endif
