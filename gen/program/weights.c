#include "gen/program/weights.h"

#include <string.h>

#include "gen/program/weight_names.h"

const struct region *named_region(const struct region *region) {
  return region->forward != NULL ? region->forward : region;
}

struct weight_node **weight_binding(const struct weight_tree *tree, const struct region *region, int formal) {
  return &tree->bindings[named_region(region)->id * tree->bindings_stride + formal];
}

const char *resident_scope(const struct program *program) {
  return program->kind == PROGRAM_TRAIN ? "(trained)" : "cache";
}

bool weight_stays(const struct weight *weight) {
  return weight->place != weight->path;
}

/* ---- Offsets ---- */

int weight_element(const struct weight_node *node) {
  int element = 0;
  while (node->array->elements[element] != node) element++;
  return element;
}

int weight_array_length(const struct weight_array *array) {
  return array->slots > 0 ? array->resident + array->slots : array->count;
}

int weight_position(const struct weight_array *array, int element) {
  if (array->slots == 0 || element < array->resident) return element;
  return array->resident + (element - array->resident) % array->slots;
}

/* The offset of a node from the start of the weights. */
static int64_t offset_of(const struct weight_tree *tree, const struct weight_node *node) {
  const struct weight_node *holder = node;
  if (node == tree->root) return 0;
  int64_t before = 0;
  if (node->array != NULL) before = weight_position(node->array, weight_element(node)) * node->type->bytes;
  do holder = holder->parent;
  while (holder != tree->root && !holder->bound && holder->array == NULL);
  const struct weight_struct *type = holder->type;
  for (int i = 0; i < type->n_members; i++)
    if (strcmp(type->members[i].name, node->member) == 0)
      return offset_of(tree, holder) + type->members[i].offset + before;
  return -1;
}

int64_t weight_offset(const struct weight_tree *tree, const char *path) {
  return offset_of(tree, weight_node_at(tree->root, path));
}

const struct weight_struct *weights_type(const struct weight_tree *tree) {
  return tree->structs[tree->n_structs - 1]; /* after those that it is made of */
}

struct weight *weight_named(const struct weight_tree *tree, const char *path) {
  const struct weight_node *node = weight_node_at(tree->root, path);
  if (node != NULL && node->parameter != NULL) return &tree->items[node->weight];
  for (int i = 0; i < tree->count; i++)
    if (weight_stays(&tree->items[i]) && strcmp(tree->items[i].path, path) == 0) return &tree->items[i];
  return NULL;
}

/* ---- Access ---- */

static const struct weight_node *scope_node(const struct weight_tree *tree, const struct region *region, int formal) {
  return *weight_binding(tree, region, formal);
}

const struct weight_struct *region_scope_type(const struct weight_tree *tree, const struct region *region, int formal) {
  return scope_node(tree, region, formal)->type;
}

static int64_t weights_before(const struct weight_tree *tree, const struct weight_node *node) {
  int64_t offset = offset_of(tree, node), count = 0;
  for (int i = 0; i < tree->count; i++) count += tree->items[i].offset < offset;
  return count;
}

int64_t weight_row(const struct weight_tree *tree, const struct region *region, int formal, const char *path) {
  const struct weight_node *from = scope_node(tree, region, formal);
  const struct weight_node *node = weight_node_at((struct weight_node *)from, path);
  return weights_before(tree, node) - weights_before(tree, from);
}

static int access_parts(const struct weight_node *from, const char *path, struct access_part parts[8]) {
  struct weight_node *node = weight_node_at((struct weight_node *)from, path);
  const struct weight_node *chain[64];
  int length = 0, count = 0;
  for (; node != from && length < 64; node = node->parent) chain[length++] = node;
  while (length-- > 0) {
    const struct weight_node *at = chain[length];
    if (at->member == NULL || count == 8) continue;
    parts[count] = (struct access_part){.member = at->member, .indexed = at->array != NULL};
    if (at->array != NULL) {
      parts[count].first = weight_element(at);
      parts[count].modulo = at->array->slots;
      parts[count].resident = at->array->resident;
    }
    count++;
  }
  return count;
}

int weight_access(const struct weight_tree *tree, const struct region *region, int formal, const char *path,
                  const char *next, struct access_part parts[8]) {
  const struct weight_node *from = scope_node(tree, region, formal);
  int count = access_parts(from, path, parts);
  if (next == NULL) return count;
  struct access_part after[8];
  access_parts(from, next, after);
  for (int i = 0; i < count; i++) parts[i].step = after[i].first - parts[i].first;
  return count;
}
