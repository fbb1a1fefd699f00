/* The program's update of the weights, by itself: from weights, gradients and states of its own. */
#include <math.h>
#include <string.h>
#include <sys/wait.h>

#include "gen/base/text.h"
#include "gen/commands/verify/verify.h"
#include "gen/verify/proof/update.h"

/* The factors of the gradient in the updates that are run. */
static const double factors[] = {1, 0.75};

/* The steps: an early one and a late one, since some formulas differ there, and neither the first, in which states that
 * are not 0 have no meaning. */
static int64_t step_of(const struct job *job, int k) {
  const int64_t last = job->training.steps - 1, late = 40;
  return k == 0 ? 1 : last < late ? last : late;
}

static int updates_of(const struct job *job) {
  return job->training.steps < 2 ? 0 : job->training.steps < 4 ? 1 : 2;
}

/* Whether a record, or an unnamed one in it, has a member of the name. */
static bool has_member(const struct type *record, const char *name) {
  for (int i = 0; i < record->n_members; i++) {
    const struct member *member = &record->members[i];
    if (strcmp(member->name, name) == 0) return true;
    if (member->name[0] == '\0' && has_member(member->type, name)) return true;
  }
  return false;
}

static bool has_arrays(const struct tree *tree) {
  const struct variable *arena = tree_variable(tree, "arena");
  const struct type *type = arena != NULL && arena->type->kind == TYPE_POINTER ? arena->type->element : NULL;
  return type != NULL && has_member(type, "all_gradients") && has_member(type, "weights");
}

/* Whether the parameters are a step, its rate and, maybe, a factor of the gradient. */
static bool is_called(const struct function *update) {
  static const enum type_kind kinds[] = {TYPE_INTEGER, TYPE_REAL, TYPE_REAL};
  static const int64_t sizes[] = {8, 8, 4};
  const int count = update->n_parameters;
  for (int i = 0; i < count && i < 3; i++)
    if (update->parameters[i]->type->kind != kinds[i] || update->parameters[i]->type->size != sizes[i]) return false;
  return count == 2 || count == 3;
}

static const char *why_not(const struct job *job, const struct tree *tree) {
  const struct function *update = tree_function(tree, "update");
  const struct variable *program = tree_variable(tree, "program");
  if (update == NULL || update->body == NULL || !is_called(update)) return "there is no function update(at, lr)";
  if (job->optimizer.name == OPTIMIZER_LOMO || job->optimizer.name == OPTIMIZER_ADALOMO)
    return "the backward updates the weights";
  if (job->precision.param != PRECISION_NO) return "the weights are not float32";
  if (job->parallelism.offload.optimizer == OFFLOAD_NVME) return "the states are on a disk";
  if (updates_of(job) == 0) return "the run has one step";
  if (job->devices.ranks > 1) return "ranks update together";
  if (program == NULL || !has_arrays(tree)) return "the gradients are no array";
  return NULL;
}

struct update_probe verify_update_probe(struct verification *verify, const struct tree *tree) {
  struct update_probe probe = {.why = why_not(verify->job, tree)};
  if (probe.why != NULL) return probe;
  const bool opens = tree_function(tree, "open_primitives") != NULL;
  probe.scaled = tree_function(tree, "update")->n_parameters == 3;
  probe.text = arena_printf(verify->arena,
                            "static void verify_call_update(int64_t at, double lr, float factor) {\n"
                            "  (void)factor;\n  update(at, lr%s);\n}\n"
                            "static int verify_run_update(int argc, char **argv) {\n"
                            "  return verify_update(&program, argc, argv, %s, verify_call_update);\n}\n",
                            probe.scaled ? ", factor" : "", opens ? "open_primitives" : "NULL");
  return probe;
}

/* What was found of the numbers, as of a function, and by terms. */
static struct kernel_finding finding_of(struct verification *verify, const struct verify_source *source) {
  const struct finding *found = &verify->findings[SUBJECT_UPDATE];
  struct kernel_finding finding = {.worst = found->worst, .where = found->where};
  finding.comparison = found->different > 0 ? COMPARED_DIFFERS : COMPARED_AGREES;
  if (found->different == 0 && source->why == NULL && source->of.directives != NULL &&
      proof_of_update(verify->scratch, &source->of, verify->job) == NULL)
    finding.comparison = COMPARED_EQUAL;
  finding.formula = arena_printf(verify->arena, "%s, from weights, gradients and states of all kinds",
                                 job_word(verify->job, "optimizer.name"));
  return finding;
}

bool verify_update(struct verification *verify, const struct verify_source *source, const struct update_probe *probe) {
  struct text arguments = text_in(verify->arena);
  const char *folder = verify_prepare(verify, "update", 0, step_of(verify->job, 1) + 2);
  int status = 0;
  if (folder == NULL) return false;
  for (int k = 0; k < updates_of(verify->job); k++) {
    const int64_t at = step_of(verify->job, k);
    text_printf(&arguments, "%lld %.17g %.17g ", (long long)at, rule_rate(verify->job, at), factors[k]);
  }
  if (!verify_isolated(verify, folder, "probe", text_string(&arguments), &status)) return false;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    const char *why = WIFEXITED(status) && WEXITSTATUS(status) == 5 ? "the gradients are not laid out as a state is"
                                                                    : "alone it does not run to its end";
    verify_note_function(verify, "update", (struct kernel_finding){.comparison = COMPARED_UNKNOWN, .formula = why});
    return true;
  }
  for (int k = 0; k < updates_of(verify->job); k++)
    if (!verify_compare_update(verify, folder, step_of(verify->job, k), probe->scaled ? factors[k] : 1)) return false;
  verify_note_function(verify, "update", finding_of(verify, source));
  return true;
}
