/* Calls: how arguments find their parameters, and macros. */
#include <string.h>

#include "gen/jinja/run.h"

/* --- built-ins --- */

static int param_index(const struct params *params, const struct jinja_string *name) {
  for (int i = 0; i < MAX_PARAMS && params->names[i] != NULL; i++) {
    if (strcmp(params->names[i], name->bytes) == 0) return i;
  }
  return -1;
}

static struct call bind_keywords(struct run *run, const char *what, const struct params *params,
                                 const struct call *call, struct jinja_value storage[MAX_PARAMS]) {
  memset(storage, 0, MAX_PARAMS * sizeof *storage); /* absent: undefined without a name */
  for (int i = 0; i < call->count; i++) storage[i] = call->items[i];
  int count = call->count;
  for (int i = 0; i < call->keyword_count; i++) {
    int at = param_index(params, call->keywords[i].name);
    if (at < 0) jj_fail(run, "%s() got an unexpected keyword argument '%s'", what, call->keywords[i].name->bytes);
    if (at < call->count) jj_fail(run, "%s() got multiple values for argument '%s'", what, params->names[at]);
    storage[at] = call->keywords[i].value;
    if (at + 1 > count) count = at + 1;
  }
  return (struct call){.items = storage, .count = count};
}

struct call jj_bind_args(struct run *run, const char *what, const struct params *params, const struct call *call,
                         struct jinja_value storage[MAX_PARAMS]) {
  if (params->variadic) return *call;
  int most = 0;
  while (most < MAX_PARAMS && params->names[most] != NULL) most++;
  if (call->count > most)
    jj_fail(run, "%s() takes %d argument%s but %d were given", what, most, most == 1 ? "" : "s", call->count);
  struct call bound = call->keyword_count > 0 ? bind_keywords(run, what, params, call, storage) : *call;
  for (int i = 0; i < params->required; i++) {
    if (!jj_given(&bound, i)) jj_fail(run, "%s() missing a required argument: '%s'", what, params->names[i]);
  }
  return bound;
}

struct jinja_value jj_apply_filter(struct run *run, const struct filter *filter, struct jinja_value input,
                                   const struct call *call) {
  struct jinja_value storage[MAX_PARAMS];
  struct call bound = jj_bind_args(run, filter->name, &filter->params, call, storage);
  return filter->apply(run, input, &bound);
}

bool jj_apply_test(struct run *run, const struct test *test, struct jinja_value input, const struct call *call) {
  struct jinja_value storage[MAX_PARAMS];
  struct call bound = jj_bind_args(run, test->name, &test->params, call, storage);
  return test->holds(run, input, &bound);
}

/* --- macros --- */

struct arguments {
  const struct call *call;
  bool *used; /* which keywords went to a parameter */
};

static bool take_keyword(struct arguments *arguments, const struct jinja_string *name, struct jinja_value *out) {
  for (int i = 0; i < arguments->call->keyword_count; i++) {
    if (arguments->used[i] || arguments->call->keywords[i].name != name) continue;
    arguments->used[i] = true;
    *out = arguments->call->keywords[i].value;
    return true;
  }
  return false;
}

static struct jinja_value default_of(struct run *run, struct activation *a, const struct function *function,
                                     int param) {
  int from = function->params.count - function->defaults.count;
  if (param >= from) return jj_eval(run, a, function->defaults.items[param - from]);
  return jj_undefined_hint(run, "parameter '%s' was not provided", function->params.items[param]->as.name.name->bytes);
}

/* Two rounds: a default may use the parameters before it, which must have their values then. */
static void set_params(struct run *run, struct activation *a, const struct function *function,
                       struct arguments *arguments) {
  const struct call *call = arguments->call;
  for (int i = 0; i < function->params.count; i++) {
    const struct variable *param = &function->params.items[i]->as.name;
    struct jinja_value value;
    bool given = i < call->count;
    if (given) value = call->items[i];
    if (!given) given = take_keyword(arguments, param->name, &value);
    a->slots[param->slot] = given ? value : jj_undefined(&jj_missing_mark);
    if (given && value.kind == JINJA_UNDEFINED && value.as.object == NULL)
      a->slots[param->slot] = jj_undefined(&jj_nameless);
  }
  for (int i = call->count; i < function->params.count; i++) {
    struct jinja_value *slot = &a->slots[function->params.items[i]->as.name.slot];
    if (slot->kind == JINJA_UNDEFINED && slot->as.object == &jj_missing_mark) *slot = default_of(run, a, function, i);
  }
}

static struct jinja_value rest_of_keywords(struct run *run, struct arguments *arguments) {
  struct jinja_value map = jj_map(run->pool);
  for (int i = 0; i < arguments->call->keyword_count; i++) {
    if (arguments->used[i]) continue;
    jj_map_put(run->pool, map.as.map, jj_string_value(arguments->call->keywords[i].name),
               arguments->call->keywords[i].value);
  }
  return map;
}

static void reject_keywords(struct run *run, const struct function *function, struct arguments *arguments) {
  for (int i = 0; i < arguments->call->keyword_count; i++) {
    const struct jinja_string *name = arguments->call->keywords[i].name;
    if (arguments->used[i]) continue;
    if (name->word == W_caller) {
      jj_fail(run, "macro '%s' was invoked with two values for the special caller argument. This is most likely a bug.",
              function->name->bytes);
    }
    jj_fail(run, "macro '%s' takes no keyword argument '%s'", function->name->bytes, name->bytes);
  }
}

static void set_extra(struct run *run, struct activation *a, const struct function *function,
                      struct arguments *arguments) {
  const struct call *call = arguments->call;
  if (function->caller_slot >= 0) {
    struct jinja_value caller;
    bool given = take_keyword(arguments, jj_intern(run->env, "caller", 6), &caller);
    a->slots[function->caller_slot] = given ? caller : jj_undefined_hint(run, "No caller defined");
  }
  if (function->kwargs_slot >= 0) {
    a->slots[function->kwargs_slot] = rest_of_keywords(run, arguments);
  } else {
    reject_keywords(run, function, arguments);
  }
  int params = function->params.count;
  if (function->varargs_slot >= 0) {
    struct jinja_value rest = jj_list(run->pool, FLAVOUR_TUPLE, call->count > params ? call->count - params : 0);
    for (int i = params; i < call->count; i++) jj_push(run->pool, rest.as.list, call->items[i]);
    a->slots[function->varargs_slot] = rest;
  } else if (call->count > params) {
    jj_fail(run, "macro '%s' takes not more than %d argument(s)", function->name->bytes, params);
  }
}

/* The state of the run that a body from elsewhere changes, to be restored after it. */
struct frame {
  const struct node *at;
  const struct template *template;
  const struct link *link;
  bool muted, autoescape;
};

static struct jinja_value call_macro(struct run *run, const struct macro *macro, const struct call *call) {
  const struct function *function = macro->function;
  struct frame frame = {run->at, run->template, run->link, run->muted, run->autoescape};
  jj_enter(run);
  bool few[8] = {false};
  struct arguments arguments = {call, few};
  if (call->keyword_count > 8) arguments.used = jj_alloc_zero(run->pool, (size_t)call->keyword_count);
  struct activation *a = jj_activation(run, function, macro->outer, macro->outer->context);
  run->link = jj_link(run, run->at);
  run->template = function->template;
  run->muted = false;
  run->autoescape = macro->autoescape;
  struct buffer *before = jj_capture_begin(run);
  set_params(run, a, function, &arguments);
  set_extra(run, a, function, &arguments);
  jj_initialize(run, a, &function->initial);
  jj_exec(run, a, &function->body);
  struct jinja_value text = jj_capture_end(run, before);
  run->at = frame.at;
  run->template = frame.template;
  run->link = frame.link;
  run->muted = frame.muted;
  run->autoescape = frame.autoescape;
  text.safe = frame.autoescape;
  jj_leave(run);
  return text;
}

/* --- anything that can be called --- */

struct jinja_value jj_call(struct run *run, struct jinja_value callee, const struct call *call) {
  if (callee.kind == JINJA_UNDEFINED) jj_fail_undefined(run, callee);
  if (callee.kind != JINJA_OBJECT) jj_fail(run, "'%s' object is not callable", jj_type_name(callee));
  struct object *object = callee.as.object;
  switch (object->type) {
  case OBJECT_MACRO:
    return call_macro(run, callee.as.object, call);
  case OBJECT_FUNCTION:
    return ((struct function_object *)object)->call(run, call);
  case OBJECT_METHOD: {
    const struct method_object *bound = callee.as.object;
    struct jinja_value storage[MAX_PARAMS];
    struct call args = jj_bind_args(run, "method", &bound->method->params, call, storage);
    return bound->method->apply(run, bound->self, &args);
  }
  default:
    break;
  }
  bool known;
  struct jinja_value result = jj_object_call(run, callee, W_none, call, &known);
  if (!known) jj_fail(run, "'%s' object is not callable", jj_type_name(callee));
  return result;
}
