#include "gen/jinja/scope.h"

#include <string.h>

struct cached_name {
  struct jinja_string *name;
  int slot;
};

struct cached {
  struct cached_name *items;
  int count, capacity;
};

struct scope jj_scope(struct jinja_env *env, struct scope *parent, struct function *function) {
  bool new_function = parent == NULL || parent->function != function;
  struct cached *cached = new_function ? arena_alloc(env->arena, sizeof *cached) : parent->cached;
  return (struct scope){.env = env, .parent = parent, .function = function, .cached = cached};
}

static struct symbol *own_symbol(struct scope *scope, const struct jinja_string *name) {
  for (int i = 0; i < scope->count; i++) {
    if (scope->items[i].name == name) return &scope->items[i];
  }
  return NULL;
}

static struct symbol *define(struct scope *scope, struct jinja_string *name, int slot) {
  ARENA_PUSH(scope->env->arena, *scope, ((struct symbol){.name = name, .slot = slot}));
  return &scope->items[scope->count - 1];
}

static int new_slot(struct scope *scope) {
  return scope->function->slot_count++;
}

/* caller, varargs, kwargs, self, super and loop exist where somebody asks for them: the slot is made at the first
 * question. */
static struct symbol *implicit(struct scope *scope, struct jinja_string *name) {
  struct function *function = scope->function;
  int *slot = NULL;
  if (scope->takes_extra && name->word == W_caller) slot = &function->caller_slot;
  if (scope->takes_extra && name->word == W_varargs) slot = &function->varargs_slot;
  if (scope->takes_extra && name->word == W_kwargs) slot = &function->kwargs_slot;
  if (scope->parent == NULL && name->word == W_self) slot = &function->self_slot;
  bool in_block = function->node != NULL && function->node->kind == N_BLOCK;
  if (scope->parent == NULL && in_block && name->word == W_super) slot = &function->super_slot;
  if (scope->loop != NULL && name->word == W_loop) {
    slot = &scope->loop->loop_slot;
    scope->loop->extended = true;
  }
  if (slot == NULL) return NULL;
  /* a macro around that asks for nothing itself takes the same extras, as in Jinja2 */
  for (struct scope *outer = scope->parent; scope->takes_extra && outer != NULL; outer = outer->parent) {
    if (outer->takes_extra && own_symbol(outer, name) == NULL) implicit(outer, name);
  }
  *slot = new_slot(scope);
  struct symbol *symbol = define(scope, name, *slot);
  symbol->stored = symbol->own = true;
  return symbol;
}

/* The symbol that `name` means; *up counts the functions between. */
static struct symbol *find(struct scope *scope, struct jinja_string *name, int *up) {
  *up = 0;
  for (; scope != NULL; scope = scope->parent) {
    struct symbol *symbol = own_symbol(scope, name);
    if (symbol == NULL) symbol = implicit(scope, name);
    if (symbol != NULL) return symbol;
    if (scope->parent != NULL && scope->parent->function != scope->function) ++*up;
  }
  return NULL;
}

void jj_scope_need_loop(struct scope *scope) {
  int up;
  find(scope, jj_intern(scope->env, "loop", 4), &up);
}

/* A look-up in the context gives the same during one run of a function, so the function's scopes share one slot. */
static int cached_slot(struct scope *scope, struct jinja_string *name) {
  struct cached *cached = scope->cached;
  for (int i = 0; i < cached->count; i++) {
    if (cached->items[i].name == name) return cached->items[i].slot;
  }
  ARENA_PUSH(scope->env->arena, *cached, ((struct cached_name){name, new_slot(scope)}));
  return cached->items[cached->count - 1].slot;
}

/* The nearest macro around whose parameter `caller` is what the name means. */
static struct scope *bare_caller(struct scope *scope, const struct jinja_string *name) {
  if (name->word != W_caller) return NULL;
  while (scope != NULL && !scope->bare_caller) scope = scope->parent;
  return scope;
}

void jj_scope_load(struct scope *scope, struct jinja_string *name) {
  int up;
  struct scope *macro = bare_caller(scope, name);
  if (macro != NULL) macro->reads_bare_caller = true;
  if (find(scope, name, &up) == NULL) define(scope, name, cached_slot(scope, name));
}

static void set_initial(struct scope *scope, struct symbol *symbol) {
  int up = 0;
  struct jinja_string *name = symbol->name;
  struct symbol *outer = scope->parent != NULL ? find(scope->parent, name, &up) : NULL;
  if (scope->parent != NULL && scope->parent->function != scope->function) up++;
  symbol->has_initial = true;
  symbol->initial.initial = outer != NULL ? INITIAL_ALIAS : scope->conditional > 0 ? INITIAL_CONTEXT : INITIAL_MISSING;
  if (outer != NULL) symbol->initial.outer = (struct variable){.name = name, .up = up, .slot = outer->slot};
}

/* A name that is given another value is no longer the parameter. */
static void give_value(struct scope *scope, const struct jinja_string *name) {
  struct scope *macro = bare_caller(scope, name);
  if (macro != NULL) macro->bare_caller = false;
}

void jj_scope_store(struct scope *scope, struct jinja_string *name) {
  give_value(scope, name);
  struct symbol *symbol = own_symbol(scope, name);
  if (symbol == NULL) {
    symbol = define(scope, name, new_slot(scope));
    symbol->own = symbol->stored = true;
    set_initial(scope, symbol);
  } else if (!symbol->own) {
    /* read first, written later: it begins with the context's value in a slot of its own */
    symbol->slot = new_slot(scope);
    symbol->own = symbol->stored = symbol->has_initial = true;
    symbol->initial.initial = INITIAL_CONTEXT;
  }
  symbol->stored = true;
}

int jj_scope_parameter(struct scope *scope, struct jinja_string *name) {
  give_value(scope, name);
  struct symbol *symbol = own_symbol(scope, name);
  if (symbol == NULL) symbol = define(scope, name, 0);
  if (!symbol->own) symbol->slot = new_slot(scope);
  symbol->own = symbol->stored = true;
  symbol->has_initial = false;
  return symbol->slot;
}

void jj_scope_bind(struct scope *scope, struct variable *variable) {
  int up;
  struct symbol *symbol = find(scope, variable->name, &up);
  if (symbol == NULL) {
    symbol = define(scope, variable->name, cached_slot(scope, variable->name));
    up = 0;
  }
  struct undefined_info *info = arena_alloc(scope->env->arena, sizeof *info);
  info->name = variable->name->bytes;
  variable->up = up;
  variable->slot = symbol->slot;
  variable->undefined = info;
}

struct initializers jj_scope_initializers(const struct scope *scope) {
  struct initializers list = {0};
  for (int i = 0; i < scope->count; i++) {
    const struct symbol *symbol = &scope->items[i];
    if (!symbol->has_initial) continue;
    struct initializer initial = symbol->initial;
    initial.own = (struct variable){.name = symbol->name, .slot = symbol->slot};
    ARENA_PUSH(scope->env->arena, list, initial);
  }
  return list;
}

static bool listed(const struct variables *list, const struct jinja_string *name) {
  for (int i = 0; i < list->count; i++) {
    if (list->items[i].name == name) return true;
  }
  return false;
}

struct variables jj_scope_visible(struct scope *scope) {
  struct variables list = {0};
  int up = 0;
  for (struct scope *at = scope; at != NULL; at = at->parent) {
    for (int i = 0; i < at->count; i++) {
      const struct symbol *symbol = &at->items[i];
      if (!symbol->stored || listed(&list, symbol->name)) continue;
      ARENA_PUSH(scope->env->arena, list, ((struct variable){.name = symbol->name, .up = up, .slot = symbol->slot}));
    }
    if (at->parent != NULL && at->parent->function != at->function) up++;
  }
  return list;
}
