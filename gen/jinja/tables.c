/* How names find the built-ins. */
#include "gen/jinja/tables.h"

#include <string.h>

#include "gen/jinja/support.h"

static const struct filter *const filter_tables[] = {jj_filters_text,   jj_filters_markup, jj_filters_list,
                                                     jj_filters_number, jj_filters_select, jj_filters_urlize,
                                                     jj_filters_pprint};

const struct filter *jj_find_filter_in(const struct jinja_env *env, const char *name) {
  for (const struct filter *filter = jj_filters_chat; env->options.chat && filter->name != NULL; filter++)
    if (strcmp(filter->name, name) == 0) return filter;
  return jj_find_filter(name);
}

const struct filter *jj_find_filter(const char *name) {
  for (size_t i = 0; i < sizeof filter_tables / sizeof *filter_tables; i++) {
    for (const struct filter *filter = filter_tables[i]; filter->name != NULL; filter++) {
      if (strcmp(filter->name, name) == 0) return filter;
    }
  }
  return NULL;
}

/* --- methods --- */

static const struct method *in_table(const struct method *table, enum jj_word word) {
  for (; table->apply != NULL; table++) {
    if (table->word == word) return table;
  }
  return NULL;
}

static const struct method *method_of_string(enum jj_word word) {
  const struct method *method = in_table(jj_methods_string, word);
  return method != NULL ? method : in_table(jj_methods_split, word);
}

const struct method *jj_find_method(struct jinja_value self, enum jj_word word) {
  switch (self.kind) {
  case JINJA_STRING:
    return method_of_string(word);
  case JINJA_MAP:
    return in_table(jj_methods_map, word);
  case JINJA_LIST:
    return in_table(self.as.list->flavour == FLAVOUR_LIST ? jj_methods_list : jj_methods_tuple, word);
  case JINJA_BOOL:
  case JINJA_INT:
  case JINJA_DOUBLE:
    return in_table(jj_methods_number, word);
  default:
    return NULL;
  }
}

/* --- global functions --- */

static struct jinja_value object_value(void *object) {
  return (struct jinja_value){.kind = JINJA_OBJECT, .as.object = object};
}

static int64_t range_count(struct run *run, int64_t start, int64_t stop, int64_t step) {
  if (step == 0) jj_fail(run, "range() arg 3 must not be zero");
  if (step > 0 ? start >= stop : start <= stop) return 0;
  uint64_t distance = step > 0 ? (uint64_t)stop - (uint64_t)start : (uint64_t)start - (uint64_t)stop;
  uint64_t size = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
  uint64_t count = (distance - 1) / size + 1;
  if (count > INT32_MAX) jj_fail(run, "range() is too long");
  return (int64_t)count;
}

static struct jinja_value make_range(struct run *run, const struct call *call) {
  if (call->keyword_count > 0) jj_fail(run, "range() takes no keyword arguments");
  if (call->count < 1 || call->count > 3) jj_fail(run, "range expected 1 to 3 arguments, got %d", call->count);
  int64_t start = call->count > 1 ? jj_arg_int(run, call, 0, 0) : 0;
  int64_t stop = jj_arg_int(run, call, call->count > 1 ? 1 : 0, 0), step = jj_arg_int(run, call, 2, 1);
  return jj_range(run->pool, start, stop, step, (int)range_count(run, start, stop, step));
}

/* A map from the arguments, as dict() and namespace() take them. */
static struct jinja_value map_from(struct run *run, const struct call *call, const char *what) {
  struct jinja_value map = jj_map(run->pool);
  if (call->count > 1) jj_fail(run, "%s expected at most 1 argument, got %d", what, call->count);
  if (call->count == 1) jj_update_map(run, map.as.map, call->items[0]);
  for (int i = 0; i < call->keyword_count; i++) {
    jj_map_put(run->pool, map.as.map, jj_string_value(call->keywords[i].name), call->keywords[i].value);
  }
  return map;
}

static struct jinja_value make_dict(struct run *run, const struct call *call) {
  return map_from(run, call, "dict");
}

static struct jinja_value make_namespace(struct run *run, const struct call *call) {
  struct namespace *namespace = jj_alloc_zero(run->pool, sizeof *namespace);
  namespace->head.type = OBJECT_NAMESPACE;
  namespace->attributes = map_from(run, call, "namespace").as.map;
  return object_value(namespace);
}

static struct jinja_value make_cycler(struct run *run, const struct call *call) {
  if (call->count == 0) jj_fail(run, "at least one item has to be provided");
  struct cycler *cycler = jj_alloc_zero(run->pool, sizeof *cycler);
  cycler->head.type = OBJECT_CYCLER;
  cycler->items = jj_list(run->pool, FLAVOUR_TUPLE, call->count);
  for (int i = 0; i < call->count; i++) jj_push(run->pool, cycler->items.as.list, call->items[i]);
  return object_value(cycler);
}

static struct jinja_value make_joiner(struct run *run, const struct call *call) {
  static const struct params params = {.names = {"sep"}};
  struct jinja_value storage[MAX_PARAMS];
  struct call bound = jj_bind_args(run, "joiner", &params, call, storage);
  struct joiner *joiner = jj_alloc_zero(run->pool, sizeof *joiner);
  joiner->head.type = OBJECT_JOINER;
  joiner->separator = jj_given(&bound, 0) ? bound.items[0] : jj_cstr(run->pool, ", ");
  return object_value(joiner);
}

struct jinja_value jj_find_global(struct run *run, const struct jinja_string *name) {
  static struct function_object functions[] = {
      {{OBJECT_FUNCTION}, "range", "range", make_range},
      {{OBJECT_FUNCTION}, "dict", "dict", make_dict},
      {{OBJECT_FUNCTION}, "cycler", "jinja2.utils.Cycler", make_cycler},
      {{OBJECT_FUNCTION}, "joiner", "jinja2.utils.Joiner", make_joiner},
      {{OBJECT_FUNCTION}, "namespace", "jinja2.utils.Namespace", make_namespace},
  };
  struct function_object *chat = jj_find_chat_function(run->env, name->bytes);
  if (chat != NULL) return object_value(chat);
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    if (strcmp(functions[i].name, name->bytes) == 0) return object_value(&functions[i]);
  }
  return (struct jinja_value){.kind = JINJA_UNDEFINED};
}
