/* Tensors of which ranks along an axis of the mesh have parts, or of which each has some: where what a rank has is in
 * the whole. Files have whole tensors, all of them, so that they do not depend on who divided what. */
#ifndef RUNTIME_WEIGHTS_TENSOR_PARTS_H
#define RUNTIME_WEIGHTS_TENSOR_PARTS_H

#include "include/accel/trainer.h"
#include "runtime/base/problem.h"
#include "runtime/weights/weights.h"

/* Whether ranks have parts of tensors, or some of the tensors each. */
bool rt_divides_tensors(const struct accel_program *program);

/* The program with the whole tensors of all ranks, one after the other in the order of the model, in place of a rank's,
 * and with its leading states, which belong
 * to parameters, divided; itself where ranks divide no tensor. A slice of such a state has its parameter's shape, and
 * then its parameter's position. After rt_layers_expand. What it makes belongs to the process, which has one program.
 * NULL and a problem: there is no memory. */
const struct accel_program *rt_tensor_parts_join(const struct accel_program *program, struct problem *problem);

/* The program of a rank's own tensors, of which this one was made; itself where ranks divide no tensor. */
const struct accel_program *rt_rank_program(const struct accel_program *program);

/* Whether this rank has a tensor of the rank's own program, or with `first` is the first along ep and pp of those that
 * have it. */
bool rt_tensor_is_here(const struct accel_program *program, int tensor, bool first);

/* Collects what the ranks have of a divided state, own[state], into `whole` of rank 0 (NULL on the others), or gives
 * each rank its own. All ranks call it. */
void rt_tensor_parts_collect(const struct accel_program *program, int state, char *const *own, char *whole);
void rt_tensor_parts_scatter(const struct accel_program *program, int state, char *own, const char *whole);

/* Fills this rank's parts of the weights, `own`, with what a file has of these, and reads no more of it than that. What
 * the job initializes is made whole first, in memory that is freed. A problem: there is none for it. */
bool rt_tensor_parts_read(const struct accel_program *program, const struct weights_file *file, char *own,
                          struct problem *problem);

/* Fills values with what this rank has of tensor `tensor` of its own program (rt_rank_program), and gives the memory
 * of the mapped file back. False: there is no memory for what the job initializes. */
bool rt_tensor_part_read(const struct accel_program *program, const struct weights_file *file, int tensor,
                         float *values);

#endif
