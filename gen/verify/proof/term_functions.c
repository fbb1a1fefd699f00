/* Functions of terms: each in the one form that stands for all ways to write it. */
#include <math.h>

#include "gen/verify/proof/term_private.h"

static const struct term *one_less(struct terms *terms, const struct term *a) {
  return term_subtract(terms, term_number(terms, 1), a);
}

static const struct term *called(struct terms *terms, enum term_function function, const struct term *a) {
  const struct atom *atom = atom_like(terms, (struct atom){.kind = ATOM_CALL, .which = (int)function, .arg = a});
  return term_of(terms, atom, 1, 1);
}

/* e^(factor product) */
static const struct term *exp_of_product(struct terms *terms, const struct product *product) {
  const struct product one = {1, product->count, product->powers};
  if (product->count == 0) return term_number(terms, exp(product->factor));
  const struct atom *first = product->powers[0].atom;
  if (product->count == 1 && product->powers[0].power == 1 && first->kind == ATOM_CALL && first->which == TERM_LOG)
    return term_power(terms, first->arg, product->factor);
  const struct atom *atom = atom_like(terms, (struct atom){.kind = ATOM_EXP, .arg = term_of_product(terms, &one)});
  return term_of(terms, atom, product->factor, 1);
}

const struct term *term_exp(struct terms *terms, const struct term *a) {
  const struct term *result = term_number(terms, 1);
  for (int i = 0; i < a->count; i++) result = term_multiply(terms, result, exp_of_product(terms, &a->products[i]));
  return result;
}

const struct term *term_log(struct terms *terms, const struct term *a) {
  if (a->count == 0 || (a->count == 1 && a->products[0].factor <= 0)) {
    terms_fail(terms, "it takes the logarithm of what is not positive");
    return a;
  }
  const double size = fabs(a->products[0].factor);
  const struct term *result = term_number(terms, log(size));
  if (a->count > 1) return term_add(terms, result, called(terms, TERM_LOG, term_scale(terms, a, 1 / size)));
  for (int k = 0; k < a->products[0].count; k++) {
    const struct power one = a->products[0].powers[k];
    const struct term *of = one.atom->kind == ATOM_EXP    ? one.atom->arg
                            : one.atom->kind == ATOM_BASE ? term_log(terms, one.atom->arg)
                                                          : called(terms, TERM_LOG, term_of(terms, one.atom, 1, 1));
    result = term_add(terms, result, term_scale(terms, of, one.power));
  }
  return result;
}

const struct term *term_call(struct terms *terms, enum term_function function, const struct term *a) {
  if (function == TERM_LOG) return term_log(terms, a);
  if (function == TERM_WHOLE || function == TERM_FLOOR || a->count == 0 || a->products[0].factor > 0)
    return called(terms, function, a);
  const struct term *turned = called(terms, function, term_scale(terms, a, -1));
  if (function == TERM_COS) return turned;
  return function == TERM_SIN ? term_scale(terms, turned, -1) : one_less(terms, turned);
}

const struct term *term_tanh(struct terms *terms, const struct term *a) {
  const struct term *gate = term_call(terms, TERM_SIGMOID, term_scale(terms, a, 2));
  return term_subtract(terms, term_scale(terms, gate, 2), term_number(terms, 1));
}

/* ---- Conditions ---- */

static const struct term *condition(struct terms *terms, enum atom_kind kind, const struct term *a) {
  return term_of(terms, atom_like(terms, (struct atom){.kind = kind, .arg = a}), 1, 1);
}

/* The factor by which a condition's term is divided: of its first product, but of numbers of the data of the first one
 * that is no number, so that conditions that differ by a number have terms that do. */
static double leading_of(const struct term *a) {
  double low, high;
  term_range(a, &low, &high);
  const bool of_data = !isfinite(low) || !isfinite(high);
  return a->products[of_data && a->count > 1 && a->products[0].count == 0].factor;
}

const struct term *term_zero(struct terms *terms, const struct term *a) {
  double low, high;
  term_range(a, &low, &high);
  if (low > 0 || high < 0) return term_number(terms, 0);
  if (a->count == 0) return term_number(terms, 1);
  return condition(terms, ATOM_ZERO, term_scale(terms, a, 1 / leading_of(a)));
}

const struct term *term_positive(struct terms *terms, const struct term *a) {
  double low, high;
  term_range(a, &low, &high);
  if (low > 0) return term_number(terms, 1);
  if (high <= 0 || a->count == 0) return term_number(terms, 0);
  const double leading = leading_of(a);
  const struct term *turned = condition(terms, ATOM_POSITIVE, term_scale(terms, a, 1 / leading));
  return leading > 0 ? turned : term_subtract(terms, one_less(terms, turned), term_zero(terms, a));
}

const struct term *term_select(struct terms *terms, const struct term *condition, const struct term *a,
                               const struct term *b) {
  return term_add(terms, b, term_multiply(terms, condition, term_subtract(terms, a, b)));
}

const struct term *term_larger(struct terms *terms, const struct term *a, const struct term *b) {
  const struct term *difference = term_subtract(terms, a, b);
  const bool turned = difference->count > 0 && difference->products[0].factor < 0;
  if (turned) difference = term_scale(terms, difference, -1);
  return term_add(terms, turned ? a : b, term_multiply(terms, term_positive(terms, difference), difference));
}

/* ---- Slopes ---- */

static const struct term *atom_slope(struct terms *terms, const struct atom *atom, const struct atom *variable) {
  static const double bell = 0.39894228040143267794; /* 1 / sqrt(2 pi) */
  const struct term *self = term_of(terms, atom, 1, 1), *outer = NULL;
  if (atom == variable) return term_number(terms, 1);
  if (atom->arg == NULL || !term_has(atom->arg, variable) || atom->kind == ATOM_POSITIVE || atom->kind == ATOM_ZERO)
    return term_number(terms, 0);
  const struct term *inner = term_slope(terms, atom->arg, variable);
  if (atom->kind == ATOM_BASE) outer = term_number(terms, 1);
  if (atom->kind == ATOM_EXP) outer = self;
  if (atom->kind == ATOM_CALL && atom->which == TERM_SIGMOID) outer = term_multiply(terms, self, one_less(terms, self));
  if (atom->kind == ATOM_CALL && atom->which == TERM_NORMAL) {
    const struct term *square = term_multiply(terms, atom->arg, atom->arg);
    outer = term_scale(terms, term_exp(terms, term_scale(terms, square, -0.5)), bell);
  }
  if (outer != NULL) return term_multiply(terms, outer, inner);
  terms_fail(terms, "its slope is not known");
  return inner;
}

const struct term *term_slope(struct terms *terms, const struct term *a, const struct atom *variable) {
  const struct term *result = term_number(terms, 0);
  for (int i = 0; i < a->count; i++)
    for (int k = 0; k < a->products[i].count; k++) {
      const struct power one = a->products[i].powers[k];
      const struct term *slope = atom_slope(terms, one.atom, variable);
      if (slope->count == 0) continue;
      const struct term *product = term_of_product(terms, &a->products[i]);
      const struct term *rest = term_multiply(terms, product, term_of(terms, one.atom, -1, one.power));
      result = term_add(terms, result, term_multiply(terms, rest, slope));
    }
  return result;
}
