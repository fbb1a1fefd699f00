/* Terms of norms and softmax, row by row. */
#include <string.h>

#include "gen/verify/proof/proof.h"

/* Arithmetic of a formula in few words. */
static const struct term *add(struct proof *p, const struct term *a, const struct term *b) {
  return term_add(p->terms, a, b);
}
static const struct term *sub(struct proof *p, const struct term *a, const struct term *b) {
  return term_subtract(p->terms, a, b);
}
static const struct term *mul(struct proof *p, const struct term *a, const struct term *b) {
  return term_multiply(p->terms, a, b);
}
static const struct term *in_row(struct proof *p, const char *name, const struct term *row, int64_t width,
                                 const struct term *column) {
  return proof_element(p, name, proof_index(p, row, width, column));
}
static const struct term *mean(struct proof *p, const struct term *a, const struct term *k, int64_t count) {
  return term_scale(p->terms, term_sum(p->terms, a, term_atom(k)), 1 / (double)count);
}

/* ---- Layer norm (Ba, Kiros, Hinton, arXiv:1607.06450) and RMS norm (Zhang, Sennrich, arXiv:1910.07467) ---- */

static const struct term *norm(struct proof *p, bool centered, int array, const struct term *e) {
  const int64_t C = proof_count(p, "weight");
  const bool by_row = proof_is(p, array, "mean") || proof_is(p, array, "rstd");
  const struct term *row = by_row ? e : proof_row(p, e, C), *column = by_row ? NULL : proof_column(p, e, C);
  const struct term *k = term_variable(p->terms, C), *x = in_row(p, "x", row, C, k);
  const struct term *middle = centered ? mean(p, x, k, C) : term_number(p->terms, 0);
  const struct term *distance = sub(p, x, middle);
  const struct term *variance = mean(p, mul(p, distance, distance), k, C);
  const struct term *eps = term_number(p->terms, p->known->constants[p->variant]);
  const struct term *rstd = term_power(p->terms, add(p, variance, eps), -0.5);
  if (by_row) return proof_is(p, array, "mean") ? middle : rstd;
  const struct term *y = mul(p, sub(p, in_row(p, "x", row, C, column), middle), rstd);
  y = mul(p, y, proof_element(p, "weight", column));
  return proof_count(p, "bias") > 0 ? add(p, y, proof_element(p, "bias", column)) : y;
}

static const struct term *layer_norm(struct proof *p, int array, const struct term *e) {
  return norm(p, true, array, e);
}

static const struct term *rms_norm(struct proof *p, int array, const struct term *e) {
  return norm(p, false, array, e);
}

/* n = (x - mean) rstd */
static const struct term *normal(struct proof *p, const struct term *row, int64_t C, const struct term *column) {
  const struct term *x = in_row(p, "x", row, C, column);
  if (proof_count(p, "mean") > 0) x = sub(p, x, proof_element(p, "mean", row));
  return mul(p, x, proof_element(p, "rstd", row));
}

/* dx = rstd (g - avg(g) - n avg(g n)) with g = dy weight; dweight = sum dy n, dbias = sum dy. */
static const struct term *norm_backward(struct proof *p, bool centered, int array, const struct term *e) {
  const int64_t C = proof_count(p, "weight"), rows = proof_count(p, "x") / C;
  if (!proof_is(p, array, "dx")) {
    const struct term *r = term_variable(p->terms, rows), *dy = in_row(p, "dy", r, C, e);
    const struct term *one = proof_is(p, array, "dbias") ? dy : mul(p, dy, normal(p, r, C, e));
    const struct term *sum = term_sum(p->terms, one, term_atom(r));
    return p->variant > 0 ? add(p, proof_element(p, p->kernel->arrays[array].name, e), sum) : sum;
  }
  const struct term *row = proof_row(p, e, C), *column = proof_column(p, e, C), *k = term_variable(p->terms, C);
  const struct term *g = mul(p, in_row(p, "dy", row, C, k), proof_element(p, "weight", k));
  const struct term *of_g = centered ? mean(p, g, k, C) : term_number(p->terms, 0);
  const struct term *of_gn = mean(p, mul(p, g, normal(p, row, C, k)), k, C);
  const struct term *own = mul(p, in_row(p, "dy", row, C, column), proof_element(p, "weight", column));
  const struct term *rest = sub(p, sub(p, own, of_g), mul(p, normal(p, row, C, column), of_gn));
  return mul(p, rest, proof_element(p, "rstd", row));
}

static const struct term *layer_norm_backward(struct proof *p, int array, const struct term *e) {
  return norm_backward(p, true, array, e);
}

static const struct term *rms_norm_backward(struct proof *p, int array, const struct term *e) {
  return norm_backward(p, false, array, e);
}

/* ---- Softmax ---- */

static const struct term *softmax_of(struct proof *p, bool logs, const struct term *e) {
  const int64_t C = p->dims[p->n_dims - 1];
  const struct term *row = proof_row(p, e, C), *k = term_variable(p->terms, C), *x = proof_element(p, "x", e);
  const struct term *sum = term_sum(p->terms, term_exp(p->terms, in_row(p, "x", row, C, k)), term_atom(k));
  return logs ? sub(p, x, term_log(p->terms, sum)) : term_divide(p->terms, term_exp(p->terms, x), sum);
}

static const struct term *softmax(struct proof *p, int array, const struct term *e) {
  (void)array;
  return softmax_of(p, false, e);
}

static const struct term *log_softmax(struct proof *p, int array, const struct term *e) {
  (void)array;
  return softmax_of(p, true, e);
}

static const struct term *softmax_backward(struct proof *p, int array, const struct term *e) {
  const int64_t C = p->dims[p->n_dims - 1];
  const struct term *row = proof_row(p, e, C), *k = term_variable(p->terms, C);
  const struct term *both = mul(p, in_row(p, "y", row, C, k), in_row(p, "dy", row, C, k));
  const struct term *dot = term_sum(p->terms, both, term_atom(k));
  (void)array;
  return mul(p, proof_element(p, "y", e), sub(p, proof_element(p, "dy", e), dot));
}

const struct proof_named_formula proof_norm_formulas[] = {
    {"layer_norm", layer_norm, 0},
    {"layer_norm_backward", layer_norm_backward, 2},
    {"layer_norm_backward_add", layer_norm_backward, 2},
    {"rms_norm", rms_norm, 0},
    {"rms_norm_backward", rms_norm_backward, 2},
    {"rms_norm_backward_add", rms_norm_backward, 2},
    {"softmax", softmax, 1},
    {"log_softmax", log_softmax, 1},
    {"softmax_backward", softmax_backward, 1},
    {NULL, NULL, 0},
};

/* ---- Cross-entropy ---- */

/* 1 where a row has a target: one that is not -100 is at least 0. */
static const struct term *counted(struct proof *p, const struct term *row) {
  const struct term *target = proof_element(p, "targets", row);
  return sub(p, term_number(p->terms, 1), term_positive(p->terms, term_scale(p->terms, target, -1)));
}

static const struct term *log_of_sum(struct proof *p, const struct term *row, int64_t C) {
  const struct term *k = term_variable(p->terms, C);
  return term_log(p->terms, term_sum(p->terms, term_exp(p->terms, in_row(p, "logits", row, C, k)), term_atom(k)));
}

/* Variant 0: of the mean over the targets; 1: of their sum. */
static const struct term *cross_entropy(struct proof *p, int array, const struct term *e) {
  const int64_t rows = proof_count(p, "targets"), C = proof_count(p, "logits") / rows;
  const bool sums = p->variant > 0;
  if (proof_is(p, array, "lse")) return log_of_sum(p, e, C);
  const struct term *r = term_variable(p->terms, rows), *one = counted(p, r);
  const struct term *count = term_sum(p->terms, one, term_atom(r));
  if (proof_is(p, array, "scale")) return sums ? term_number(p->terms, 1) : term_power(p->terms, count, -1);
  const struct term *picked = in_row(p, "logits", r, C, proof_element(p, "targets", r));
  const struct term *total = term_sum(p->terms, mul(p, one, sub(p, log_of_sum(p, r, C), picked)), term_atom(r));
  return sums ? total : term_divide(p->terms, total, count);
}

/* d_loss scale (e^(logits - lse) - 1 at the target). */
static const struct term *cross_entropy_backward(struct proof *p, int array, const struct term *e) {
  const int64_t rows = proof_count(p, "targets"), C = proof_count(p, "logits") / rows;
  const struct term *row = proof_row(p, e, C), *column = proof_column(p, e, C), *zero = term_number(p->terms, 0);
  const struct term *is = term_zero(p->terms, sub(p, column, proof_element(p, "targets", row)));
  const struct term *share = term_exp(p->terms, sub(p, proof_element(p, "logits", e), proof_element(p, "lse", row)));
  const struct term *factor = mul(p, proof_element(p, "d_loss", zero), proof_element(p, "scale", zero));
  (void)array;
  return mul(p, mul(p, counted(p, row), factor), sub(p, share, is));
}

const struct proof_named_formula proof_loss_formulas[] = {
    {"cross_entropy", cross_entropy, 2},
    {"cross_entropy_backward", cross_entropy_backward, 1},
    {NULL, NULL, 0},
};
