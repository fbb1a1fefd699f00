/* Errors of evaluation and its limits. */
#include "gen/model/evaluate.h"

void evaluate_fail(struct evaluator *evaluator, struct location where, const char *help, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const char *message = arena_vprintf(evaluator->arena, format, args);
  va_end(args);
  diag_error(evaluator->diags, where, "%s", message);
  if (help != NULL) diag_help(evaluator->diags, "%s", help);
  struct location last = {0};
  for (const struct activation *at = evaluator->activation; at != NULL && at->caller != NULL; at = at->caller) {
    /* A recursion shows once. */
    bool again = last.line == at->call_site.line && last.column == at->call_site.column;
    if (!again) diag_note(evaluator->diags, at->call_site, "in '%s', called here", at->function->name);
    last = at->call_site;
  }
  evaluate_stop(evaluator);
}

void evaluate_stop(struct evaluator *evaluator) {
  longjmp(evaluator->failure, 1);
}

enum { MOST_STEPS = 4000000 };

void evaluate_step(struct evaluator *evaluator, struct location where, int64_t cost) {
  evaluator->steps += cost;
  if (evaluator->steps > MOST_STEPS)
    evaluate_fail(evaluator, where, "a loop may have no end, or its bound comes from a wrong number of model.config",
                  "the model is still not read after %d steps", (int)MOST_STEPS);
}
