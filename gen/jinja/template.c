/* Templates together: extends and blocks, include, import. */
#include <string.h>

#include "gen/jinja/run.h"

/* --- loading --- */

static const struct template *load(struct run *run, const char *name, bool *missing) {
  struct jinja_error error = {0};
  const struct jinja_options *options = &run->env->options;
  if (options->join_path != NULL) name = options->join_path(options->load_context, name, run->template->name);
  const struct template *template = jj_template(run->env, name, missing, &error);
  if (template == NULL && !*missing) jj_fail_with(run, &error);
  return template;
}

static const struct template *load_or_fail(struct run *run, struct jinja_value name) {
  bool missing = false;
  if (name.kind == JINJA_UNDEFINED) jj_fail_undefined(run, name);
  if (name.kind != JINJA_STRING) jj_fail(run, "a template's name is expected, not '%s'", jj_type_name(name));
  const struct template *template = load(run, name.as.string->bytes, &missing);
  if (missing) jj_fail(run, "'%s' not found", name.as.string->bytes);
  return template;
}

/* A name or a list of names, of which the first that exists is taken. NULL only where all are missing. */
static const struct template *select(struct run *run, struct jinja_value names, bool may_be_missing) {
  bool missing = false;
  if (names.kind == JINJA_STRING) {
    if (!may_be_missing) return load_or_fail(run, names);
    return load(run, names.as.string->bytes, &missing);
  }
  if (names.kind == JINJA_UNDEFINED) {
    jj_fail_undefined(run, names);
  }
  const struct jinja_list *list = jj_iterate(run, names);
  for (int i = 0; i < list->count; i++) {
    if (list->items[i].kind != JINJA_STRING) continue;
    missing = false;
    const struct template *template = load(run, list->items[i].as.string->bytes, &missing);
    if (template != NULL) return template;
  }
  if (may_be_missing) return NULL;
  if (list->count == 0) jj_fail(run, "Tried to select from an empty list of templates");
  jj_fail(run, "none of the templates given were found: %s", jj_str(run, names).as.string->bytes);
}

/* --- contexts --- */

static struct context *new_context(struct run *run, struct context *outer, const struct template *template) {
  struct context *context = jj_alloc_zero(run->pool, sizeof *context);
  context->outer = outer;
  context->template = template;
  context->blocks = jj_alloc_zero(run->pool, sizeof *context->blocks);
  return context;
}

/* The locals that an include, an import or a scoped block hands over. */
static void take_locals(struct run *run, struct context *context, struct activation *a,
                        const struct variables *visible) {
  context->locals = jj_alloc(run->pool, (size_t)(visible->count + 1) * sizeof *context->locals);
  for (int i = 0; i < visible->count; i++) {
    struct activation *from = a;
    for (int up = visible->items[i].up; up > 0; up--) from = from->outer;
    struct jinja_value value = from->slots[visible->items[i].slot];
    bool missing = value.kind == JINJA_UNDEFINED && (value.as.object == NULL || value.as.object == &jj_missing_mark);
    if (!missing) context->locals[context->local_count++] = (struct local){visible->items[i].name, value};
  }
}

/* --- blocks --- */

static struct block_entry *find_block(const struct blocks *blocks, const struct jinja_string *name) {
  for (int i = 0; i < blocks->count; i++) {
    if (blocks->items[i].name == name) return &blocks->items[i];
  }
  return NULL;
}

static struct block_entry *add_block(struct run *run, struct blocks *blocks, struct jinja_string *name) {
  if (blocks->count == blocks->capacity) {
    int wider = blocks->capacity > 0 ? blocks->capacity * 2 : 8;
    struct block_entry *items = jj_alloc(run->pool, (size_t)wider * sizeof *items);
    if (blocks->count > 0) memcpy(items, blocks->items, (size_t)blocks->count * sizeof *items);
    blocks->items = items;
    blocks->capacity = wider;
  }
  blocks->items[blocks->count] = (struct block_entry){.name = name};
  return &blocks->items[blocks->count++];
}

static void add_overrides(struct run *run, struct blocks *blocks, const struct template *template) {
  for (int i = 0; i < template->block_count; i++) {
    struct function *function = template->blocks[i];
    struct block_entry *entry = find_block(blocks, function->name);
    if (entry == NULL) entry = add_block(run, blocks, function->name);
    struct override *override = jj_alloc_zero(run->pool, sizeof *override);
    override->function = function;
    if (entry->last != NULL) {
      entry->last->parent = override;
    } else {
      entry->first = override;
    }
    entry->last = override;
  }
}

static void set_self(struct run *run, struct activation *a) {
  if (a->function->self_slot < 0) return;
  struct self_object *self = jj_alloc_zero(run->pool, sizeof *self);
  self->head.type = OBJECT_SELF;
  self->context = a->context;
  a->slots[a->function->self_slot] = (struct jinja_value){.kind = JINJA_OBJECT, .as.object = self};
}

static void set_super(struct run *run, struct activation *a, const struct override *override) {
  if (a->function->super_slot < 0) return;
  struct jinja_value *slot = &a->slots[a->function->super_slot];
  if (override->parent == NULL) {
    *slot = jj_undefined_hint(run, "there is no parent block called '%s'.", override->function->name->bytes);
    return;
  }
  struct block_object *super = jj_alloc_zero(run->pool, sizeof *super);
  super->head.type = OBJECT_BLOCK;
  super->context = a->context;
  super->override = override->parent;
  *slot = (struct jinja_value){.kind = JINJA_OBJECT, .as.object = super};
}

void jj_run_override(struct run *run, struct context *context, const struct override *override) {
  const struct template *template = run->template;
  bool autoescape = run->autoescape;
  jj_enter(run);
  struct activation *a = jj_activation(run, override->function, NULL, context);
  run->template = override->function->template;
  run->autoescape =
      run->env->options.autoescape; /* a block is compiled on its own: it does not see autoescape around it */
  set_self(run, a);
  set_super(run, a, override);
  jj_initialize(run, a, &override->function->initial);
  jj_exec(run, a, &override->function->body);
  run->template = template;
  run->autoescape = autoescape;
  jj_leave(run);
}

void jj_exec_block(struct run *run, struct activation *a, const struct node *node) {
  struct context *context = a->context;
  const struct function *function = node->as.block.function;
  const struct override *override = find_block(context->blocks, function->name)->first;
  if (node->flag2 && override->parent == NULL) jj_fail(run, "Required block '%s' not found", function->name->bytes);
  if (node->flag) {
    context = new_context(run, a->context, a->context->template);
    context->blocks = a->context->blocks;
    take_locals(run, context, a, &node->as.block.visible);
  }
  const struct link *link = run->link;
  run->link = jj_link(run, node);
  jj_run_override(run, context, override);
  run->link = link;
}

/* --- extends --- */

void jj_exec_extends(struct run *run, struct activation *a, const struct node *node) {
  struct jinja_value name = jj_eval(run, a, node->as.expression);
  run->at = node;
  if (run->parent != NULL) jj_fail(run, "extended multiple times");
  run->parent = load_or_fail(run, name);
  run->extends_at = node;
  add_overrides(run, a->context->blocks, run->parent);
  run->muted = true;
}

/* Runs a template's top level, then that of the template that it extends, and so on. */
static void run_chain(struct run *run, struct context *context, const struct template *template) {
  while (template != NULL) {
    jj_enter(run);
    run->template = template;
    run->parent = NULL;
    run->muted = false;
    run->autoescape = run->env->options.autoescape;
    struct activation *a = jj_activation(run, &template->root, NULL, context);
    set_self(run, a);
    jj_initialize(run, a, &template->root.initial);
    jj_exec(run, a, &template->root.body);
    template = run->parent;
    if (template != NULL) run->link = jj_link(run, run->extends_at);
  }
}

void jj_run_root(struct run *run, struct context *context, const struct template *template) {
  const struct template *outer = run->template, *parent = run->parent;
  const struct node *extends_at = run->extends_at, *at = run->at;
  const struct link *link = run->link;
  bool muted = run->muted, autoescape = run->autoescape;
  int depth = run->depth;
  if (context->blocks == NULL) context->blocks = jj_alloc_zero(run->pool, sizeof *context->blocks);
  add_overrides(run, context->blocks, template);
  run_chain(run, context, template);
  run->template = outer;
  run->parent = parent;
  run->extends_at = extends_at;
  run->at = at;
  run->link = link;
  run->muted = muted;
  run->autoescape = autoescape;
  run->depth = depth;
}

/* --- include, import --- */

/* What is outside of all templates: the values that the caller of the rendering gave are not part of it. */
static struct context *context_for(struct run *run, struct activation *a, const struct template *template,
                                   bool with_context, const struct variables *visible) {
  struct context *context = new_context(run, with_context ? a->context : NULL, template);
  if (with_context) take_locals(run, context, a, visible);
  return context;
}

void jj_exec_include(struct run *run, struct activation *a, const struct node *node) {
  struct jinja_value name = jj_eval(run, a, node->as.include->name);
  run->at = node;
  const struct template *template = select(run, name, node->flag);
  if (template == NULL) return;
  const struct link *link = run->link;
  run->link = jj_link(run, node);
  jj_run_root(run, context_for(run, a, template, node->flag2, &node->as.include->visible), template);
  run->link = link;
}

static struct module *new_module(struct run *run, struct context *context, const struct template *template,
                                 const struct node *node) {
  struct module *module = jj_alloc_zero(run->pool, sizeof *module);
  module->head.type = OBJECT_MODULE;
  module->template = template;
  module->context = context;
  const struct link *link = run->link;
  run->link = jj_link(run, node);
  struct buffer *before = jj_capture_begin(run);
  jj_run_root(run, context, template);
  module->body = jj_capture_end(run, before);
  module->body.safe = true;
  run->link = link;
  return module;
}

/* A template imported without context gives the same module each time, so it runs once. */
static struct module *shared_module(struct run *run, const struct node *node, const struct template *template) {
  for (struct module *module = run->modules; module != NULL; module = module->next) {
    if (module->template == template) return module;
  }
  struct module *module = new_module(run, new_context(run, NULL, template), template, node);
  module->next = run->modules;
  run->modules = module;
  return module;
}

static struct module *module_for(struct run *run, struct activation *a, const struct node *node,
                                 const struct template *template) {
  if (!node->flag2) return shared_module(run, node, template);
  return new_module(run, context_for(run, a, template, true, &node->as.import->visible), template, node);
}

struct jinja_value jj_global_module(struct run *run, const struct jinja_string *name) {
  const struct jinja_options *options = &run->env->options;
  for (struct module *module = run->modules; module != NULL; module = module->next) {
    if (module->global == name) return (struct jinja_value){.kind = JINJA_OBJECT, .as.object = module};
  }
  const char *file = options->module != NULL ? options->module(options->load_context, name->bytes) : NULL;
  if (file == NULL) return (struct jinja_value){.kind = JINJA_UNDEFINED};
  bool missing = false;
  const struct template *template = load(run, file, &missing);
  if (missing) jj_fail(run, "'%s' not found", file);
  struct module *module = shared_module(run, run->at, template);
  module->global = name;
  return (struct jinja_value){.kind = JINJA_OBJECT, .as.object = module};
}

static void import_target(struct run *run, struct activation *a, const struct variable *target,
                          struct jinja_value value, bool exported) {
  if (value.kind == JINJA_UNDEFINED && value.as.object == NULL) value = jj_undefined(&jj_nameless);
  a->slots[target->slot] = value;
  if (exported) jj_export(run, a->context, target->name, value);
}

void jj_exec_import(struct run *run, struct activation *a, const struct node *node) {
  const struct import *import = node->as.import;
  struct jinja_value name = jj_eval(run, a, import->name);
  run->at = node;
  const struct template *template = load_or_fail(run, name);
  struct module *module = module_for(run, a, node, template);
  struct jinja_value whole = {.kind = JINJA_OBJECT, .as.object = module};
  run->at = node;
  if (node->kind == N_IMPORT) {
    import_target(run, a, &import->target, whole, node->flag);
    return;
  }
  for (int i = 0; i < import->names.count; i++) {
    struct jinja_value value = jj_object_attr(run, whole, import->names.items[i]);
    if (value.kind == JINJA_UNDEFINED) {
      value = jj_undefined_hint(run, "the template '%s' (imported on line %d) does not export the requested name '%s'",
                                template->name, node->line, import->names.items[i]->bytes);
    }
    import_target(run, a, &import->targets.items[i], value, node->flag);
  }
}
