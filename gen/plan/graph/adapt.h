/* Adapt: low-rank adapters next to matmuls with frozen weights (Hu et al., "LoRA: Low-Rank Adaptation of Large Language
 * Models", arXiv:2106.09685), as PEFT's LoraConfig has them: y = x W + s dropout(x) A^T B^T with A [rank][in] and
 * B [out][rank], s = alpha / rank, or alpha / sqrt(rank) with use_rslora (arXiv:2312.03732). */
#ifndef ACCEL_PLAN_GRAPH_ADAPT_H
#define ACCEL_PLAN_GRAPH_ADAPT_H

#include "gen/base/diag.h"
#include "gen/ir/builder.h"
#include "gen/program/program.h"

/* Puts the adapters of model.lora into the graph as the reader made it, and lists them. False with an error at the
 * job's line when a target names no module with a matmul. */
bool adapt(struct program *program, struct builder *builder, struct diagnostics *diags);

#endif
