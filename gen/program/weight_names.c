#include "gen/program/weight_names.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool is_named(const struct weight_node *node, const char *name, size_t length) {
  return strncmp(node->name, name, length) == 0 && node->name[length] == '\0';
}

/* The elements of an array, of which there may be hundreds, are mostly in its order. */
static struct weight_node *child_named(const struct weight_node *node, const char *name, size_t length) {
  const long number = isdigit((unsigned char)name[0]) ? strtol(name, NULL, 10) : node->n_children;
  if (number < node->n_children && is_named(node->children[number], name, length)) return node->children[number];
  for (int i = 0; i < node->n_children; i++)
    if (is_named(node->children[i], name, length)) return node->children[i];
  return NULL;
}

struct weight_node *weight_node_at(struct weight_node *node, const char *path) {
  while (node != NULL && *path != '\0') {
    size_t length = strcspn(path, ".");
    node = child_named(node, path, length);
    path += length + (path[length] == '.');
  }
  return node;
}

struct weight_node *weight_node_make(struct arena *arena, struct weight_node *root, const char *path) {
  struct weight_node *node = root;
  for (const char *rest = path; *rest != '\0';) {
    size_t length = strcspn(rest, ".");
    struct weight_node *child = child_named(node, rest, length);
    if (child == NULL) {
      child = arena_alloc(arena, sizeof *child);
      child->name = arena_copy(arena, rest, length);
      child->path = arena_copy(arena, path, (size_t)(rest - path) + length);
      child->parent = node;
      node->children = arena_grow(arena, node->children, node->n_children, &node->capacity, sizeof *node->children);
      node->children[node->n_children++] = child;
    }
    node = child;
    rest += length + (rest[length] == '.');
  }
  return node;
}

const struct parameter *weight_parameter_above(const struct weight_node *node, const char *path) {
  while (node != NULL && node->parameter == NULL && *path != '\0') {
    size_t length = strcspn(path, ".");
    node = child_named(node, path, length);
    path += length + (path[length] == '.');
  }
  return node != NULL && *path != '\0' ? node->parameter : NULL;
}
