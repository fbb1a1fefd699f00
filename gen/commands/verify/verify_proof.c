/* What the program's functions compute, as terms. */
#include "gen/base/file.h"
#include "gen/commands/verify/verify.h"
#include "gen/commands/verify/verify_text.h"
#include "gen/verify/proof/step.h"

/* A term is of the text as one compiler reads it: it is proof of nothing where another one may read something else. */
struct verify_source verify_source(struct verification *verify) {
  struct verify_source source = {{NULL, NULL}, NULL};
  size_t length;
  bool plain;
  source.of.tree = verify_text(verify->arena, verify->options, verify->program, &plain);
  const char *text = read_bytes(verify->arena, verify->program, &length);
  if (!plain) source.why = "the audit finds that its text may be read otherwise";
  if (plain && text != NULL) source.of.directives = lift_directives(verify->arena, source.of.tree, text);
  return source;
}

void verify_prove(struct verification *verify, const struct verify_source *source, const struct kernel *kernel,
                  const struct known_numbers *known, struct kernel_finding *found) {
  const struct function *function = tree_function(source->of.tree, kernel->name);
  const bool run = found->variant >= 0;
  if (run && found->comparison != COMPARED_EQUAL && found->comparison != COMPARED_AGREES) return;
  if (run) found->comparison = COMPARED_AGREES;
  if (source->why != NULL || source->of.directives == NULL || function == NULL) return;
  const char *why = proof_of_kernel(verify->scratch, &source->of, function, kernel, found, known);
  if (why == NULL) found->comparison = COMPARED_EQUAL;
  if (why == NULL && !run) found->formula = "the formula of its name; it was not run, since its arrays are too large";
}

void verify_prove_step(struct verification *verify, const struct verify_source *source) {
  for (int i = 0; step_functions[i].name != NULL && source->why == NULL && source->of.directives != NULL; i++) {
    const struct kernel_finding found = {.comparison = COMPARED_EQUAL, .formula = step_functions[i].what};
    if (tree_function(source->of.tree, step_functions[i].name) == NULL ||
        proof_of_step_function(verify->scratch, &source->of, verify->job, i) != NULL)
      continue;
    verify_note_function(verify, step_functions[i].name, found);
    verify->n_calling--;
    arena_reset(verify->scratch);
  }
}
