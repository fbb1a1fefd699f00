/* Choose: of several ways to compute the same, the one that a program takes: the fastest that was measured on the
 * machine (gen/tuning/tuning.h), else the first, which its rule has put there. */
#ifndef ACCEL_PLAN_CHOOSE_H
#define ACCEL_PLAN_CHOOSE_H

#include <jansson.h>

#include "gen/plan/program.h"

/* The way that is taken for `subject`, one of `ways` (n_ways, at least one; the words are kept), and notes the choice
 * in program->choices where there is more than one. `what`: what is chosen, for people. */
const char *choose(struct program *program, const char *subject, const char *what, const char *const *ways, int n_ways);

/* The threads of a process as a table counts them: the job's, else the cores of the table's machine. */
int64_t tuned_threads(const struct program *program);

/* The choices as lines for people, "" where there are none; and as a list of objects {of, subject, chooses, way,
 * ways, by}, by: "rule", or "measurement" with {seconds: {way: of one execution}}. */
const char *choices_text(const struct program *program);
json_t *choices_json(const struct program *program);

#endif
