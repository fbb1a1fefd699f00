#include "gen/plan/optimizers.h"

static const struct optimizer optimizers[] = {
    [OPTIMIZER_SGD] = {"sgd", 0, .coupled = true},
    [OPTIMIZER_ADAM] = {"adam", 2, .coupled = true, .counts_steps = true},
    [OPTIMIZER_ADAMW] = {"adamw", 2, .counts_steps = true},
    [OPTIMIZER_ADAMAX] = {"adamax", 2, .coupled = true, .counts_steps = true},
    [OPTIMIZER_NADAM] = {"nadam", 2, .coupled = true, .counts_steps = true},
    [OPTIMIZER_RADAM] = {"radam", 2, .coupled = true, .counts_steps = true},
    [OPTIMIZER_ADAGRAD] = {"adagrad", 1, .coupled = true},
    [OPTIMIZER_RMSPROP] = {"rmsprop", 1, .coupled = true},
    [OPTIMIZER_LION] = {.name = "lion", .states = 1},
};

const struct optimizer *job_optimizer(const struct job *job) {
  return &optimizers[job->optimizer.name];
}

/* The schema sees to it that only those that have a momentum, or can be centered, are asked for it. */
int optimizer_states(const struct job *job) {
  return job_optimizer(job)->states + (job->optimizer.momentum != 0) + job->optimizer.centered;
}

bool optimizer_counts_steps(const struct job *job) {
  bool dampens = job->optimizer.momentum != 0 && job->optimizer.dampening != 0; /* from the second step on */
  return job_optimizer(job)->counts_steps || dampens;
}
