#include "gen/audit/walk.h"

static void start(struct walk *walk, struct audit *audit, struct tree *tree) {
  walk->audit = audit;
  walk->tree = tree;
  walk->memory = audit->arena;
  walk->lasting = arena_alloc(audit->arena, ((size_t)tree->n_lasting + 1) * sizeof *walk->lasting);
  for (int i = 0; i < tree->n_lasting; i++) walk->lasting[i] = -1;
  walk->arena_object = walk_object(walk, OBJECT_ARENA, NULL, "arena", NULL, -1);
  for (int i = 0; i < tree->n_lasting; i++) walk_variable(walk, tree->lasting[i]);
  if (audit->device != NULL) walk_device_start(walk);
}

/* Runs a function on arguments of which nothing is known but where they come from. */
static void run_from(struct walk *walk, struct function *function, unsigned origin) {
  struct frame frame = {.function = function, .base = walk->n_objects};
  for (int i = 0; i < function->n_slots; i++) walk_object(walk, OBJECT_LOCAL, NULL, "", NULL, -1);
  for (int i = 0; i < function->n_parameters; i++) {
    const struct variable *parameter = function->parameters[i];
    int object = frame.base + parameter->slot;
    walk->objects[object].variable = parameter;
    walk->objects[object].name = parameter->name;
    walk->objects[object].type = parameter->type;
    walk->objects[object].size = parameter->type->size;
    walk->states[object].value = value_of_type(parameter->type, origin);
  }
  walk->frame = &frame;
  walk->hot = function->role->is_hot;
  walk_statement(walk, function->body);
  walk->n_objects = frame.base;
}

bool walk_check(struct audit *audit, struct tree *tree) {
  struct walk *walk = arena_alloc(audit->arena, sizeof *walk);
  start(walk, audit, tree);
  walk->budget = 20000;
  struct function *entry = tree_function(tree, "main");
  struct function *root = audit->root == NULL ? NULL : tree_function(tree, audit->root);
  bool reached = entry != NULL && entry->body != NULL && (root == NULL || root->role->is_used);
  walk->starts = reached;
  if (reached)
    run_from(walk, entry, ORIGIN_CONFIG);
  else if (root != NULL && root->body != NULL)
    run_from(walk, root, ORIGIN_STEP);
  walk_claims(walk);
  return walk->steps < WALK_MOST_STEPS;
}
