/* The built-in filters, tests, functions and methods, by name. */
#ifndef ACCEL_JINJA_TABLES_H
#define ACCEL_JINJA_TABLES_H

#include "gen/jinja/value.h"

struct run;

struct keyword {
  struct jinja_string *name;
  struct jinja_value value;
};

/* The arguments of a call. After jj_bind_args, `items` holds the named parameters' values in their order. */
struct call {
  const struct jinja_value *items;
  int count;
  const struct keyword *keywords;
  int keyword_count;
};

enum { MAX_PARAMS = 8 };

/* How the arguments of a built-in are named. `required` of them must be given; one whose name begins with '/' can only
 * be given by its position. */
struct params {
  const char *names[MAX_PARAMS];
  int required;
  bool variadic; /* takes any arguments, as they are */
};

struct filter {
  const char *name;
  struct jinja_value (*apply)(struct run *run, struct jinja_value input, const struct call *call);
  struct params params;
};

struct test {
  const char *name;
  bool (*holds)(struct run *run, struct jinja_value input, const struct call *call);
  struct params params;
};

/* A method of strings, lists or maps, found by its word. */
struct method {
  enum jj_word word;
  struct jinja_value (*apply)(struct run *run, struct jinja_value self, const struct call *call);
  struct params params;
};

const struct filter *jj_find_filter(const char *name);

/* As jj_find_filter; of chat templates those of chat.c come first. */
const struct filter *jj_find_filter_in(const struct jinja_env *env, const char *name);
const struct test *jj_find_test(const char *name);

/* NULL where the value's type has no such method. */
const struct method *jj_find_method(struct jinja_value self, enum jj_word word);

/* range, dict, cycler, joiner, namespace: undefined for another name. */
struct jinja_value jj_find_global(struct run *run, const struct jinja_string *name);

/* The tables that the files of filters give; each ends with a NULL name. */
extern const struct filter jj_filters_text[], jj_filters_markup[], jj_filters_list[], jj_filters_number[],
    jj_filters_select[], jj_filters_urlize[], jj_filters_pprint[], jj_filters_chat[];

/* A function that chat templates have, or NULL. */
struct function_object;
struct function_object *jj_find_chat_function(const struct jinja_env *env, const char *name);
extern const struct method jj_methods_string[], jj_methods_split[], jj_methods_map[], jj_methods_list[],
    jj_methods_tuple[], jj_methods_number[];

/* dict.update: takes a map's entries or a list of pairs. */
void jj_update_map(struct run *run, struct jinja_map *map, struct jinja_value from);

/* Puts positional and keyword arguments into their parameters' order. */
struct call jj_bind_args(struct run *run, const char *what, const struct params *params, const struct call *call,
                         struct jinja_value storage[MAX_PARAMS]);

/* Was parameter number `i` given? An absent one in the middle is undefined without a name. */
static inline bool jj_given(const struct call *call, int i) {
  return i < call->count && !(call->items[i].kind == JINJA_UNDEFINED && call->items[i].as.object == NULL);
}

#endif
