/* Scopes: which variable a name means, by Jinja2's rules.
 *
 * A name that a scope stores is the scope's own, from its first line on; it begins with what the name means outside.
 * A name that a scope only reads is the nearest outer scope's own, or else comes from the context. Both are decided
 * before rendering, so each variable is a slot. (Jinja2's own idtracking module is the model; its corner cases are
 * part of the language.) */
#ifndef ACCEL_JINJA_SCOPE_H
#define ACCEL_JINJA_SCOPE_H

#include "gen/jinja/ast.h"
#include "gen/jinja/env.h"

struct symbol {
  struct jinja_string *name;
  int slot;
  bool stored, own; /* own: the slot belongs to this scope; else it is the function's cache of a context look-up */
  bool has_initial;
  struct initializer initial;
};

struct scope {
  struct jinja_env *env;
  struct scope *parent;
  struct function *function;
  struct symbol *items;
  int count, capacity;
  int conditional;  /* how many if-branches we are in: a store may not happen */
  bool takes_extra; /* the outermost scope of a macro, where caller, varargs and kwargs may be requested */
  bool bare_caller; /* of a macro with a parameter `caller` that has no default: nothing may read it */
  bool reads_bare_caller;
  struct for_loop *loop; /* the scope is this loop's body, where `loop` may be requested */
  struct cached *cached; /* of the function's outermost scope: slots of context look-ups */
};

/* A scope inside `parent` (NULL: outermost of a template or block), for code that belongs to `function`. */
struct scope jj_scope(struct jinja_env *env, struct scope *parent, struct function *function);

/* The scope reads or writes a name; call in the order of the text, before any jj_scope_find. */
void jj_scope_load(struct scope *scope, struct jinja_string *name);
void jj_scope_store(struct scope *scope, struct jinja_string *name);

/* The scope gets a name of its own whose value somebody sets: a loop's target, a macro's parameter. Gives the slot. */
int jj_scope_parameter(struct scope *scope, struct jinja_string *name);

/* Makes `loop` exist in the nearest loop around, for code that cannot be seen from here (a scoped block). */
void jj_scope_need_loop(struct scope *scope);

/* Fills variable->up, ->slot and ->undefined from variable->name. */
void jj_scope_bind(struct scope *scope, struct variable *variable);

/* What must be set when the scope is entered. */
struct initializers jj_scope_initializers(const struct scope *scope);

/* All stored names that can be seen from here: what an included template or scoped block gets to see. */
struct variables jj_scope_visible(struct scope *scope);

#endif
