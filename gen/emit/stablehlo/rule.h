/* Rule: the C of an optimizer's update, as a template writes it for a device that takes a module, read and written as
 * operations on tensors. So a rule has one spelling for all devices.
 *
 * The text has a function `update`, whose loop over i is what happens to an element: declarations of floats,
 * and assignments to element i of the function's arrays. In it `gradients`, `factor` and the arrays are known; every
 * other name is a number of the step, which the host computes. A function `clip_factor` of a double, with
 * one return, is the factor of gradients of that norm. */
#ifndef ACCEL_EMIT_STABLEHLO_RULE_H
#define ACCEL_EMIT_STABLEHLO_RULE_H

#include "gen/base/diag.h"
#include "gen/stablehlo/step.h"

/* Reads it. The rule's arrays are what `update` takes by a pointer to floats that are not constant, in the order of its
 * parameters; its numbers are in the order in which the loop uses them. NULL with an error where the text has what
 * tensors have no operation for. */
const struct hlo_rule *rule_read(struct arena *arena, const char *text, struct diagnostics *diags);

#endif
