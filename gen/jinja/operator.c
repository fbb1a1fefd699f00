/* Operators on values, with Python's meaning. */
#include <math.h>
#include <string.h>

#include "gen/jinja/format.h"
#include "gen/jinja/support.h"

static const char *const signs[] = {"+", "-", "*", "/", "//", "%", "** or pow()", "==", "!=", "<", "<=", ">", ">="};

static _Noreturn void unsupported(struct run *run, enum operator op, struct jinja_value left,
                                  struct jinja_value right) {
  if (left.kind == JINJA_UNDEFINED) jj_fail_undefined(run, left);
  if (right.kind == JINJA_UNDEFINED) jj_fail_undefined(run, right);
  jj_fail(run, "unsupported operand type(s) for %s: '%s' and '%s'", signs[op], jj_type_name(left), jj_type_name(right));
}

static _Noreturn void overflow(struct run *run) {
  jj_fail(run, "the result does not fit in a 64-bit integer");
}

/* --- arithmetic --- */

static int64_t floor_divide(struct run *run, int64_t a, int64_t b) {
  if (b == 0) jj_fail(run, "integer division or modulo by zero");
  if (b == -1) {
    if (a == INT64_MIN) overflow(run);
    return -a;
  }
  int64_t quotient = a / b;
  return quotient - (a % b != 0 && (a < 0) != (b < 0));
}

static struct jinja_value int_power(struct run *run, int64_t base, int64_t exponent) {
  int64_t result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) overflow(run);
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) overflow(run);
  }
  return jinja_int(result);
}

static struct jinja_value real_power(struct run *run, double base, double exponent) {
  if (base == 0 && exponent < 0) jj_fail(run, "0.0 cannot be raised to a negative power");
  if (base < 0 && isfinite(exponent) && floor(exponent) != exponent)
    jj_fail(run, "a negative number cannot be raised to a fraction");
  double result = pow(base, exponent);
  if (isinf(result) && isfinite(base) && isfinite(exponent)) jj_fail(run, "(34, 'Numerical result out of range')");
  return jinja_double(result);
}

static struct jinja_value int_binary(struct run *run, enum operator op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
  case OP_ADD:
    if (__builtin_add_overflow(a, b, &result)) overflow(run);
    break;
  case OP_SUB:
    if (__builtin_sub_overflow(a, b, &result)) overflow(run);
    break;
  case OP_MUL:
    if (__builtin_mul_overflow(a, b, &result)) overflow(run);
    break;
  case OP_DIV:
    if (b == 0) jj_fail(run, "division by zero");
    return jinja_double((double)a / (double)b);
  case OP_FLOORDIV:
    result = floor_divide(run, a, b);
    break;
  case OP_MOD:
    result = b == -1 ? 0 : a - floor_divide(run, a, b) * b;
    break;
  default:
    if (b < 0) return real_power(run, (double)a, (double)b);
    return int_power(run, a, b);
  }
  return jinja_int(result);
}

static double real_modulo(double a, double b) {
  double rest = fmod(a, b);
  if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
  return rest != 0 ? rest : copysign(0.0, b);
}

static double real_floor_divide(double a, double b) {
  double quotient = (a - real_modulo(a, b)) / b;
  if (quotient == 0) return copysign(0.0, a / b);
  double whole = floor(quotient);
  return quotient - whole > 0.5 ? whole + 1.0 : whole;
}

static struct jinja_value real_binary(struct run *run, enum operator op, double a, double b) {
  switch (op) {
  case OP_ADD:
    return jinja_double(a + b);
  case OP_SUB:
    return jinja_double(a - b);
  case OP_MUL:
    return jinja_double(a * b);
  case OP_POW:
    return real_power(run, a, b);
  default:
    break;
  }
  if (b == 0)
    jj_fail(run, op == OP_DIV   ? "float division by zero"
                 : op == OP_MOD ? "float modulo"
                                : "float floor division by zero");
  if (op == OP_DIV) return jinja_double(a / b);
  return jinja_double(op == OP_MOD ? real_modulo(a, b) : real_floor_divide(a, b));
}

/* --- sequences --- */

static struct jinja_value add_strings(struct run *run, struct jinja_value left, struct jinja_value right) {
  bool safe = left.safe || right.safe;
  if (safe) {
    left = jj_escape(run, left);
    right = jj_escape(run, right);
  }
  const struct jinja_string *a = left.as.string, *b = right.as.string;
  struct jinja_string *both = jj_new_text(run, a->length + b->length);
  memcpy(both->bytes, a->bytes, a->length);
  memcpy(both->bytes + a->length, b->bytes, b->length);
  struct jinja_value value = jj_string_value(both);
  value.safe = safe;
  return value;
}

static bool is_tuple(const struct jinja_list *list) {
  return list->flavour == FLAVOUR_TUPLE || list->flavour == FLAVOUR_GROUP;
}

static struct jinja_value add_lists(struct run *run, struct jinja_value left, struct jinja_value right) {
  const struct jinja_list *a = left.as.list, *b = right.as.list;
  bool tuples = is_tuple(a) && is_tuple(b);
  if (!tuples && (a->flavour != FLAVOUR_LIST || b->flavour != FLAVOUR_LIST)) unsupported(run, OP_ADD, left, right);
  struct jinja_value both = jj_new_list(run, tuples ? FLAVOUR_TUPLE : FLAVOUR_LIST, a->count + b->count);
  for (int i = 0; i < a->count; i++) jj_push(run->pool, both.as.list, a->items[i]);
  for (int i = 0; i < b->count; i++) jj_push(run->pool, both.as.list, b->items[i]);
  return both;
}

static struct jinja_value repeat_string(struct run *run, struct jinja_value value, int64_t times) {
  const struct jinja_string *one = value.as.string;
  size_t count = times > 0 ? (size_t)times : 0;
  if (one->length > 0 && count > run->max_output / one->length)
    jj_fail(run, "the output is too large: the limit is %zu bytes", run->max_output);
  struct jinja_string *all = jj_new_text(run, one->length * count);
  for (size_t i = 0; one->length > 0 && i < count; i++) memcpy(all->bytes + i * one->length, one->bytes, one->length);
  struct jinja_value result = jj_string_value(all);
  result.safe = value.safe;
  return result;
}

static struct jinja_value repeat_list(struct run *run, struct jinja_value value, int64_t times) {
  const struct jinja_list *one = value.as.list;
  if (times < 0) times = 0;
  if (one->count > 0 && times > run->max_steps / one->count) jj_spend(run, run->max_steps);
  struct jinja_value all = jj_new_list(run, is_tuple(one) ? FLAVOUR_TUPLE : FLAVOUR_LIST, (int)(one->count * times));
  for (int64_t i = 0; one->count > 0 && i < times; i++) {
    for (int j = 0; j < one->count; j++) jj_push(run->pool, all.as.list, one->items[j]);
  }
  return all;
}

static bool repeatable(struct jinja_value value) {
  return value.kind == JINJA_STRING ||
         (value.kind == JINJA_LIST && (value.as.list->flavour == FLAVOUR_LIST || is_tuple(value.as.list)));
}

static struct jinja_value repeat(struct run *run, struct jinja_value value, int64_t times) {
  return value.kind == JINJA_STRING ? repeat_string(run, value, times) : repeat_list(run, value, times);
}

struct jinja_value jj_binary(struct run *run, enum operator op, struct jinja_value left, struct jinja_value right) {
  if (jj_is_number(left) && jj_is_number(right)) {
    if (jj_is_integral(left) && jj_is_integral(right)) return int_binary(run, op, jj_as_int(left), jj_as_int(right));
    return real_binary(run, op, jj_as_double(left), jj_as_double(right));
  }
  if (op == OP_ADD && left.kind == JINJA_STRING && right.kind == JINJA_STRING) return add_strings(run, left, right);
  if (op == OP_ADD && left.kind == JINJA_LIST && right.kind == JINJA_LIST) return add_lists(run, left, right);
  if (op == OP_MUL && repeatable(left) && jj_is_integral(right)) return repeat(run, left, jj_as_int(right));
  if (op == OP_MUL && repeatable(right) && jj_is_integral(left)) return repeat(run, right, jj_as_int(left));
  if (op == OP_MOD && left.kind == JINJA_STRING) return jj_format_percent(run, left, right);
  unsupported(run, op, left, right);
}

struct jinja_value jj_negate(struct run *run, struct jinja_value value) {
  if (value.kind == JINJA_DOUBLE) return jinja_double(-value.as.real);
  if (!jj_is_integral(value)) {
    if (value.kind == JINJA_UNDEFINED) jj_fail_undefined(run, value);
    jj_fail(run, "bad operand type for unary -: '%s'", jj_type_name(value));
  }
  if (jj_as_int(value) == INT64_MIN) overflow(run);
  return jinja_int(-jj_as_int(value));
}

/* --- comparison --- */

bool jj_same(struct run *run, struct jinja_value left, struct jinja_value right) {
  struct jinja_value refused = jinja_none();
  jj_enter(run);
  bool strict = run->undefined == JINJA_STRICT;
  bool same = strict ? jj_equal_strictly(left, right, &refused) : jj_equal(left, right);
  if (refused.kind == JINJA_UNDEFINED) jj_fail_undefined(run, refused);
  jj_leave(run);
  return same;
}

/* Whether a tuple holds a strict undefined value, or is one. */
static const struct jinja_value *find_strict(const struct run *run, const struct jinja_value *value) {
  if (value->kind != JINJA_LIST) return jj_is_strict(run, *value) ? value : NULL;
  const struct jinja_value *found = NULL;
  const struct jinja_list *list = value->as.list;
  if (list->flavour == FLAVOUR_RANGE) return NULL;
  for (int i = 0; found == NULL && i < list->count; i++) found = find_strict(run, &list->items[i]);
  return found;
}

void jj_require_hash(struct run *run, struct jinja_value value) {
  if (!jj_hashable(value)) jj_fail(run, "unhashable type: '%s'", jj_type_name(value));
  const struct jinja_value *strict = run->undefined == JINJA_STRICT ? find_strict(run, &value) : NULL;
  if (strict != NULL) jj_fail_undefined(run, *strict);
}

static int order(struct run *run, enum operator op, struct jinja_value left, struct jinja_value right) {
  if (left.kind == JINJA_UNDEFINED) jj_fail_undefined(run, left);
  if (right.kind == JINJA_UNDEFINED) jj_fail_undefined(run, right);
  bool comparable;
  if (run->undefined == JINJA_STRICT && left.kind == JINJA_LIST) jj_same(run, left, right); /* raises as < would */
  int result = jj_order(left, right, &comparable);
  if (!comparable) {
    jj_fail(run, "'%s' not supported between instances of '%s' and '%s'", signs[op], jj_type_name(left),
            jj_type_name(right));
  }
  return result;
}

bool jj_less(struct run *run, struct jinja_value left, struct jinja_value right) {
  return order(run, OP_LT, left, right) == -1;
}

static bool in_range(const struct jinja_list *range, int64_t number) {
  if (range->count == 0) return false;
  int64_t last = jj_item(range, range->count - 1).as.integer;
  int64_t low = range->step > 0 ? range->start : last, high = range->step > 0 ? last : range->start;
  if (number < low || number > high) return false;
  uint64_t size = range->step > 0 ? (uint64_t)range->step : 0 - (uint64_t)range->step;
  return ((uint64_t)number - (uint64_t)low) % size == 0;
}

bool jj_contains(struct run *run, struct jinja_value container, struct jinja_value item) {
  switch (container.kind) {
  case JINJA_STRING:
    if (item.kind == JINJA_UNDEFINED) jj_fail_undefined(run, item);
    if (item.kind != JINJA_STRING)
      jj_fail(run, "'in <string>' requires string as left operand, not %s", jj_type_name(item));
    return jj_find_bytes(container.as.string->bytes, container.as.string->length, item.as.string->bytes,
                         item.as.string->length) != NULL;
  case JINJA_MAP:
    jj_require_hash(run, item);
    return jj_map_find(container.as.map, item) != NULL;
  case JINJA_LIST:
  case JINJA_UNDEFINED:
    break;
  default:
    if (container.kind == JINJA_OBJECT) break;
    jj_fail(run, "argument of type '%s' is not iterable", jj_type_name(container));
  }
  bool keys = container.kind == JINJA_LIST && container.as.list->flavour == FLAVOUR_KEYS;
  if (keys) jj_require_hash(run, item);
  const struct jinja_list *list = jj_sequence(run, container);
  if (list->flavour == FLAVOUR_RANGE && jj_is_integral(item)) return in_range(list, jj_as_int(item));
  for (int i = 0; i < list->count; i++) {
    if (list->flavour == FLAVOUR_RANGE) jj_spend(run, 1);
    if (jj_same(run, jj_item(list, i), item)) return true;
  }
  return false;
}

bool jj_compare(struct run *run, enum operator op, struct jinja_value left, struct jinja_value right) {
  switch (op) {
  case OP_EQ:
    return jj_same(run, left, right);
  case OP_NE:
    return !jj_same(run, left, right);
  case OP_IN:
    return jj_contains(run, right, left);
  case OP_NOT_IN:
    return !jj_contains(run, right, left);
  default:
    break;
  }
  int result = order(run, op, left, right);
  if (result == 2) return false;
  return op == OP_LT ? result < 0 : op == OP_LTEQ ? result <= 0 : op == OP_GT ? result > 0 : result >= 0;
}
