#include "gen/audit/audit.h"

#include <string.h>

#include "gen/audit/calls.h"
#include "gen/audit/interp/interp.h"
#include "gen/audit/machine/linked.h"
#include "gen/audit/machine/machine.h"
#include "gen/audit/module.h"
#include "gen/audit/program/device.h"
#include "gen/audit/tables.h"
#include "gen/audit/text/compile_command.h"
#include "gen/audit/text/hidden.h"
#include "gen/audit/text/reading.h"
#include "gen/base/path.h"
#include "gen/c/parse.h"

/* A program that does not compile cannot be audited; its warnings are the compiler's matter. */
static bool is_readable(const struct tree *tree, struct diagnostics *diags) {
  for (int i = 0; i < tree->n_messages; i++)
    if (tree->messages[i].severity == SEVERITY_ERROR)
      diag_error(diags, tree->messages[i].where, "%s", tree->messages[i].text);
  if (tree->deep.line > 0) diag_error(diags, tree->deep, "nested too deep to audit");
  return !tree_has_errors(tree) && tree->deep.line == 0;
}

/* The host's half of a program names the functions of the device's, which is read with it. */
static bool is_device_half(const char *file, struct diagnostics *diags) {
  const char *ending = device_ending(file);
  if (ending == NULL) return false;
  diag_error(diags, (struct location){.file = file},
             "this is the device's half of a program, which is audited as a whole");
  diag_help(diags, "accel-gen audit %.*s.c reads both", (int)(strlen(file) - strlen(ending)), file);
  return true;
}

static struct tree *read_program(struct arena *arena, const char *file, const struct audit_options *options,
                                 struct diagnostics *diags) {
  /* As it is built: what -fopenmp defines is said here, so that libclang sees the loops and not OpenMP's forms. */
  static const char *const own_flags[] = {"-std=c17", "-O2", "-D_OPENMP=201511", "-Wno-everything"};
  enum { OWN_FLAGS = sizeof own_flags / sizeof own_flags[0] };
  const char **flags = arena_alloc(arena, (size_t)(OWN_FLAGS + options->n_flags) * sizeof *flags);
  memcpy(flags, own_flags, sizeof own_flags);
  if (options->n_flags > 0) memcpy(flags + OWN_FLAGS, options->flags, (size_t)options->n_flags * sizeof *flags);
  struct parse_request request = {
      .file = file, .text = options->text, .flags = flags, .n_flags = OWN_FLAGS + options->n_flags, .tokens = true};
  if (is_device_half(file, diags)) return NULL;
  struct tree *tree = tree_parse(arena, &request, diags);
  return tree != NULL && is_readable(tree, diags) ? tree : NULL;
}

/* Without a step path, the claims about it cannot be decided. */
static void report_missing(struct audit *audit) {
  static const char *const of_all[] = {"step-path-found", "no-recursion", "no-indirect-call",
                                       "runtime-alone",   "one-reading",  "nothing-hidden",
                                       "main-alone",      "tables-fit",   "plain-command"};
  for (int i = 0; audit->root == NULL && i < audit->n_claims; i++) {
    struct claim *claim = &audit->claims[i];
    bool of_step = true;
    for (size_t j = 0; j < sizeof of_all / sizeof of_all[0]; j++)
      of_step = of_step && strcmp(of_all[j], claim->id) != 0;
    if (of_step)
      claim_finding(audit, claim, VERDICT_CANNOT_TELL, (struct location){.file = audit->tree->file},
                    "there is no step path to look at");
  }
}

static struct audit *begin(struct arena *arena, struct tree *tree, const struct audit_options *options) {
  struct audit *audit = arena_alloc(arena, sizeof *audit);
  if (device_is_used(tree)) audit->device = device_read(arena, tree, options);
  audit->arena = arena;
  audit->tree = tree;
  audit->scope = "on the step path";
  audit->marks = marks_of(arena, tree);
  for (int i = 0; i < tree->n_functions; i++)
    tree->functions[i]->role = arena_alloc(arena, sizeof *tree->functions[i]->role);
  if (audit->device != NULL) device_link(audit, tree);
  calls_mark(audit, tree, options->root);
  return audit;
}

struct audit *audit_calls(struct arena *arena, const char *file, const struct audit_options *options,
                          struct diagnostics *diags) {
  struct tree *tree = read_program(arena, file, options, diags);
  return tree == NULL ? NULL : begin(arena, tree, options);
}

struct audit *audit_text(struct arena *arena, const char *file, const struct audit_options *options,
                         struct diagnostics *diags) {
  struct audit *audit = audit_calls(arena, file, options, diags);
  if (audit == NULL) return NULL;
  reading_check(audit, audit->tree);
  hidden_check(audit, audit->tree);
  return audit;
}

struct audit *audit_run(struct arena *arena, const char *file, const struct audit_options *options,
                        struct diagnostics *diags) {
  struct tree *tree = read_program(arena, file, options, diags);
  if (tree == NULL) return NULL;
  struct audit *audit = begin(arena, tree, options);
  calls_check(audit, tree);
  device_claim(audit, tree);
  reading_check(audit, tree);
  hidden_check(audit, tree);
  compile_command_check(audit, options);
  tables_check(audit, tree);
  if (!interp_check(audit, tree)) {
    diag_error(diags, (struct location){.file = file}, "following it does not end within %d statements",
               (int)INTERP_MAX_STEPS);
    return NULL;
  }
  module_check(audit, tree, options);
  report_missing(audit);
  if (options->object == NULL) return audit;
  const bool good =
      linked_is_program(options->object) ? linked_check(audit, options, diags) : machine_check(audit, options, diags);
  return good ? audit : NULL;
}
