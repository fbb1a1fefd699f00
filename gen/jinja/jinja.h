/* Jinja: values and template text in, text out. The language is Jinja2 3.1's as its documentation states it.
 *
 * This folder knows nothing of jobs, models or C programs; of the tree it uses gen/base alone. Everything lives in
 * the arena that the caller hands in; nothing is freed one by one. */
#ifndef ACCEL_JINJA_JINJA_H
#define ACCEL_JINJA_JINJA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "gen/base/arena.h"

/* A value, passed by copy; sequences, maps and strings are shared by reference. Its members belong to the engine. */
enum jinja_kind {
  JINJA_UNDEFINED,
  JINJA_NONE,
  JINJA_BOOL,
  JINJA_INT,
  JINJA_DOUBLE,
  JINJA_STRING,
  JINJA_LIST,
  JINJA_MAP,
  JINJA_OBJECT /* macros, namespaces, loop and the engine's other own objects */
};

struct jinja_value {
  enum jinja_kind kind;
  bool safe; /* a string that autoescape leaves alone */
  union {
    bool boolean;
    int64_t integer;
    double real;
    struct jinja_string *string;
    struct jinja_list *list;
    struct jinja_map *map;
    void *object;
  } as;
};

/* Makers. Strings are copied into the arena. */
struct jinja_value jinja_none(void);
struct jinja_value jinja_bool(bool value);
struct jinja_value jinja_int(int64_t value);
struct jinja_value jinja_double(double value);
struct jinja_value jinja_string(struct arena *arena, const char *text);
struct jinja_value jinja_string_n(struct arena *arena, const char *bytes, size_t length);

/* A new empty list; push adds at its end. */
struct jinja_value jinja_list(struct arena *arena);
void jinja_push(struct arena *arena, struct jinja_value list, struct jinja_value item);

/* How many items a list has, and one of them. */
int jinja_count(struct jinja_value list);
struct jinja_value jinja_at(struct jinja_value list, int index);

/* The text of a string, followed by a NUL. */
const char *jinja_text(struct jinja_value string);

/* A new empty map with insertion order; set adds or replaces; get gives JINJA_UNDEFINED where the key is missing. */
struct jinja_value jinja_map(struct arena *arena);
void jinja_set(struct arena *arena, struct jinja_value map, const char *key, struct jinja_value value);
struct jinja_value jinja_get(struct jinja_value map, const char *key);

/* What an undefined name does when it is used: Jinja2's Undefined, Chainable-, Debug- and StrictUndefined. */
enum jinja_undefined { JINJA_LENIENT, JINJA_CHAINABLE, JINJA_DEBUG, JINJA_STRICT };

struct jinja_options {
  enum jinja_undefined undefined;
  bool trim_blocks, lstrip_blocks, keep_trailing_newline, autoescape;
  const char *line_statement_prefix, *line_comment_prefix; /* NULL: none */
  /* Gives the text of the template called `name`, or NULL. The text must outlive the environment. */
  const char *(*load)(void *context, const char *name);
  void *load_context; /* of all three */
  /* As Jinja2's Environment.join_path: the name by which to load what the template `parent` calls `name` in an extends,
   * an include or an import. It must outlive the environment. NULL: names are taken as they are. */
  const char *(*join_path)(void *context, const char *name, const char *parent);
  /* As Jinja2's Environment.globals, of templates: the one whose module, imported without context, `name` means where
   * nothing else does, or NULL. NULL: there are none. */
  const char *(*module)(void *context, const char *name);
  /* The values of a rendering are globals of its template, as those of get_template(name, globals=values): what is
   * imported without context sees them, too. */
  bool global_values;
  /* The environment of transformers' apply_chat_template: the block `generation`, whose text the output names, the
   * functions raise_exception and strftime_now, tojson without escapes for ASCII and HTML, and lists and maps that no
   * method changes. */
  bool chat;
  const struct tm *now; /* of strftime_now, which is absent where this is NULL */
  /* Where the text of outputs is, which the caller may reset once it has read them. NULL: in the environment's arena.
   */
  struct arena *outputs;
  /* Limits against hostile templates; 0 takes the default that docs/jinja.md names. */
  int max_recursion;
  int64_t max_output, max_steps;
};

/* An environment: options and the templates compiled so far. */
struct jinja_env;
struct jinja_env *jinja_env_new(struct arena *arena, const struct jinja_options *options);

/* A location in a template. */
struct jinja_location {
  const char *template_name;
  int line, column; /* from 1 */
};

/* The source map: one span of an output line and the chain of locations that wrote it, innermost first (the text or
 * expression itself, then the include, macro call or block that led there). */
struct jinja_span {
  int line, column, length; /* in the output; lines and columns from 1, in bytes */
  const struct jinja_location *chain;
  int chain_count;
  /* The items at which the loops around it were, innermost first, through macros and includes. What the template itself
   * made of them lives until the environment's next rendering. */
  const struct jinja_value *items;
  int item_count;
};

/* A part of an output, in bytes. */
struct jinja_range {
  size_t from, to;
};

struct jinja_output {
  const char *text;
  size_t length;
  const struct jinja_range *generated; /* of the blocks `generation` */
  int generated_count;
  bool generated_inside;          /* such a block was within captured text: where it is in the output is not known */
  const struct jinja_span *spans; /* in the order of the output; NULL unless requested */
  int span_count;
};

struct jinja_error {
  const char *message;
  const struct jinja_location *chain; /* innermost first; chain[0] is where it happened */
  int chain_count;
  const char *source_line; /* the template's line at chain[0]; NULL when it is not known */
};

/* Compiles the template `name` (through the loader) without rendering it: syntax errors, unknown filters and unknown
 * tests are found here. True, or false with *error filled. */
bool jinja_compile(struct jinja_env *env, const char *name, struct jinja_error *error);

/* Renders the template `name` with the map `context`. with_spans: makes the source map. True with *output filled,
 * or false with *error filled. Output and error live in the environment's arena, but for the output's text with
 * `outputs`. */
bool jinja_render(struct jinja_env *env, const char *name, struct jinja_value context, bool with_spans,
                  struct jinja_output *output, struct jinja_error *error);

#endif
