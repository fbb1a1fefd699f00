/* Engines of cuDNN for graphs of its operations, by its backend interface: tensors and operations are described one by
 * one, then the graph is made ready with an engine that runs it. */
#ifndef RUNTIME_CUDA_ENGINE_H
#define RUNTIME_CUDA_ENGINE_H

#include "include/accel/gpu/device.h"

#include <cudnn.h>

/* Tensors that a graph is given have numbers from 1 on, what is between operations from VIRTUAL on. */
enum { VIRTUAL = 32 };

typedef cudnnBackendDescriptor_t descriptor;

/* The shape of a tensor and its steps. */
struct extent {
  int64_t length[4], step[4];
};

struct graph {
  const char *name;  /* of what it computes, for messages */
  const char *cure;  /* what to do where no engine runs it, as a sentence */
  int64_t alignment; /* bytes that addresses of its tensors are multiples of */
  descriptor made[384], tensors[VIRTUAL], operations[64];
  int n_made, n_operations;
  int64_t next; /* the number of the next virtual tensor */
};

/* A graph with the engine that runs it. */
struct accel_gpu_engine {
  struct graph graph;
  unsigned avoided; /* bits of cudnnBackendNumericalNote_t: engines with such a note do not do */
  bool falls_back;  /* engines do that are never the fastest, where the heuristic's own do not */
  descriptor plan;
  size_t workspace, own; /* bytes: of the engine, and of tensors in the workspace before it */
  size_t cleared_bytes;  /* of the tensor `cleared`, to be zero when it begins */
  int cleared;
  void *lengths;    /* on the device, freed with the engine; may be NULL */
  float numbers[4]; /* that tensors are, as its maker uses them */
  struct accel_gpu_engine *next;
};

/* ---- Describing ---- */

/* An engine whose graph has nothing in it yet, and this name, cure and alignment. accel_gpu_close frees it, once it is
 * ready. Like all here it ends the process with a message on failure. */
struct accel_gpu_engine *rt_engine_new(const char *name, const char *cure, int64_t alignment);

/* A descriptor of the graph's, which is given back with it. Then its attributes are set, `count` values of a type or
 * one; rt_finish ends its description. */
descriptor rt_describe(struct graph *graph, cudnnBackendDescriptorType_t type);
void rt_set(descriptor of, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
            const void *values);
void rt_set_descriptor(descriptor of, cudnnBackendAttributeName_t name, descriptor value);
void rt_set_type(descriptor of, cudnnBackendAttributeName_t name, cudnnDataType_t type);
void rt_finish(descriptor made);

/* Dense, row after row. */
struct extent rt_extent(int64_t a, int64_t b, int64_t c, int64_t d);

/* Adds a tensor in memory, a float that the host gives, or what is between operations. `id` is from 1 on, below
 * VIRTUAL. */
descriptor rt_graph_tensor(struct graph *graph, int id, cudnnDataType_t type, struct extent extent);
descriptor rt_graph_number(struct graph *graph, int id);
descriptor rt_graph_between(struct graph *graph, cudnnDataType_t type, struct extent extent);

/* Adds an operation, whose description it ends. */
void rt_graph_add(struct graph *graph, descriptor operation);

/* ---- Running ---- */

/* Makes a graph ready whose operations are all there; engine->own bytes of the workspace are its tensors. Takes the
 * first engine of the heuristic that has none of the notes to avoid and works in the rest; ends the process with a
 * message that names the graph where there is none. */
void rt_engine_ready(struct accel_gpu_engine *engine);

/* Runs it. values[id] is the address of a tensor, NULL: it has none. */
void rt_engine_run(const struct accel_gpu_engine *engine, accel_stream stream, const void *const values[VIRTUAL]);

#endif
