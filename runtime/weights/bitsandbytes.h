/* bitsandbytes' own layout of weights of 4-bit codes in files, as transformers saves and opens them. Of MODULE.weight,
 * which has the codes, there are
 *
 *   MODULE.weight.absmax                         its scales: floats, or with double quantization codes of 8 bits
 *   MODULE.weight.nested_absmax                  the scales of these
 *   MODULE.weight.quant_map, .nested_quant_map   what codes of 4 and of 8 bits stand for
 *   MODULE.weight.quant_state.bitsandbytes__nf4  JSON: the shape, block sizes, nested_offset; of FP4 with that name
 *
 * Of 8 bits a program's own names are bitsandbytes', which adds MODULE.weight_format. */
#ifndef RUNTIME_WEIGHTS_BITSANDBYTES_H
#define RUNTIME_WEIGHTS_BITSANDBYTES_H

#include "include/accel/trainer.h"
#include "runtime/weights/safetensors.h"
#include "runtime/weights/tensors.h"

/* Writes the name that scales of the program have in the layout, and returns it; that of the JSON for an offset. NULL:
 * the tensor is none, or has no other name there. */
const char *rt_layout_name(const struct accel_program *program, int tensor, char *name, size_t size);

/* The name of the JSON of a weight of the program. */
const char *rt_layout_state(const struct accel_program *program, const struct accel_quantized *quantized, char *name,
                            size_t size);

/* Whether a tensor is what the layout has of the weight besides its codes and scales. */
bool rt_layout_has(const char *tensor, const char *weight);

/* Whether a tensor is such JSON, by its name. */
bool rt_is_layout_state(const char *tensor);

/* Whether the JSON is of codes as the program has them, and the offset of their nested scales, into *offset; false with
 * *problem. */
bool rt_layout_read(const struct accel_quantized *quantized, const struct stored_tensor *state, const char *path,
                    float *offset, struct problem *problem);

/* Makes the tensors of a model at `weights`, by the program's names, those of the layout. False with *problem: no
 * memory. */
bool rt_tensors_lay_out(const struct accel_program *program, const void *weights, struct tensor_list *tensors,
                        struct problem *problem);

#endif
