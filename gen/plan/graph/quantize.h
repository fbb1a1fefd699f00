/* Quantize: weights of linear layers that a program holds in codes of 4 or 8 bits (model.quantize, bitsandbytes'
 * Linear4bit and Linear8bitLt, torchao's and GGUF's codes).
 *
 * A parameter MODULE.weight that is the right factor of matmuls and nothing else becomes buffers: its codes, which keep
 * its name, and its scales, MODULE.weight_nf4_absmax and, with double quantization, MODULE.weight_nf4_nested_absmax
 * and MODULE.weight_nf4_nested_offset, of FP4 with that name; of 8 bits MODULE.SCB; of torchao's
 * MODULE.weight_int8_scale or MODULE.weight_int4_scale_and_zero, and of GGUF's none. Its matmuls become
 * quantized_matmul, int8_matmul or gguf_matmul. So all that follows treats codes and scales as what they are, arrays of
 * the arena that nothing trains.
 */
#ifndef ACCEL_PLAN_GRAPH_QUANTIZE_H
#define ACCEL_PLAN_GRAPH_QUANTIZE_H

#include "gen/base/diag.h"
#include "gen/ir/builder.h"
#include "gen/program/program.h"

/* After adapt and freeze. Fills program->quantized and program->unquantized. False with an error at the job's line when
 * a name is of no linear layer, when there is none to quantize, or when the job trains one. */
bool quantize(struct program *program, struct builder *builder, struct diagnostics *diags);

#endif
