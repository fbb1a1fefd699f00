#include "gen/plan/graph/expert_parallel.h"

#include <stdlib.h>
#include <string.h>

#include "gen/ir/builder.h"
#include "gen/ir/op.h"
#include "gen/ir/region.h"

/* Of a value of the current region. */
struct rows {
  struct value *all;        /* of what an operation over groups gives: where groups start in the rows of each rank */
  struct value *dispatched; /* the rows of this rank's groups of all ranks; NULL: not requested yet */
  struct value *collected;  /* the rows of this rank, where `all` is set; NULL: not requested yet */
};

/* Of the starts of groups: what ranks have exchanged of them. */
struct starts {
  struct value *of, *own, *all;
};

struct expert_parallel {
  struct program *program;
  struct builder *builder;
  struct diagnostics *diags;
  struct location where;
  enum axis axis;
  int64_t ranks;
  struct rows *rows;     /* by value id */
  struct starts *starts; /* of the current region */
  int n_starts, n_divided;
};

static bool refuse(struct expert_parallel *ep, const struct node *node, const char *why) {
  diag_error(ep->diags, ep->where, "%lld ranks cannot divide the groups of '%s': %s", (long long)ep->ranks,
             node->kind->name, why);
  diag_note(ep->diags, node->where, "the operation is here");
  return false;
}

/* ---- What ranks exchange ---- */

static struct node *exchange(const struct expert_parallel *ep, const char *kind, struct value *const *inputs,
                             int n_inputs, int64_t rows) {
  const struct attribute attributes[] = {attribute_int("axis", (int64_t)ep->axis), attribute_int("ranks", ep->ranks),
                                         attribute_int("rows", rows)};
  return builder_node(ep->builder, kind, inputs, n_inputs, attributes, 3);
}

/* Names the form of a value on other ranks: "rows_dispatched". */
static struct value *named(const struct expert_parallel *ep, struct value *made, const struct value *after,
                           const char *suffix) {
  if (after->name != NULL) made->name = arena_printf(ep->program->arena, "%s_%s", after->name, suffix);
  return made;
}

static const struct starts *starts_of(struct expert_parallel *ep, struct value *starts, int64_t rows) {
  for (int i = 0; i < ep->n_starts; i++)
    if (ep->starts[i].of == starts) return &ep->starts[i];
  const struct node *made = exchange(ep, "exchange_starts", &starts, 1, rows);
  ep->starts[ep->n_starts] = (struct starts){starts, named(ep, made->outputs[0], starts, "here"),
                                             named(ep, made->outputs[1], starts, "of_all")};
  return &ep->starts[ep->n_starts++];
}

/* Rows that have moved, with a workspace named after them. */
static struct value *moved(const struct expert_parallel *ep, const char *kind, struct value *x, struct value *all,
                           int64_t rows, const char *suffix) {
  const struct node *made = exchange(ep, kind, (struct value *[]){x, all}, 2, rows);
  named(ep, made->outputs[1], named(ep, made->outputs[0], x, suffix), "workspace");
  return made->outputs[0];
}

static struct value *dispatched(struct expert_parallel *ep, struct value *x, struct value *all) {
  struct rows *rows = &ep->rows[x->id];
  if (rows->dispatched == NULL) rows->dispatched = moved(ep, "dispatch_rows", x, all, x->shape.dim[0], "dispatched");
  return rows->dispatched;
}

/* A value as it is without ranks. */
static struct value *collected(struct expert_parallel *ep, struct value *x) {
  struct rows *rows = &ep->rows[x->id];
  if (rows->all == NULL) return x;
  int64_t own = x->shape.dim[0] / ep->ranks;
  if (rows->collected == NULL) rows->collected = moved(ep, "collect_rows", x, rows->all, own, "collected");
  return rows->collected;
}

/* ---- Operations ---- */

static void widen(struct expert_parallel *ep, struct node *node, struct value *all) {
  node->outputs[0]->shape.dim[0] *= ep->ranks;
  ep->rows[node->outputs[0]->id].all = all;
}

/* An operation over groups retains the operands of the first ones. */
static bool divide_node(struct expert_parallel *ep, struct node *node) {
  int first = node->kind->ranks.by_group, groups = node->n_inputs - first;
  if (groups % ep->ranks != 0)
    return refuse(ep, node, arena_printf(ep->program->arena, "they are %d, not a multiple of it", groups));
  int64_t rows = node->outputs[0]->shape.dim[0];
  const struct starts *starts = starts_of(ep, node->inputs[1], rows);
  struct value *x = node->inputs[0];
  bool there = ep->rows[x->id].all == starts->all;
  node->inputs[0] = there ? x : dispatched(ep, collected(ep, x), starts->all);
  node->inputs[1] = starts->own;
  node->n_inputs = first + groups / (int)ep->ranks;
  widen(ep, node, starts->all);
  ep->n_divided++;
  return true;
}

/* What the inputs of an elementwise operation have in common that ranks have exchanged; NULL: it needs rows as they
 * were. */
static struct value *common(const struct expert_parallel *ep, const struct node *node) {
  struct value *all = NULL;
  if (node->kind->class != OP_ELEMENTWISE || node->kind->kernel.random || node->kind->sequence.extents != NULL)
    return NULL;
  for (int i = 0; i < node->n_inputs; i++) {
    struct value *own = ep->rows[node->inputs[i]->id].all;
    if (own == NULL && op_along(node, 0, i) == AXIS_WHOLE) continue;
    if (own == NULL || (all != NULL && own != all)) return NULL;
    all = own;
  }
  return all;
}

static bool enter_node(struct expert_parallel *ep, struct node *node) {
  if (node->kind->ranks.by_group > 0) return divide_node(ep, node);
  struct value *all = common(ep, node);
  if (all != NULL) {
    widen(ep, node, all);
    return true;
  }
  for (int i = 0; i < node->n_inputs; i++) node->inputs[i] = collected(ep, node->inputs[i]);
  return true;
}

/* ---- Parameters ---- */

/* The number in a path that starts at `at`. */
static bool is_number(const char *path, const char *at) {
  size_t digits = strspn(at, "0123456789");
  return digits > 0 && digits < 9 && (at == path || at[-1] == '.') && (at[digits] == '.' || at[digits] == '\0');
}

/* The part of the paths, counted from the end, that alone differs: a number, which is `step` larger in `b`; -1: they do
 * not differ so. */
static int part_between(const char *a, const char *b, int64_t step) {
  const char *p = a, *q = b;
  while (*p != '\0' && *p == *q) p++, q++;
  while (p > a && p[-1] != '.') p--, q--;
  if (!is_number(a, p) || !is_number(b, q) || atol(q) - atol(p) != step) return -1;
  p += strspn(p, "0123456789");
  q += strspn(q, "0123456789");
  int part = 0;
  for (const char *c = p; *c != '\0'; c++) part += *c == '.';
  return strcmp(p, q) == 0 ? part : -1;
}

/* An operation over groups may widen what is stored in 16 bits. */
static const struct value *before_casts(const struct value *value) {
  while (value->producer != NULL && value->producer->kind->types.converts) value = value->producer->inputs[0];
  return value;
}

static struct parameter *parameter_of(const struct region *region, const struct value *operand) {
  const struct value *value = before_casts(operand);
  bool own = value->kind == VALUE_PARAMETER && value->region == region;
  struct parameter *p = own ? &region->parameters.items[value->index] : NULL;
  return p != NULL && (p->value == value || p->bits16 == value) && !p->buffer ? p : NULL;
}

/* Sets the placement of the parameters of a node's groups: `operands` of all groups, of which a rank has `each`. */
static bool place_parameters(struct expert_parallel *ep, const struct node *node, struct value *const *operands,
                             int groups, bool *gone) {
  int each = groups / (int)ep->ranks;
  for (int g = 0; g < groups; g++) {
    struct parameter *own = parameter_of(node->region, operands[g % each]);
    const struct parameter *p = parameter_of(node->region, operands[g]);
    if (own == NULL || p == NULL) return refuse(ep, node, "an operand of a group is computed from parameters");
    if (g < each) continue;
    int part = own->scope == p->scope ? part_between(own->path, p->path, g / each * each) : -1;
    const struct placement placement = {.form = PLACED_EXPERT, .dim = part, .blocks = each};
    bool agrees = own->placement.form == PLACED_WHOLE ||
                  (own->placement.dim == placement.dim && own->placement.blocks == placement.blocks);
    if (part < 0 || !agrees)
      return refuse(ep, node,
                    arena_printf(ep->program->arena,
                                 "the names of '%s' and '%s' do not differ in one number, that of the group", own->path,
                                 p->path));
    if (own->value->differentiable != p->value->differentiable)
      return refuse(ep, node,
                    arena_printf(ep->program->arena, "of '%s' and '%s', of which each rank has one, one is frozen",
                                 own->path, p->path));
    own->placement = placement;
    own->axis = (int)ep->axis;
    own->together = (p->value->index - own->value->index) / (g / each);
    gone[p->value->index] = true;
  }
  return true;
}

/* Whether the parameters that stay determine the order of all: those that are together on each rank, rank by rank. */
static bool determines_order(const struct expert_parallel *ep, const struct region *region, const int *was) {
  int next = 0, end;
  for (int i = 0; i < region->parameters.count; i = end) {
    const struct parameter *first = &region->parameters.items[i];
    bool is_expert = first->placement.form == PLACED_EXPERT;
    end = i + (is_expert ? first->together : 1);
    for (int k = i; k < end; k++)
      if (end > region->parameters.count || region->parameters.items[k].together != first->together ||
          was[k] != next + k - i)
        return false;
    next += (end - i) * (is_expert ? (int)ep->ranks : 1);
  }
  return true;
}

static bool is_used(const struct region *region, const struct parameter *p) {
  return value_is_used(region, p->value, NULL) || (p->bits16 != NULL && value_is_used(region, p->bits16, NULL));
}

/* Removes the casts of parameters that other ranks have. */
static void drop_casts(struct region *region) {
  for (int i = region->nodes.count - 1; i >= 0; i--) {
    const struct node *node = region->nodes.items[i];
    if (node->kind->types.converts && !value_is_used(region, node->outputs[0], NULL)) region_remove(region, node);
  }
}

static bool remove_parameters(struct expert_parallel *ep, struct region *region, const bool *gone) {
  struct parameter_list all = region->parameters;
  int *was = arena_alloc(ep->program->arena, ((size_t)all.count + 1) * sizeof *was);
  region->parameters.count = 0;
  for (int i = 0; i < all.count; i++) {
    struct parameter p = all.items[i];
    if (gone[i] && is_used(region, &p)) {
      diag_error(ep->diags, ep->where, "'%s' belongs to a group of another rank, and is used outside of it", p.path);
      return false;
    }
    if (gone[i]) continue;
    p.value->index = region->parameters.count;
    if (p.bits16 != NULL) p.bits16->index = region->parameters.count;
    was[region->parameters.count] = i;
    region->parameters.items[region->parameters.count++] = p;
  }
  if (determines_order(ep, region, was)) return true;
  diag_error(ep->diags, ep->where, "the parameters of groups are not named in the order of the groups");
  diag_note(ep->diags, region->where, "the function that names them is here");
  return false;
}

/* ---- Regions ---- */

static bool has_groups(const struct region *region) {
  for (int i = 0; i < region->nodes.count; i++)
    if (region->nodes.items[i]->kind->ranks.by_group > 0) return true;
  return false;
}

static bool divide_region(struct expert_parallel *ep, struct region *region) {
  struct graph *graph = ep->program->graph;
  struct node_list nodes = region->nodes;
  size_t most = (size_t)graph->next_value + (size_t)region->results.count + 1;
  for (int i = 0; i < nodes.count; i++) most += (size_t)nodes.items[i]->n_inputs + 2;
  bool *gone = arena_alloc(graph->arena, ((size_t)region->parameters.count + 1) * sizeof *gone), good = true;
  ep->rows = arena_alloc(graph->arena, most * sizeof *ep->rows);
  ep->starts = arena_alloc(graph->arena, (size_t)nodes.count * sizeof *ep->starts);
  ep->n_starts = 0;
  region->nodes = (struct node_list){0};
  builder_enter(ep->builder, region);
  for (int i = 0; i < nodes.count && good; i++) {
    struct node *node = nodes.items[i];
    int first = node->kind->ranks.by_group, groups = node->n_inputs - first;
    builder_at(ep->builder, node->where);
    good = enter_node(ep, node) && (first == 0 || place_parameters(ep, node, node->inputs + first, groups, gone));
    region_append(graph, region, node);
  }
  for (int i = 0; i < region->results.count && good; i++)
    region->results.items[i] = collected(ep, region->results.items[i]);
  builder_leave(ep->builder);
  drop_casts(region);
  return good && remove_parameters(ep, region, gone);
}

bool plan_expert_parallel(struct program *program, struct builder *builder, enum axis axis, int64_t ranks,
                          struct location where, struct diagnostics *diags) {
  struct expert_parallel ep = {
      .program = program, .builder = builder, .diags = diags, .where = where, .axis = axis, .ranks = ranks};
  for (int r = 0; r < program->graph->n_regions; r++)
    if (has_groups(program->graph->regions[r]) && !divide_region(&ep, program->graph->regions[r])) return false;
  if (ep.n_divided > 0) return true;
  diag_error(diags, where, "the model has no operation over groups of rows that %lld ranks could divide",
             (long long)ranks);
  diag_help(diags, "leave it out, or let the experts be weights of grouped_matmul");
  return false;
}
