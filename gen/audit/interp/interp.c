#include "gen/audit/interp/region.h"

#include <string.h>

static void start(struct interp *interp, struct audit *audit, struct tree *tree, struct arena *arguments,
                  struct arena *forms) {
  interp->audit = audit;
  interp->tree = tree;
  interp->memory = audit->arena;
  interp->arguments = arguments;
  interp->forms = forms;
  interp->iterations = 1;
  interp->sorted_index = -1;
  interp->rows.object = -1;
  interp->statics = arena_alloc(audit->arena, ((size_t)tree->n_statics + 1) * sizeof *interp->statics);
  for (int i = 0; i < tree->n_statics; i++) interp->statics[i] = -1;
  interp->arena_object = interp_object(interp, OBJECT_ARENA, NULL, "arena", NULL, -1);
  for (int i = 0; i < tree->n_statics; i++) interp_variable(interp, tree->statics[i]);
  if (audit->device != NULL) interp_device_start(interp);
}

/* Runs a function on arguments of which nothing is known but where they come from. */
static void run_from(struct interp *interp, struct function *function, unsigned origin) {
  struct frame frame = {.function = function, .base = interp->n_objects};
  for (int i = 0; i < function->n_slots; i++) interp_object(interp, OBJECT_LOCAL, NULL, "", NULL, -1);
  for (int i = 0; i < function->n_parameters; i++) {
    const struct variable *parameter = function->parameters[i];
    int object = frame.base + parameter->slot;
    interp->objects[object].variable = parameter;
    interp->objects[object].name = parameter->name;
    interp->objects[object].type = parameter->type;
    interp->objects[object].size = parameter->type->size;
    interp->states[object].value = value_of_type(parameter->type, origin);
  }
  interp->frame = &frame;
  interp->in_step_path = function->role->in_step_path;
  interp->taking_step += function->role->is_root;
  interp_statement(interp, function->body);
  interp->n_objects = frame.base;
}

/* What was found so far carries over to another interpretation of the same program. */
static struct interp *follow_as(struct audit *audit, struct tree *tree, struct arena *arguments, struct arena *forms,
                                const struct interp *before) {
  struct interp *interp = arena_alloc(audit->arena, sizeof *interp);
  start(interp, audit, tree, arguments, forms);
  interp->budget = 20000;
  if (before == NULL) return interp;
  interp->stage = before->stage + 1;
  interp->n_stages = before->n_stages;
  memcpy(interp->messages, before->messages, sizeof interp->messages);
  interp->failures.items = before->failures.items;
  interp->failures.count = before->failures.count;
  interp->failures.capacity = before->failures.capacity;
  interp->kernel_failures.items = before->kernel_failures.items;
  interp->kernel_failures.count = before->kernel_failures.count;
  interp->kernel_failures.capacity = before->kernel_failures.capacity;
  interp->untracked = before->untracked;
  interp->n_kernels = before->n_kernels;
  interp->n_accesses = before->n_accesses;
  interp->n_regions = before->n_regions;
  interp->n_listed = before->n_listed;
  interp->n_starts = before->n_starts;
  interp->n_waits = before->n_waits;
  interp->most_in_flight = before->most_in_flight;
  interp->n_concurrent = before->n_concurrent;
  interp->steps = before->steps;
  return interp;
}

bool interp_check(struct audit *audit, struct tree *tree) {
  struct function *entry = tree_function(tree, "main");
  struct function *root = audit->root == NULL ? NULL : tree_function(tree, audit->root);
  bool reached = entry != NULL && entry->body != NULL && (root == NULL || root->role->is_used);
  struct arena *arguments = arena_new(), *forms = arena_new();
  struct interp *interp = NULL;
  do {
    interp = follow_as(audit, tree, arguments, forms, interp);
    if (interp->stage == 0) interp_place_directives(interp);
    interp->starts = reached;
    if (reached)
      run_from(interp, entry, ORIGIN_CONFIG);
    else if (root != NULL && root->body != NULL)
      run_from(interp, root, ORIGIN_STEP);
    if (reached) interp_check_updates(interp);
    if (reached) interp_require_none_in_flight(interp, entry->where, "the program ends");
  } while (interp->stage + 1 < interp->n_stages);
  if (reached) interp_find_unfollowed_regions(interp);
  arena_free(arguments);
  arena_free(forms);
  interp_claims(interp);
  return interp->steps < INTERP_MAX_STEPS;
}
