#include "gen/verify/rules.h"

#include <math.h>
#include <regex.h>
#include <string.h>

/* Of the whole name: * is any text, ? one character. */
static bool fits(const char *pattern, const char *name) {
  if (*pattern == '\0') return *name == '\0';
  if (*pattern == '*') return fits(pattern + 1, name) || (*name != '\0' && fits(pattern, name + 1));
  return *name != '\0' && (*pattern == '?' || *pattern == *name) && fits(pattern + 1, name + 1);
}

bool rule_matches(const char *pattern, const char *name) {
  if (strncmp(pattern, "re:", 3) != 0) return fits(pattern, name);
  regex_t expression;
  if (regcomp(&expression, pattern + 3, REG_EXTENDED | REG_NOSUB) != 0) return false;
  const bool found = regexec(&expression, name, 0, NULL, 0) == 0;
  regfree(&expression);
  return found;
}

struct optimizer_numbers rule_numbers(const struct job *job, const char *parameter) {
  for (int i = 0; i < job->optimizer.n_groups; i++)
    if (rule_matches(job->optimizer.groups[i].match, parameter)) return job->optimizer.groups[i].numbers;
  return job->optimizer.numbers;
}

/* ---- The rules, as PyTorch's documentation of torch.optim writes them ---- */

typedef void rule(const struct step_numbers *step, struct element *e, double g);

/* torch.optim.SGD */
static void sgd(const struct step_numbers *step, struct element *e, double g) {
  const double momentum = step->of.momentum;
  g += step->of.weight_decay * e->weight;
  if (momentum != 0) {
    e->states[0] = step->at == 0 ? g : momentum * e->states[0] + (1 - step->job->optimizer.dampening) * g;
    g = step->job->optimizer.nesterov ? g + momentum * e->states[0] : e->states[0];
  }
  e->weight -= step->rate * g;
}

/* The moments of Adam and those after it. */
static void move_moments(const struct step_numbers *step, struct element *e, double g) {
  e->states[0] = step->of.beta1 * e->states[0] + (1 - step->of.beta1) * g;
  e->states[1] = step->of.beta2 * e->states[1] + (1 - step->of.beta2) * g * g;
}

/* What corrects a moment for its start at 0. */
static double correction(double beta, int64_t at) {
  return 1 - pow(beta, (double)(at + 1));
}

/* NAdam: mu of step t, counted from 1. */
static double nadam_mu(const struct step_numbers *step, int64_t t) {
  return step->of.beta1 * (1 - 0.5 * pow(0.96, (double)t * step->job->optimizer.momentum_decay));
}

void rule_begin(struct step_numbers *step) {
  step->correction1 = correction(step->of.beta1, step->at);
  step->correction2 = correction(step->of.beta2, step->at);
  step->mu = nadam_mu(step, step->at + 1);
  step->next_mu = nadam_mu(step, step->at + 2);
  step->product = 1;
  for (int64_t t = 1; t <= step->at + 1 && step->job->optimizer.name == OPTIMIZER_NADAM; t++)
    step->product *= nadam_mu(step, t);
}

static void step_by_moments(const struct step_numbers *step, struct element *e, double g) {
  move_moments(step, e, g);
  const double first = e->states[0] / step->correction1;
  const double second = e->states[1] / step->correction2;
  e->weight -= step->rate * first / (sqrt(second) + step->of.eps);
}

static void adam(const struct step_numbers *step, struct element *e, double g) {
  step_by_moments(step, e, g + step->of.weight_decay * e->weight);
}

static void adamw(const struct step_numbers *step, struct element *e, double g) {
  e->weight -= step->rate * step->of.weight_decay * e->weight;
  step_by_moments(step, e, g);
}

static void adamax(const struct step_numbers *step, struct element *e, double g) {
  g += step->of.weight_decay * e->weight;
  e->states[0] = step->of.beta1 * e->states[0] + (1 - step->of.beta1) * g;
  e->states[1] = fmax(step->of.beta2 * e->states[1], fabs(g) + step->of.eps);
  e->weight -= step->rate / step->correction1 * e->states[0] / e->states[1];
}

static void nadam(const struct step_numbers *step, struct element *e, double g) {
  const double mu = step->mu, next = step->next_mu, product = step->product;
  g += step->of.weight_decay * e->weight;
  move_moments(step, e, g);
  const double root = sqrt(e->states[1] / step->correction2) + step->of.eps;
  e->weight -= step->rate * (1 - mu) / (1 - product) * g / root;
  e->weight -= step->rate * next / (1 - product * next) * e->states[0] / root;
}

static void radam(const struct step_numbers *step, struct element *e, double g) {
  const double beta2 = step->of.beta2, t = (double)(step->at + 1), most = 2 / (1 - beta2) - 1;
  const double length = most - 2 * t * pow(beta2, t) / step->correction2;
  move_moments(step, e, g + step->of.weight_decay * e->weight);
  double by = e->states[0] / step->correction1;
  if (length > 5) {
    by *= sqrt(step->correction2) / (sqrt(e->states[1]) + step->of.eps);
    by *= sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length));
  }
  e->weight -= step->rate * by;
}

static void adagrad(const struct step_numbers *step, struct element *e, double g) {
  g += step->of.weight_decay * e->weight;
  e->states[0] += g * g;
  e->weight -= step->rate * g / (sqrt(e->states[0]) + step->of.eps);
}

static void adadelta(const struct step_numbers *step, struct element *e, double g) {
  const double rho = step->job->optimizer.rho;
  g += step->of.weight_decay * e->weight;
  e->states[0] = rho * e->states[0] + (1 - rho) * g * g;
  const double by = sqrt(e->states[1] + step->of.eps) / sqrt(e->states[0] + step->of.eps) * g;
  e->states[1] = rho * e->states[1] + (1 - rho) * by * by;
  e->weight -= step->rate * by;
}

/* States: the square's average, with `centered` the gradient's, with a momentum its buffer. */
static void rmsprop(const struct step_numbers *step, struct element *e, double g) {
  const double alpha = step->job->optimizer.alpha;
  g += step->of.weight_decay * e->weight;
  e->states[0] = alpha * e->states[0] + (1 - alpha) * g * g;
  double square = e->states[0];
  int next = 1;
  if (step->job->optimizer.centered) {
    e->states[1] = alpha * e->states[1] + (1 - alpha) * g;
    square -= e->states[1] * e->states[1];
    next = 2;
  }
  double by = g / (sqrt(fmax(square, 0)) + step->of.eps);
  if (step->of.momentum != 0) by = e->states[next] = step->of.momentum * e->states[next] + by;
  e->weight -= step->rate * by;
}

/* Chen et al., arXiv:2302.06675, algorithm 2. */
static void lion(const struct step_numbers *step, struct element *e, double g) {
  const double by = step->of.beta1 * e->states[0] + (1 - step->of.beta1) * g;
  const double sign = (by > 0) - (by < 0);
  e->weight -= step->rate * (sign + step->of.weight_decay * e->weight);
  e->states[0] = step->of.beta2 * e->states[0] + (1 - step->of.beta2) * g;
}

static const struct {
  rule *step;
  const char *states[2];
} rules[] = {
    [OPTIMIZER_SGD] = {sgd, {NULL}},
    [OPTIMIZER_ADAM] = {adam, {"exp_avg", "exp_avg_sq"}},
    [OPTIMIZER_ADAMW] = {adamw, {"exp_avg", "exp_avg_sq"}},
    [OPTIMIZER_ADAMAX] = {adamax, {"exp_avg", "exp_inf"}},
    [OPTIMIZER_NADAM] = {nadam, {"exp_avg", "exp_avg_sq"}},
    [OPTIMIZER_RADAM] = {radam, {"exp_avg", "exp_avg_sq"}},
    [OPTIMIZER_ADAGRAD] = {adagrad, {"sum"}},
    [OPTIMIZER_ADADELTA] = {adadelta, {"square_avg", "acc_delta"}},
    [OPTIMIZER_RMSPROP] = {rmsprop, {"square_avg"}},
    [OPTIMIZER_LION] = {lion, {"exp_avg"}},
    [OPTIMIZER_ADALOMO] = {NULL, {NULL}}, /* the last name: those without a rule are empty */
};

/* Whether any parameter has a momentum. */
static bool has_momentum(const struct job *job) {
  bool has = job->optimizer.numbers.momentum != 0;
  for (int i = 0; i < job->optimizer.n_groups; i++) has = has || job->optimizer.groups[i].numbers.momentum != 0;
  return has;
}

int rule_states(const struct job *job, const char *names[MOST_STATES]) {
  int count = 0;
  if (rules[job->optimizer.name].step == NULL) return -1;
  for (int i = 0; i < 2 && rules[job->optimizer.name].states[i] != NULL; i++)
    names[count++] = rules[job->optimizer.name].states[i];
  if (job->optimizer.centered) names[count++] = "grad_avg";
  if (has_momentum(job)) names[count++] = "momentum_buffer";
  return count;
}

void rule_step(const struct step_numbers *step, struct element *element, double g) {
  rules[step->job->optimizer.name].step(step, element, g);
}
