/* The modules of a training program, and what its C must know of them. */
#ifndef ACCEL_EMIT_STABLEHLO_PROGRAM_H
#define ACCEL_EMIT_STABLEHLO_PROGRAM_H

#include "gen/base/diag.h"
#include "gen/program/program.h"
#include "gen/stablehlo/step.h"

/* What the host computes for each step, by their names in a rule; a row of them for each range that it treats alike. */
struct step_numbers {
  const char *const *names;
  int count, rows;
};

struct step_modules {
  const char *main;        /* a step of training (gen/stablehlo/step.h), or what another program runs */
  const char *second;      /* of a trainer, a batch of an evaluation; of text, one position; NULL: none */
  const char *second_name; /* what its file has in its name: "evaluation", "step" */
  struct step_numbers numbers[HLO_RULES]; /* of each rule; none: the optimizer has no such rule */
  int whole;                              /* so many of the states are whole on each device; others are divided */
  bool random, evaluation_random;         /* the modules take keys of random numbers */
};

/* Makes the modules of a trainer, whose graph was differentiated. `rule`: the C of its optimizer's update (rule.h). The
 * evaluation gives the loss and, where the program has them, what that is a mean over, and the predictions. False with
 * an error. */
bool step_modules_make(const struct program *program, const char *rule, struct step_modules *made,
                       struct diagnostics *diags);

/* Makes the module of a program that evaluates, which is a trainer's evaluation. */
bool forward_module_make(const struct program *program, struct step_modules *made, struct diagnostics *diags);

/* Makes those of a program that writes text: over several positions and, where what they need of earlier ones is kept,
 * over one. They give the logits and the new values of what they keep, which is donated. */
bool text_modules_make(const struct program *program, struct step_modules *made, struct diagnostics *diags);

#endif
