#include "gen/verify/proof/optimizers.h"

#include <math.h>

/* ---- Arithmetic in few words ---- */

static const struct term *number(const struct update_terms *u, double x) {
  return term_number(u->terms, x);
}

/* a x + b y */
static const struct term *linear(const struct update_terms *u, double a, const struct term *x, double b,
                                 const struct term *y) {
  return term_add(u->terms, term_scale(u->terms, x, a), term_scale(u->terms, y, b));
}

static const struct term *root(const struct update_terms *u, const struct term *x) {
  return term_power(u->terms, x, 0.5);
}

static const struct term *plus(const struct update_terms *u, const struct term *x, double y) {
  return term_add(u->terms, x, number(u, y));
}

static const struct term *times(const struct update_terms *u, const struct term *x, const struct term *y) {
  return term_multiply(u->terms, x, y);
}

static const struct term *over(const struct update_terms *u, const struct term *x, const struct term *y) {
  return term_divide(u->terms, x, y);
}

/* The step counted from 1. */
static const struct term *steps(const struct update_terms *u) {
  return plus(u, u->at, 1);
}

/* beta^t and 1 - beta^t. */
static const struct term *faded(const struct update_terms *u, double beta) {
  return term_exp(u->terms, term_scale(u->terms, steps(u), log(beta)));
}
static const struct term *correction(const struct update_terms *u, double beta) {
  return term_subtract(u->terms, number(u, 1), faded(u, beta));
}

/* Takes `by` off the weight, times the rate. */
static void step_by(const struct update_terms *u, struct element_terms *e, const struct term *by) {
  e->weight = term_subtract(u->terms, e->weight, times(u, u->rate, by));
}

/* state = beta state + (1 - beta) x */
static void average(const struct update_terms *u, const struct term **state, double beta, const struct term *x) {
  *state = linear(u, beta, *state, 1 - beta, x);
}

/* The gradient with the weight decay that is a part of it. */
static const struct term *coupled(const struct update_terms *u, const struct element_terms *e, const struct term *g) {
  return linear(u, 1, g, u->of->weight_decay, e->weight);
}

/* Takes rate weight_decay weight off the weight. */
static void decay(const struct update_terms *u, struct element_terms *e) {
  step_by(u, e, term_scale(u->terms, e->weight, u->of->weight_decay));
}

static void move_moments(const struct update_terms *u, struct element_terms *e, const struct term *g) {
  average(u, &e->moments[0], u->of->beta1, g);
  average(u, &e->moments[1], u->of->beta2, times(u, g, g));
}

/* sqrt(v / (1 - beta2^t)) + eps, where the root of a quotient is the quotient of the roots, since both are positive. */
static const struct term *corrected_root(const struct update_terms *u, const struct term *v) {
  return plus(u, over(u, root(u, v), root(u, correction(u, u->of->beta2))), u->of->eps);
}

/* ---- torch.optim, and papers where a comment says so ---- */

/* Without a buffer the first step takes the gradient as it is: the same as a buffer of 0, but for the dampening. */
static void sgd(const struct update_terms *u, struct element_terms *e, const struct term *g) {
  const double momentum = u->of->momentum, dampening = u->job->optimizer.dampening;
  g = coupled(u, e, g);
  if (update_moments(u->job) > 0) {
    const struct term *part =
        term_select(u->terms, term_positive(u->terms, u->at), number(u, 1 - dampening), number(u, 1));
    e->moments[0] = term_add(u->terms, term_scale(u->terms, e->moments[0], momentum), times(u, part, g));
    g = u->job->optimizer.nesterov ? linear(u, 1, g, momentum, e->moments[0]) : e->moments[0];
  }
  step_by(u, e, g);
}

static void step_by_moments(const struct update_terms *u, struct element_terms *e, const struct term *g) {
  move_moments(u, e, g);
  step_by(u, e, over(u, over(u, e->moments[0], correction(u, u->of->beta1)), corrected_root(u, e->moments[1])));
}

static void adam(const struct update_terms *u, struct element_terms *e, const struct term *g) {
  step_by_moments(u, e, coupled(u, e, g));
}

static void adamw(const struct update_terms *u, struct element_terms *e, const struct term *g) {
  decay(u, e);
  step_by_moments(u, e, g);
}

static void adamax(const struct update_terms *u, struct element_terms *e, const struct term *g) {
  g = coupled(u, e, g);
  average(u, &e->moments[0], u->of->beta1, g);
  const struct term *size = term_larger(u->terms, g, term_scale(u->terms, g, -1));
  e->moments[1] = term_larger(u->terms, term_scale(u->terms, e->moments[1], u->of->beta2), plus(u, size, u->of->eps));
  step_by(u, e, over(u, over(u, e->moments[0], correction(u, u->of->beta1)), e->moments[1]));
}

const struct term *nadam_mu_term(const struct update_terms *u, const struct term *t) {
  const struct term *fading = term_scale(u->terms, t, u->job->optimizer.momentum_decay * log(0.96));
  return plus(u, term_scale(u->terms, term_exp(u->terms, fading), -0.5 * u->of->beta1), u->of->beta1);
}

static void nadam(const struct update_terms *u, struct element_terms *e, const struct term *g) {
  const struct term *one = number(u, 1), *mu = nadam_mu_term(u, steps(u)), *next = nadam_mu_term(u, plus(u, u->at, 2));
  g = coupled(u, e, g);
  move_moments(u, e, g);
  const struct term *under = corrected_root(u, e->moments[1]);
  const struct term *of_g = over(u, term_subtract(u->terms, one, mu), term_subtract(u->terms, one, u->momenta));
  const struct term *of_m = over(u, next, term_subtract(u->terms, one, times(u, u->momenta, next)));
  step_by(u, e, over(u, term_add(u->terms, times(u, of_g, g), times(u, of_m, e->moments[0])), under));
}

/* The variance counts from the step on at which `length` is more than 5. */
static void radam(const struct update_terms *u, struct element_terms *e, const struct term *g) {
  const double longest = 2 / (1 - u->of->beta2) - 1;
  const struct term *one = number(u, 1), *corrected = correction(u, u->of->beta2);
  const struct term *fading = over(u, times(u, steps(u), faded(u, u->of->beta2)), corrected);
  const struct term *length = plus(u, term_scale(u->terms, fading, -2), longest);
  const struct term *counts = term_positive(u->terms, plus(u, length, -5));
  move_moments(u, e, coupled(u, e, g));
  const struct term *part = times(u, plus(u, length, -4), plus(u, length, -2));
  part = over(u, term_scale(u->terms, part, longest / ((longest - 4) * (longest - 2))), length);
  const struct term *times_root = term_select(u->terms, counts, root(u, times(u, part, corrected)), one);
  const struct term *under = term_select(u->terms, counts, plus(u, root(u, e->moments[1]), u->of->eps), one);
  const struct term *by = over(u, e->moments[0], correction(u, u->of->beta1));
  step_by(u, e, over(u, times(u, by, times_root), under));
}

static void adagrad(const struct update_terms *u, struct element_terms *e, const struct term *g) {
  g = coupled(u, e, g);
  e->moments[0] = term_add(u->terms, e->moments[0], times(u, g, g));
  step_by(u, e, over(u, g, plus(u, root(u, e->moments[0]), u->of->eps)));
}

static void adadelta(const struct update_terms *u, struct element_terms *e, const struct term *g) {
  const double rho = u->job->optimizer.rho, eps = u->of->eps;
  g = coupled(u, e, g);
  average(u, &e->moments[0], rho, times(u, g, g));
  const struct term *by = over(u, root(u, plus(u, e->moments[1], eps)), root(u, plus(u, e->moments[0], eps)));
  by = times(u, by, g);
  average(u, &e->moments[1], rho, times(u, by, by));
  step_by(u, e, by);
}

/* States: the square's average, with `centered` the gradient's, with a momentum its buffer. A variance below 0, which
 * no gradients give, is 0. */
static void rmsprop(const struct update_terms *u, struct element_terms *e, const struct term *g) {
  const double alpha = u->job->optimizer.alpha;
  const bool centered = u->job->optimizer.centered;
  const struct term **buffer = &e->moments[centered ? 2 : 1];
  g = coupled(u, e, g);
  average(u, &e->moments[0], alpha, times(u, g, g));
  const struct term *square = e->moments[0];
  if (centered) {
    average(u, &e->moments[1], alpha, g);
    square = term_subtract(u->terms, square, times(u, e->moments[1], e->moments[1]));
    square = term_larger(u->terms, square, number(u, 0));
  }
  const struct term *by = over(u, g, plus(u, root(u, square), u->of->eps));
  if (update_moments(u->job) > 1 + centered)
    by = *buffer = term_add(u->terms, term_scale(u->terms, *buffer, u->of->momentum), by);
  step_by(u, e, by);
}

/* Chen et al., arXiv:2302.06675, algorithm 2. */
static void lion(const struct update_terms *u, struct element_terms *e, const struct term *g) {
  const struct term *along = linear(u, u->of->beta1, e->moments[0], 1 - u->of->beta1, g);
  const struct term *sign =
      term_subtract(u->terms, term_positive(u->terms, along), term_positive(u->terms, term_scale(u->terms, along, -1)));
  step_by(u, e, linear(u, 1, sign, u->of->weight_decay, e->weight));
  average(u, &e->moments[0], u->of->beta2, g);
}

/* Defazio et al., arXiv:2405.15682, algorithm 1, by the points y where gradients are taken and the ends z: with x the
 * average of the ends, y = beta1 x + (1 - beta1) z. */
static void schedule_free(const struct update_terms *u, struct element_terms *e, const struct term *g) {
  const double beta = u->of->beta1;
  const struct term *y = e->weight, *z = e->moments[0], *one = number(u, 1);
  average(u, &e->moments[1], u->of->beta2, times(u, g, g));
  const struct term *by = over(u, g, corrected_root(u, e->moments[1]));
  by = linear(u, 1, by, u->of->weight_decay, y);
  const struct term *x = linear(u, 1 / beta, y, 1 - 1 / beta, z);
  e->moments[0] = term_subtract(u->terms, z, times(u, u->rate, by));
  x = term_add(u->terms, times(u, term_subtract(u->terms, one, u->newest), x), times(u, u->newest, e->moments[0]));
  e->weight = linear(u, beta, x, 1 - beta, e->moments[0]);
}

static const struct {
  void (*step)(const struct update_terms *u, struct element_terms *e, const struct term *g);
  int moments; /* not counted: those of momentum and `centered` */
} rules[] = {
    [OPTIMIZER_SGD] = {sgd, 0},
    [OPTIMIZER_ADAM] = {adam, 2},
    [OPTIMIZER_ADAMW] = {adamw, 2},
    [OPTIMIZER_ADAMAX] = {adamax, 2},
    [OPTIMIZER_NADAM] = {nadam, 2},
    [OPTIMIZER_RADAM] = {radam, 2},
    [OPTIMIZER_ADAGRAD] = {adagrad, 1},
    [OPTIMIZER_ADADELTA] = {adadelta, 2},
    [OPTIMIZER_RMSPROP] = {rmsprop, 1},
    [OPTIMIZER_LION] = {lion, 1},
    [OPTIMIZER_SCHEDULE_FREE_ADAMW] = {schedule_free, 2},
};

int update_moments(const struct job *job) {
  const enum optimizer_name name = job->optimizer.name;
  if ((size_t)name >= sizeof rules / sizeof *rules || rules[name].step == NULL) return -1;
  bool momentum = job->optimizer.numbers.momentum != 0;
  for (int i = 0; i < job->optimizer.n_groups; i++)
    momentum = momentum || job->optimizer.groups[i].numbers.momentum != 0;
  return rules[name].moments + job->optimizer.centered + momentum;
}

/* min(max(g, -most), most) */
static const struct term *clipped(const struct update_terms *u, const struct term *g) {
  const double most = u->job->optimizer.clip_grad_value;
  if (u->factor != NULL) g = times(u, g, u->factor);
  if (most == 0) return g;
  const struct term *above = term_larger(u->terms, g, number(u, -most));
  return term_select(u->terms, term_positive(u->terms, plus(u, g, -most)), number(u, most), above);
}

void update_element(const struct update_terms *u, struct element_terms *e, const struct term *g) {
  struct update_terms own = *u;
  own.rate = term_scale(u->terms, u->rate, u->of->lr_scale);
  rules[u->job->optimizer.name].step(&own, e, clipped(&own, g));
}

/* ---- Of the whole gradient, and after the step ---- */

const struct term *clipping_term(struct terms *terms, const struct job *job, const struct term *norm) {
  const struct term *limit = term_number(terms, job->optimizer.clip_grad_norm), *one = term_number(terms, 1);
  const struct term *share = term_divide(terms, limit, term_add(terms, norm, term_number(terms, 1e-6)));
  return term_subtract(terms, term_add(terms, share, one), term_larger(terms, share, one));
}

const struct term *smoothing_term(struct terms *terms, const struct job *job, const struct term *at) {
  const double decay = job->training.ema.decay, power = job->training.ema.power;
  const double every = (double)job->training.ema.every;
  const struct term *one = term_number(terms, 1), *part;
  if (power != 0) {
    const struct term *updates = term_call(terms, TERM_WHOLE, term_scale(terms, at, 1 / every));
    if (every == 1) updates = at;
    const struct term *since = term_add(terms, one, term_scale(terms, updates, 1 / job->training.ema.inv_gamma));
    const struct term *warm =
        term_subtract(terms, one, term_exp(terms, term_scale(terms, term_log(terms, since), -power)));
    const struct term *most = term_number(terms, decay);
    part = term_subtract(terms, term_add(terms, most, warm), term_larger(terms, most, warm));
    part = term_subtract(terms, one, part);
  } else {
    const struct term *first = term_positive(terms, term_subtract(terms, term_number(terms, every), at));
    part = term_select(terms, first, one, term_number(terms, 1 - decay));
  }
  if (every == 1) return part;
  const struct term *next = term_add(terms, at, one);
  const struct term *rounds = term_call(terms, TERM_WHOLE, term_scale(terms, next, 1 / every));
  const struct term *left = term_subtract(terms, next, term_scale(terms, rounds, every));
  const struct term *between = term_subtract(terms, one, term_zero(terms, left));
  return term_select(terms, between, term_number(terms, 0), part);
}
