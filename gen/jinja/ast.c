#include "gen/jinja/ast.h"

static void visit_one(struct node *part, node_visit *visit, void *context) {
  if (part != NULL) visit(context, part);
}

static void visit_all(const struct nodes *parts, node_visit *visit, void *context) {
  for (int i = 0; i < parts->count; i++) visit_one(parts->items[i], visit, context);
}

static void visit_args(const struct args *args, node_visit *visit, void *context) {
  if (args == NULL) return;
  visit_all(&args->positional, visit, context);
  visit_all(&args->keyword_values, visit, context);
  visit_one(args->star, visit, context);
  visit_one(args->star2, visit, context);
}

void jj_each_operand(const struct node *node, node_visit *visit, void *context) {
  switch (node->kind) {
  case N_LIST:
  case N_TUPLE:
  case N_DICT:
  case N_CONCAT:
    visit_all(&node->as.items, visit, context);
    break;
  case N_COND:
    visit_one(node->as.cond.test, visit, context);
    visit_one(node->as.cond.yes, visit, context);
    visit_one(node->as.cond.no, visit, context);
    break;
  case N_AND:
  case N_OR:
  case N_NOT:
  case N_NEG:
  case N_POS:
  case N_BINARY:
    visit_one(node->as.pair.left, visit, context);
    visit_one(node->as.pair.right, visit, context);
    break;
  case N_COMPARE:
    visit_one(node->as.compare.first, visit, context);
    visit_all(&node->as.compare.rest, visit, context);
    break;
  case N_ATTR:
    visit_one(node->as.attr.object, visit, context);
    break;
  case N_ITEM:
    visit_one(node->as.item.object, visit, context);
    visit_one(node->as.item.key, visit, context);
    break;
  case N_SLICE:
    visit_one(node->as.slice.start, visit, context);
    visit_one(node->as.slice.stop, visit, context);
    visit_one(node->as.slice.step, visit, context);
    break;
  case N_CALL:
    visit_one(node->as.call.callee, visit, context);
    visit_args(node->as.call.args, visit, context);
    break;
  case N_FILTER:
    visit_one(node->as.filter.input, visit, context);
    visit_args(node->as.filter.args, visit, context);
    break;
  case N_TEST:
    visit_one(node->as.test.input, visit, context);
    visit_args(node->as.test.args, visit, context);
    break;
  default:
    break;
  }
}
