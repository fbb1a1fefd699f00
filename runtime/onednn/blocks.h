/* Weights in the layout that oneDNN's products of processors with AVX-512 take, faster than by its own reorder. */
#ifndef RUNTIME_ONEDNN_BLOCKS_H
#define RUNTIME_ONEDNN_BLOCKS_H

#include "include/accel/product.h"
#include "runtime/onednn/onednn.h"

/* Whether `working` is that layout of the weights of a product, and rt_pack_blocks knows how they lie. */
bool rt_has_blocks(const struct accel_product *product, rt_described working);

/* Packs the product's weights: [columns / 64][depth / 16][16][64] words of 32 bits, a float or two elements of 16 bits
 * that follow each other along the depth; zeros behind the last. */
void rt_pack_blocks(const struct accel_product *product, void *to, const void *from);

#endif
