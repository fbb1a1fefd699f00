#include "gen/verify/proof/term.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gen/verify/proof/term_private.h"

/* ---- One of each ---- */

struct terms *terms_in(struct arena *arena) {
  struct terms *terms = arena_alloc(arena, sizeof *terms);
  terms->arena = arena;
  return terms;
}

const char *terms_failure(const struct terms *terms) {
  return terms->failure;
}

void terms_fail(struct terms *terms, const char *why) {
  if (terms->failure == NULL) terms->failure = why;
}

void terms_forget_failure(struct terms *terms) {
  terms->failure = NULL;
}

/* Numbers of a program are rounded to float32; whole ones, such as places in memory, are exact. */
static bool is_near(double a, double b) {
  if (a == b) return true;
  if (floor(a) == a && floor(b) == b) return false;
  return fabs(a - b) <= 0x1p-23 * fmax(fabs(a), fabs(b));
}

/* One that is as near to a whole number as numbers may be is that: else a place in memory could be another number that
 * has been there before. */
static double settled(double x) {
  const double whole = rint(x);
  return fabs(x) >= 1 && fabs(x) < 0x1p20 && is_near(x, whole) ? whole : x;
}

static uint64_t mixed(uint64_t hash, uint64_t with) {
  hash = (hash ^ with) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 29;
}

static uint64_t bits_of(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static bool atoms_alike(const struct atom *a, const struct atom *b) {
  return a->kind == b->kind && a->which == b->which && a->n == b->n && a->arg == b->arg &&
         memcmp(a->count, b->count, sizeof a->count) == 0;
}

static uint64_t atom_hash(const struct atom *atom) {
  uint64_t hash = mixed((uint64_t)atom->kind, (uint64_t)atom->which);
  if (atom->arg != NULL) hash = mixed(hash, (uint64_t)atom->arg->serial);
  for (int i = 0; i < MOST_SUMMED; i++) hash = mixed(hash, (uint64_t)atom->count[i]);
  return hash % BUCKETS;
}

const struct atom *atom_found(const struct terms *terms, const struct atom *wanted) {
  const struct atom *at = terms->atoms[atom_hash(wanted)];
  while (at != NULL && !atoms_alike(at, wanted)) at = at->next;
  return at;
}

const struct atom *atom_like(struct terms *terms, struct atom wanted) {
  const struct atom *found = atom_found(terms, &wanted);
  if (found != NULL) return found;
  struct atom *made = arena_alloc(terms->arena, sizeof *made);
  const uint64_t hash = atom_hash(&wanted);
  *made = wanted;
  made->serial = ++terms->n_atoms;
  if (made->kind == ATOM_BOUND) made->level = made->which;
  if (made->arg != NULL && made->arg->level > made->level) made->level = made->arg->level;
  made->next = terms->atoms[hash];
  terms->atoms[hash] = made;
  return made;
}

/* The order of products in a term: by their atoms and powers. */
static int compare_powers(const struct product *a, const struct product *b) {
  for (int i = 0; i < a->count && i < b->count; i++) {
    if (a->powers[i].atom != b->powers[i].atom) return a->powers[i].atom->serial < b->powers[i].atom->serial ? -1 : 1;
    if (a->powers[i].power != b->powers[i].power) return a->powers[i].power < b->powers[i].power ? -1 : 1;
  }
  return (a->count > b->count) - (a->count < b->count);
}

static int compare_products(const void *a, const void *b) {
  return compare_powers(a, b);
}

static bool terms_alike(const struct term *a, const struct product *products, int count) {
  if (a->count != count) return false;
  for (int i = 0; i < count; i++)
    if (compare_powers(&a->products[i], &products[i]) != 0 || !is_near(a->products[i].factor, products[i].factor))
      return false;
  return true;
}

static int level_of(const struct product *products, int count) {
  int level = 0;
  for (int i = 0; i < count; i++)
    for (int k = 0; k < products[i].count; k++)
      if (products[i].powers[k].atom->level > level) level = products[i].powers[k].atom->level;
  return level;
}

/* Sorts products, adds up like ones, and gives the term; `products` is the caller's. */
static const struct term *term_like(struct terms *terms, struct product *products, int count) {
  int kept = 0;
  uint64_t hash = 1;
  if (count > MOST_PRODUCTS) {
    terms_fail(terms, "its term is too large");
    count = 0;
  }
  if (count > 1) qsort(products, (size_t)count, sizeof *products, compare_products);
  for (int i = 0; i < count; i++) {
    if (kept > 0 && compare_powers(&products[kept - 1], &products[i]) == 0) {
      const double a = products[kept - 1].factor, b = products[i].factor;
      products[kept - 1].factor = is_near(a, -b) ? 0 : a + b;
    } else {
      products[kept++] = products[i];
    }
    products[kept - 1].factor = settled(products[kept - 1].factor);
    if (products[kept - 1].factor == 0) kept--;
  }
  for (int i = 0; i < kept; i++)
    for (int k = 0; k < products[i].count; k++)
      hash = mixed(mixed(hash, (uint64_t)products[i].powers[k].atom->serial), bits_of(products[i].powers[k].power));
  hash %= BUCKETS;
  for (const struct term *at = terms->terms[hash]; at != NULL; at = at->next)
    if (terms_alike(at, products, kept)) return at;
  struct term *made = arena_alloc(terms->arena, sizeof *made);
  struct product *copy = arena_alloc(terms->arena, (size_t)(kept + 1) * sizeof *copy);
  if (kept > 0) memcpy(copy, products, (size_t)kept * sizeof *copy);
  *made = (struct term){.serial = ++terms->n_terms, .count = kept, .products = copy, .next = terms->terms[hash]};
  made->level = level_of(copy, kept);
  terms->terms[hash] = made;
  return made;
}

const struct term *term_of_product(struct terms *terms, const struct product *product) {
  struct product copy = *product;
  return term_like(terms, &copy, 1);
}

const struct term *term_of(struct terms *terms, const struct atom *atom, double power, double factor) {
  struct power *one = arena_alloc(terms->arena, sizeof *one);
  *one = (struct power){atom, power};
  struct product product = {factor, 1, one};
  return term_like(terms, &product, 1);
}

/* ---- Arithmetic ---- */

const struct term *term_number(struct terms *terms, double x) {
  struct product product = {x, 0, NULL};
  return term_like(terms, &product, x == 0 ? 0 : 1);
}

const struct term *term_scale(struct terms *terms, const struct term *a, double by) {
  struct product *products = malloc((size_t)(a->count + 1) * sizeof *products);
  if (products == NULL) abort();
  for (int i = 0; i < a->count; i++)
    products[i] = (struct product){a->products[i].factor * by, a->products[i].count, a->products[i].powers};
  const struct term *scaled = term_like(terms, products, by == 0 ? 0 : a->count);
  free(products);
  return scaled;
}

const struct term *term_add(struct terms *terms, const struct term *a, const struct term *b) {
  struct product *products = malloc((size_t)(a->count + b->count + 1) * sizeof *products);
  if (products == NULL) abort();
  for (int i = 0; i < a->count; i++) products[i] = a->products[i];
  for (int i = 0; i < b->count; i++) products[a->count + i] = b->products[i];
  const struct term *sum = term_like(terms, products, a->count + b->count);
  free(products);
  return sum;
}

const struct term *term_subtract(struct terms *terms, const struct term *a, const struct term *b) {
  return term_add(terms, a, term_scale(terms, b, -1));
}

bool atom_is_condition(const struct atom *atom) {
  return atom->kind == ATOM_POSITIVE || atom->kind == ATOM_ZERO;
}

/* Of conditions, powers are themselves; where one is x = 0, a product with x is 0, and so is one with x > 0. */
static bool is_nothing(const struct power *powers, int count) {
  for (int i = 0; i < count; i++) {
    if (powers[i].atom->kind != ATOM_ZERO) continue;
    const struct term *is_zero = powers[i].atom->arg;
    for (int k = 0; k < count; k++) {
      if (powers[k].power > 0 && term_atom(is_zero) == powers[k].atom) return true;
      if (powers[k].atom->kind == ATOM_POSITIVE && powers[k].atom->arg == is_zero) return true;
    }
  }
  return false;
}

/* Of two conditions of terms that differ by a number, x > 0 or x = 0 and x + number > 0: *implied, the one that follows
 * from the other. False: they exclude each other. */
static bool are_possible(struct terms *terms, const struct atom *a, const struct atom *b, int *implied) {
  double more;
  if (a->kind == ATOM_ZERO && b->kind == ATOM_ZERO) return true; /* one has the other's value already */
  if (!term_is_number(term_subtract(terms, b->arg, a->arg), &more)) return true;
  if (a->kind == ATOM_POSITIVE && b->kind == ATOM_POSITIVE) {
    *implied = more > 0;
    return true;
  }
  const bool holds = a->kind == ATOM_ZERO ? more > 0 : more < 0;
  *implied = a->kind == ATOM_ZERO;
  return holds;
}

/* Leaves out conditions that follow from others; the number that is left, or -1 where they exclude each other. */
static int without_implied(struct terms *terms, struct power *powers, int count) {
  for (int i = 0; i < count; i++)
    for (int k = i + 1; k < count && atom_is_condition(powers[i].atom); k++) {
      int implied = -1;
      if (!atom_is_condition(powers[k].atom)) continue;
      if (!are_possible(terms, powers[i].atom, powers[k].atom, &implied)) return -1;
      if (implied < 0) continue;
      const int out = implied == 0 ? i : k;
      memmove(powers + out, powers + out + 1, (size_t)(count - out - 1) * sizeof *powers);
      return without_implied(terms, powers, count - 1);
    }
  return count;
}

/* Puts the powers of both together; *open: one of them is a sum that has to be multiplied out, as often as its power.
 */
static struct product product_of(struct terms *terms, const struct product *a, const struct product *b, int *open) {
  struct power *powers = arena_alloc(terms->arena, (size_t)(a->count + b->count + 1) * sizeof *powers);
  int count = 0, i = 0, k = 0;
  *open = -1;
  while (i < a->count || k < b->count) {
    const bool first = k == b->count || (i < a->count && a->powers[i].atom->serial <= b->powers[k].atom->serial);
    struct power next = first ? a->powers[i++] : b->powers[k++];
    if (first && k < b->count && b->powers[k].atom == next.atom) next.power += b->powers[k++].power;
    if (atom_is_condition(next.atom)) next.power = 1;
    if (fabs(next.power) < 1e-9) continue;
    if (next.atom->kind == ATOM_BASE && next.power > 0 && floor(next.power) == next.power) *open = count;
    powers[count++] = next;
  }
  const int left = is_nothing(powers, count) ? -1 : without_implied(terms, powers, count);
  if (left >= 0 && left < count) {
    const struct product product = {a->factor * b->factor, left, powers};
    return product_of(terms, &product, &(struct product){1, 0, NULL}, open);
  }
  const double factor = left < 0 ? 0 : a->factor * b->factor;
  return (struct product){factor, count, powers};
}

/* A product in which powers[open] is a sum to a positive whole power. */
static const struct term *opened(struct terms *terms, struct product product, int open) {
  struct power *rest = arena_alloc(terms->arena, (size_t)(product.count + 1) * sizeof *rest);
  const struct power sum = product.powers[open];
  int count = 0;
  for (int i = 0; i < product.count; i++)
    if (i != open) rest[count++] = product.powers[i];
  const struct product without = {product.factor, count, rest};
  const struct term *result = term_of_product(terms, &without);
  for (int i = 0; i < (int)sum.power && i < 8; i++) result = term_multiply(terms, result, sum.atom->arg);
  if (sum.power > 8) terms_fail(terms, "its powers are too high");
  return result;
}

/* Of a factor that is 1 where variable = value and 0 elsewhere: the variable; NULL: it is none. */
static const struct atom *equal_variable(const struct atom *atom, double *factor) {
  if (atom->kind != ATOM_ZERO) return NULL;
  for (int i = 0; i < atom->arg->count; i++) {
    const struct product *product = &atom->arg->products[i];
    const bool one = product->count == 1 && product->powers[0].power == 1;
    *factor = product->factor;
    if (one && fabs(product->factor) == 1 &&
        (product->powers[0].atom->kind == ATOM_VARIABLE || product->powers[0].atom->kind == ATOM_BOUND))
      return product->powers[0].atom;
  }
  return NULL;
}

/* The other factors of such a product may have the value as well as the variable: they have the value. */
static const struct term *with_equal(struct terms *terms, const struct product *product) {
  for (int i = 0; i < product->count; i++) {
    double factor;
    const struct atom *variable = equal_variable(product->powers[i].atom, &factor);
    if (variable == NULL) continue;
    const struct term *self = term_of(terms, variable, 1, 1);
    const struct term *value = term_subtract(terms, self, term_scale(terms, product->powers[i].atom->arg, 1 / factor));
    const struct term *rest = term_number(terms, product->factor);
    bool any = false;
    for (int k = 0; k < product->count; k++) {
      const struct term *one = term_of(terms, product->powers[k].atom, product->powers[k].power, 1);
      const bool has = k != i && term_has(one, variable);
      any = any || has;
      if (k != i) rest = term_multiply(terms, rest, has ? term_with(terms, one, variable, value) : one);
    }
    if (any) return term_multiply(terms, rest, term_of(terms, product->powers[i].atom, 1, 1));
  }
  return NULL;
}

static const struct term *with_equals(struct terms *terms, const struct term *a) {
  for (int i = 0; i < a->count && terms->failure == NULL; i++) {
    const struct term *changed = with_equal(terms, &a->products[i]);
    if (changed == NULL) continue;
    const struct term *others = term_subtract(terms, a, term_of_product(terms, &a->products[i]));
    return with_equals(terms, term_add(terms, others, changed));
  }
  return a;
}

const struct term *term_multiply(struct terms *terms, const struct term *a, const struct term *b) {
  const struct term *more = term_number(terms, 0);
  if (terms->failure != NULL || a->count == 0 || b->count == 0) return more;
  if ((int64_t)a->count * b->count > MOST_PRODUCTS) {
    terms_fail(terms, "its term is too large");
    return more;
  }
  struct product *products = malloc((size_t)a->count * (size_t)b->count * sizeof *products);
  if (products == NULL) abort();
  int count = 0;
  for (int i = 0; i < a->count; i++)
    for (int k = 0; k < b->count; k++) {
      int open;
      const struct product product = product_of(terms, &a->products[i], &b->products[k], &open);
      if (open >= 0)
        more = term_add(terms, more, opened(terms, product, open));
      else
        products[count++] = product;
    }
  const struct term *result = term_add(terms, term_like(terms, products, count), more);
  free(products);
  return with_equals(terms, result);
}

/* ---- Powers ---- */

/* Whether an atom is never negative, so that (x^a)^b = x^(a b). */
static bool is_size(const struct atom *atom, double power) {
  return atom->kind == ATOM_EXP || atom_is_condition(atom) ||
         (atom->kind == ATOM_BASE && floor(power) != power); /* a root */
}

static const struct term *base_power(struct terms *terms, const struct term *a, double power) {
  const double leading = a->products[0].factor, size = floor(power) == power ? leading : fabs(leading);
  const struct term *base = term_scale(terms, a, 1 / size);
  const struct atom *atom = atom_like(terms, (struct atom){.kind = ATOM_BASE, .arg = base});
  return term_of(terms, atom, power, pow(size, power));
}

/* One product: what may be taken out of a root is, the rest is under it. */
static const struct term *product_power(struct terms *terms, const struct product *a, double power) {
  const bool whole = floor(power) == power;
  struct power *out = arena_alloc(terms->arena, (size_t)(a->count + 1) * sizeof *out);
  struct power *under = arena_alloc(terms->arena, (size_t)(a->count + 1) * sizeof *under);
  int n_out = 0, n_under = 0;
  for (int i = 0; i < a->count; i++) {
    const struct power one = a->powers[i];
    if (whole || is_size(one.atom, one.power))
      out[n_out++] = (struct power){one.atom, atom_is_condition(one.atom) ? 1 : one.power * power};
    else
      under[n_under++] = one;
  }
  const bool takes = whole || a->factor > 0;
  const struct product outer = {takes ? pow(a->factor, power) : 1, n_out, out};
  const struct product inner = {takes ? 1 : a->factor, n_under, under};
  const struct product one = {1, 0, NULL};
  int open;
  const struct product clean = product_of(terms, &outer, &one, &open);
  const struct term *result = open >= 0 ? opened(terms, clean, open) : term_of_product(terms, &clean);
  if (n_under == 0 && takes) return result;
  const struct term *rest = term_of_product(terms, &inner);
  const struct atom *atom = atom_like(terms, (struct atom){.kind = ATOM_BASE, .arg = rest});
  return term_multiply(terms, result, term_of(terms, atom, power, 1));
}

const struct term *term_power(struct terms *terms, const struct term *a, double power) {
  if (power == 0) return term_number(terms, 1);
  if (power == 1 || terms->failure != NULL) return a;
  if (a->count == 0) {
    if (power < 0) terms_fail(terms, "it divides by 0");
    return a;
  }
  if (a->count == 1) return product_power(terms, &a->products[0], power);
  if (power < 0 || floor(power) != power) return base_power(terms, a, power);
  const struct term *result = a;
  if (power > 8) terms_fail(terms, "its powers are too high");
  for (int i = 1; i < (int)power && i < 8; i++) result = term_multiply(terms, result, a);
  return result;
}

const struct term *term_divide(struct terms *terms, const struct term *a, const struct term *b) {
  return term_multiply(terms, a, term_power(terms, b, -1));
}
