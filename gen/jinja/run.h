/* One rendering under way, and what the evaluator's files offer each other. Errors leave by longjmp: everything that a
 * rendering allocates is in its pool, so there is nothing to clean up on the way. */
#ifndef ACCEL_JINJA_RUN_H
#define ACCEL_JINJA_RUN_H

#include <setjmp.h>
#include <string.h>

#include "gen/jinja/ast.h"
#include "gen/jinja/env.h"
#include "gen/jinja/tables.h"
#include "gen/jinja/value.h"

/* Who led here: the include, macro call or block, outward. */
struct link {
  struct jinja_location location;
  const struct link *outer;
};

/* The item at which a loop is, outward. */
struct item {
  struct jinja_value value;
  const struct item *outer;
};

/* A stretch of output and who wrote it. */
struct written {
  size_t start, length;
  bool is_text; /* the template's own text: its second line is the template's next line */
  struct jinja_location location;
  const struct link *link;
  const struct item *item;
};

struct span_list {
  struct written *items;
  int count, capacity;
};

struct buffer {
  char *bytes;
  size_t length, capacity;
  struct span_list spans;
  struct buffer *next;     /* of those that wait for use */
  struct buffer *all_next; /* of all */
};

struct local {
  struct jinja_string *name;
  struct jinja_value value;
};

/* The overrides of each block, the most derived first. */
struct override {
  struct function *function;
  const struct override *parent; /* what super() means */
  const struct link *link;
};
struct block_entry {
  struct jinja_string *name;
  struct override *first, *last;
};
struct blocks {
  struct block_entry *items;
  int count, capacity;
};

/* Where names come from that are no slots: top-level assignments, an including template's locals, what is outside. */
struct context {
  struct context *outer;
  struct jinja_map *values; /* what the caller of jinja_render gave; of the outermost context */
  struct jinja_map *vars;   /* assigned at the top level; NULL until then */
  struct local *locals;
  int local_count;
  struct blocks *blocks;
  const struct template *template;
};

/* One run of a function: its slots, and the run of the function around it. */
struct activation {
  struct activation *outer;
  struct context *context;
  const struct function *function;
  struct jinja_value slots[];
};

struct run {
  struct jinja_env *env;
  struct pool *pool;
  struct buffer *out, *whole; /* whole: of the output */
  struct {
    struct jinja_range *items;
    int count, capacity;
  } generated;
  bool generated_inside;
  bool mapped; /* a source map is requested */
  bool muted;  /* after an extends: the template's own text is dropped */
  bool autoescape;
  enum jinja_undefined undefined;
  const struct node *at;           /* what is evaluated, for messages */
  const struct template *template; /* … and in which template */
  const struct link *link;
  const struct item *item;       /* stored where a source map is wanted */
  const struct template *parent; /* set by extends */
  const struct node *extends_at;
  struct module *modules;   /* imported without context: run once */
  struct jinja_map *values; /* of the rendering, where they are global; else NULL */
  int64_t steps, max_steps;
  size_t max_output;
  int depth, max_depth;
  uintptr_t stack_base;
  jmp_buf jump;
  struct jinja_error *error;
};

/* --- objects --- */
struct macro {
  struct object head;
  const struct function *function;
  struct activation *outer;
  bool autoescape;
  struct link *link;
};

struct loop_object {
  struct object head;
  const struct jinja_list *items;
  int index0, length, depth0;
  struct jinja_value last_changed;
  bool any_changed;
  const struct node *node; /* of a recursive loop */
  struct activation *outer;
};

struct namespace {
  struct object head;
  struct jinja_map *attributes;
};

struct cycler {
  struct object head;
  struct jinja_value items;
  int at;
};

struct joiner {
  struct object head;
  struct jinja_value separator;
  bool used;
};

struct module {
  struct object head;
  const struct jinja_string *global; /* the name by which all templates know it; NULL: none has asked */
  const struct template *template;
  struct context *context;
  struct jinja_value body;
  struct module *next;
};

struct self_object {
  struct object head;
  struct context *context;
};

struct block_object {
  struct object head;
  struct context *context;
  const struct override *override;
};

struct method_object {
  struct object head;
  struct jinja_value self;
  const struct method *method;
};

struct function_object {
  struct object head;
  const char *name, *type_name; /* the name of its type in Python, which is how it prints */
  struct jinja_value (*call)(struct run *run, const struct call *call);
};

/* --- errors and limits (run.c) --- */
_Noreturn void jj_fail(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Raises another template's error inside of this rendering: its location, then the chain that led there. */
_Noreturn void jj_fail_with(struct run *run, const struct jinja_error *inner);
static inline void jj_spend(struct run *run, int64_t steps) {
  run->steps += steps;
  if (run->steps > run->max_steps)
    jj_fail(run, "the template takes too many steps: the limit is %lld", (long long)run->max_steps);
}
void jj_enter(struct run *run); /* one level of recursion deeper; ends with the rendering where that is too deep */
static inline void jj_leave(struct run *run) {
  run->depth--;
}
/* Pushes the current location on the chain. */
const struct link *jj_link(struct run *run, const struct node *node);

/* --- output (output.c) --- */
void jj_buffer_grow(struct run *run, size_t more);
static inline void jj_write(struct run *run, const char *bytes, size_t length) {
  struct buffer *out = run->out;
  if (out->capacity - out->length < length) jj_buffer_grow(run, length);
  if (length > 0) memcpy(out->bytes + out->length, bytes, length);
  out->length += length;
}
static inline void jj_copy_small(char *to, const char *from, size_t length) {
  if (length >= 8) {
    memcpy(to, from, 8);
    memcpy(to + length - 8, from + length - 8, 8);
  } else if (length >= 4) {
    memcpy(to, from, 4);
    memcpy(to + length - 4, from + length - 4, 4);
  } else if (length > 0) {
    to[0] = from[0];
    to[length / 2] = from[length / 2];
    to[length - 1] = from[length - 1];
  }
}
/* jj_write for the hot paths: most pieces of a template are a few bytes long, and two copies that may overlap are
 * cheaper than a call. */
static inline void jj_write_piece(struct run *run, const char *bytes, size_t length) {
  struct buffer *out = run->out;
  if (length == 0) return;
  if (out->capacity - out->length < length) jj_buffer_grow(run, length);
  if (length <= 16) {
    jj_copy_small(out->bytes + out->length, bytes, length);
  } else {
    memcpy(out->bytes + out->length, bytes, length);
  }
  out->length += length;
}
/* Writes the value as {{ }} does, escaped where autoescape says so. */
void jj_write_value(struct run *run, struct jinja_value value);
void jj_write_escaped(struct run *run, const char *bytes, size_t length);
/* Writes a part of a string together with what the source map knows of it; or makes a string of that part. */
void jj_write_part(struct run *run, const struct jinja_string *string, size_t from, size_t length);
struct jinja_value jj_part(struct run *run, const struct jinja_string *string, size_t from, size_t length);
void jj_note_written(struct run *run, size_t start, const struct node *node);
struct buffer *jj_capture_begin(struct run *run);
/* Ends the capture; the text as a string, with its source map. */
struct jinja_value jj_capture_end(struct run *run, struct buffer *before);
/* All buffers wait for use again, those too that an error left open. */
void jj_free_buffers(struct jinja_env *env);
void jj_spans_of(struct run *run, struct jinja_output *output);

/* --- text of values (print.c) --- */
struct jinja_value jj_str(struct run *run, struct jinja_value value); /* str(value); a string is itself */
struct jinja_value jj_repr(struct run *run, struct jinja_value value);
struct jinja_value jj_escape(struct run *run, struct jinja_value value); /* str(value), escaped unless it is safe */
void jj_write_str(struct run *run, struct jinja_value value);
void jj_write_repr(struct run *run, struct jinja_value value);

/* --- undefined (undefined.c) --- */
/* Whether a value is undefined, and of this class: the environment's, but for those that are standard in all. */
static inline bool jj_is_undefined(const struct run *run, struct jinja_value value, enum jinja_undefined class) {
  if (value.kind != JINJA_UNDEFINED) return false;
  const struct undefined_info *info = value.as.object;
  return (info != NULL && info->standard ? JINJA_LENIENT : run->undefined) == class;
}
/* An undefined value that may only be asked about, not used. */
static inline bool jj_is_strict(const struct run *run, struct jinja_value value) {
  return jj_is_undefined(run, value, JINJA_STRICT);
}
/* One whose attributes and items are itself, and which has an __html__. */
static inline bool jj_is_chainable(const struct run *run, struct jinja_value value) {
  return jj_is_undefined(run, value, JINJA_CHAINABLE);
}
struct jinja_value jj_undefined(const struct undefined_info *info);
struct jinja_value jj_undefined_attr(struct run *run, struct jinja_value object, struct jinja_value key);
struct jinja_value jj_undefined_hint(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
_Noreturn void jj_fail_undefined(struct run *run, struct jinja_value value);
const char *jj_undefined_message(struct run *run, struct jinja_value value);

/* --- expressions (eval.c) --- */
struct jinja_value jj_eval(struct run *run, struct activation *a, const struct node *node);
struct jinja_value jj_eval_filter(struct run *run, struct activation *a, const struct node *node,
                                  struct jinja_value seed);
/* A call; caller (may be NULL) is handed over as the keyword argument that call blocks give. */
struct jinja_value jj_eval_call(struct run *run, struct activation *a, const struct node *node,
                                const struct macro *caller);
bool jj_truth(struct run *run, struct jinja_value value);
struct jinja_value jj_lookup(struct run *run, const struct context *context, struct jinja_string *name);
struct jinja_value jj_load(struct run *run, struct activation *a, const struct variable *variable);

/* --- operators (operator.c) --- */
struct jinja_value jj_binary(struct run *run, enum operator op, struct jinja_value left, struct jinja_value right);
struct jinja_value jj_negate(struct run *run, struct jinja_value value);
bool jj_compare(struct run *run, enum operator op, struct jinja_value left, struct jinja_value right);
bool jj_less(struct run *run, struct jinja_value left, struct jinja_value right);
bool jj_contains(struct run *run, struct jinja_value container, struct jinja_value item);
bool jj_same(struct run *run, struct jinja_value left, struct jinja_value right); /* ==, with undefined's rules */
/* Fails where Python's hash does: for a value that has none, and for a strict undefined one, also inside of a tuple. */
void jj_require_hash(struct run *run, struct jinja_value value);

/* --- attributes and items (access.c) --- */
struct jinja_value jj_getattr(struct run *run, struct jinja_value object, struct jinja_string *name);
struct jinja_value jj_getitem(struct run *run, struct jinja_value object, struct jinja_value key);
struct jinja_value jj_slice(struct run *run, struct jinja_value object, struct jinja_value start,
                            struct jinja_value stop, struct jinja_value step);
/* "a.b.0" as filters take it. */
struct jinja_value jj_getpath(struct run *run, struct jinja_value object, struct jinja_value path);

/* --- iteration (iterate.c) --- */
/* The items of anything that can be looped over, as a list that is not to be changed. jj_iterate gives a list whose
 * `items` are there; that of jj_sequence can be a range, to be read by jj_item, so that a loop over it takes no memory.
 */
struct jinja_list *jj_iterate(struct run *run, struct jinja_value value);
struct jinja_list *jj_sequence(struct run *run, struct jinja_value value);
/* The next item of a running loop that something else than its `for` reads: a pair of the item and the loop, which
 * then continues after that item. False where there is none. */
bool jj_loop_next(struct run *run, struct jinja_value loop, struct jinja_value *pair);
int64_t jj_length(struct run *run, struct jinja_value value);
/* A text of `length` bytes to be filled by the caller. Large ones cost steps. */
struct jinja_string *jj_new_text(struct run *run, size_t length);
struct jinja_value jj_new_list(struct run *run, enum flavour flavour, int capacity);

/* --- calls (call.c) --- */
struct jinja_value jj_call(struct run *run, struct jinja_value callee, const struct call *call);
struct jinja_value jj_apply_filter(struct run *run, const struct filter *filter, struct jinja_value input,
                                   const struct call *call);
bool jj_apply_test(struct run *run, const struct test *test, struct jinja_value input, const struct call *call);

/* --- objects (object.c) --- */
struct jinja_value jj_object_attr(struct run *run, struct jinja_value object, struct jinja_string *name);
struct jinja_value jj_object_call(struct run *run, struct jinja_value object, enum jj_word method,
                                  const struct call *call, bool *known);

/* --- statements (exec.c, template.c) --- */
enum flow { FLOW_NEXT, FLOW_BREAK, FLOW_CONTINUE };
enum flow jj_loop(struct run *run, struct activation *a, const struct node *node, struct jinja_value iterable,
                  int depth0);
enum flow jj_exec(struct run *run, struct activation *a, const struct nodes *body);
void jj_initialize(struct run *run, struct activation *a, const struct initializers *list);
struct activation *jj_activation(struct run *run, const struct function *function, struct activation *outer,
                                 struct context *context);
void jj_run_root(struct run *run, struct context *context, const struct template *template);
void jj_run_override(struct run *run, struct context *context, const struct override *override);
void jj_exec_extends(struct run *run, struct activation *a, const struct node *node);
void jj_exec_include(struct run *run, struct activation *a, const struct node *node);
void jj_exec_import(struct run *run, struct activation *a, const struct node *node);
/* The module of a template that the environment knows by `name`, or undefined. */
struct jinja_value jj_global_module(struct run *run, const struct jinja_string *name);
void jj_exec_block(struct run *run, struct activation *a, const struct node *node);
void jj_export(struct run *run, struct context *context, struct jinja_string *name, struct jinja_value value);

#endif
