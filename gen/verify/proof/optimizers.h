/* The published updates of optimizers, of one element, as terms. */
#ifndef ACCEL_VERIFY_PROOF_OPTIMIZERS_H
#define ACCEL_VERIFY_PROOF_OPTIMIZERS_H

#include "gen/spec/job.h"
#include "gen/verify/proof/term.h"

enum { MOST_MOMENTS = 3 };

/* What a step is made by. */
struct update_terms {
  struct terms *terms;
  const struct job *job;
  const struct optimizer_numbers *of;  /* of the element's parameter */
  const struct term *at, *rate;        /* the step, counted from 0; the rate of the schedule */
  const struct term *factor;           /* that the gradient is multiplied by; NULL: none */
  const struct term *momenta, *newest; /* nadam: the product of all mu; schedule_free_adamw: the newest end's share */
};

/* An element: its weight and its states, in the order in which programs number them. */
struct element_terms {
  const struct term *weight, *moments[MOST_MOMENTS];
};

/* The number of states; -1: there is no term of the job's optimizer, or its update looks at more than an element. */
int update_moments(const struct job *job);

/* Makes the step of an element whose gradient is g, before clipping by value. States are 0 at the first step. */
void update_element(const struct update_terms *u, struct element_terms *e, const struct term *g);

/* nadam: mu of step t, counted from 1 (Dozat, 2016). */
const struct term *nadam_mu_term(const struct update_terms *u, const struct term *t);

/* What of the new weights goes into their averages after step `at`: 1 at the first update of the averages, later one
 * minus the decay, which may warm up; 0 where they are not updated. Of how many steps one updates them is
 * training.ema's `every`. */
const struct term *smoothing_term(struct terms *terms, const struct job *job, const struct term *at);

/* What a gradient of that norm is multiplied by (torch.nn.utils.clip_grad_norm_): min(limit / (norm + 1e-6), 1). */
const struct term *clipping_term(struct terms *terms, const struct job *job, const struct term *norm);

#endif
