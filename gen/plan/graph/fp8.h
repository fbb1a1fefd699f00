/* fp8: linear layers whose products are of numbers of 8 bits (precision.mixed_precision: fp8).
 *
 * The product x W of a layer becomes fp8_matmul of both rounded (gen/ops/fp8.c), with a scale for each tensor. By
 * precision.fp8.backend `ao` a scale is of the tensor at hand; by `te` of those before it, in buffers
 * MODULE.fp8_scale_T and MODULE.fp8_amax_history_T for T input, weight and grad_output. By the recipes of rows and of
 * blocks it becomes fp8_group_matmul of both as they are, which rounds them (gen/ops/fp8_groups.c). */
#ifndef ACCEL_PLAN_GRAPH_FP8_H
#define ACCEL_PLAN_GRAPH_FP8_H

#include "gen/base/diag.h"
#include "gen/ir/builder.h"
#include "gen/program/program.h"

/* After freeze, before cast. False with an error at the job's line when no layer is left, or where a weight has two
 * products and a history only one. */
bool round_to_fp8(struct program *program, struct builder *builder, struct diagnostics *diags);

/* After differentiate: makes each fp8_matmul a matmul in float32 and a division by both scales, and each
 * fp8_group_matmul one of both factors rounded. */
void write_fp8_products(struct program *program, struct builder *builder);

/* After cast: takes out those of layers in 8 bits whose inputs have the type by now, before a backward reads them. */
void drop_idle_casts(struct program *program);

#endif
