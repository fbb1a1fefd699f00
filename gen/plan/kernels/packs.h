/* Packs: matmuls that store the weights which they multiply by in a layout of the library's own, from one change of the
 * weights to the next. */
#ifndef ACCEL_PLAN_KERNELS_PACKS_H
#define ACCEL_PLAN_KERNELS_PACKS_H

#include "gen/program/program.h"

/* The variant of such a matmul. */
extern const char packed_variant[];

/* Whether packing can pay for a kernel that a step needs. */
bool can_pack(const struct program *program, const struct step *step, const struct kernel *kernel);

/* Finds the weights of each kernel that packs (kernel->weights) and the memory that they take
 * (program->library.packed).
 */
void plan_packs(struct program *program);

#endif
