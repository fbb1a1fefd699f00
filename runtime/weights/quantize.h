/* Weights of codes of 4 and 8 bits (include/accel/quantized_gemm.h), and the floats that they stand for: made of
 * floats, to the bit as bitsandbytes' quantize_4bit and int8_vectorwise_quant make them without a GPU's or a
 * processor's own code (backends/default), or as runtime/base/linear_codes.h says. */
#ifndef RUNTIME_WEIGHTS_QUANTIZE_H
#define RUNTIME_WEIGHTS_QUANTIZE_H

#include "include/accel/trainer.h"
#include "runtime/weights/sources.h"
#include "runtime/weights/tensors.h"

/* The weight that a tensor is the codes or scales of; NULL: of none. */
const struct accel_quantized *rt_quantized_of(const struct accel_program *program, int tensor);

/* The weight in floats, as a file may have it. Its name is that of the program's tensor. */
struct accel_tensor rt_quantized_source(const struct accel_program *program, const struct accel_quantized *quantized);

/* Whether what a file has of a weight is codes. NULL, which is what it lacks, is none. */
bool rt_has_codes(const struct named_tensor *found);

/* What a weight is quantized of: read() gives rows [row, row + rows) of [out][in]. */
struct rt_rows {
  void (*read)(const void *context, int64_t row, int64_t rows, float *values);
  const void *context;
};

/* Writes the codes and scales of a weight to where the program has them from `weights` on. About a MiB of it is in
 * floats at a time, and at least 64 rows. The offset of nested scales, their mean, is summed in float64. */
void rt_quantize(const struct accel_program *program, const struct accel_quantized *quantized,
                 const struct rt_rows *rows, void *weights);

/* In place of the codes of a list, which are the tensors of a model at `weights`, has the weights themselves written,
 * in float32 and as a file has them, and leaves out the scales. False with *problem: no memory. */
bool rt_tensors_dequantize(const struct accel_program *program, const void *weights, struct tensor_list *tensors,
                           struct problem *problem);

/* Whether a tensor of the program is scales of codes, by its name. */
bool rt_is_scale(const struct accel_program *program, const char *name);

#endif
