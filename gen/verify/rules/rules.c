#include "gen/verify/rules/rules.h"

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

/* You et al., arXiv:1904.00962, algorithm 2: the direction. */
static void lamb(const struct step_numbers *step, struct element *e, double g) {
  move_moments(step, e, g);
  const double second = e->states[1] / step->correction2;
  e->weight = e->states[0] / step->correction1 / (sqrt(second) + step->of.eps) + step->of.weight_decay * e->weight;
}

/* torch.optim.Adafactor of a vector: the direction. */
static void adafactor(const struct step_numbers *step, struct element *e, double g) {
  e->states[0] += step->fresh * (g * g - e->states[0]);
  e->weight = g / sqrt(fmax(e->states[0], step->of.eps * step->of.eps));
}

/* Lv et al., arXiv:2310.10195, of a vector: the direction. */
static void adalomo(const struct step_numbers *step, struct element *e, double g) {
  e->states[0] += step->fresh * (g * g + step->of.eps - e->states[0]);
  e->weight = g / sqrt(e->states[0]);
}

/* Defazio et al., arXiv:2405.15682, algorithm 1, with the weights y where gradients are taken, the ends z, and the
 * average x of these: y = beta1 x + (1 - beta1) z. */
static void schedule_free(const struct step_numbers *step, struct element *e, double g) {
  const double y = e->weight, beta = step->of.beta1, old = rule_left(step, e);
  e->states[1] = step->of.beta2 * e->states[1] + (1 - step->of.beta2) * g * g;
  const double by = g / (sqrt(e->states[1] / step->correction2) + step->of.eps) + step->of.weight_decay * y;
  e->states[0] -= step->rate * by;
  const double x = (1 - step->share) * old + step->share * e->states[0];
  e->weight = beta * x + (1 - beta) * e->states[0];
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
    [OPTIMIZER_LAMB] = {lamb, {"exp_avg", "exp_avg_sq"}},
    [OPTIMIZER_ADAFACTOR] = {adafactor, {"variance"}},
    [OPTIMIZER_MUON] = {NULL, {"momentum_buffer"}}, /* of matrices, which have no rule for an element */
    [OPTIMIZER_SCHEDULE_FREE_ADAMW] = {schedule_free, {"z", "exp_avg_sq"}},
    [OPTIMIZER_LOMO] = {sgd, {NULL}}, /* Lv et al., arXiv:2306.09782 */
    [OPTIMIZER_ADALOMO] = {adalomo, {"exp_avg_sq"}},
};

/* Whether any parameter has a momentum. */
static bool has_momentum(const struct job *job) {
  bool has = job->optimizer.numbers.momentum != 0;
  for (int i = 0; i < job->optimizer.n_groups; i++) has = has || job->optimizer.groups[i].numbers.momentum != 0;
  return has;
}

/* Averages of a matrix's squares instead of those of its elements. */
static int factored_states(const struct step_numbers *step, int rank, const int64_t *dim, int64_t count,
                           struct rule_state states[MOST_STATES]) {
  const bool adafactor = step->rule == OPTIMIZER_ADAFACTOR;
  states[0] = (struct rule_state){adafactor ? "row_var" : "exp_avg_sq_row", count / dim[rank - 1]};
  states[1] = (struct rule_state){adafactor ? "col_var" : "exp_avg_sq_col", count / dim[rank - 2]};
  return 2;
}

int rule_states(const struct step_numbers *step, int rank, const int64_t *dim, struct rule_state states[MOST_STATES]) {
  int64_t elements = 1;
  int count = 0;
  for (int i = 0; i < rank; i++) elements *= dim[i];
  if (rank > 1 && (step->rule == OPTIMIZER_ADAFACTOR || step->rule == OPTIMIZER_ADALOMO))
    return factored_states(step, rank, dim, elements, states);
  for (int i = 0; i < 2 && rules[step->rule].states[i] != NULL; i++)
    states[count++] = (struct rule_state){rules[step->rule].states[i], elements};
  if (step->job->optimizer.centered) states[count++] = (struct rule_state){"grad_avg", elements};
  if (has_momentum(step->job) && step->job->optimizer.name != OPTIMIZER_MUON)
    states[count++] = (struct rule_state){"momentum_buffer", elements};
  return count;
}

/* ---- A step ---- */

/* The group that a parameter is in; NULL: none. */
static const struct param_group *group_of(const struct job *job, const char *parameter) {
  for (int i = 0; i < job->optimizer.n_groups; i++)
    if (rule_matches(job->optimizer.groups[i].match, parameter)) return &job->optimizer.groups[i];
  return NULL;
}

/* schedule_free_adamw: the weight of step `at` in the average of all up to it. */
static double newest_share(const struct job *job, int64_t at) {
  double highest = 0, weight = 0, sum = 0;
  for (int64_t t = 0; t <= at; t++) {
    highest = fmax(highest, rule_rate(job, t));
    weight = pow((double)(t + 1), job->optimizer.r) * pow(highest, job->optimizer.weight_lr_power);
    sum += weight;
  }
  return sum > 0 ? weight / sum : 0;
}

struct step_numbers rule_numbers(const struct job *job, const char *parameter, int rank, int64_t at) {
  const struct param_group *group = group_of(job, parameter);
  struct step_numbers step = {.job = job, .rule = job->optimizer.name, .at = at, .product = 1};
  step.of = group != NULL ? group->numbers : job->optimizer.numbers;
  if (step.rule == OPTIMIZER_MUON && (rank != 2 || (group != NULL && group->adamw))) {
    step.rule = OPTIMIZER_ADAMW;
    step.of = group != NULL ? group->adamw_numbers : job->optimizer.adamw;
  }
  step.rate = rule_rate(job, at) * step.of.lr_scale;
  step.correction1 = correction(step.of.beta1, at);
  step.correction2 = correction(step.of.beta2, at);
  step.mu = nadam_mu(&step, at + 1);
  step.next_mu = nadam_mu(&step, at + 2);
  for (int64_t t = 1; t <= at + 1 && step.rule == OPTIMIZER_NADAM; t++) step.product *= nadam_mu(&step, t);
  step.fresh = pow((double)(at + 1), job->optimizer.beta2_decay);
  if (step.rule == OPTIMIZER_SCHEDULE_FREE_ADAMW) step.share = newest_share(job, at);
  return step;
}

void rule_step(const struct step_numbers *step, struct element *element, double g) {
  rules[step->rule].step(step, element, g);
}

double rule_left(const struct step_numbers *step, const struct element *element) {
  const double more = step->rule == OPTIMIZER_SCHEDULE_FREE_ADAMW ? 1 / step->of.beta1 - 1 : 0;
  return element->weight + (more > 0 ? more * (element->weight - element->states[0]) : 0);
}

double rule_smoothing(const struct job *job, int64_t at) {
  const double decay = job->training.ema.decay, updates = (double)(at / job->training.ema.every);
  if ((at + 1) % job->training.ema.every != 0) return -1;
  if (job->training.ema.power != 0)
    return 1 - fmin(decay, 1 - pow(1 + updates / job->training.ema.inv_gamma, -job->training.ema.power));
  return updates == 0 ? 1 : 1 - decay;
}
