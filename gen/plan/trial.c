#include "gen/plan/trial.h"

#include "gen/plan/memory/alias.h"

/* Reads the model with the batch of an evaluation, where that is another one. */
static bool read_evaluated(struct arena *arena, const struct planner *planner, const struct job *job,
                           struct plan_request *request, struct diagnostics *diags) {
  if (planner->request.kind != PROGRAM_TRAIN || !job_evaluates_other_batches(job)) return true;
  const struct job evaluated = job_of_evaluation(job);
  request->evaluated = planner->read(planner->context, arena, &evaluated, diags);
  if (request->evaluated != NULL) return true;
  diag_note(diags, job_where(job, "data.eval_batch_size"), "'data.eval_batch_size' is %d here",
            evaluated.data.batch_size);
  return false;
}

static struct program *plan_with(struct arena *arena, const struct planner *planner, const struct job *job,
                                 const struct peeled_loops *peeled, struct diagnostics *diags, const char *dump,
                                 const char **dumped) {
  struct plan_request request = planner->request;
  request.peeled = peeled;
  struct graph *graph = planner->read(planner->context, arena, job, diags);
  if (graph == NULL || !read_evaluated(arena, planner, job, &request, diags)) return NULL;
  return plan(builder_on(graph, diags), job, &request, diags, dump, dumped);
}

struct program *plan_least(struct arena *arena, const struct planner *planner, const struct job *job,
                           struct diagnostics *diags, const char *dump, const char **dumped) {
  struct program *whole = plan_with(arena, planner, job, NULL, diags, dump, dumped);
  if (whole == NULL || whole->aliases.peeled == NULL) return whole;
  struct diagnostics known = diagnostics_in(arena); /* it was all said of the first one */
  const char *text = NULL;
  struct program *peeled = plan_with(arena, planner, job, whole->aliases.peeled, &known, dump, &text);
  if (peeled == NULL ||
      peeled->figures.bytes.total > whole->figures.bytes.total - whole->figures.bytes.total / LEAST_OF_ARENA)
    return whole;
  if (dump != NULL) *dumped = text;
  return peeled;
}

/* A map leaves the largest layer's bytes in any case. */
int64_t reserve_of(const struct program *program) {
  const struct device_map *map = program->map;
  int64_t used = 0;
  for (int i = 0; map != NULL && i < map->count; i++)
    if (map->places.items[map->items[i].place].is_own) used += map->items[i].module->bytes;
  const int64_t reserve = map != NULL ? program->figures.bytes.total - used - map->largest : 0;
  return reserve > 0 ? reserve : 0;
}

struct trial try_job(struct arena *keep, const struct planner *planner, const struct job *job) {
  struct arena *arena = arena_new();
  struct diagnostics diags = diagnostics_in(arena);
  const struct program *program = plan_least(arena, planner, job, &diags, NULL, NULL);
  struct trial trial = {0};
  if (program != NULL)
    trial = (struct trial){.bytes = program->figures.bytes,
                           .flops = program->figures.flops_per_step,
                           .reserve = reserve_of(program),
                           .good = true};
  else if (keep != NULL)
    trial.refusal = diag_first_error(keep, &diags);
  arena_free(arena);
  return trial;
}

int64_t batch_in_file(const struct job *job, int64_t of_rank) {
  return job->data.split_batches ? of_rank * job_training_ranks(job) : of_rank;
}

int64_t step_of_rank(const struct job *job) {
  return job->accumulation.train_batch_size / job_batch_ranks(job);
}

bool step_divides(const struct job *job, struct diagnostics *diags) {
  long long samples = job->accumulation.train_batch_size, ranks = job_batch_ranks(job);
  if (samples % ranks == 0) return true;
  diag_error(diags, job_where(job, "accumulation.train_batch_size"),
             "%lld samples of a step do not divide by %lld ranks", samples, ranks);
  diag_help(diags, "they do as %lld", samples + ranks - samples % ranks);
  return false;
}
