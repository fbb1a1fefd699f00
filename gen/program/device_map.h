/* Device map: which memory the modules of a model are in, as Accelerate's device_map says it. A module is a dotted name
 * before the names of parameters; the whole model has the name "". */
#ifndef ACCEL_PROGRAM_DEVICE_MAP_H
#define ACCEL_PROGRAM_DEVICE_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "gen/base/arena.h"

enum module_kind { MODULE, MODULE_PARAMETER, MODULE_BUFFER };

/* A module, or one of its tensors, which has no children. */
struct module {
  const char *name; /* from the root; of that "" */
  const char *type; /* of a module: the function that takes it; NULL: none does */
  enum module_kind kind;
  struct module *parent, **children; /* in the model's order */
  int n_children, capacity;
  const struct module *tied; /* of a parameter: the one whose memory it is; NULL: it has its own */
  int64_t bytes;             /* of all tensors in it; what is tied counts where it is named first */
};

struct module_list {
  const struct module **items;
  int count, capacity;
};

/* A memory. Those of GPUs come first, then that of the host, then a disk. */
struct place {
  const char *name;     /* "0", "1", "cpu", "disk" */
  int64_t bytes;        /* that modules may take of it; PLACE_ENDLESS: any number */
  bool keeps_largest;   /* it keeps space for the largest layer, which may come from elsewhere */
  bool is_gpu, is_disk; /* neither: the host's */
  bool is_own;          /* the program's device computes in it; what is elsewhere comes to it */
};
#define PLACE_ENDLESS INT64_MAX

struct place_list {
  struct place *items;
  int count, capacity;
};

/* What is in one memory: a module with all that it has, or a parameter. */
struct mapped {
  const struct module *module;
  int place;
};

struct device_map {
  struct module *root;
  struct place_list places;
  struct mapped *items; /* in the order in which they were placed */
  int count, capacity;
  int64_t largest; /* bytes of the largest module that is not split, and its names */
  struct module_list layers;
  const struct module
      *homeless; /* the first module that no memory has space for, and the bytes that lack; NULL: none */
  int64_t lacking;
};

/* The place of the parameter or module of a name, by the longest name in the map that it begins with; -1: none. */
int device_map_place(const struct device_map *map, const char *name);

/* Where that is, if it is not in the memory of the device and so comes to it; NULL: it is there, or has no place. */
const struct place *device_map_elsewhere(const struct device_map *map, const char *name);

/* The child of this name (its last part), made where there is none. */
struct module *module_child(struct arena *arena, struct module *parent, const char *name, enum module_kind kind);

/* Adds a tensor of so many bytes to all modules that have it. tied: the one whose memory it is, or NULL. */
void module_add_tensor(struct module *tensor, int64_t bytes, const struct module *tied);

/* Whether a module is `within` or inside of it. */
bool module_is_within(const struct module *module, const struct module *within);

#endif
