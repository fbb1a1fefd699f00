/* What chat templates have besides Jinja2's built-ins: transformers' functions, and its tojson, which is json.dumps. */
#include "gen/jinja/support.h"

static const char *separator(struct run *run, const struct jinja_list *pair, int i) {
  const struct call call = {.items = pair->items, .count = pair->count};
  return jj_arg_string(run, &call, i)->bytes;
}

FILTER(chat_tojson) {
  struct json_style style = {.indent = jj_arg(call, 1, jinja_none()),
                             .colon = ": ",
                             .ascii = jj_arg_true(run, call, 0, false),
                             .sorts = jj_arg_true(run, call, 3, false)};
  if (jj_given(call, 2) && call->items[2].kind != JINJA_NONE) {
    const struct jinja_list *pair = jj_iterate(run, call->items[2]);
    if (pair->count != 2) jj_fail(run, "separators are a pair of strings");
    style.between = separator(run, pair, 0);
    style.colon = separator(run, pair, 1);
  }
  return jj_json(run, input, style);
}

const struct filter jj_filters_chat[] = {
    {"tojson", chat_tojson, {{"ensure_ascii", "indent", "separators", "sort_keys"}, 0, false}},
    {.name = NULL},
};

static struct jinja_value raise_exception(struct run *run, const struct call *call) {
  static const struct params params = {.names = {"message"}, .required = 1};
  struct jinja_value storage[MAX_PARAMS];
  struct call bound = jj_bind_args(run, "raise_exception", &params, call, storage);
  jj_fail(run, "%s", jj_str(run, bound.items[0]).as.string->bytes);
}

static struct jinja_value strftime_now(struct run *run, const struct call *call) {
  static const struct params params = {.names = {"format"}, .required = 1};
  struct jinja_value storage[MAX_PARAMS];
  struct call bound = jj_bind_args(run, "strftime_now", &params, call, storage);
  char text[512];
  const char *format = jj_arg_string(run, &bound, 0)->bytes;
  if (format[0] != '\0' && strftime(text, sizeof text, format, run->env->options.now) == 0)
    jj_fail(run, "a date of more than %zu bytes", sizeof text - 1);
  return jj_cstr(run->pool, format[0] != '\0' ? text : "");
}

struct function_object *jj_find_chat_function(const struct jinja_env *env, const char *name) {
  static struct function_object raises = {{OBJECT_FUNCTION}, "raise_exception", "raise_exception", raise_exception};
  static struct function_object dates = {{OBJECT_FUNCTION}, "strftime_now", "strftime_now", strftime_now};
  if (!env->options.chat) return NULL;
  if (strcmp(name, raises.name) == 0) return &raises;
  return env->options.now != NULL && strcmp(name, dates.name) == 0 ? &dates : NULL;
}
