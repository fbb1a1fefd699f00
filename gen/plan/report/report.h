/* Report: the plan's figures, as text and as JSON. */
#ifndef ACCEL_PLAN_REPORT_REPORT_H
#define ACCEL_PLAN_REPORT_REPORT_H

#include <jansson.h>

#include "gen/program/program.h"

/* Lines: model, step, memory, precision where it is not float32, traffic. */
const char *report_text(const struct program *program);

/* One line: "4 layers, 0.83 M parameters, float32": what its matmuls are made of. */
const char *report_summary(const struct program *program);

/* The same figures as one JSON object: precision, parameters, flops_per_step, matmul_flops_per_step, samples_per_step,
 * tokens_per_step, arena_bytes {weights, gradients, optimizer, activations, scratch, batch, total}. `predicted`,
 * `search` and `data` become its members of these names; NULL: none. */
const char *report_json(const struct program *program, json_t *predicted, json_t *search, json_t *data);

/* What memory is made of: "weights 3.2 MiB, ...". */
const char *classes_text(struct arena *arena, const struct memory_bytes *bytes);

#endif
