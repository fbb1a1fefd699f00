/* A module while its functions are written, one for each region. */
#ifndef ACCEL_STABLEHLO_MAKER_H
#define ACCEL_STABLEHLO_MAKER_H

#include <stddef.h>

#include "gen/stablehlo/interface.h"
#include "gen/stablehlo/make.h"
#include "gen/stablehlo/state.h"

/* What a call gives to its backward: by iteration, and by index among what the callee saves. */
struct called {
  const struct node *node;
  struct hlo *saved;
};

/* A line of the model, and the name that operations have for it: "#gpt2_12_7". */
struct hlo_location {
  struct location where;
  const char *name;
};

struct maker {
  struct stablehlo hlo;
  const struct graph *graph;
  struct hlo_interface *interfaces; /* by id of a region */
  int n_loops;
  struct text *out;
  struct {
    struct hlo_location *items;
    int count, capacity;
  } locations;
  /* Of the function that is being written: */
  const struct region *region;
  struct hlo *parameters; /* as in the interface */
  struct hlo *gradients;  /* the same; item -1: nothing yet */
  struct {
    struct called *items;
    int count, capacity;
  } calls;
  struct hlo **histories; /* by id of a value: what it was in each iteration; NULL: it is no history */
};

static inline const struct hlo_interface *hlo_interface_of(const struct maker *maker, const struct region *region) {
  return &maker->interfaces[region->id];
}

static_assert(offsetof(struct maker, hlo) == 0, "hlo_maker");
static inline struct maker *hlo_maker(struct stablehlo *hlo) {
  return (struct maker *)hlo;
}

/* ---- Lists of tensors ---- */

/* Tensors that a call takes, or that a function gives, there each with an attribute or NULL. */
struct hlo_list {
  struct hlo_listed {
    struct hlo tensor;
    const char *attribute;
  } *items;
  int count, capacity;
};
void hlo_list_add(struct maker *maker, struct hlo_list *list, struct hlo tensor, const char *attribute);

/* ---- Calls (calls.c) ---- */

/* The shape of a value that is saved: of a history, that of one iteration. */
struct shape hlo_saved_shape(const struct hlo_saved *saved);

/* What a call saves in one iteration, to be read or set. */
struct hlo *hlo_saved_of_call(struct maker *maker, const struct node *call, int iteration);

/* A value of the graph as one tensor: a history is its iterations one after the other. */
struct hlo hlo_whole(struct maker *maker, const struct value *value);

/* Adds to the gradient of a parameter, by its position in the interface, in float32. */
void hlo_add_gradient(struct maker *maker, int index, struct hlo gradient);

/* Writes a call of a region's function; its results, in `arena`. */
struct hlo *hlo_write_call(struct maker *maker, const struct region *callee, const struct hlo_list *arguments);

/* Writes a call node, an operation for each iteration. */
void hlo_write_node_call(struct maker *maker, const struct node *node);

/* ---- Functions (function.c) ---- */

/* A function in which nothing is known, for maker->hlo.function. */
struct hlo_function *hlo_new_function(const struct maker *maker);

/* Begins a function: nothing is known in it. `region`: whose interface it has. */
void hlo_begin_function(struct maker *maker, const struct region *region);

/* A new argument: the key of the function's random numbers, an int64. */
void hlo_take_key(struct maker *maker, const char *name);

/* The key of a call's own random numbers in one of its iterations (accel_stream of accel/cpu/draws.h). */
struct hlo hlo_call_key(struct stablehlo *hlo, const struct call *call, int iteration);

/* What a parameter of the region that is being written is from now on; `index` as in the interface. */
void hlo_assign(struct maker *maker, int index, struct hlo tensor);

/* A new argument. */
struct hlo hlo_new_argument(struct maker *maker, const char *name, struct shape shape, enum hlo_type type);

/* Writes a region's function; maker->hlo.failed after an error. */
void hlo_write_function(struct maker *maker, const struct region *region);

/* ---- The module (make.c) ---- */

/* Begins a module: maker.out is the text of its functions. */
struct maker hlo_begin_module(struct arena *arena, const struct graph *graph, struct diagnostics *diags);

/* Writes the functions of the regions that an entry and `backward`, which may be NULL, reach; false after an error. */
bool hlo_write_regions(struct maker *maker, const struct region *entry, const struct region *backward);

/* The whole text: `main` is that of the public function. */
const char *hlo_end_module(struct maker *maker, const char *name, const struct text *main,
                           const struct text *functions);

/* Calls the function of the entry, or that of its backward with what the entry has saved; its results. Inputs that
 * have no value yet become arguments of the function that is written, noted in *made. */
struct hlo *hlo_call_entry(struct maker *maker, const struct region *region, const struct hlo *saved,
                           struct hlo_module *made);

/* Among the results of the entry's call, what it assigns to parameters. */
const struct hlo *hlo_assigned_by_entry(const struct maker *maker, const struct hlo *results);

/* ---- Text (print.c) ---- */

/* Adds the function to maker->out: its arguments, the operations that what it gives depends on, and that. */
void hlo_print_function(struct maker *maker, const char *visibility, const char *name, const struct hlo_list *given);

/* Adds the lines of the model that operations are of, each under the name that they have for it. */
void hlo_print_locations(struct maker *maker);

#endif
