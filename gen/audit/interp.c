#include "gen/audit/interp.h"

static void start(struct interp *interp, struct audit *audit, struct tree *tree) {
  interp->audit = audit;
  interp->tree = tree;
  interp->memory = audit->arena;
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
  interp_statement(interp, function->body);
  interp->n_objects = frame.base;
}

bool interp_check(struct audit *audit, struct tree *tree) {
  struct interp *interp = arena_alloc(audit->arena, sizeof *interp);
  start(interp, audit, tree);
  interp->budget = 20000;
  struct function *entry = tree_function(tree, "main");
  struct function *root = audit->root == NULL ? NULL : tree_function(tree, audit->root);
  bool reached = entry != NULL && entry->body != NULL && (root == NULL || root->role->is_used);
  interp->starts = reached;
  if (reached)
    run_from(interp, entry, ORIGIN_CONFIG);
  else if (root != NULL && root->body != NULL)
    run_from(interp, root, ORIGIN_STEP);
  interp_claims(interp);
  return interp->steps < INTERP_MAX_STEPS;
}
