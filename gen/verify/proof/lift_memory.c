/* What is where: pieces of memories. */
#include <math.h>
#include <string.h>

#include "gen/verify/proof/lift_private.h"

int lift_memory(struct lift *lift, bool given) {
  if (lift->n_memories + 1 >= MOST_MEMORIES) {
    lift_fail(lift, "it has too many variables");
    return 0;
  }
  lift->now.memories[++lift->n_memories] = (struct memory){.given = given, .depth = lift->depth};
  return lift->n_memories;
}

void lift_bind(struct lift *lift, const struct variable *variable, int memory, const struct term *byte) {
  if (lift->now.n_bindings >= MOST_BOUND) {
    lift_fail(lift, "it has too many variables");
    return;
  }
  lift->now.bindings[lift->now.n_bindings++] = (struct binding){variable, memory, byte};
}

const struct binding *lift_binding(const struct lift *lift, const struct variable *variable) {
  for (int i = lift->now.n_bindings - 1; i >= 0; i--)
    if (lift->now.bindings[i].variable == variable) return &lift->now.bindings[i];
  return NULL;
}

/* ---- Digits ---- */

/* A product that is a number of bytes times a whole number of the data. */
static bool is_of_data(const struct product *product) {
  return product->count == 1 && product->powers[0].power == 1 && product->powers[0].atom->kind == ATOM_READ;
}

static bool insert_digit(struct piece *piece, struct digit digit) {
  int at = piece->n;
  if (piece->n == MOST_DIGITS) return false;
  for (; at > 0 && piece->digits[at - 1].bytes < digit.bytes; at--) piece->digits[at] = piece->digits[at - 1];
  piece->digits[at] = digit;
  piece->n++;
  return true;
}

/* Whether no two values of the digits are the same place, by their sizes: of the data, a number is assumed to be less
 * than what the next larger digit leaves for it. */
static bool are_apart(const struct piece *piece) {
  for (int i = 0; i + 1 < piece->n; i++) {
    const struct digit *below = &piece->digits[i + 1];
    const double count = below->variable != NULL ? (double)below->variable->count[0] : 1;
    if (below->bytes * count > piece->digits[i].bytes) return false;
    if (below->variable == NULL && below->bytes >= piece->digits[i].bytes) return false;
  }
  return true;
}

static const struct term *term_of_one(struct lift *lift, const struct product *product, double by) {
  const struct term whole = {.count = 1, .products = product};
  return term_scale(lift->terms, &whole, by);
}

bool lift_add_digits(struct lift *lift, struct piece *piece, const struct atom *variable) {
  const struct term *rest = term_number(lift->terms, 0), *start = piece->start;
  for (int i = 0; i < start->count; i++) {
    const struct product *product = &start->products[i];
    const struct term *one = term_of_one(lift, product, 1);
    if (!term_has(one, variable)) {
      rest = term_add(lift->terms, rest, one);
      continue;
    }
    struct digit digit = {.bytes = product->factor};
    if (product->count != 1 || product->powers[0].power != 1 || product->factor <= 0) return false;
    if (product->powers[0].atom == variable)
      digit.variable = variable;
    else if (is_of_data(product))
      digit.data = term_of_one(lift, product, 1 / product->factor);
    else
      return false;
    if (!insert_digit(piece, digit)) return false;
  }
  piece->start = rest;
  return are_apart(piece);
}

/* a = bytes quotient + rest, where numbers of the data in the rest are assumed to be as small as they have to be. */
static bool divide(struct lift *lift, const struct term *a, double bytes, const struct term **quotient,
                   const struct term **rest) {
  const struct term *data = term_number(lift->terms, 0);
  for (int i = 0; i < a->count; i++) {
    if (is_of_data(&a->products[i]) && fmod(a->products[i].factor, bytes) != 0)
      data = term_add(lift->terms, data, term_of_one(lift, &a->products[i], 1));
  }
  if (!term_divided(lift->terms, term_subtract(lift->terms, a, data), bytes, quotient, rest)) return false;
  *rest = term_add(lift->terms, *rest, data);
  return true;
}

/* A term of a piece where its first n digits have these values. All at once: these may have variables of digits. */
static const struct term *value_at(struct lift *lift, const struct piece *piece, int n, const struct term *value,
                                   const struct term *values[MOST_DIGITS]) {
  const struct term *fresh[MOST_DIGITS];
  for (int i = 0; i < n; i++) {
    if (piece->digits[i].variable == NULL) continue;
    fresh[i] = term_variable(lift->terms, piece->digits[i].variable->count[0]);
    value = term_with(lift->terms, value, piece->digits[i].variable, fresh[i]);
  }
  for (int i = 0; i < n; i++)
    if (piece->digits[i].variable != NULL) value = term_with(lift->terms, value, term_atom(fresh[i]), values[i]);
  return value;
}

/* Of a digit, whether its value is one of the variable's: *condition is multiplied by that. */
static enum inside digit_inside(struct lift *lift, const struct piece *piece, int i,
                                const struct term *values[MOST_DIGITS], const struct term **condition) {
  const struct digit *digit = &piece->digits[i];
  const struct term *value = values[i];
  struct terms *terms = lift->terms;
  double low, high, x;
  const struct term *more;
  if (digit->variable == NULL) {
    for (int k = i; k < piece->n; k++)
      if (piece->digits[k].variable != NULL && term_has(digit->data, piece->digits[k].variable))
        lift_fail(lift, "it writes where a number says in a way that is not followed");
    more = term_zero(terms, term_subtract(terms, value, value_at(lift, piece, i, digit->data, values)));
  } else {
    const double count = (double)digit->variable->count[0];
    term_range(value, &low, &high);
    if (low >= 0 && high < count) return INSIDE_ALWAYS;
    if (high < 0 || low >= count) return INSIDE_NEVER;
    if (value->count == 1 && is_of_data(&value->products[0])) return INSIDE_ALWAYS; /* as is assumed */
    const struct term *under = term_positive(terms, term_subtract(terms, term_number(terms, count), value));
    const struct term *above = term_positive(terms, term_add(terms, value, term_number(terms, 1)));
    more = term_multiply(terms, under, above);
  }
  if (term_is_number(more, &x)) return x == 0 ? INSIDE_NEVER : INSIDE_ALWAYS;
  *condition = term_multiply(terms, *condition, more);
  return INSIDE_MAYBE;
}

/* Where the constant part of a piece's start can be written in its digits, without a carry: as these. Then a place is
 * divided as it is, and what is left of the start is subtracted from its digits. */
static bool start_in_digits(const struct piece *piece, double offsets[MOST_DIGITS], double *constant) {
  const bool has = piece->start->count > 0 && piece->start->products[0].count == 0;
  double rest = has ? piece->start->products[0].factor : 0;
  *constant = 0;
  for (int i = 0; i < piece->n; i++) {
    const struct digit *digit = &piece->digits[i];
    offsets[i] = floor(rest / digit->bytes);
    rest -= offsets[i] * digit->bytes;
    if (digit->variable == NULL && offsets[i] != 0) return false;
    if (i > 0 && digit->variable != NULL &&
        (offsets[i] + (double)digit->variable->count[0]) * digit->bytes > piece->digits[i - 1].bytes)
      return false;
    *constant += offsets[i] * digit->bytes;
  }
  return rest == 0;
}

enum inside lift_inside(struct lift *lift, const struct piece *piece, const struct term *byte,
                        const struct term *values[MOST_DIGITS], const struct term **condition) {
  double offsets[MOST_DIGITS] = {0}, constant;
  const struct term *rest = term_subtract(lift->terms, byte, piece->start);
  if (start_in_digits(piece, offsets, &constant))
    rest = term_add(lift->terms, rest, term_number(lift->terms, constant));
  else
    memset(offsets, 0, sizeof offsets);
  enum inside all = INSIDE_ALWAYS;
  double x;
  *condition = term_number(lift->terms, 1);
  for (int i = 0; i < piece->n; i++) {
    if (!divide(lift, rest, piece->digits[i].bytes, &values[i], &rest)) {
      lift_fail(lift, "what it reads may be in part what it has written");
      return INSIDE_NEVER;
    }
    values[i] = term_subtract(lift->terms, values[i], term_number(lift->terms, offsets[i]));
    const enum inside one = digit_inside(lift, piece, i, values, condition);
    if (one == INSIDE_NEVER) return INSIDE_NEVER;
    if (one == INSIDE_MAYBE) all = INSIDE_MAYBE;
  }
  if (term_is_number(rest, &x)) return x == 0 ? all : INSIDE_NEVER;
  *condition = term_multiply(lift->terms, *condition, term_zero(lift->terms, rest));
  if (term_is_number(*condition, &x)) return x == 0 ? INSIDE_NEVER : all;
  return INSIDE_MAYBE;
}

/* ---- Reading ---- */

static const struct term *first_number(struct lift *lift, const struct memory *memory, int number,
                                       const struct term *byte) {
  if (memory->carried > 0) return term_carried(lift->terms, number, memory->carried, byte);
  if (!memory->given) lift_fail(lift, "it reads what it has not written");
  return term_read(lift->terms, number, byte);
}

const struct term *lift_read_from(struct lift *lift, const struct memory *memory, int number, const struct term *byte) {
  const struct term *values[MOST_DIGITS], *condition;
  const struct piece *piece = memory->top;
  for (; piece != NULL && !lift_has_failed(lift); piece = piece->below) {
    const enum inside inside = lift_inside(lift, piece, byte, values, &condition);
    if (inside == INSIDE_NEVER) continue;
    const struct term *value = value_at(lift, piece, piece->n, piece->value, values);
    if (inside == INSIDE_ALWAYS && piece->over == NULL) return value;
    const struct memory rest = {piece->below, memory->given, memory->carried, 0};
    const struct term *below = lift_read_from(lift, &rest, number, byte);
    if (piece->over == NULL) return term_select(lift->terms, condition, value, below);
    const struct term *added = term_sum(lift->terms, term_multiply(lift->terms, condition, value), piece->over);
    return term_add(lift->terms, below, added);
  }
  return lift_has_failed(lift) ? term_number(lift->terms, 0) : first_number(lift, memory, number, byte);
}

const struct term *lift_read(struct lift *lift, int memory, const struct term *byte) {
  return lift_read_from(lift, &lift->now.memories[memory], memory, byte);
}

/* ---- Writing ---- */

/* The pieces below without the one that is at the same place, where that has no digits. */
static const struct piece *without(struct lift *lift, const struct piece *piece, const struct term *start) {
  if (piece == NULL || piece->n > 0) return piece;
  if (piece->start == start) return piece->below;
  const struct piece *below = without(lift, piece->below, start);
  if (below == piece->below) return piece;
  struct piece *copy = arena_alloc(lift->arena, sizeof *copy);
  *copy = *piece;
  copy->below = below;
  return copy;
}

void lift_push(struct lift *lift, int memory, struct piece piece) {
  struct memory *to = &lift->now.memories[memory];
  struct piece *made = arena_alloc(lift->arena, sizeof *made);
  *made = piece;
  made->below = piece.n == 0 && piece.over == NULL ? without(lift, to->top, piece.start) : to->top;
  to->top = made;
}

static void may_write(struct lift *lift, int memory) {
  if (lift->statics[memory] != NULL) lift_fail(lift, "it writes what outlives it");
  if (lift->early != NULL && memory <= lift->before) lift_fail(lift, "it writes where it may have returned before");
  if (lift->region > 0 && lift->now.memories[memory].depth < lift->region)
    lift_fail(lift, "all threads write the same number");
}

void lift_write(struct lift *lift, int memory, const struct term *byte, const struct term *value) {
  may_write(lift, memory);
  if (!lift_has_failed(lift)) lift_push(lift, memory, (struct piece){.start = byte, .value = value});
}

void lift_write_all(struct lift *lift, int memory, const struct term *start, double bytes, const struct atom *variable,
                    const struct term *value) {
  struct piece piece = {.start = start, .n = 1, .digits = {{bytes, variable, NULL}}, .value = value};
  may_write(lift, memory);
  if (!lift_has_failed(lift)) lift_push(lift, memory, piece);
}

/* ---- All of it ---- */

bool lift_writes(const struct lift *lift) {
  for (int m = 1; m <= lift->n_memories; m++)
    if (lift->now.memories[m].given && lift->now.memories[m].top != NULL) return true;
  return false;
}

const struct term *lift_content(struct lift *lift, int memory, const struct term *byte) {
  return lift_read(lift, memory, byte);
}

/* A place of a piece, by variables of its own, and how many places that are; those of the data are all that fit. */
static const struct term *place_of(struct lift *lift, const struct piece *piece, int64_t size, double *places) {
  const struct term *byte = piece->start;
  *places = 1;
  for (int i = 0; i < piece->n; i++) {
    const struct digit *digit = &piece->digits[i];
    const double above = i == 0 ? (double)size : piece->digits[i - 1].bytes;
    const double count = digit->variable != NULL ? (double)digit->variable->count[0] : floor(above / digit->bytes);
    const struct term *variable = term_variable(lift->terms, (int64_t)count);
    byte = term_add(lift->terms, byte, term_scale(lift->terms, variable, digit->bytes));
    *places *= count;
  }
  return byte;
}

/* Whether a place is in no piece between two. */
static bool is_new(struct lift *lift, const struct piece *from, const struct piece *to, const struct term *byte) {
  const struct term *values[MOST_DIGITS], *condition;
  for (; from != to; from = from->below)
    if (lift_inside(lift, from, byte, values, &condition) != INSIDE_NEVER || lift_has_failed(lift)) return false;
  return true;
}

bool lift_is_within(struct lift *lift, int memory, int64_t size, bool (*is_known)(void *data, double low, double high),
                    void *data) {
  for (const struct piece *at = lift->now.memories[memory].top; at != NULL; at = at->below) {
    double places, low, high;
    term_range(place_of(lift, at, size, &places), &low, &high);
    if (!is_known(data, low, high)) return false;
  }
  return true;
}

bool lift_places(struct lift *lift, int memory, int64_t first, int64_t size,
                 bool (*check)(void *data, const struct term *byte), void *data) {
  enum { ELEMENT = 4 };
  const struct piece *top = lift->now.memories[memory].top;
  const double end = (double)(first + size);
  double found = 0;
  for (const struct piece *at = top; at != NULL && found * ELEMENT < (double)size; at = at->below) {
    double places, low, high;
    const struct term *byte = place_of(lift, at, size, &places);
    term_range(byte, &low, &high);
    if (high < (double)first || low >= end) continue;
    if (places * ELEMENT < (double)size && !is_new(lift, top, at, byte)) {
      terms_forget_failure(lift->terms);
      continue;
    }
    if (low < (double)first || high > end - ELEMENT) {
      lift_fail(lift, "what it writes is not known to be inside of the array");
      return false;
    }
    if (!check(data, byte) || lift_has_failed(lift)) return false;
    found = places * ELEMENT >= (double)size ? places : found + places;
  }
  if (found * ELEMENT < (double)size) lift_fail(lift, "some of what it may write is not known to be written");
  return found * ELEMENT >= (double)size;
}
