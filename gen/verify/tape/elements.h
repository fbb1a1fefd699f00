/* What functions over elements have in common. */
#ifndef ACCEL_VERIFY_TAPE_ELEMENTS_H
#define ACCEL_VERIFY_TAPE_ELEMENTS_H

#include "gen/verify/tape/tape.h"

/* share a + other b, where share and other are constants of the extents of a and b, and other is 1 - share: what has a
 * share of 0 counts for nothing, whatever it is. */
tensor chosen(tensor share, tensor a, tensor other, tensor b);

/* a + b where one of them is 0 in each position: nothing is rounded. */
tensor joined(tensor a, tensor b);

/* Functions of one element; a of scale and shift is their constant, of pow the exponent. Slopes of sigmoid, tanh, exp
 * and the roots are of y, where the others are of x. */
extern const struct unary rule_scale, rule_shift, rule_square, rule_sqrt, rule_rsqrt, rule_exp, rule_log, rule_pow,
    rule_softplus, rule_sin, rule_cos, rule_tanh, rule_sigmoid, rule_silu, rule_gelu, rule_gelu_tanh;

/* x under other extents of as many elements. */
tensor reshaped(tensor x, int rank, const int64_t *dim);

#endif
