/* The built-in tests: `value is name(…)`. */
#include "gen/jinja/support.h"

static bool is_defined(struct run *run, struct jinja_value v, const struct call *c) {
  (void)run, (void)c;
  return v.kind != JINJA_UNDEFINED;
}

static bool is_undefined(struct run *run, struct jinja_value v, const struct call *c) {
  (void)run, (void)c;
  return v.kind == JINJA_UNDEFINED;
}

static bool is_none(struct run *run, struct jinja_value v, const struct call *c) {
  (void)run, (void)c;
  return v.kind == JINJA_NONE;
}

static bool is_boolean(struct run *run, struct jinja_value v, const struct call *c) {
  (void)run, (void)c;
  return v.kind == JINJA_BOOL;
}

static bool is_true(struct run *run, struct jinja_value v, const struct call *c) {
  (void)run, (void)c;
  return v.kind == JINJA_BOOL && v.as.boolean;
}

static bool is_false(struct run *run, struct jinja_value v, const struct call *c) {
  (void)run, (void)c;
  return v.kind == JINJA_BOOL && !v.as.boolean;
}

static bool is_integer(struct run *run, struct jinja_value v, const struct call *c) {
  (void)run, (void)c;
  return v.kind == JINJA_INT;
}

static bool is_float(struct run *run, struct jinja_value v, const struct call *c) {
  (void)run, (void)c;
  return v.kind == JINJA_DOUBLE;
}

static bool is_number(struct run *run, struct jinja_value v, const struct call *c) {
  (void)run, (void)c;
  return jj_is_number(v);
}

static bool is_string(struct run *run, struct jinja_value v, const struct call *c) {
  (void)run, (void)c;
  return v.kind == JINJA_STRING;
}

static bool is_mapping(struct run *run, struct jinja_value v, const struct call *c) {
  (void)run, (void)c;
  return v.kind == JINJA_MAP;
}

static bool is_sequence(struct run *run, struct jinja_value v, const struct call *c) {
  (void)c;
  if (jj_is_strict(run, v)) return false;
  if (v.kind == JINJA_LIST) return v.as.list->flavour <= FLAVOUR_RANGE || v.as.list->flavour == FLAVOUR_GROUP;
  return v.kind == JINJA_STRING || v.kind == JINJA_MAP || v.kind == JINJA_UNDEFINED;
}

static bool is_iterable(struct run *run, struct jinja_value v, const struct call *c) {
  (void)c;
  if (jj_is_strict(run, v)) jj_fail_undefined(run, v);
  if (v.kind == JINJA_OBJECT) return ((struct object *)v.as.object)->type == OBJECT_LOOP;
  return v.kind == JINJA_LIST || v.kind == JINJA_STRING || v.kind == JINJA_MAP || v.kind == JINJA_UNDEFINED;
}

static bool is_callable(struct run *run, struct jinja_value v, const struct call *c) {
  (void)run, (void)c;
  if (v.kind == JINJA_UNDEFINED) return true; /* it has a __call__, which raises */
  if (v.kind != JINJA_OBJECT) return false;
  switch (((struct object *)v.as.object)->type) {
  case OBJECT_NAMESPACE:
  case OBJECT_MODULE:
  case OBJECT_SELF:
  case OBJECT_CYCLER:
    return false;
  default:
    return true;
  }
}

/* Identity, as far as values that are passed by copy have one. */
static bool is_sameas(struct run *run, struct jinja_value v, const struct call *c) {
  struct jinja_value other = c->items[0];
  (void)run;
  if (v.kind != other.kind) return false;
  switch (v.kind) {
  case JINJA_LIST:
    return v.as.list == other.as.list;
  case JINJA_MAP:
    return v.as.map == other.as.map;
  case JINJA_UNDEFINED:
    return v.as.object == other.as.object;
  default:
    return jj_equal(v, other);
  }
}

static bool is_escaped(struct run *run, struct jinja_value v, const struct call *c) {
  (void)c;
  return jj_is_chainable(run, v) || (v.kind == JINJA_STRING && v.safe);
}

static int64_t modulo(struct run *run, struct jinja_value v, struct jinja_value by, bool *whole) {
  struct jinja_value rest = jj_binary(run, OP_MOD, v, by);
  *whole = jj_is_number(rest) && jj_as_double(rest) == (double)(int64_t)jj_as_double(rest);
  return *whole ? (int64_t)jj_as_double(rest) : 0;
}

static bool is_odd(struct run *run, struct jinja_value v, const struct call *c) {
  bool whole;
  (void)c;
  return modulo(run, v, jinja_int(2), &whole) == 1 && whole;
}

static bool is_even(struct run *run, struct jinja_value v, const struct call *c) {
  bool whole;
  (void)c;
  return modulo(run, v, jinja_int(2), &whole) == 0 && whole;
}

static bool is_divisible(struct run *run, struct jinja_value v, const struct call *c) {
  bool whole;
  return modulo(run, v, c->items[0], &whole) == 0 && whole;
}

/* All letters that have a case have this one, and there is one at least. */
static bool has_case(struct run *run, struct jinja_value v, uint32_t (*to_case)(uint32_t),
                     uint32_t (*from_case)(uint32_t)) {
  const struct jinja_string *text = jj_str(run, v).as.string;
  bool any = false;
  for (size_t at = 0; at < text->length;) {
    int size;
    uint32_t code = jj_utf8_decode(text->bytes + at, text->length - at, &size);
    if (to_case(code) != code) return false;
    any |= from_case(code) != code;
    at += (size_t)size;
  }
  return any;
}

static bool is_lower(struct run *run, struct jinja_value v, const struct call *c) {
  (void)c;
  return has_case(run, v, jj_lower_code, jj_upper_code);
}

static bool is_upper(struct run *run, struct jinja_value v, const struct call *c) {
  (void)c;
  return has_case(run, v, jj_upper_code, jj_lower_code);
}

static bool is_in(struct run *run, struct jinja_value v, const struct call *c) {
  return jj_contains(run, c->items[0], v);
}

static bool is_eq(struct run *run, struct jinja_value v, const struct call *c) {
  return jj_same(run, v, c->items[0]);
}

static bool is_ne(struct run *run, struct jinja_value v, const struct call *c) {
  return !jj_same(run, v, c->items[0]);
}

static bool is_gt(struct run *run, struct jinja_value v, const struct call *c) {
  return jj_compare(run, OP_GT, v, c->items[0]);
}

static bool is_ge(struct run *run, struct jinja_value v, const struct call *c) {
  return jj_compare(run, OP_GTEQ, v, c->items[0]);
}

static bool is_lt(struct run *run, struct jinja_value v, const struct call *c) {
  return jj_compare(run, OP_LT, v, c->items[0]);
}

static bool is_le(struct run *run, struct jinja_value v, const struct call *c) {
  return jj_compare(run, OP_LTEQ, v, c->items[0]);
}

/* Whether v can be looked up in a table of names; an error where Python's dict has one. */
static bool is_name(struct run *run, struct jinja_value v) {
  jj_require_hash(run, v);
  return v.kind == JINJA_STRING;
}

static bool is_filter(struct run *run, struct jinja_value v, const struct call *c) {
  (void)c;
  return is_name(run, v) && jj_find_filter(v.as.string->bytes) != NULL;
}

static bool is_test(struct run *run, struct jinja_value v, const struct call *c) {
  (void)c;
  return is_name(run, v) && jj_find_test(v.as.string->bytes) != NULL;
}

#define NO_ARGUMENTS {.required = 0}
#define OTHER {{"other"}, 1, false}
static const struct test tests[] = {
    {"defined", is_defined, NO_ARGUMENTS},
    {"undefined", is_undefined, NO_ARGUMENTS},
    {"none", is_none, NO_ARGUMENTS},
    {"boolean", is_boolean, NO_ARGUMENTS},
    {"true", is_true, NO_ARGUMENTS},
    {"false", is_false, NO_ARGUMENTS},
    {"integer", is_integer, NO_ARGUMENTS},
    {"float", is_float, NO_ARGUMENTS},
    {"number", is_number, NO_ARGUMENTS},
    {"string", is_string, NO_ARGUMENTS},
    {"mapping", is_mapping, NO_ARGUMENTS},
    {"sequence", is_sequence, NO_ARGUMENTS},
    {"iterable", is_iterable, NO_ARGUMENTS},
    {"callable", is_callable, NO_ARGUMENTS},
    {"escaped", is_escaped, NO_ARGUMENTS},
    {"odd", is_odd, NO_ARGUMENTS},
    {"even", is_even, NO_ARGUMENTS},
    {"lower", is_lower, NO_ARGUMENTS},
    {"upper", is_upper, NO_ARGUMENTS},
    {"filter", is_filter, NO_ARGUMENTS},
    {"test", is_test, NO_ARGUMENTS},
    {"divisibleby", is_divisible, {{"num"}, 1, false}},
    {"sameas", is_sameas, OTHER},
    {"in", is_in, {{"seq"}, 1, false}},
    {"==", is_eq, OTHER},
    {"eq", is_eq, OTHER},
    {"equalto", is_eq, OTHER},
    {"!=", is_ne, OTHER},
    {"ne", is_ne, OTHER},
    {">", is_gt, OTHER},
    {"gt", is_gt, OTHER},
    {"greaterthan", is_gt, OTHER},
    {">=", is_ge, OTHER},
    {"ge", is_ge, OTHER},
    {"<", is_lt, OTHER},
    {"lt", is_lt, OTHER},
    {"lessthan", is_lt, OTHER},
    {"<=", is_le, OTHER},
    {"le", is_le, OTHER},
};

const struct test *jj_find_test(const char *name) {
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
    if (strcmp(tests[i].name, name) == 0) return &tests[i];
  }
  return NULL;
}
