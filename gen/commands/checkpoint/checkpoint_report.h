/* What `accel-gen checkpoint` reports: each report is a JSON object (the reader frees it), or NULL with a problem.
 * `shown`: the terminal at whose end progress is shown; NULL: none is. */
#ifndef ACCEL_COMMANDS_CHECKPOINT_CHECKPOINT_REPORT_H
#define ACCEL_COMMANDS_CHECKPOINT_CHECKPOINT_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "gen/base/arena.h"
#include "runtime/base/problem.h"

/* The checkpoints of a project's folder: {checkpoints: [{path, step, bytes} or {path, damage}], whole: how many}. */
json_t *checkpoint_list(const char *folder, FILE *shown, struct problem *problem);

/* Whether all files of one are as they were written: {path, step, files, bytes}. */
json_t *checkpoint_verify(const char *folder, FILE *shown, struct problem *problem);

/* Files and tensors: {path, step, files: [{name, bytes, xxh64, tensors: [{name, dtype, shape}]}]}; only safetensors
 * have `tensors`. */
json_t *checkpoint_show(const char *folder, FILE *shown, struct problem *problem);

/* Writes the tensors of a folder, an index or a file as one file: {output, tensors, files}. */
json_t *checkpoint_merge(const char *path, const char *output, FILE *shown, struct problem *problem);

/* In what two checkpoints differ: {a, b, equal, steps: [a, b], values: [{file, key, a, b}], files: [{name, only} or
 * {name}], tensors: {equal, different: [...]}}. A tensor that differs is {file, name, only: "a" or "b"}, {file, name,
 * a, b} with its types and shapes, or {file, name, elements, different, largest}, the last being the largest difference
 * of two elements (null where one is not a number). Both are verified first. */
json_t *checkpoint_diff(struct arena *arena, const char *a, const char *b, FILE *shown, struct problem *problem);

#endif
