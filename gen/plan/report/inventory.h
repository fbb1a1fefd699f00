/* Inventory: what a model is made of: its parameters, what it takes, and the work of each of its functions. */
#ifndef ACCEL_PLAN_REPORT_INVENTORY_H
#define ACCEL_PLAN_REPORT_INVENTORY_H

#include <jansson.h>

#include "gen/program/program.h"

/* Of a program that only runs the model forward: tables of the parameters (name, shape, type, start, count), of the
 * inputs, and of the functions with how often each runs, and with its own operations for each sample or token, without
 * those of the functions that it calls; totals below. */
const char *inventory_text(const struct program *program);

/* The same as one JSON object: parameters [{name, shape, dtype, init, a, b, count, buffer}], total, tied, bytes, inputs
 * [{name, shape, dtype}], unit ("token" or "sample"), functions [{name, line, runs, flops, matmul_flops}],
 * flops_per_unit, matmul_flops_per_unit. `tensors` and `logits` become its members of these names; NULL: none. */
const char *inventory_json(const struct program *program, json_t *tensors, json_t *logits);

#endif
