#include "gen/plan/optimizers.h"

static const struct optimizer optimizers[] = {
    [OPTIMIZER_SGD] = {.name = "sgd", .coupled = true},
    [OPTIMIZER_ADAM] = {"adam", {"exp_avg", "exp_avg_sq"}, .coupled = true, .counts_steps = true},
    [OPTIMIZER_ADAMW] = {"adamw", {"exp_avg", "exp_avg_sq"}, .counts_steps = true},
    [OPTIMIZER_ADAMAX] = {"adamax", {"exp_avg", "exp_inf"}, .coupled = true, .counts_steps = true},
    [OPTIMIZER_NADAM] = {"nadam", {"exp_avg", "exp_avg_sq"}, .coupled = true, .counts_steps = true},
    [OPTIMIZER_RADAM] = {"radam", {"exp_avg", "exp_avg_sq"}, .coupled = true, .counts_steps = true},
    [OPTIMIZER_ADAGRAD] = {"adagrad", {"sum"}, .coupled = true},
    [OPTIMIZER_RMSPROP] = {"rmsprop", {"square_avg"}, .coupled = true},
    [OPTIMIZER_LION] = {"lion", {"exp_avg"}},
};

const struct optimizer *job_optimizer(const struct job *job) {
  return &optimizers[job->optimizer.name];
}

/* The schema sees to it that only those that have a momentum, or can be centered, are asked for it. */
int optimizer_state_names(const struct job *job, const char *names[MAX_OPTIMIZER_STATES]) {
  const struct optimizer *optimizer = job_optimizer(job);
  int count = 0;
  while (count < MAX_OPTIMIZER_STATES && optimizer->states[count] != NULL) {
    names[count] = optimizer->states[count];
    count++;
  }
  if (job->optimizer.centered) names[count++] = "grad_avg";
  if (job->optimizer.momentum != 0) names[count++] = "momentum_buffer";
  return count;
}

int optimizer_states(const struct job *job) {
  const char *names[MAX_OPTIMIZER_STATES];
  return optimizer_state_names(job, names);
}

bool optimizer_counts_steps(const struct job *job) {
  bool dampens = job->optimizer.momentum != 0 && job->optimizer.dampening != 0; /* from the second step on */
  return job_optimizer(job)->counts_steps || dampens;
}
