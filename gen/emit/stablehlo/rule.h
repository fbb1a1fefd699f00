/* Rule: the C of an optimizer's update, as a template writes it for a device that takes a module, read and written as
 * operations on tensors. So a rule has one spelling for all devices.
 *
 * The text has one of these functions or both:
 *
 *   update         whose loop over i is what happens to an element: declarations of floats, and assignments to element
 * i of arrays. In it `gradients`, `factor` and the arrays are known; every other name is a number of the step, which
 * the host computes. update_tensor  steps a parameter as a whole. It calls functions of the text. `tensor` has its
 * extents: what depends on these alone, such as a condition, is known when the rule is written. Loops are over `count`
 *                  elements, `matrices`, `rows` or `columns`, or so many rounds; a sum over elements is added up in a
 *                  variable that is declared outside of their loop. Numbers of the step are external variables, other
 *                  members of `tensor`, and a call of `weight_decay`. `matmul` is c = a b + beta c of matrices, each as
 *                  it is ('N') or transposed ('T').
 *
 * Each index of an array names the element of the loops around it. A function `clip_factor` of a double, with one
 * return, is the factor of gradients of that norm. */
#ifndef ACCEL_EMIT_STABLEHLO_RULE_H
#define ACCEL_EMIT_STABLEHLO_RULE_H

#include "gen/base/diag.h"
#include "gen/stablehlo/step.h"

/* Reads it, and sets the rules of the step, with one row of numbers each, and the factor of its gradients. The numbers
 * of a rule are in the order in which it uses them. False with an error where the text is no C; where it has what
 * tensors have no operation for, the module's writing fails. */
bool rule_read(struct arena *arena, const char *text, struct hlo_step *step, struct diagnostics *diags);

#endif
