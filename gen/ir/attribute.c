#include <assert.h>
#include <string.h>

#include "gen/base/hash.h"
#include "gen/ir/graph.h"
#include "gen/ir/op.h"

struct attribute attribute_int(const char *name, int64_t value) {
  return (struct attribute){.name = name, .kind = ATTRIBUTE_INT, .integer = value};
}

struct attribute attribute_real(const char *name, double value) {
  return (struct attribute){.name = name, .kind = ATTRIBUTE_REAL, .real = value};
}

struct attribute attribute_ints(const char *name, struct shape value) {
  return (struct attribute){.name = name, .kind = ATTRIBUTE_INTS, .ints = value};
}

struct attribute attribute_reals(const char *name, const double *values, int64_t count) {
  return (struct attribute){.name = name, .kind = ATTRIBUTE_REALS, .reals = values, .n_reals = count};
}

static const struct attribute *find_attribute(const struct node *node, const char *name) {
  for (int i = 0; i < node->n_attributes; i++)
    if (strcmp(node->attributes[i].name, name) == 0) return &node->attributes[i];
  assert(!"the node has the attribute that its own operation asks for");
  return NULL;
}

int64_t node_int(const struct node *node, const char *name) {
  return find_attribute(node, name)->integer;
}

double node_real(const struct node *node, const char *name) {
  return find_attribute(node, name)->real;
}

struct shape node_ints(const struct node *node, const char *name) {
  return find_attribute(node, name)->ints;
}

const double *node_reals(const struct node *node, const char *name) {
  return find_attribute(node, name)->reals;
}

const char *attribute_text(struct arena *arena, const struct attribute *a) {
  switch (a->kind) {
  case ATTRIBUTE_INT:
    return arena_printf(arena, " %s=%lld", a->name, (long long)a->integer);
  case ATTRIBUTE_REAL:
    return arena_printf(arena, " %s=%.17g", a->name, a->real);
  case ATTRIBUTE_INTS:
    return arena_printf(arena, " %s=%s", a->name, shape_text(arena, a->ints));
  case ATTRIBUTE_REALS:
    return arena_printf(arena, " %s=[%lld:%016llx]", a->name, (long long)a->n_reals,
                        (unsigned long long)hash_bytes(a->reals, (size_t)a->n_reals * sizeof *a->reals));
  }
  return "";
}
