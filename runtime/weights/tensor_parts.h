/* Tensors of which ranks along an axis of the mesh have parts: where a rank's parts lie in the whole. Files have whole
 * tensors, so that they do not depend on who divided what. */
#ifndef RUNTIME_WEIGHTS_TENSOR_PARTS_H
#define RUNTIME_WEIGHTS_TENSOR_PARTS_H

#include "include/accel/trainer.h"
#include "runtime/base/problem.h"

/* A tensor in elements of the weights' array. Piece p of rank r is at `whole + (p * ranks + r) * length` of the whole
 * and at `own + p * length` of its rank's. */
struct tensor_part {
  enum accel_axis axis;
  size_t ranks; /* 1: each rank has the whole */
  size_t own, whole;
  size_t pieces, length;
};

/* The program with whole tensors, one after the other, in place of a rank's, and all of its states divided; itself
 * where ranks divide no tensor. After rt_layers_expand. What it makes belongs to the process, which has one program.
 * NULL and a problem: there is no memory. */
const struct accel_program *rt_tensor_parts_join(const struct accel_program *program, struct problem *problem);

/* Collects what the ranks have of an array like the weights, of elements of `size` bytes, into `whole` of rank 0 (NULL
 * on the others), or gives each rank its own. All ranks call it. */
void rt_tensor_parts_collect(const struct accel_program *program, const char *own, char *whole, size_t size);
void rt_tensor_parts_deal(const struct accel_program *program, char *own, const char *whole, size_t size);

#endif
