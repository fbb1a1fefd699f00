/* Expressions: a node and an activation in, a value out. */
#include <string.h>

#include "gen/jinja/support.h"

/* --- names --- */

static const struct local *find_local(const struct context *context, const struct jinja_string *name) {
  for (int i = 0; i < context->local_count; i++) {
    if (context->locals[i].name == name) return &context->locals[i];
  }
  return NULL;
}

struct jinja_value jj_lookup(struct run *run, const struct context *context, struct jinja_string *name) {
  struct map_entry *entry;
  for (; context != NULL; context = context->outer) {
    entry = context->vars != NULL ? jj_map_find_string(context->vars, name) : NULL;
    if (entry != NULL) return entry->value;
    const struct local *local = find_local(context, name);
    if (local != NULL) return local->value;
    if (context->values != NULL && (entry = jj_map_find_string(context->values, name)) != NULL) return entry->value;
  }
  if (run->values != NULL && (entry = jj_map_find_string(run->values, name)) != NULL) return entry->value;
  struct jinja_value value = jj_find_global(run, name);
  return value.kind == JINJA_UNDEFINED ? jj_global_module(run, name) : value;
}

/* A slot without a value: not looked up in the context yet, or a local that nobody assigned. */
static struct jinja_value load_slowly(struct run *run, struct activation *a, const struct variable *variable) {
  struct jinja_value *slot = &a->slots[variable->slot];
  if (slot->as.object == &jj_missing_mark) return jj_undefined(variable->undefined);
  struct jinja_value value = jj_lookup(run, a->context, variable->name);
  if (value.kind == JINJA_UNDEFINED && value.as.object == NULL) value = jj_undefined(variable->undefined);
  *slot = value;
  return value;
}

struct jinja_value jj_load(struct run *run, struct activation *a, const struct variable *variable) {
  for (int up = variable->up; up > 0; up--) a = a->outer;
  struct jinja_value value = a->slots[variable->slot];
  if (value.kind != JINJA_UNDEFINED || (value.as.object != NULL && value.as.object != &jj_missing_mark)) return value;
  return load_slowly(run, a, variable);
}

/* --- truth and logic --- */

bool jj_truth(struct run *run, struct jinja_value value) {
  if (value.kind == JINJA_BOOL) return value.as.boolean;
  if (jj_is_strict(run, value)) jj_fail_undefined(run, value);
  return jj_truth_plain(value);
}

/* What an if-expression without else gives when it does not hold: of the standard class, as by Jinja2. */
static struct jinja_value no_else(const struct run *run) {
  static const char hint[] = "the inline if-expression evaluated to false and no else section was defined.";
  static const struct undefined_info own = {.hint = hint}, standard = {.hint = hint, .standard = true};
  return jj_undefined(run->undefined == JINJA_LENIENT ? &own : &standard);
}

static struct jinja_value eval_condition(struct run *run, struct activation *a, const struct node *node) {
  bool holds = jj_truth(run, jj_eval(run, a, node->as.cond.test));
  if (holds) return jj_eval(run, a, node->as.cond.yes);
  return node->as.cond.no != NULL ? jj_eval(run, a, node->as.cond.no) : no_else(run);
}

static struct jinja_value eval_compare(struct run *run, struct activation *a, const struct node *node) {
  struct jinja_value left = jj_eval(run, a, node->as.compare.first);
  bool holds = true;
  for (int i = 0; holds && i < node->as.compare.rest.count; i++) {
    struct jinja_value right = jj_eval(run, a, node->as.compare.rest.items[i]);
    run->at = node;
    holds = jj_compare(run, node->as.compare.ops[i], left, right);
    left = right;
  }
  return jinja_bool(holds);
}

static struct jinja_value eval_concat(struct run *run, struct activation *a, const struct node *node) {
  const struct nodes *parts = &node->as.items;
  struct jinja_value *values = jj_alloc(run->pool, (size_t)parts->count * sizeof *values);
  bool safe = false;
  for (int i = 0; i < parts->count; i++) {
    values[i] = jj_eval(run, a, parts->items[i]);
    safe |= run->autoescape && values[i].kind == JINJA_STRING && values[i].safe;
  }
  run->at = node;
  for (int i = 0; i < parts->count; i++) values[i] = safe ? jj_escape(run, values[i]) : jj_str(run, values[i]);
  static const struct jinja_string nothing = {.length = 0};
  struct jinja_value value = jj_join(run, &nothing, values, parts->count);
  value.safe = safe;
  return value;
}

/* --- displays --- */

static struct jinja_value eval_list(struct run *run, struct activation *a, const struct node *node) {
  const struct nodes *items = &node->as.items;
  struct jinja_value list = jj_new_list(run, node->kind == N_TUPLE ? FLAVOUR_TUPLE : FLAVOUR_LIST, items->count);
  for (int i = 0; i < items->count; i++) jj_push(run->pool, list.as.list, jj_eval(run, a, items->items[i]));
  return list;
}

static struct jinja_value eval_dict(struct run *run, struct activation *a, const struct node *node) {
  const struct nodes *items = &node->as.items;
  struct jinja_value map = jj_map(run->pool);
  for (int i = 0; i < items->count; i += 2) {
    struct jinja_value key = jj_eval(run, a, items->items[i]), value = jj_eval(run, a, items->items[i + 1]);
    run->at = node;
    jj_require_hash(run, key);
    jj_map_put(run->pool, map.as.map, key, value);
  }
  return map;
}

static struct jinja_value eval_optional(struct run *run, struct activation *a, const struct node *node) {
  return node != NULL ? jj_eval(run, a, node) : jinja_none();
}

static struct jinja_value eval_item(struct run *run, struct activation *a, const struct node *node) {
  struct jinja_value object = jj_eval(run, a, node->as.item.object);
  const struct node *key = node->as.item.key;
  if (key->kind == N_SLICE) {
    struct jinja_value start = eval_optional(run, a, key->as.slice.start);
    struct jinja_value stop = eval_optional(run, a, key->as.slice.stop);
    struct jinja_value step = eval_optional(run, a, key->as.slice.step);
    run->at = node;
    return jj_slice(run, object, start, stop, step);
  }
  struct jinja_value value = jj_eval(run, a, key);
  run->at = node;
  return jj_getitem(run, object, value);
}

/* --- calls --- */

static void add_keyword(struct run *run, struct keyword *keywords, int *count, struct jinja_string *name,
                        struct jinja_value value) {
  for (int i = 0; i < *count; i++) {
    if (keywords[i].name == name) jj_fail(run, "got multiple values for keyword argument '%s'", name->bytes);
  }
  keywords[(*count)++] = (struct keyword){name, value};
}

static void add_star2(struct run *run, struct keyword *keywords, int *count, const struct jinja_map *map) {
  for (int i = 0; i < map->count; i++) {
    struct jinja_value key = map->items[i].key;
    if (key.kind != JINJA_STRING) jj_fail(run, "keywords must be strings");
    add_keyword(run, keywords, count, jj_intern(run->env, key.as.string->bytes, key.as.string->length),
                map->items[i].value);
  }
}

static void eval_positional(struct run *run, struct activation *a, const struct args *args, struct call *call) {
  int count = args->positional.count;
  struct jinja_value *items = jj_alloc(run->pool, (size_t)(count + 1) * sizeof *items);
  for (int i = 0; i < count; i++) items[i] = jj_eval(run, a, args->positional.items[i]);
  const struct jinja_list *star = args->star != NULL ? jj_iterate(run, jj_eval(run, a, args->star)) : NULL;
  if (star != NULL) {
    struct jinja_value *more = jj_alloc(run->pool, (size_t)(count + star->count + 1) * sizeof *more);
    memcpy(more, items, (size_t)count * sizeof *more);
    if (star->count > 0) memcpy(more + count, star->items, (size_t)star->count * sizeof *more);
    items = more;
    count += star->count;
  }
  call->items = items;
  call->count = count;
}

static void eval_keywords(struct run *run, struct activation *a, const struct args *args, int extra,
                          struct call *call) {
  int count = args->keyword_names.count;
  struct jinja_value *values = jj_alloc(run->pool, (size_t)(count + 1) * sizeof *values);
  for (int i = 0; i < count; i++) values[i] = jj_eval(run, a, args->keyword_values.items[i]);
  struct jinja_value star2 = args->star2 != NULL ? jj_eval(run, a, args->star2) : jinja_none();
  if (args->star2 != NULL && star2.kind != JINJA_MAP)
    jj_fail(run, "argument after ** must be a mapping, not %s", jj_type_name(star2));
  int capacity = count + extra + (star2.kind == JINJA_MAP ? star2.as.map->count : 0);
  struct keyword *keywords = jj_alloc(run->pool, (size_t)(capacity + 1) * sizeof *keywords);
  for (int i = 0; i < count; i++)
    add_keyword(run, keywords, &call->keyword_count, args->keyword_names.items[i], values[i]);
  if (star2.kind == JINJA_MAP) add_star2(run, keywords, &call->keyword_count, star2.as.map);
  call->keywords = keywords;
}

/* Evaluates arguments; `extra` more keywords have capacity. */
static struct call eval_args(struct run *run, struct activation *a, const struct args *args, int extra) {
  static const struct args none;
  struct call call = {0};
  if (args == NULL && extra == 0) return call;
  if (args == NULL) args = &none;
  eval_positional(run, a, args, &call);
  if (args->keyword_names.count > 0 || extra > 0 || args->star2 != NULL) eval_keywords(run, a, args, extra, &call);
  return call;
}

/* object.name(…) without making an object of the method first. */
static struct jinja_value eval_method_call(struct run *run, struct activation *a, const struct node *node, int extra,
                                           struct jinja_value caller) {
  const struct node *attr = node->as.call.callee;
  struct jinja_value object = jj_eval(run, a, attr->as.attr.object);
  enum jj_word word = attr->as.attr.name->word;
  const struct method *method = word != W_none ? jj_find_method(object, word) : NULL;
  struct jinja_value callee = {0};
  run->at = attr;
  bool is_object = object.kind == JINJA_OBJECT && word != W_none;
  if (method == NULL && !is_object) callee = jj_getattr(run, object, attr->as.attr.name);
  struct call call = eval_args(run, a, node->as.call.args, extra);
  if (extra > 0)
    add_keyword(run, (struct keyword *)(uintptr_t)call.keywords, &call.keyword_count, jj_intern(run->env, "caller", 6),
                caller);
  run->at = node;
  if (method != NULL) {
    struct jinja_value storage[MAX_PARAMS];
    call = jj_bind_args(run, attr->as.attr.name->bytes, &method->params, &call, storage);
    return method->apply(run, object, &call);
  }
  if (is_object) {
    bool known;
    struct jinja_value result = jj_object_call(run, object, word, &call, &known);
    if (known) return result;
    callee = jj_getattr(run, object, attr->as.attr.name);
  }
  return jj_call(run, callee, &call);
}

struct jinja_value jj_eval_call(struct run *run, struct activation *a, const struct node *node,
                                const struct macro *caller) {
  struct jinja_value caller_value = {.kind = JINJA_OBJECT, .as.object = (void *)(uintptr_t)caller};
  int extra = caller != NULL;
  if (node->as.call.callee->kind == N_ATTR) return eval_method_call(run, a, node, extra, caller_value);
  struct jinja_value callee = jj_eval(run, a, node->as.call.callee);
  struct call call = eval_args(run, a, node->as.call.args, extra);
  run->at = node;
  if (extra > 0)
    add_keyword(run, (struct keyword *)(uintptr_t)call.keywords, &call.keyword_count, jj_intern(run->env, "caller", 6),
                caller_value);
  return jj_call(run, callee, &call);
}

/* --- filters and tests --- */

struct jinja_value jj_eval_filter(struct run *run, struct activation *a, const struct node *node,
                                  struct jinja_value seed) {
  if (node->as.filter.filter == NULL) {
    run->at = node;
    jj_fail(run, "No filter named '%s' found.", node->as.filter.name->bytes);
  }
  const struct node *inner = node->as.filter.input;
  struct jinja_value input = inner == NULL             ? seed
                             : inner->kind == N_FILTER ? jj_eval_filter(run, a, inner, seed)
                                                       : jj_eval(run, a, inner);
  struct call call = eval_args(run, a, node->as.filter.args, 0);
  run->at = node;
  return jj_apply_filter(run, node->as.filter.filter, input, &call);
}

static struct jinja_value eval_test(struct run *run, struct activation *a, const struct node *node) {
  if (node->as.test.test == NULL) {
    run->at = node;
    jj_fail(run, "No test named '%s' found.", node->as.test.name->bytes);
  }
  struct jinja_value input = jj_eval(run, a, node->as.test.input);
  struct call call = eval_args(run, a, node->as.test.args, 0);
  run->at = node;
  return jinja_bool(jj_apply_test(run, node->as.test.test, input, &call));
}

static struct jinja_value eval_binary(struct run *run, struct activation *a, const struct node *node) {
  struct jinja_value left = jj_eval(run, a, node->as.pair.left), right = jj_eval(run, a, node->as.pair.right);
  run->at = node;
  return jj_binary(run, node->op, left, right);
}

static struct jinja_value eval_sign(struct run *run, struct activation *a, const struct node *node) {
  struct jinja_value value = jj_eval(run, a, node->as.pair.left);
  run->at = node;
  if (node->kind == N_NEG) return jj_negate(run, value);
  if (value.kind == JINJA_UNDEFINED) jj_fail_undefined(run, value);
  if (!jj_is_number(value)) jj_fail(run, "bad operand type for unary +: '%s'", jj_type_name(value));
  return value.kind == JINJA_BOOL ? jinja_int(value.as.boolean) : value;
}

struct jinja_value jj_eval(struct run *run, struct activation *a, const struct node *node) {
  struct jinja_value value;
  switch (node->kind) {
  case N_CONST:
    return node->as.constant;
  case N_NAME:
    return jj_load(run, a, &node->as.name);
  case N_LIST:
  case N_TUPLE:
    return eval_list(run, a, node);
  case N_DICT:
    return eval_dict(run, a, node);
  case N_COND:
    return eval_condition(run, a, node);
  case N_AND:
    value = jj_eval(run, a, node->as.pair.left);
    run->at = node;
    return jj_truth(run, value) ? jj_eval(run, a, node->as.pair.right) : value;
  case N_OR:
    value = jj_eval(run, a, node->as.pair.left);
    run->at = node;
    return jj_truth(run, value) ? value : jj_eval(run, a, node->as.pair.right);
  case N_NOT:
    value = jj_eval(run, a, node->as.pair.left);
    run->at = node;
    return jinja_bool(!jj_truth(run, value));
  case N_COMPARE:
    return eval_compare(run, a, node);
  case N_CONCAT:
    return eval_concat(run, a, node);
  case N_BINARY:
    return eval_binary(run, a, node);
  case N_NEG:
  case N_POS:
    return eval_sign(run, a, node);
  case N_ATTR:
    value = jj_eval(run, a, node->as.attr.object);
    run->at = node;
    return jj_getattr(run, value, node->as.attr.name);
  case N_ITEM:
    return eval_item(run, a, node);
  case N_CALL:
    return jj_eval_call(run, a, node, NULL);
  case N_FILTER:
    return jj_eval_filter(run, a, node, jinja_none());
  case N_TEST:
    return eval_test(run, a, node);
  default:
    run->at = node;
    jj_fail(run, "a slice where a value is expected");
  }
}
