/* Finds a device map as Accelerate 1.15 does: the same modules in the same memories for the same sizes and limits
 * (infer_auto_device_map, get_balanced_memory, get_max_layer_size). */
#ifndef ACCEL_PLAN_MEMORY_DEVICE_MAP_H
#define ACCEL_PLAN_MEMORY_DEVICE_MAP_H

#include "gen/program/program.h"

/* Types of modules that stay whole. */
struct whole_types {
  const char *const *names;
  int count;
};

/* The bytes of the largest of these modules and tensors, and of the modules in them, down to those that are not split;
 * which ones, in the order of the model, in *names. */
int64_t largest_layer(struct arena *arena, const struct module_list *list, const struct whole_types *whole,
                      struct module_list *names);

/* Lowers the limits of GPUs so that their modules take about as much on each (DEVICE_MAP_AUTO, DEVICE_MAP_BALANCED), or
 * so that the first has as little as the others leave (DEVICE_MAP_BALANCED_LOW_0). DEVICE_MAP_SEQUENTIAL: nothing. */
void balance_places(struct arena *arena, const struct module *root, const struct whole_types *whole,
                    enum device_map_way way, struct place_list *places);

/* Fills places in their order, module by module, and splits what does not fit. What is tied goes together. map has the
 * root and the places; fills the rest of it. */
void find_device_map(struct arena *arena, const struct whole_types *whole, struct device_map *map);

/* Writes modules whose contents are all in one memory as one. Accelerate does so by default. */
void shorten_device_map(struct arena *arena, struct device_map *map);

#endif
