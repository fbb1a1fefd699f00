#include "gen/ir/graph.h"

#include <assert.h>
#include <string.h>

#include "gen/base/text.h"
#include "gen/ir/op.h"

static void print_value(struct text *text, const struct value *value, const struct region *here) {
  if (value->region != here) text_printf(text, "%s.", value->region->name);
  text_puts(text, value->name != NULL ? value->name : arena_printf(text->arena, "%%%d", value->id));
}

static void print_placement(struct text *text, struct placement placement) {
  if (placement.form == PLACED_PARTIAL) text_puts(text, " partial");
  if (placement.form != PLACED_SPLIT) return;
  text_printf(text, " split %d", placement.dim);
  if (placement.blocks > 1) text_printf(text, " in %lld blocks", (long long)placement.blocks);
}

static void print_typed(struct text *text, const struct value *value, const struct region *here) {
  print_value(text, value, here);
  if (value->dtype != DTYPE_FLOAT32) text_printf(text, " %s", dtype_name(value->dtype));
  text_printf(text, " %s", shape_text(text->arena, value->shape));
  print_placement(text, value->placement);
}

static void print_scopes(struct text *text, const struct call *call) {
  for (int i = 0; i < call->callee->n_scopes; i++) {
    const struct scope *first = call->scopes[i * call->count], *last = call->scopes[(i + 1) * call->count - 1];
    text_printf(text, " scope%d=%d:%s", i, first->formal, first->path);
    if (strcmp(first->path, last->path) != 0) text_printf(text, "..%s", last->path);
  }
}

/* A node, and indented below it the parts of a fused one. */
static void print_node(struct text *text, const struct node *node, const struct region *region, const char *indent) {
  text_puts(text, indent);
  for (int i = 0; i < node->n_outputs; i++) {
    if (i > 0) text_puts(text, ", ");
    print_typed(text, node->outputs[i], region);
  }
  text_printf(text, " = %s(", node->call != NULL ? node->call->callee->name : node->kind->name);
  for (int i = 0; i < node->n_inputs; i++) {
    if (i > 0) text_puts(text, ", ");
    print_value(text, node->inputs[i], region);
  }
  text_puts(text, ")");
  for (int i = 0; i < node->n_attributes; i++) text_puts(text, attribute_text(text->arena, &node->attributes[i]));
  if (node->call != NULL && node->call->count > 1) text_printf(text, " times %d", node->call->count);
  if (node->call != NULL) print_scopes(text, node->call);
  text_puts(text, node->deferred ? " deferred\n" : "\n");
  for (int i = 0; i < node->body.count; i++)
    print_node(text, node->body.items[i], region, arena_printf(text->arena, "%s  ", indent));
}

static void print_initializer(struct text *text, struct initializer init) {
  static const char *const names[] = {"default", "zeros", "ones", "normal", "uniform", "sinusoid"};
  text_puts(text, names[init.kind]);
  if (init.kind >= INIT_NORMAL) text_printf(text, "(%g, %g)", init.a, init.b);
}

static const char *region_text(struct arena *arena, const struct region *region) {
  struct text text = text_in(arena);
  text_printf(&text, "region %s(", region->name);
  for (int i = 0; i < region->inputs.count; i++) {
    if (i > 0) text_puts(&text, ", ");
    print_typed(&text, region->inputs.items[i], region);
  }
  text_puts(&text, ")\n");
  for (int i = 0; i < region->parameters.count; i++) {
    const struct parameter *p = &region->parameters.items[i];
    text_printf(&text, "  parameter %d:%s %s", p->scope, p->path, shape_text(arena, p->shape));
    print_placement(&text, p->placement);
    text_puts(&text, " ");
    print_initializer(&text, p->init);
    text_puts(&text, "\n");
  }
  for (int i = 0; i < region->nodes.count; i++) print_node(&text, region->nodes.items[i], region, "  ");
  text_puts(&text, "  return");
  for (int i = 0; i < region->results.count; i++) {
    text_puts(&text, i > 0 ? ", " : " ");
    print_value(&text, region->results.items[i], region);
  }
  text_puts(&text, "\n");
  return text_string(&text);
}

const char *graph_text(struct arena *arena, const struct graph *graph) {
  struct text text = text_in(arena);
  for (int i = 0; i < graph->n_regions; i++) {
    if (i > 0) text_puts(&text, "\n");
    text_puts(&text, region_text(arena, graph->regions[i]));
  }
  return text_string(&text);
}
