/* Sums over variables, and what a term is where a variable has a value.
 *
 * A sum is linear, and what does not depend on its variables is outside of it. Sums of sums are one, over several
 * variables. Two variables a and b that the summed term has as n_b a + b alone are one variable: so a sum by blocks or
 * by lanes is the sum in a row. */
#include <math.h>

#include "gen/verify/proof/term_private.h"

const struct term *term_variable(struct terms *terms, int64_t count) {
  const struct atom wanted = {.kind = ATOM_VARIABLE, .which = ++terms->n_variables, .count = {count}};
  return term_of(terms, atom_like(terms, wanted), 1, 1);
}

const struct term *term_symbol(struct terms *terms) {
  return term_read(terms, 0, term_number(terms, 0));
}

const struct term *term_of_variable(struct terms *terms, const struct atom *variable) {
  return term_of(terms, variable, 1, 1);
}

const struct term *term_read(struct terms *terms, int memory, const struct term *byte) {
  return term_of(terms, atom_like(terms, (struct atom){.kind = ATOM_READ, .which = memory, .arg = byte}), 1, 1);
}

const struct term *term_carried(struct terms *terms, int memory, int loop, const struct term *byte) {
  const struct atom wanted = {.kind = ATOM_CARRIED, .which = memory, .count = {loop}, .arg = byte};
  return term_of(terms, atom_like(terms, wanted), 1, 1);
}

/* ---- Sums ---- */

struct summed {
  const struct atom *variables[MOST_SUMMED];
  int n;
};

static const struct term *sum_of(struct terms *terms, const struct term *body, struct summed over);

/* The variables of a sum become new ones: *over has them too, and the term is what is summed. NULL: there are too
 * many. */
static const struct term *unbound(struct terms *terms, const struct atom *sum, struct summed *over) {
  const struct term *body = sum->arg;
  if (over->n + sum->n > MOST_SUMMED) return NULL;
  for (int i = 0; i < sum->n; i++) {
    const struct atom wanted = {.kind = ATOM_BOUND, .which = sum->level - sum->n + 1 + i, .count = {sum->count[i]}};
    const struct atom *bound = atom_found(terms, &wanted);
    const struct term *fresh = term_variable(terms, sum->count[i]);
    over->variables[over->n++] = term_atom(fresh);
    if (bound != NULL) body = term_with(terms, body, bound, fresh);
  }
  return body;
}

/* The sum with its variables in an order: the atom, or, unless `makes`, NULL where there is none yet. */
static const struct atom *bound_sum(struct terms *terms, enum atom_kind kind, const struct term *body,
                                    struct summed over, const int *order, bool makes) {
  const int level = body->level;
  struct atom wanted = {.kind = kind, .n = over.n};
  for (int i = 0; i < over.n; i++) {
    const struct atom *variable = over.variables[order[i]];
    const struct atom bound = {.kind = ATOM_BOUND, .which = level + 1 + i, .count = {variable->count[0]}};
    body = term_with(terms, body, variable, term_of(terms, atom_like(terms, bound), 1, 1));
    wanted.count[i] = variable->count[0];
  }
  wanted.arg = body;
  return makes ? atom_like(terms, wanted) : atom_found(terms, &wanted);
}

/* Tries the orders of variables from `from` on. */
static const struct atom *any_order(struct terms *terms, const struct term *body, struct summed over, int *order,
                                    int from) {
  if (from == over.n) return bound_sum(terms, ATOM_SUM, body, over, order, false);
  for (int i = from; i < over.n; i++) {
    const int first = order[from];
    order[from] = order[i];
    order[i] = first;
    const struct atom *found = any_order(terms, body, over, order, from + 1);
    order[i] = order[from];
    order[from] = first;
    if (found != NULL) return found;
  }
  return NULL;
}

/* n_b a + b becomes one variable: *body and *over. False: no two are so. */
static bool merge(struct terms *terms, const struct term **body, struct summed *over) {
  for (int a = 0; a < over->n; a++)
    for (int b = 0; b < over->n; b++) {
      if (a == b) continue;
      const int64_t inner = over->variables[b]->count[0];
      const struct term *both = term_variable(terms, inner * over->variables[a]->count[0]);
      const struct term *outer = term_of(terms, over->variables[a], 1, (double)inner);
      const struct term *changed = term_with(terms, *body, over->variables[b], term_subtract(terms, both, outer));
      if (term_has(changed, over->variables[a])) continue;
      *body = changed;
      over->variables[a] = term_atom(both);
      over->variables[b] = over->variables[--over->n];
      return true;
    }
  return false;
}

/* Where a factor is 1 for some values of a variable alone, up to a number or from one on, these are the variable's:
 * *body and *over. */
static bool narrow(struct terms *terms, const struct term **body, struct summed *over) {
  for (int i = 0; i < (*body)->products[0].count; i++) {
    const struct atom *atom = (*body)->products[0].powers[i].atom;
    if (atom->kind != ATOM_POSITIVE || atom->arg->count > 2) continue;
    for (int k = 0; k < over->n; k++) {
      const struct atom *variable = over->variables[k];
      const struct term *at_0 = term_with(terms, atom->arg, variable, term_number(terms, 0));
      const struct term *at_1 = term_with(terms, atom->arg, variable, term_number(terms, 1));
      double first, second;
      if (!term_is_number(at_0, &first) || !term_is_number(at_1, &second) || first == second) continue;
      const double zero = first / (first - second), count = (double)variable->count[0]; /* where it is 0 */
      const double from = second > first ? fmax(0, floor(zero + 1e-9) + 1) : 0;
      const double to = second > first ? count : fmin(count, ceil(zero - 1e-9));
      if (to <= from) {
        *body = term_number(terms, 0);
        return true;
      }
      const struct term *fresh = term_variable(terms, (int64_t)(to - from));
      *body = term_with(terms, *body, variable, term_add(terms, fresh, term_number(terms, from)));
      over->variables[k] = term_atom(fresh);
      return true;
    }
  }
  return false;
}

static bool depends(const struct atom *atom, const struct summed *over) {
  for (int i = 0; i < over->n; i++)
    if (atom == over->variables[i] || (atom->arg != NULL && term_has(atom->arg, over->variables[i]))) return true;
  return false;
}

/* The sum of a product. */
static const struct term *sum_product(struct terms *terms, const struct product *product, struct summed over) {
  struct power *out = arena_alloc(terms->arena, (size_t)(product->count + 1) * sizeof *out);
  struct power *in = arena_alloc(terms->arena, (size_t)(product->count + 1) * sizeof *in);
  struct product outer = {product->factor, 0, out}, inner = {1, 0, in};
  const struct atom *sum = NULL;
  for (int i = 0; i < product->count; i++) {
    const struct power one = product->powers[i];
    if (!depends(one.atom, &over))
      out[outer.count++] = one;
    else if (sum == NULL && one.atom->kind == ATOM_SUM && one.power == 1 && over.n + one.atom->n <= MOST_SUMMED)
      sum = one.atom;
    else
      in[inner.count++] = one;
  }
  const struct term *body = term_of_product(terms, &inner), *before = term_of_product(terms, &outer);
  if (sum != NULL) {
    const struct term *summed = unbound(terms, sum, &over);
    return term_multiply(terms, before, sum_of(terms, term_multiply(terms, body, summed), over));
  }
  for (int i = 0; i < over.n; i++) { /* one that nothing depends on, or that has one value */
    const struct atom *variable = over.variables[i];
    if (term_has(body, variable) && variable->count[0] > 1) continue;
    over.variables[i] = over.variables[--over.n];
    body = term_with(terms, body, variable, term_number(terms, 0));
    return term_multiply(terms, term_scale(terms, before, (double)variable->count[0]), sum_of(terms, body, over));
  }
  if (over.n == 0) return term_multiply(terms, before, body);
  if (narrow(terms, &body, &over)) return term_multiply(terms, before, sum_of(terms, body, over));
  if (over.n > 1 && merge(terms, &body, &over)) return term_multiply(terms, before, sum_of(terms, body, over));
  int order[MOST_SUMMED] = {0, 1, 2, 3};
  const struct atom *found = any_order(terms, body, over, order, 0);
  if (found == NULL) found = bound_sum(terms, ATOM_SUM, body, over, order, true);
  return term_multiply(terms, before, term_of(terms, found, 1, 1));
}

static const struct term *sum_of(struct terms *terms, const struct term *body, struct summed over) {
  const struct term *result = term_number(terms, 0);
  for (int i = 0; i < body->count && terms->failure == NULL; i++)
    result = term_add(terms, result, sum_product(terms, &body->products[i], over));
  return result;
}

const struct term *term_sum(struct terms *terms, const struct term *a, const struct atom *variable) {
  return sum_of(terms, a, (struct summed){{variable}, 1});
}

const struct term *term_most(struct terms *terms, const struct term *a, const struct atom *variable) {
  const int order[MOST_SUMMED] = {0};
  if (!term_has(a, variable)) return a;
  const struct summed over = {{variable}, 1};
  return term_of(terms, bound_sum(terms, ATOM_MOST, a, over, order, true), 1, 1);
}

/* ---- Values of variables ---- */

/* A variable that becomes one of an outer sum, or is one no more, leaves the sum as it is: its own ones have lower
 * numbers. For any other value they become new ones first, so that they are none of the value's. */
static const struct term *sum_with(struct terms *terms, const struct atom *sum, const struct atom *variable,
                                   const struct term *value) {
  const struct atom *other = term_atom(value);
  if (other != NULL && (other->kind == ATOM_BOUND || (variable->kind == ATOM_BOUND && other->kind == ATOM_VARIABLE))) {
    struct atom wanted = *sum;
    wanted.arg = term_with(terms, sum->arg, variable, value);
    wanted.level = 0;
    return term_of(terms, atom_like(terms, wanted), 1, 1);
  }
  struct summed over = {.n = 0};
  const struct term *body = term_with(terms, unbound(terms, sum, &over), variable, value);
  return sum->kind == ATOM_SUM ? sum_of(terms, body, over) : term_most(terms, body, over.variables[0]);
}

static const struct term *power_with(struct terms *terms, struct power one, const struct atom *variable,
                                     const struct term *value) {
  const struct atom *atom = one.atom;
  if (atom == variable) return term_power(terms, value, one.power);
  if (atom->arg == NULL || !term_has(atom->arg, variable)) return term_of(terms, atom, one.power, 1);
  if (atom->kind == ATOM_SUM || atom->kind == ATOM_MOST)
    return term_power(terms, sum_with(terms, atom, variable, value), one.power);
  const struct term *arg = term_with(terms, atom->arg, variable, value), *result = arg;
  if (atom->kind == ATOM_READ) result = term_read(terms, atom->which, arg);
  if (atom->kind == ATOM_CARRIED) result = term_carried(terms, atom->which, (int)atom->count[0], arg);
  if (atom->kind == ATOM_CALL) result = term_call(terms, (enum term_function)atom->which, arg);
  if (atom->kind == ATOM_EXP) result = term_exp(terms, arg);
  if (atom->kind == ATOM_POSITIVE) result = term_positive(terms, arg);
  if (atom->kind == ATOM_ZERO) result = term_zero(terms, arg);
  return term_power(terms, result, one.power); /* of ATOM_BASE, the sum itself */
}

const struct term *term_with(struct terms *terms, const struct term *a, const struct atom *variable,
                             const struct term *value) {
  const struct term *result = term_number(terms, 0);
  if (!term_has(a, variable)) return a;
  for (int i = 0; i < a->count && terms->failure == NULL; i++) {
    const struct term *product = term_number(terms, a->products[i].factor);
    for (int k = 0; k < a->products[i].count; k++)
      product = term_multiply(terms, product, power_with(terms, a->products[i].powers[k], variable, value));
    result = term_add(terms, result, product);
  }
  return result;
}
