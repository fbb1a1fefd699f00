/* The search for layers: elements of arrays of weights that are each the parameters of one iteration of one call, in
 * the forward, the backward and an evaluation, and of nothing else. Ranks that divide weights hold these one at a time
 * (fsdp_layers.h), and they can stream (streamed_layers.h). */
#ifndef ACCEL_PLAN_RANKS_LAYER_SEARCH_H
#define ACCEL_PLAN_RANKS_LAYER_SEARCH_H

#include "gen/program/program.h"

/* How often the forward, the backward and an evaluation use an element as a call's parameters, and with which candidate
 * those of the last such call begin. */
enum { LAYER_RUNS = 3 };
struct layer_uses {
  struct weight_node *element;
  int times[LAYER_RUNS], begins[LAYER_RUNS];
};

struct layer_search {
  struct program *program;
  struct layer_uses *items;
  int count, capacity;
  int run, newest, together;     /* the first element of the last call in this run, of so many; -1: none yet */
  const struct weight *obstacle; /* the first that keeps layers from being held one at a time */
};

/* Searches a program for layers that stream, or else for those that ranks can divide. After plan_trained. */
struct layer_search search_layers(struct program *program);

/* Whether this candidate is the first element of an array of layers. */
bool begins_layers(const struct layer_search *search, int at);

/* Where the map has a layer, or the first thing in it that is elsewhere; NULL: all is in the memory of the device. */
const struct place *place_elsewhere(const struct program *program, const struct weight_node *node);

/* The first element of an array that comes from elsewhere; their number where none does. */
int first_streamed(const struct program *program, const struct weight_array *array);

#endif
