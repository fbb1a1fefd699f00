#include "gen/verify/proof/schedule.h"

#include <math.h>

#include "gen/verify/rules/rules.h"

/* A rate by its numbers: how far the schedule is, the lengths of warm-up and decay, and the rates at both ends. */
struct rate {
  struct terms *terms;
  const struct job *job;
  const struct term *at;
  double warmup, decay, top, low;
};

static const struct term *least(struct terms *terms, const struct term *a, double b) {
  const struct term *limit = term_number(terms, b);
  return term_subtract(terms, term_add(terms, a, limit), term_larger(terms, a, limit));
}

static const struct term *plus(struct terms *terms, const struct term *a, double b) {
  return term_add(terms, a, term_number(terms, b));
}

/* from + (to - from) part */
static const struct term *between(const struct rate *r, double from, double to, const struct term *part) {
  return plus(r->terms, term_scale(r->terms, part, to - from), from);
}

/* The fraction of a decay from step `from` on that is done. Steps are not below 0. */
static const struct term *done_from(const struct rate *r, double from) {
  if (r->decay <= from) {
    const struct term *early = term_positive(r->terms, plus(r->terms, term_scale(r->terms, r->at, -1), from));
    return term_subtract(r->terms, term_number(r->terms, 1), early);
  }
  const struct term *part = term_scale(r->terms, plus(r->terms, r->at, -from), 1 / (r->decay - from));
  if (from > 0) part = term_larger(r->terms, part, term_number(r->terms, 0));
  return least(r->terms, part, 1);
}

/* low + (top - low) (1 + cos(pi part)) / 2 */
static const struct term *half_cosine(const struct rate *r, const struct term *part) {
  const struct term *cosine = term_call(r->terms, TERM_COS, term_scale(r->terms, part, 3.14159265358979323846));
  return between(r, r->low, r->top, term_scale(r->terms, plus(r->terms, cosine, 1), 0.5));
}

/* Of cycles equal parts. */
static const struct term *restarts(const struct rate *r, const struct term *done) {
  struct terms *terms = r->terms;
  const struct term *rounds = term_scale(terms, done, (double)r->job->schedule.cycles), *one = term_number(terms, 1);
  const struct term *part = term_subtract(terms, rounds, term_call(terms, TERM_WHOLE, rounds));
  const struct term *left = term_positive(terms, term_subtract(terms, one, done));
  return half_cosine(r, term_select(terms, left, part, one));
}

static const struct term *wsd(const struct rate *r) {
  const struct job *job = r->job;
  const double begin = job->schedule.stable_steps >= 0
                           ? r->warmup + (double)job->schedule.stable_steps
                           : fmax(r->decay - rint(job->schedule.decay_fraction * r->decay), r->warmup);
  const struct term *done = done_from(r, begin);
  if (job->schedule.decay_type == DECAY_SQRT) return between(r, r->top, r->low, term_power(r->terms, done, 0.5));
  return job->schedule.decay_type == DECAY_COSINE ? half_cosine(r, done) : between(r, r->top, r->low, done);
}

/* top gamma^exponent */
static const struct term *falling(const struct rate *r, const struct term *exponent) {
  const double gamma = r->job->schedule.gamma;
  if (gamma <= 0) terms_fail(r->terms, "its factor is not positive");
  return term_scale(r->terms, term_exp(r->terms, term_scale(r->terms, exponent, log(gamma))), r->top);
}

static const struct term *unwarmed(const struct rate *r) {
  struct terms *terms = r->terms;
  const struct term *since = plus(terms, r->at, -r->warmup), *done;
  const double set = (double)r->job->schedule.timescale, timescale = set > 0 ? set : r->warmup > 0 ? r->warmup : 10000;
  if (r->warmup > 0) since = term_larger(terms, since, term_number(terms, 0));
  switch (r->job->schedule.name) {
  case SCHEDULE_CONSTANT:
    return term_number(terms, r->top);
  case SCHEDULE_LINEAR:
    return between(r, r->top, r->low, done_from(r, r->warmup));
  case SCHEDULE_COSINE:
    return half_cosine(r, done_from(r, r->warmup));
  case SCHEDULE_COSINE_WITH_RESTARTS:
    return restarts(r, done_from(r, r->warmup));
  case SCHEDULE_POLYNOMIAL:
    done = done_from(r, r->warmup);
    done = term_subtract(terms, term_number(terms, 1), done);
    return between(r, r->low, r->top, term_power(terms, done, r->job->schedule.power));
  case SCHEDULE_INVERSE_SQRT:
    since = term_divide(terms, term_number(terms, timescale), plus(terms, since, timescale));
    return term_scale(terms, term_power(terms, since, 0.5), r->top);
  case SCHEDULE_EXPONENTIAL:
    return falling(r, since);
  case SCHEDULE_STEP:
    since = term_scale(terms, since, 1 / (double)r->job->schedule.step_size);
    return falling(r, term_call(terms, TERM_FLOOR, since));
  case SCHEDULE_WSD:
    return wsd(r);
  case SCHEDULE_ONE_CYCLE:
    break;
  }
  terms_fail(terms, "there is no term of its schedule");
  return r->at;
}

const struct term *rate_term(struct terms *terms, const struct job *job, const struct term *step) {
  const struct term *at = term_scale(terms, step, (double)rule_pace(job));
  const struct rate r = {terms, job, at, rule_warmup(job), rule_decay(job), job->optimizer.lr, job->schedule.min_lr};
  const struct term *rate = unwarmed(&r);
  if (r.warmup == 0) return rate;
  return term_multiply(terms, rate, least(terms, term_scale(terms, plus(terms, at, 1), 1 / r.warmup), 1));
}
