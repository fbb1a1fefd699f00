#include "gen/plan/graph/part_scopes.h"

#include <stdlib.h>
#include <string.h>

#include "gen/ir/copy.h"
#include "gen/ir/names.h"
#include "gen/ir/region.h"
#include "gen/plan/graph/weight_visitor.h"

/* The regions that came of one, each for other parameters. */
struct variant {
  const struct region *original;
  struct region *region;
  const char *const *prefixes; /* of the scopes of its first call */
};

struct parting {
  struct program *program;
  /* What the weights will have by name, sorted: a parameter with its shape, a scope that a function takes. */
  struct {
    const char **items;
    int count, capacity;
  } names;
  struct {
    struct variant *items;
    int count, capacity;
  } variants;
};

/* ---- What is below a scope ---- */

static void collect(struct weight_visitor *visitor, const struct region *region, const struct node *after,
                    const char *const *prefixes) {
  struct parting *parting = visitor->context;
  struct arena *arena = parting->program->arena;
  if (after != NULL) return;
  for (int i = 0; i < region->parameters.count; i++) {
    const struct parameter *p = &region->parameters.items[i];
    const char *path = weight_path(arena, prefixes[p->scope], p->path);
    ARENA_PUSH(arena, parting->names, arena_printf(arena, "%s %s", path, shape_text(arena, p->shape)));
  }
  for (int i = 0; i < region->n_scopes; i++)
    if (weight_scope_is_used(region, i, NULL, NULL))
      ARENA_PUSH(arena, parting->names, arena_printf(arena, "%s scope", prefixes[i]));
}

static int compare(const void *left, const void *right) {
  return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* The first of the names that are not before `text`. */
static int first_from(const struct parting *parting, const char *text) {
  int low = 0, high = parting->names.count;
  while (low < high) {
    int middle = low + (high - low) / 2;
    if (strcmp(parting->names.items[middle], text) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* What name number `at` is below a scope; NULL when it is not. */
static const char *below(const struct parting *parting, int at, const char *scope, size_t length) {
  if (at >= parting->names.count || strncmp(parting->names.items[at], scope, length) != 0) return NULL;
  return parting->names.items[at] + length;
}

static bool hold_the_same(const struct parting *parting, const char *a, const char *b) {
  if (strcmp(a, b) == 0) return true;
  struct arena *arena = parting->program->arena;
  const char *first = a[0] == '\0' ? a : arena_printf(arena, "%s.", a);
  const char *second = b[0] == '\0' ? b : arena_printf(arena, "%s.", b);
  size_t p = strlen(first), q = strlen(second);
  for (int i = first_from(parting, first), k = first_from(parting, second);; i++, k++) {
    const char *one = below(parting, i, first, p), *other = below(parting, k, second, q);
    if (one == NULL || other == NULL) return one == other;
    if (strcmp(one, other) != 0) return false;
  }
}

static void make_held(struct parting *parting) {
  struct weight_visitor visitor = {.program = parting->program, .ok = true, .visit = collect, .context = parting};
  weight_visit_from(&visitor, parting->program->graph->entry);
  if (parting->names.count > 0)
    qsort(parting->names.items, (size_t)parting->names.count, sizeof *parting->names.items, compare);
  int kept = 0;
  for (int i = 0; i < parting->names.count; i++)
    if (kept == 0 || strcmp(parting->names.items[i], parting->names.items[kept - 1]) != 0)
      parting->names.items[kept++] = parting->names.items[i];
  parting->names.count = kept;
}

/* ---- Parting ---- */

static const struct region *original_of(const struct parting *parting, const struct region *region) {
  for (int i = 0; i < parting->variants.count; i++)
    if (parting->variants.items[i].region == region) return parting->variants.items[i].original;
  return region;
}

static bool fits(const struct parting *parting, const struct variant *variant, const char *const *prefixes) {
  for (int i = 0; i < variant->region->n_scopes; i++)
    if (!hold_the_same(parting, variant->prefixes[i], prefixes[i]) &&
        weight_scope_is_used(variant->region, i, NULL, NULL))
      return false;
  return true;
}

static struct region *copy_before(struct program *program, const struct region *from, const struct region *caller) {
  struct graph *graph = program->graph;
  struct copying copying = {.graph = graph};
  copying.values = arena_alloc(program->arena, ((size_t)graph->next_value + 1) * sizeof(struct value *));
  struct region *copy = copy_region(&copying, from, "other");
  name_values(program->arena, copy);
  graph_insert(graph, copy, caller->id);
  return copy;
}

static void part_calls(struct parting *parting, struct region *caller, const char *const *prefixes);

/* The variant of a call's callee for the parameters below these scopes. */
static struct region *variant_for(struct parting *parting, struct region *callee, const struct region *caller,
                                  const char *const *prefixes) {
  struct variant variant = {original_of(parting, callee), callee, prefixes};
  bool known = false;
  for (int i = 0; i < parting->variants.count; i++) {
    if (parting->variants.items[i].original != variant.original) continue;
    known = true;
    if (fits(parting, &parting->variants.items[i], prefixes)) return parting->variants.items[i].region;
  }
  if (known) variant.region = copy_before(parting->program, callee, caller);
  ARENA_PUSH(parting->program->arena, parting->variants, variant);
  part_calls(parting, variant.region, prefixes);
  return variant.region;
}

static void part_calls(struct parting *parting, struct region *caller, const char *const *prefixes) {
  for (int i = 0; i < caller->nodes.count; i++) {
    struct call *call = caller->nodes.items[i]->call;
    if (call == NULL) continue;
    const char *const *inner = weight_scopes(parting->program->arena, call, 0, prefixes);
    call->callee = variant_for(parting, call->callee, caller, inner);
  }
}

void part_scopes(struct program *program) {
  static const char *const root[] = {""};
  struct parting parting = {.program = program};
  make_held(&parting);
  part_calls(&parting, program->graph->entry, root);
}
