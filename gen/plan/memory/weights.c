#include "gen/plan/memory/weights.h"

#include <stdlib.h>
#include <string.h>

#include "gen/ir/names.h"
#include "gen/ir/region.h"
#include "gen/plan/graph/weight_visitor.h"
#include "gen/program/storage.h"
#include "gen/program/weight_names.h"
#include "gen/program/weights.h"

/* ---- Which scopes are used ---- */

/* Whether the tree has the parameter: that of gradients has those whose gradient is stored. */
static bool has_parameter(const void *context, const struct parameter *parameter) {
  const struct weight_tree *tree = context;
  return !tree->of_gradients || (parameter->value->differentiable && !parameter->in_backward);
}

/* Whether the function of a region takes a pointer to the parameters below scope `formal`. */
static bool uses_scope(const struct weight_tree *tree, const struct region *region, int formal) {
  return weight_scope_is_used(region, formal, has_parameter, tree);
}

/* ---- Building the tree ---- */

static void refuse(struct weight_visitor *visitor, const struct parameter *parameter, const char *what,
                   const char *path) {
  diag_error(visitor->diags, parameter->where, "parameter '%.100s%s' %s", path, strlen(path) > 100 ? "…" : "", what);
  visitor->ok = false;
}

/* A shape that follows the batch, in training and in an evaluation with batches of their own. */
static void note_batches(struct weight_visitor *visitor, struct shape known, struct shape other) {
  const struct job *job = visitor->program->job;
  if (visitor->program->kind != PROGRAM_TRAIN || !job_evaluates_other_batches(job) || known.rank != other.rank) return;
  for (int i = 0; i < known.rank; i++)
    if (known.dim[i] != other.dim[i] && known.dim[i] * job_eval_batch(job) != other.dim[i] * job->data.batch_size)
      return;
  diag_note(visitor->diags, job_where(job, "data.eval_batch_size"),
            "its shape follows the batch, and 'data.eval_batch_size' gives an evaluation another one");
  diag_help(visitor->diags,
            "leave data.eval_batch_size out, or give the parameter a shape that is the same for all batches");
}

/* What stays of a layer has the name that it has with the layer. */
static const char *published_name(const struct program *program, const struct parameter *parameter, const char *path) {
  const char *scope = resident_scope(program);
  const size_t length = strlen(scope);
  return !parameter->passing && strncmp(path, scope, length) == 0 && path[length] == '.' ? path + length + 1 : path;
}

static void add_weight(struct weight_visitor *visitor, const struct parameter *parameter, const char *path) {
  struct weight_tree *tree = visitor->context;
  const struct parameter *above = weight_parameter_above(tree->root, path);
  if (above != NULL) {
    refuse(visitor, parameter, "is below another parameter", path);
    diag_note(visitor->diags, above->where, "'%s' was made here", above->path);
    return;
  }
  if (strlen(path) > LONGEST_WEIGHT_NAME) {
    refuse(visitor, parameter,
           arena_printf(tree->arena, "has a name of more than %d letters", (int)LONGEST_WEIGHT_NAME), path);
    return;
  }
  struct weight_node *node = weight_node_make(tree->arena, tree->root, path);
  if (node->parameter != NULL || node->n_children > 0) {
    const struct parameter *known = node->parameter;
    if (known != NULL && shape_equal(known->shape, parameter->shape)) return;
    refuse(visitor, parameter, known != NULL ? "is named twice with different shapes" : "has other parameters below it",
           path);
    if (known == NULL) return;
    diag_note(visitor->diags, known->where, "it was made here");
    note_batches(visitor, known->shape, parameter->shape);
    return;
  }
  node->parameter = parameter;
  node->weight = tree->count;
  tree->items = arena_grow(tree->arena, tree->items, tree->count, &tree->capacity, sizeof *tree->items);
  tree->items[tree->count++] =
      (struct weight){.path = published_name(visitor->program, parameter, path), .place = path, .parameter = parameter};
}

static void visit_parameters(struct weight_visitor *visitor, const struct region *region, const struct node *after,
                             const char *const *prefixes) {
  if (after != NULL || region->forward != NULL) return;
  for (int i = 0; i < region->parameters.count; i++) {
    const struct parameter *p = &region->parameters.items[i];
    if (!has_parameter(visitor->context, p)) continue;
    if (p->moved) continue; /* weights are in the order of the model's source */
    add_weight(visitor, p, weight_path(visitor->program->arena, prefixes[p->scope], p->path));
  }
}

static void visit_bindings(struct weight_visitor *visitor, const struct region *region, const struct node *after,
                           const char *const *prefixes) {
  const struct weight_tree *tree = visitor->context;
  if (after != NULL) return;
  for (int i = 0; i < region->n_scopes; i++) {
    if (!uses_scope(tree, region, i)) continue;
    struct weight_node *node = weight_node_at(tree->root, prefixes[i]), **first = weight_binding(tree, region, i);
    node->bound = true;
    if (node->binder == NULL && !region->group) node->binder = named_region(region);
    if (*first == NULL) *first = node;
  }
}

/* ---- Structures ---- */

/* The number that a name is; -1 when it is not one. */
static int64_t as_number(const char *name) {
  char *end;
  long number = strtol(name, &end, 10);
  return *name != '\0' && *end == '\0' && number >= 0 ? number : -1;
}

static bool same_tree(const struct weight_node *a, const struct weight_node *b) {
  if ((a->parameter == NULL) != (b->parameter == NULL) || a->n_children != b->n_children) return false;
  if (a->bound != b->bound) return false;
  if (a->parameter != NULL) return shape_equal(a->parameter->shape, b->parameter->shape);
  for (int i = 0; i < a->n_children; i++)
    if (strcmp(a->children[i]->name, b->children[i]->name) != 0 || !same_tree(a->children[i], b->children[i]))
      return false;
  return true;
}

/* How many children from number `first` on are structures alike whose numbers follow each other. gaps: numbers may be
 * left out, as those of frozen layers are among the gradients. */
static int count_alike(const struct weight_node *node, int first, bool gaps) {
  const struct weight_node *one = node->children[first];
  int count = 0;
  if (one->parameter != NULL || as_number(one->name) < 0) return 0;
  for (; first + count < node->n_children; count++) {
    const struct weight_node *child = node->children[first + count];
    int64_t number = as_number(child->name), after = number - as_number(one->name);
    if (gaps ? count > 0 && number <= as_number(node->children[first + count - 1]->name) : after != count) break;
    if (number < 0 || !same_tree(child, one)) break;
  }
  return count;
}

/* The elements of the array that begins with child number `first`; 0: it begins none. All children are one, or those
 * that a function takes, so that a loop can go through them. */
static int array_length(const struct weight_node *node, int first, bool gaps) {
  int count = count_alike(node, first, gaps);
  return count == node->n_children || (count > 1 && node->children[first]->bound) ? count : 0;
}

static struct weight_struct *struct_of(struct weight_tree *tree, struct weight_node *node);

static bool is_member(const void *context, const char *name) {
  const struct weight_struct *type = context;
  for (int i = 0; i < type->n_members; i++)
    if (strcmp(type->members[i].name, name) == 0) return true;
  return false;
}

static void add_members(struct weight_tree *tree, struct weight_struct *type, const char *prefix,
                        struct weight_node *node);

static int64_t member_bytes(const struct weight_node *node) {
  if (node->parameter != NULL) return shape_count(node->parameter->shape) * dtype_size(node->parameter->dtype);
  return node->type->bytes * (node->array != NULL ? weight_array_length(node->array) : 1);
}

/* A leaf, a structure, or an array whose first element is `node`. */
static void add_member(struct weight_tree *tree, struct weight_struct *type, const char *name,
                       struct weight_node *node) {
  struct arena *arena = tree->arena;
  struct weight_node *const *nodes = node->array != NULL ? node->array->elements : &node;
  struct weight_member member = {.node = node};
  member.name = free_name(arena, identifier(arena, name), is_member, type);
  for (int i = 0; i < (node->array != NULL ? node->array->count : 1); i++) {
    nodes[i]->member = member.name;
    if (node->parameter == NULL) struct_of(tree, nodes[i]);
  }
  member.offset = arena_aligned(type->bytes);
  member.bytes = member_bytes(node);
  type->members = arena_grow(arena, type->members, type->n_members, &type->capacity, sizeof *type->members);
  type->members[type->n_members++] = member;
  type->bytes = member.offset + member.bytes;
}

/* Some children of a node as an array. Of the others, the name says with which it begins. */
static void add_array(struct weight_tree *tree, struct weight_struct *type, const char *prefix,
                      const struct weight_node *node, int first, int count) {
  struct arena *arena = tree->arena;
  struct weight_array *array = arena_alloc(arena, sizeof *array);
  *array = (struct weight_array){.elements = node->children + first, .count = count};
  for (int i = 0; i < count; i++) array->elements[i]->array = array;
  const char *from = arena_printf(arena, "from_%s", array->elements[0]->name);
  if (count == node->n_children && prefix[0] != '\0')
    add_member(tree, type, prefix, array->elements[0]);
  else
    add_member(tree, type, prefix[0] != '\0' ? arena_printf(arena, "%s_%s", prefix, from) : from, array->elements[0]);
}

/* A node below the one whose structure this is; `name` of it is all from there on. */
static void add_node(struct weight_tree *tree, struct weight_struct *type, const char *name, struct weight_node *node) {
  if (node->parameter != NULL || node->bound)
    add_member(tree, type, name, node);
  else
    add_members(tree, type, name, node);
}

static void add_members(struct weight_tree *tree, struct weight_struct *type, const char *prefix,
                        struct weight_node *node) {
  for (int i = 0, count; i < node->n_children; i += count > 0 ? count : 1) {
    struct weight_node *child = node->children[i];
    count = array_length(node, i, tree->of_gradients);
    if (count > 0)
      add_array(tree, type, prefix, node, i, count);
    else
      add_node(tree, type, prefix[0] != '\0' ? arena_printf(tree->arena, "%s_%s", prefix, child->name) : child->name,
               child);
  }
}

static bool same_struct(const struct weight_struct *a, const struct weight_struct *b) {
  if (a->n_members != b->n_members || a->bytes != b->bytes) return false;
  for (int i = 0; i < a->n_members; i++) {
    const struct weight_node *p = a->members[i].node, *q = b->members[i].node;
    if (strcmp(a->members[i].name, b->members[i].name) != 0 || p->type != q->type ||
        (p->array == NULL) != (q->array == NULL) || a->members[i].bytes != b->members[i].bytes)
      return false;
    if (p->parameter != NULL && (q->parameter == NULL || !shape_equal(p->parameter->shape, q->parameter->shape)))
      return false;
  }
  return true;
}

static bool is_struct(const void *context, const char *name) {
  const struct weight_tree *tree = context;
  for (int i = 0; i < tree->n_structs; i++)
    if (strcmp(tree->structs[i]->name, name) == 0) return true;
  return false;
}

static const char *struct_name(const struct weight_tree *tree, const struct weight_node *node) {
  const char *source = node->binder != NULL ? node->binder->name : node->name;
  if (node->binder == NULL && as_number(node->name) >= 0 && node->parent != NULL) source = node->parent->name;
  const char *base =
      arena_printf(tree->arena, "%s_%s", identifier(tree->arena, source), tree->of_gradients ? "gradients" : "weights");
  return free_name(tree->arena, base, is_struct, tree);
}

static struct weight_struct *struct_of(struct weight_tree *tree, struct weight_node *node) {
  struct weight_struct *type = arena_alloc(tree->arena, sizeof *type);
  add_members(tree, type, "", node);
  type->bytes = arena_aligned(type->bytes);
  for (int i = 0; i < tree->n_structs; i++)
    if (same_struct(tree->structs[i], type)) return node->type = tree->structs[i];
  type->name = struct_name(tree, node);
  tree->structs = arena_grow(tree->arena, tree->structs, tree->n_structs, &tree->structs_capacity, sizeof type);
  return tree->structs[tree->n_structs++] = node->type = type;
}

/* All scopes that a function is called with must be of one type: its parameter's. */
static void visit_types(struct weight_visitor *visitor, const struct region *region, const struct node *after,
                        const char *const *prefixes) {
  const struct weight_tree *tree = visitor->context;
  if (after != NULL) return;
  for (int i = 0; i < region->n_scopes; i++) {
    if (!uses_scope(tree, region, i)) continue;
    const struct weight_node *node = weight_node_at(tree->root, prefixes[i]);
    const struct weight_node *first = *weight_binding(tree, region, i);
    if (node->type == first->type && node->type != NULL) continue;
    diag_error(visitor->diags, region->where,
               "'%s' is called with scopes '%s' and '%s', below which the parameters differ", region->function,
               first->path, node->path);
    diag_help(visitor->diags, "give each call a scope that holds the parameters of that call alone");
    visitor->ok = false;
  }
}

/* Whether the scope of iteration `k` of a loop is reached as that of the first one, but for indices that have grown. */
static bool is_in_step(const struct weight_tree *tree, const struct region *region, struct scope *const *scopes,
                       int k) {
  struct access_part first[8], own[8];
  int count = weight_access(tree, region, scopes[0]->formal, scopes[0]->path, scopes[1]->path, first);
  if (weight_access(tree, region, scopes[k]->formal, scopes[k]->path, NULL, own) != count) return false;
  for (int i = 0; i < count; i++)
    if (strcmp(first[i].member, own[i].member) != 0 || own[i].first != first[i].first + k * first[i].step) return false;
  return true;
}

/* A loop reaches the scopes of its iterations by one expression. */
static void visit_loops(struct weight_visitor *visitor, const struct region *region, const struct node *after,
                        const char *const *prefixes) {
  const struct weight_tree *tree = visitor->context;
  const struct call *call = after != NULL ? after->call : NULL;
  for (int i = 0; call != NULL && i < call->callee->n_scopes; i++) {
    struct scope *const *scopes = call->scopes + (size_t)i * (size_t)call->count;
    if (!uses_scope(tree, call->callee, i)) continue;
    for (int k = 1; k < call->count && visitor->ok; k++) {
      if (is_in_step(tree, region, scopes, k)) continue;
      diag_error(visitor->diags, after->where,
                 "'%s' is called in a loop with scopes '%s' and '%s', and layers there differ in their parameters",
                 call->callee->function, weight_path(tree->arena, prefixes[scopes[0]->formal], scopes[0]->path),
                 weight_path(tree->arena, prefixes[scopes[k]->formal], scopes[k]->path));
      diag_help(visitor->diags, "go through all layers in one loop");
      visitor->ok = false;
    }
  }
}

/* Gradients are of the entry as it is trained. */
static void visit_tree(struct weight_visitor *visitor, const struct weight_tree *tree) {
  const struct graph *graph = visitor->program->graph;
  if (!tree->of_gradients) {
    weight_visit_entries(visitor);
    return;
  }
  weight_visit_from(visitor, graph->entry);
  weight_visit_from(visitor, graph_backward_of(graph, graph->entry));
}

struct weight_tree *plan_weights(struct program *program, bool of_gradients, struct diagnostics *diags) {
  struct weight_tree *tree = arena_alloc(program->arena, sizeof *tree);
  struct weight_visitor visitor = {
      .program = program, .diags = diags, .ok = true, .visit = visit_parameters, .context = tree};
  *tree = (struct weight_tree){.arena = program->arena, .of_gradients = of_gradients};
  tree->root = arena_alloc(program->arena, sizeof *tree->root);
  tree->root->name = tree->root->path = "";
  for (int r = 0; r < program->graph->n_regions; r++)
    if (program->graph->regions[r]->n_scopes > tree->bindings_stride)
      tree->bindings_stride = program->graph->regions[r]->n_scopes;
  tree->bindings = arena_alloc(program->arena, ((size_t)program->graph->n_regions * tree->bindings_stride + 1) *
                                                   sizeof *tree->bindings);
  visit_tree(&visitor, tree);
  if (!visitor.ok) return NULL;
  visitor.visit = visit_bindings;
  visit_tree(&visitor, tree);
  struct_of(tree, tree->root);
  visitor.visit = visit_types;
  visit_tree(&visitor, tree);
  visitor.visit = visit_loops;
  visit_tree(&visitor, tree);
  if (!visitor.ok) return NULL;
  for (int i = 0; i < tree->count; i++) tree->items[i].offset = weight_offset(tree, tree->items[i].place);
  tree->bytes = weights_type(tree)->bytes;
  return tree;
}

/* Structures are after those of their members. */
void weights_fold(struct weight_tree *tree) {
  for (int i = 0; i < tree->n_structs; i++) {
    struct weight_struct *type = tree->structs[i];
    type->bytes = 0;
    for (int k = 0; k < type->n_members; k++) {
      struct weight_member *member = &type->members[k];
      member->bytes = member_bytes(member->node);
      member->offset = arena_aligned(type->bytes);
      type->bytes = member->offset + member->bytes;
    }
    type->bytes = arena_aligned(type->bytes);
  }
}
