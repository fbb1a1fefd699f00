/* Prints the functions of a trainer that are proved to be the formula of their name, and whether its update is that of
 * its job's optimizer. None is run: test_proofs.py. usage: prove TRAINER JOB CONSTANT... */
#include <stdio.h>
#include <stdlib.h>

#include "gen/base/file.h"
#include "gen/c/parse.h"
#include "gen/verify/proof/step.h"
#include "gen/verify/proof/update.h"

int main(int argc, char **argv) {
  struct arena *arena = arena_new(), *scratch = arena_new();
  struct diagnostics unread = diagnostics_in(arena);
  static const char *const flags[] = {"-std=c17", "-D_OPENMP=201511", "-Wno-everything", "-Iinclude"};
  double constants[40];
  size_t length;
  for (int i = 3; i < argc && i < 43; i++) constants[i - 3] = strtod(argv[i], NULL);
  const struct parse_request request = {.file = argv[1], .flags = flags, .n_flags = 4, .tokens = true};
  const struct tree *tree = argc > 1 ? tree_parse(arena, &request, &unread) : NULL;
  const char *text = tree != NULL && !tree_has_errors(tree) ? read_bytes(arena, argv[1], &length) : NULL;
  const struct job *job = argc > 2 ? job_read(arena, argv[2], NULL, 0, &unread) : NULL;
  if (text == NULL || job == NULL) return 2;
  const struct proof_source source = {tree, lift_directives(arena, tree, text)};
  const struct known_numbers known = {.constants = constants, .n_constants = argc - 3};
  for (int i = 0; i < tree->n_functions; i++) {
    struct kernel kernel;
    struct kernel_finding any = {.variant = -1};
    if (!kernel_from(tree, tree->functions[i], &kernel)) continue;
    const char *why = proof_of_kernel(scratch, &source, tree->functions[i], &kernel, &any, &known);
    printf("%s %s %d\n", why == NULL ? "equal" : "not", kernel.name, any.variant);
    if (why != NULL) fprintf(stderr, "%s: %s\n", kernel.name, why);
    arena_reset(scratch);
  }
  for (int i = 0; step_functions[i].name != NULL; i++) {
    if (tree_function(tree, step_functions[i].name) == NULL) continue;
    const char *why = proof_of_step_function(scratch, &source, job, i);
    printf("%s %s 0\n", why == NULL ? "equal" : "not", step_functions[i].name);
    if (why != NULL) fprintf(stderr, "%s: %s\n", step_functions[i].name, why);
    arena_reset(scratch);
  }
  const char *why = proof_of_update(scratch, &source, job);
  printf("%s update 0\n", why == NULL ? "equal" : "not");
  if (why != NULL) fprintf(stderr, "update: %s\n", why);
  arena_free(scratch);
  arena_free(arena);
  return 0;
}
