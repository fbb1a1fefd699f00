#include "gen/audit/interp/value.h"

__extension__ typedef __int128 wide;

static int64_t bounded(wide number) {
  if (number > VALUE_MAX) return VALUE_MAX;
  if (number < VALUE_MIN) return VALUE_MIN;
  return (int64_t)number;
}

int64_t bounded_multiply(int64_t a, int64_t b) {
  return bounded((wide)a * b);
}

int64_t bounded_add(int64_t a, int64_t b) {
  return bounded((wide)a + b);
}

struct value value_integer(int64_t low, int64_t high) {
  return (struct value){.kind = VALUE_INTEGER, .low = low, .high = high, .object = -1};
}

struct value value_number(unsigned origin) {
  return (struct value){.kind = VALUE_NUMBER, .origin = origin, .object = -1};
}

struct value value_unknown_pointer(unsigned origin) {
  return (struct value){.kind = VALUE_POINTER, .origin = origin, .object = -1};
}

unsigned origin_of_choice(unsigned origin) {
  return (origin & ORIGIN_RANK) | ((origin & ~(unsigned)ORIGIN_REPORTED) != 0 ? ORIGIN_CHOSEN : 0);
}

/* The range of an integer type. */
static int64_t type_min(const struct type *type) {
  if (!type->is_signed) return 0;
  return type->size >= 8 ? INT64_MIN : -((int64_t)1 << (8 * type->size - 1));
}

static int64_t type_max(const struct type *type) {
  if (type->size >= 8) return INT64_MAX;
  return ((int64_t)1 << (8 * type->size - (type->is_signed ? 1 : 0))) - 1;
}

struct value value_of_type(const struct type *type, unsigned origin) {
  if (type->kind == TYPE_POINTER || type->kind == TYPE_ARRAY) return value_unknown_pointer(origin);
  if (type->kind != TYPE_INTEGER || type->size < 1) return value_number(origin);
  struct value value = value_integer(type_min(type), type_max(type));
  value.origin = origin;
  value.blame = BLAME_ALWAYS;
  return value;
}

static bool same_slot(struct value a, struct value b) {
  return a.object == b.object && a.base == b.base && a.base_width == b.base_width && a.slot_size == b.slot_size;
}

struct value value_join(struct value a, struct value b) {
  unsigned origin = a.origin | b.origin;
  uint64_t loops = a.loops | b.loops;
  struct value join = a;
  if (a.kind == VALUE_NOTHING || b.kind == VALUE_NOTHING) {
    join = a.kind == VALUE_NOTHING ? b : a;
  } else if (a.kind == VALUE_INTEGER && b.kind == VALUE_INTEGER) {
    if (b.low < join.low) join.low = b.low;
    if (b.high > join.high) join.high = b.high;
  } else if (a.kind == VALUE_POINTER && b.kind == VALUE_POINTER && same_slot(a, b)) {
    if (b.low < join.low) join.low = b.low;
    if (b.high > join.high) join.high = b.high;
  } else if (a.kind == VALUE_POINTER && b.kind == VALUE_POINTER) {
    join = value_unknown_pointer(origin);
  } else {
    join = value_number(origin);
  }
  bool same = a.kind == b.kind && a.low == b.low && a.high == b.high;
  if (a.fields != b.fields) join.fields = NULL;
  if (a.linear != b.linear) join.linear = NULL;
  if (!form_equal(a.form, b.form)) join.form = NULL;
  join.step = 0;
  join.origin = origin;
  join.loops = loops;
  join.blame = a.blame | b.blame | loops;
  if (!same && loops == 0) join.blame |= BLAME_ALWAYS;
  join.is_known = false;
  return join;
}

bool value_is_one(struct value value) {
  return value.kind == VALUE_INTEGER && value.low == value.high;
}

bool value_is_null(struct value value) {
  return value.kind == VALUE_INTEGER && value.low == 0 && value.high == 0;
}

/* A range in `type` modulo its size: whole where all of it wraps alike. */
static struct value wrap(wide low, wide high, const struct type *type, unsigned origin, uint64_t loops) {
  struct value any = value_of_type(type, origin);
  any.loops = loops;
  any.blame = loops != 0 ? loops : BLAME_ALWAYS;
  if (type->size > 4) return any;
  wide least = type_min(type), period = (wide)1 << (8 * type->size);
  wide periods = (low - least) / period - ((low - least) % period < 0);
  if (high - periods * period > type_max(type)) return any;
  any.low = (int64_t)(low - periods * period);
  any.high = (int64_t)(high - periods * period);
  any.blame = 0;
  return any;
}

struct value value_convert(struct value value, const struct type *type) {
  if (type->kind == TYPE_POINTER || type->kind == TYPE_ARRAY)
    return value.kind == VALUE_POINTER || value_is_null(value) ? value : value_unknown_pointer(value.origin);
  if (type->kind == TYPE_REAL) {
    struct value real = value_number(value.origin);
    real.loops = value.loops;
    real.is_known = value.kind == VALUE_INTEGER ? value.low == value.high : value.is_known;
    real.real = value.kind == VALUE_INTEGER ? (double)value.low : value.real;
    return real;
  }
  if (type->kind == TYPE_RECORD && value.kind == VALUE_NUMBER) return value;
  if (type->kind != TYPE_INTEGER || type->size < 1) return value_number(value.origin);
  bool fits = value.kind == VALUE_INTEGER && value.low >= type_min(type) && value.high <= type_max(type);
  if (fits) return value;
  if (value.kind != VALUE_INTEGER) {
    struct value any = value_of_type(type, value.origin);
    any.loops = value.loops;
    any.blame |= value.loops;
    return any;
  }
  struct value wrapped = wrap(value.low, value.high, type, value.origin, value.loops);
  wrapped.blame |= value.blame;
  return wrapped;
}

/* ---- Arithmetic ---- */

static wide min_of(const wide *numbers, int count) {
  wide least = numbers[0];
  for (int i = 1; i < count; i++)
    if (numbers[i] < least) least = numbers[i];
  return least;
}

static wide max_of(const wide *numbers, int count) {
  wide most = numbers[0];
  for (int i = 1; i < count; i++)
    if (numbers[i] > most) most = numbers[i];
  return most;
}

struct wide_range {
  wide low, high;
  bool known;
};

static struct wide_range corners(const wide *numbers, int count) {
  return (struct wide_range){min_of(numbers, count), max_of(numbers, count), true};
}

static struct wide_range divide(struct value a, struct value b) {
  if (b.low <= 0 && b.high >= 0) return (struct wide_range){0};
  const wide numbers[] = {(wide)a.low / b.low, (wide)a.low / b.high, (wide)a.high / b.low, (wide)a.high / b.high, 0};
  bool crosses = a.low < 0 && a.high > 0;
  return corners(numbers, crosses ? 5 : 4);
}

/* Whether a remainder by b keeps a's steps. */
static bool preserves_step(struct value a, struct value b) {
  return b.low == b.high && b.low > 0 && a.step > 1 && a.low >= 0 && b.low % a.step == 0 && a.low % a.step == 0;
}

static struct wide_range remainder_of(struct value a, struct value b) {
  if (b.low <= 0) return (struct wide_range){0};
  if (preserves_step(a, b) && a.high >= b.low) return (struct wide_range){0, b.low - a.step, true};
  if (a.low == a.high && b.low == b.high) return (struct wide_range){a.low % b.low, a.low % b.low, true};
  if (a.low >= 0 && a.high < b.low) return (struct wide_range){a.low, a.high, true};
  return (struct wide_range){a.low < 0 ? -(wide)b.high + 1 : 0, a.high > 0 ? (wide)b.high - 1 : 0, true};
}

static struct wide_range shift(enum operator_kind operation, struct value a, struct value b) {
  if (b.low < 0 || b.high > 62) return (struct wide_range){0};
  if (operation == OPERATOR_LEFT) {
    const wide numbers[] = {(wide)a.low << b.low, (wide)a.low << b.high, (wide)a.high << b.low, (wide)a.high << b.high};
    return corners(numbers, 4);
  }
  const wide numbers[] = {a.low >> b.low, a.low >> b.high, a.high >> b.low, a.high >> b.high};
  return corners(numbers, 4);
}

/* Of numbers that are not negative: no more bits than both have. */
static struct wide_range bits(enum operator_kind operation, struct value a, struct value b) {
  if (a.low < 0 || b.low < 0) return (struct wide_range){0};
  if (a.low == a.high && b.low == b.high) {
    int64_t result = operation == OPERATOR_BIT_AND  ? a.low & b.low
                     : operation == OPERATOR_BIT_OR ? a.low | b.low
                                                    : a.low ^ b.low;
    return (struct wide_range){result, result, true};
  }
  if (operation == OPERATOR_BIT_AND) return (struct wide_range){0, a.high < b.high ? a.high : b.high, true};
  int64_t most = a.high > b.high ? a.high : b.high, mask = 1;
  while (mask <= most && mask < VALUE_MAX / 2) mask = mask * 2 + 1;
  return (struct wide_range){0, mask, true};
}

static struct wide_range compare(enum operator_kind operation, struct value a, struct value b) {
  int truth = -1;
  switch (operation) {
  case OPERATOR_LESS:
    truth = a.high < b.low ? 1 : a.low >= b.high ? 0 : -1;
    break;
  case OPERATOR_LESS_EQUAL:
    truth = a.high <= b.low ? 1 : a.low > b.high ? 0 : -1;
    break;
  case OPERATOR_GREATER:
    truth = a.low > b.high ? 1 : a.high <= b.low ? 0 : -1;
    break;
  case OPERATOR_GREATER_EQUAL:
    truth = a.low >= b.high ? 1 : a.high < b.low ? 0 : -1;
    break;
  case OPERATOR_EQUAL:
  case OPERATOR_NOT_EQUAL:
    truth = a.low == a.high && b.low == b.high && a.low == b.low ? 1 : a.high < b.low || a.low > b.high ? 0 : -1;
    if (operation == OPERATOR_NOT_EQUAL && truth >= 0) truth = !truth;
    break;
  default:
    break;
  }
  return truth < 0 ? (struct wide_range){0, 1, true} : (struct wide_range){truth, truth, true};
}

static struct wide_range combine(enum operator_kind operation, struct value a, struct value b) {
  switch (operation) {
  case OPERATOR_ADD:
    return (struct wide_range){(wide)a.low + b.low, (wide)a.high + b.high, true};
  case OPERATOR_SUBTRACT:
    return (struct wide_range){(wide)a.low - b.high, (wide)a.high - b.low, true};
  case OPERATOR_MULTIPLY: {
    const wide numbers[] = {(wide)a.low * b.low, (wide)a.low * b.high, (wide)a.high * b.low, (wide)a.high * b.high};
    return corners(numbers, 4);
  }
  case OPERATOR_DIVIDE:
    return divide(a, b);
  case OPERATOR_REMAINDER:
    return remainder_of(a, b);
  case OPERATOR_LEFT:
  case OPERATOR_RIGHT:
    return shift(operation, a, b);
  case OPERATOR_BIT_AND:
  case OPERATOR_BIT_OR:
  case OPERATOR_BIT_XOR:
    return bits(operation, a, b);
  default:
    return compare(operation, a, b);
  }
}

/* The distance between numbers of a range; 0 for a single one. */
static int64_t step_of(struct value value) {
  return value.low == value.high ? 0 : value.step > 1 ? value.step : 1;
}

static int64_t common_divisor(int64_t a, int64_t b) {
  while (b != 0) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

static int64_t step_after(enum operator_kind operation, struct value a, struct value b) {
  if (operation == OPERATOR_ADD || operation == OPERATOR_SUBTRACT) return common_divisor(step_of(a), step_of(b));
  if (operation == OPERATOR_REMAINDER && preserves_step(a, b)) return a.step;
  if (operation != OPERATOR_MULTIPLY) return 0;
  if (a.low != a.high && b.low != b.high) return 0;
  int64_t times = a.low == a.high ? a.low : b.low, step = a.low == a.high ? step_of(b) : step_of(a);
  return times > 0 && times <= INT32_MAX && step <= INT32_MAX ? times * step : 0;
}

struct value value_binary(enum operator_kind operation, struct value a, struct value b, const struct type *type,
                          bool *overflows) {
  struct wide_range range = combine(operation, a, b);
  bool fits = range.known && range.low >= type_min(type) && range.high <= type_max(type);
  unsigned origin = a.origin | b.origin;
  uint64_t loops = a.loops | b.loops;
  *overflows = range.known && !fits && type->is_signed;
  struct value value =
      !range.known || type->is_signed ? value_of_type(type, origin) : wrap(range.low, range.high, type, origin, loops);
  if (fits) value = value_integer((int64_t)range.low, (int64_t)range.high);
  value.step = fits ? step_after(operation, a, b) : 0;
  value.origin = origin;
  value.loops = loops;
  /* The result takes both ends where each of a and b does, independently of the other. */
  bool uneven = operation == OPERATOR_REMAINDER || (operation >= OPERATOR_BIT_AND && operation <= OPERATOR_BIT_OR);
  bool loose = value.low != value.high && (uneven || !range.known || (!fits && type->is_signed));
  value.blame |= a.blame | b.blame | (a.loops & b.loops);
  if (loose) value.blame |= loops != 0 ? loops : BLAME_ALWAYS;
  if (fits && value.low == value.high) value.blame = 0;
  return value;
}

int value_truth(struct value value) {
  if (value.kind == VALUE_NUMBER && value.is_known) return value.real != 0.0;
  if (value.kind == VALUE_POINTER && value.object >= 0) return 1;
  if (value.kind != VALUE_INTEGER) return -1;
  if (value.low == 0 && value.high == 0) return 0;
  return value.low > 0 || value.high < 0 ? 1 : -1;
}
