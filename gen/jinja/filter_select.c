/* Filters that apply other filters and tests: map, select and their kin; and default, attr. */
#include "gen/jinja/support.h"

static struct jinja_value keyword(const struct call *call, const char *name) {
  for (int i = 0; i < call->keyword_count; i++) {
    if (strcmp(call->keywords[i].name->bytes, name) == 0) return call->keywords[i].value;
  }
  return (struct jinja_value){0};
}

static bool is_absent(struct jinja_value value) {
  return value.kind == JINJA_UNDEFINED && value.as.object == NULL;
}

static struct call without(const struct call *call, int taken) {
  return (struct call){call->items + taken, call->count - taken, call->keywords, call->keyword_count};
}

/* --- map --- */

static struct jinja_value map_attribute(struct run *run, const struct jinja_list *items, const struct call *call) {
  struct jinja_value attribute = keyword(call, "attribute"), fallback = keyword(call, "default");
  for (int i = 0; i < call->keyword_count; i++) {
    const char *name = call->keywords[i].name->bytes;
    if (strcmp(name, "attribute") != 0 && strcmp(name, "default") != 0)
      jj_fail(run, "Unexpected keyword argument '%s'", name);
  }
  struct jinja_value mapped = jj_new_list(run, FLAVOUR_GENERATOR, items->count);
  for (int i = 0; i < items->count; i++) {
    struct jinja_value value = jj_getpath(run, items->items[i], attribute);
    if (value.kind == JINJA_UNDEFINED && !is_absent(fallback) && fallback.kind != JINJA_NONE) value = fallback;
    jj_spend(run, 1);
    jj_push(run->pool, mapped.as.list, value);
  }
  return mapped;
}

FILTER(filter_map) {
  const struct jinja_list *items =
      jj_truth(run, input) ? jj_iterate(run, input) : jj_list(run->pool, FLAVOUR_LIST, 0).as.list;
  if (call->count == 0 && !is_absent(keyword(call, "attribute"))) return map_attribute(run, items, call);
  if (call->count == 0) jj_fail(run, "map requires a filter argument");
  if (items->count == 0) return jj_list(run->pool, FLAVOUR_GENERATOR, 0);
  const char *name = jj_arg_string(run, call, 0)->bytes;
  const struct filter *filter = jj_find_filter(name);
  if (filter == NULL) jj_fail(run, "No filter named '%s'.", name);
  struct call rest = without(call, 1);
  struct jinja_value mapped = jj_new_list(run, FLAVOUR_GENERATOR, items->count);
  for (int i = 0; i < items->count; i++) {
    jj_spend(run, 1);
    jj_push(run->pool, mapped.as.list, jj_apply_filter(run, filter, items->items[i], &rest));
  }
  return mapped;
}

/* --- select --- */

static struct jinja_value chosen(struct run *run, struct jinja_value input, const struct call *call, bool wanted,
                                 bool by_attribute) {
  int taken = by_attribute ? 1 : 0;
  struct jinja_value kept = jj_list(run->pool, FLAVOUR_GENERATOR, 0);
  if (!jj_truth(run, input)) return kept;
  if (call->count < taken) jj_fail(run, "Missing parameter for attribute name");
  const struct jinja_list *items = jj_iterate(run, input);
  const struct test *test = NULL;
  struct call rest = {0};
  if (call->count > taken) {
    const char *name = jj_arg_string(run, call, taken)->bytes;
    test = jj_find_test(name);
    if (test == NULL && items->count > 0) jj_fail(run, "No test named '%s'.", name);
    rest = without(call, taken + 1);
  }
  for (int i = 0; i < items->count; i++) {
    struct jinja_value value = by_attribute ? jj_getpath(run, items->items[i], call->items[0]) : items->items[i];
    bool holds = test != NULL ? jj_apply_test(run, test, value, &rest) : jj_truth(run, value);
    jj_spend(run, 1);
    if (holds == wanted) jj_push(run->pool, kept.as.list, items->items[i]);
  }
  return kept;
}

FILTER(filter_select) {
  return chosen(run, input, call, true, false);
}
FILTER(filter_reject) {
  return chosen(run, input, call, false, false);
}
FILTER(filter_selectattr) {
  return chosen(run, input, call, true, true);
}
FILTER(filter_rejectattr) {
  return chosen(run, input, call, false, true);
}

/* --- default, attr --- */

FILTER(filter_default) {
  bool boolean = jj_arg_true(run, call, 1, false);
  if (input.kind != JINJA_UNDEFINED && (!boolean || jj_truth(run, input))) return input;
  return jj_arg(call, 0, jj_cstr(run->pool, ""));
}

FILTER(filter_attr) {
  struct jinja_value name = jj_str(run, call->items[0]);
  struct jinja_string *word = jj_intern(run->env, name.as.string->bytes, name.as.string->length);
  if (input.kind == JINJA_UNDEFINED && !jj_is_chainable(run, input)) jj_fail_undefined(run, input);
  bool map_key = input.kind == JINJA_MAP && jj_find_method(input, word->word) == NULL; /* attributes only, no items */
  return map_key ? jj_undefined_attr(run, input, name) : jj_getattr(run, input, word);
}

const struct filter jj_filters_select[] = {
    {"map", filter_map, {.variadic = true}},
    {"select", filter_select, {.variadic = true}},
    {"reject", filter_reject, {.variadic = true}},
    {"selectattr", filter_selectattr, {.variadic = true}},
    {"rejectattr", filter_rejectattr, {.variadic = true}},
    {"default", filter_default, {{"default_value", "boolean"}, 0, false}},
    {"d", filter_default, {{"default_value", "boolean"}, 0, false}},
    {"attr", filter_attr, {{"name"}, 1, false}},
    {.name = NULL},
};
