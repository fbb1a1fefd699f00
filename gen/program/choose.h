/* Choose: of several variants of a computation, the one that a program takes: the fastest that was measured on the
 * machine (gen/tuning/tuning.h), else the first, which its rule has put there. */
#ifndef ACCEL_PROGRAM_CHOOSE_H
#define ACCEL_PROGRAM_CHOOSE_H

#include <jansson.h>

#include "gen/program/program.h"

/* Selects the variant for `subject`, one of `variants` (n_variants, at least one; the words are stored), and notes the
 * choice in program->choices if there is more than one. `what`: what is selected, human-readable. */
const char *choose(struct program *program, const char *subject, const char *what, const char *const *variants,
                   int n_variants);

/* The threads of a process as a table counts them: the job's, else the cores of the table's machine. */
int64_t tuned_threads(const struct program *program);

/* The choices, a line each with what is taken, of which alternatives, and what was measured of them; "" if there are
 * none. And as a list of objects {of, subject, selects, variant, variants, by}, by: "rule", or "measurement" with
 * {seconds: {variant: of one execution}}. */
const char *choices_text(const struct program *program);
json_t *choices_json(const struct program *program);

#endif
