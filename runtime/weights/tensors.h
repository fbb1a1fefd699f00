/* Tensors in memory, by name: what a safetensors file is written from and read into. */
#ifndef RUNTIME_WEIGHTS_TENSORS_H
#define RUNTIME_WEIGHTS_TENSORS_H

#include "include/accel/trainer.h"
#include "runtime/base/problem.h"
#include "runtime/files/scratch.h"

#include <stddef.h>
#include <stdint.h>

struct tensor_view {
  char *name;
  enum accel_dtype dtype;
  int rank;
  int64_t shape[8];
  char *bytes;
  size_t size, position; /* position: by which tensors of a list are sorted */
  /* Makes the `size` bytes that are written of it, where these are not at `bytes`, of `source`; false: no memory. NULL:
   * they are at `bytes`. */
  bool (*make)(const struct tensor_view *tensor, void *out);
  void *source;
  const struct scratch *scratch; /* the file that `bytes` are mapped from, by which they move; NULL: none */
  void (*release)(void *source); /* frees `source`, with the list; NULL: free() does */
};

struct tensor_list {
  struct tensor_view *items;
  int count;
};

/* The tensors that a program keeps in one file of its checkpoints ("model"), in the order of their bytes; arrays[i] is
 * where its states[i] is, in the arena or in a copy; NULL: only names and shapes are needed, in the order of names. A
 * parameter itself, where it is not streamed, is called by its name, a state of one "state.NAME.exp_avg", as PyTorch
 * flattens an optimizer's, and what belongs to no parameter by the state's name. */
bool rt_tensors_of_state(struct tensor_list *list, const struct accel_program *program, const char *file,
                         char *const *arrays, struct problem *problem);

/* Adds the parameters that are streamed (streamed.h), which no checkpoint has, since no run changes them: layer by
 * layer, made as the file that the run started from has them. */
bool rt_tensors_add_streamed(struct tensor_list *list, const struct accel_program *program, struct problem *problem);

/* What this rank has of them, where ranks divide them and own[i] is its part of states[i]: "NAME[FIRST:END]", some
 * elements in a row. once: of what several ranks have, what the first of them has. */
bool rt_tensors_of_rank(struct tensor_list *list, const struct accel_program *program, const char *file,
                        char *const *own, bool once, struct problem *problem);

void rt_tensors_free(struct tensor_list *list);

/* Bytes of a state's array. */
size_t rt_state_bytes(const struct accel_state *state);

/* As safetensors spells it: "F32". */
const char *rt_dtype_name(enum accel_dtype dtype);

#endif
