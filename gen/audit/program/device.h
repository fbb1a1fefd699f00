/* The device's half of a program for GPUs: the file of kernels, which is read as one program with the host's half. */
#ifndef ACCEL_AUDIT_PROGRAM_DEVICE_H
#define ACCEL_AUDIT_PROGRAM_DEVICE_H

#include "gen/audit/program/claim.h"
#include "gen/audit/program/options.h"

/* A variable that holds a recorded graph, and the function that was recorded. */
struct capture {
  const struct variable *graph;
  struct function *function;
};

/* Built-in variables of a kernel: threadIdx, blockIdx, blockDim, gridDim, each by x, y, z. */
enum { INDEX_THREAD, INDEX_BLOCK, INDEX_BLOCK_SIZE, INDEX_GRID_SIZE, INDEX_NAMES };
enum { INDEX_AXES = 3 };

struct device {
  const char *file;      /* of the kernels */
  struct location where; /* of what follows */
  const char *why;       /* why they are not read; NULL: they are */
  struct variable *index[INDEX_NAMES][INDEX_AXES];
  struct {
    struct capture *items;
    int count, capacity;
  } captures;
  struct function *adds_shards; /* accel_add_shards, which sums by tree call; NULL: the program defines none */
  struct {
    struct function **items;
    int count, capacity;
  } kernels; /* that are launched */
  int n_launches;
};

/* Whether a program hands work to a GPU. */
bool device_is_used(const struct tree *tree);

/* What a name of a device's half ends with, ".cu" or ".hip"; NULL: it is not of one. */
const char *device_ending(const char *file);

/* Reads FILE.cu, or FILE.hip, in the folder of FILE.c and adds its functions and variables to the tree of the host's
 * half. Launches become loops over blocks and threads around a call of the kernel. */
struct device *device_read(struct arena *arena, struct tree *tree, const struct audit_options *options);

/* Links each function that the host's half declares and the device's half defines to its definition (role->elsewhere),
 * and finds the recorded functions. Requires the functions' roles. */
void device_link(struct audit *audit, struct tree *tree);

/* What was recorded for this variable; NULL when it is not known. */
struct function *device_recorded(const struct device *device, const struct variable *graph);

/* Whether a call begins a sum by tree, which calls accel_add_shards. */
bool device_adds_shards(const struct syntax *call);

/* Whether the call records the function that its argument names. */
bool device_records(const struct syntax *call);

/* The claim that both halves are one program. */
void device_claim(struct audit *audit, const struct tree *tree);

#endif
