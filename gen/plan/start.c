#include "gen/plan/start.h"

#include "gen/program/adapters.h"
#include "gen/program/experts.h"
#include "gen/program/fp8.h"
#include "gen/program/match.h"

/* The first pattern that matches a name; -1: none. */
static int pattern_of_fresh(const struct job *job, const char *name) {
  for (int i = 0; i < job->model.n_fresh; i++)
    if (name_matches(job->model.fresh[i].name, name)) return i;
  return -1;
}

static struct location where_of_fresh(const struct job *job, int i) {
  return job->model.fresh[i].where;
}

static bool is_fresh(const struct job *job, const char *name) {
  return (job->model.lora.rank > 0 && is_adapter(name)) || (job->precision.fp8.on && is_fp8_state(name)) ||
         pattern_of_fresh(job, name) >= 0;
}

static int stars_of(const char *pattern) {
  int count = 0;
  for (; *pattern != '\0'; pattern++) count += *pattern == '*';
  return count;
}

static void check_weights_map(const struct job *job, struct diagnostics *diags) {
  enum { MOST_STARS = 8 };
  for (int i = 0; i < job->model.n_weights_map; i++) {
    const struct weights_rule *rule = &job->model.weights_map[i];
    const int from = stars_of(rule->from.name), to = stars_of(rule->to.name);
    if (from != to || from > MOST_STARS) {
      diag_error(diags, rule->to.where, "'%s' has %d *, and '%s' has %d", rule->to.name, to, rule->from.name, from);
      diag_help(diags, "write as many in both, at most %d: what one matches takes the place of the other", MOST_STARS);
    }
  }
}

/* Of weights without their adapters transformers opens the model as it was before the run. */
static void check_folder(const struct job *job, struct diagnostics *diags) {
  if (job->checkpoint.folder_of == NULL || job->model.lora.rank == 0 || job->model.lora.merge) return;
  diag_error(diags, job_where(job, "model.lora.merge"),
             "with false transformers would open the folder of checkpoint.folder_of as the untrained model");
  diag_help(diags, "use model.lora.merge: true, which saves the adapters in a folder of their own, too");
}

bool plan_start(struct program *program, struct diagnostics *diags) {
  const struct job *job = program->job;
  struct name_list names = {0};
  int before = diags->errors;
  check_weights_map(job, diags);
  check_folder(job, diags);
  for (int i = 0; i < program->weights->count; i++) {
    program->weights->items[i].fresh = is_fresh(job, program->weights->items[i].path);
    ARENA_PUSH(program->arena, names, program->weights->items[i].path);
  }
  if (!check_expert_names(program, pattern_of_fresh, where_of_fresh, diags)) return false;
  for (int i = 0; i < job->model.n_fresh; i++) {
    const struct named *pattern = &job->model.fresh[i];
    bool matches = false;
    name_pattern_check(pattern->name, pattern->where, diags);
    for (int k = 0; k < names.count; k++) matches |= name_matches(pattern->name, names.items[k]);
    if (!matches && diags->errors == before)
      name_pattern_unmatched(program->arena, pattern->name, &names, pattern->where, diags);
  }
  return diags->errors == before;
}
