/* Figures: what a program costs, counted from its plan. */
#ifndef ACCEL_PLAN_REPORT_FIGURES_H
#define ACCEL_PLAN_REPORT_FIGURES_H

#include "gen/program/program.h"

/* Fills the figures of the program: parameters, operations, bytes (bytes.h), and what its data must stay below. */
void count_figures(struct program *program);

/* Operations of one run of a function without those of the functions that it calls: all, or only matmuls.
 */
double function_own_flops(const struct function *function, bool matmuls);

#endif
