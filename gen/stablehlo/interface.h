/* Interface: what the function of a region takes and gives in addition to the region's inputs and results. */
#ifndef ACCEL_STABLEHLO_INTERFACE_H
#define ACCEL_STABLEHLO_INTERFACE_H

#include "gen/ir/graph.h"

/* A parameter as the region names it, its own or one of a region that it calls. */
struct hlo_parameter {
  int scope; /* of the region */
  const char *path;
  const struct parameter *parameter;
};
struct hlo_parameters {
  struct hlo_parameter *items;
  int count, capacity;
};

/* A value that a forward region gives to its backward: its own, of a history that of one iteration, or what a call
 * gives to the call's backward. */
struct hlo_saved {
  const struct value *value;
  const struct node *call; /* NULL: the value is the region's own */
  int iteration;           /* of the call, or of the history; -1: it is no history */
  int index;               /* among what the call's region saves */
};
struct hlo_saved_list {
  struct hlo_saved *items;
  int count, capacity;
};

struct hlo_interface {
  struct hlo_parameters parameters; /* that it takes */
  struct hlo_parameters gradients;  /* that a backward region gives */
  struct hlo_parameters assigned;   /* of which it gives new values, after all else */
  bool random;                      /* it draws random numbers, and takes their key, after all else */
  struct hlo_saved_list saved;      /* that a forward region gives after its results, and its backward takes */
};

/* The interfaces of all regions, by id, which is a region's position in the graph. */
struct hlo_interface *hlo_interfaces(struct arena *arena, const struct graph *graph);

/* The position of a parameter in a list by the names of the calling region: of a parameter of the callee, in iteration
 * `iteration` of the call. */
int hlo_find_parameter(struct arena *arena, const struct hlo_parameters *list, const struct call *call, int iteration,
                       const struct hlo_parameter *of_callee);

/* The position of a parameter in a list by the region's own name; -1: it is not there. */
int hlo_parameter_index(const struct hlo_parameters *list, int scope, const char *path);

/* The parameter of the region whose new value an output of a node is; NULL: it is that of none. */
const struct parameter *hlo_assigned(const struct region *region, const struct node *node, int output);

/* Whether a value is the history of a carried input of a repeated call. */
bool hlo_is_history(const struct value *value);

#endif
