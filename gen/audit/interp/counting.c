/* Which loops count. */
#include "gen/audit/interp/loop.h"

static bool read_step(struct interp *interp, struct syntax *step, struct counting *counting) {
  if (step == NULL) return false;
  step = syntax_bare(step);
  struct syntax *target = step->n_parts > 0 ? syntax_bare(step->parts[0]) : NULL;
  if (target == NULL || target->kind != SYNTAX_VARIABLE || target->variable->type->kind != TYPE_INTEGER) return false;
  counting->counter = target->variable;
  if (step->kind == SYNTAX_INCREMENT) {
    counting->step = step->integer;
    return true;
  }
  bool adds = step->kind == SYNTAX_ASSIGN && step->operation == OPERATOR_ADD;
  bool subtracts = step->kind == SYNTAX_ASSIGN && step->operation == OPERATOR_SUBTRACT;
  if (!adds && !subtracts) return false;
  struct value size = interp_evaluate(interp, step->parts[1]);
  if (size.kind != VALUE_INTEGER || size.low != size.high || size.low <= 0) return false;
  counting->step = adds ? size.low : -size.low;
  return true;
}

/* Whether `node` is the counter, or the counter and a constant. */
static bool is_counter(struct syntax *node, const struct variable *counter, int64_t *added) {
  node = syntax_bare(node);
  *added = 0;
  if (node->kind == SYNTAX_BINARY && node->operation == OPERATOR_ADD && constant_integer(node->parts[1], added))
    node = syntax_bare(node->parts[0]);
  return node->kind == SYNTAX_VARIABLE && node->variable == counter;
}

static bool read_condition(struct syntax *condition, struct counting *counting) {
  if (condition == NULL) return false;
  condition = syntax_bare(condition);
  if (condition->kind != SYNTAX_BINARY) return false;
  if (condition->operation == OPERATOR_AND) {
    struct syntax *whole = condition;
    bool counts = read_condition(whole->parts[0], counting) || read_condition(whole->parts[1], counting);
    counting->more = whole;
    return counts;
  }
  counting->operation = condition->operation;
  counting->bound = condition->parts[1];
  if (is_counter(condition->parts[0], counting->counter, &counting->added)) return true;
  counting->bound = condition->parts[0];
  if (!is_counter(condition->parts[1], counting->counter, &counting->added)) return false;
  counting->operation = operator_mirrored(condition->operation);
  return true;
}

struct counter_search {
  const struct variable *counter;
  int count;
};

static bool count_assignments(struct syntax *node, void *data) {
  struct counter_search *search = data;
  bool assigns_it = (node->kind == SYNTAX_ASSIGN || node->kind == SYNTAX_INCREMENT) &&
                    syntax_bare(node->parts[0])->kind == SYNTAX_VARIABLE &&
                    syntax_bare(node->parts[0])->variable == search->counter;
  bool takes_address = node->kind == SYNTAX_UNARY && node->operation == OPERATOR_ADDRESS &&
                       syntax_bare(node->parts[0])->kind == SYNTAX_VARIABLE &&
                       syntax_bare(node->parts[0])->variable == search->counter;
  search->count += assigns_it || takes_address;
  return true;
}

bool interp_read_counting(struct interp *interp, struct syntax *loop, struct counting *counting) {
  if (loop->kind != SYNTAX_FOR || !read_step(interp, loop->parts[2], counting) ||
      !read_condition(loop->parts[1], counting))
    return false;
  struct counter_search search = {counting->counter, 0};
  syntax_visit(loop->parts[3], count_assignments, &search);
  bool up = counting->step > 0;
  bool fits = up ? counting->operation == OPERATOR_LESS || counting->operation == OPERATOR_LESS_EQUAL ||
                       (counting->operation == OPERATOR_NOT_EQUAL && counting->step == 1)
                 : counting->operation == OPERATOR_GREATER || counting->operation == OPERATOR_GREATER_EQUAL;
  return search.count == 0 && fits;
}

int64_t interp_last_value(const struct counting *counting, int64_t bound) {
  int64_t last = bounded_add(bound, -counting->added);
  if (counting->operation == OPERATOR_LESS || counting->operation == OPERATOR_NOT_EQUAL) last = bounded_add(last, -1);
  if (counting->operation == OPERATOR_GREATER) last = bounded_add(last, 1);
  return last;
}
static bool is_variable(struct syntax *node, const struct variable *variable) {
  return syntax_bare(node)->kind == SYNTAX_VARIABLE && syntax_bare(node)->variable == variable;
}

bool interp_iterates_bits(const struct syntax *loop) {
  if (loop->kind != SYNTAX_FOR || loop->parts[1] == NULL || loop->parts[2] == NULL) return false;
  struct syntax *step = syntax_bare(loop->parts[2]), *condition = syntax_bare(loop->parts[1]);
  if (step->kind != SYNTAX_ASSIGN || step->operation != OPERATOR_BIT_AND) return false;
  const struct syntax *counter = syntax_bare(step->parts[0]), *less = syntax_bare(step->parts[1]);
  int64_t one = 0, zero = 1;
  if (counter->kind != SYNTAX_VARIABLE || less->kind != SYNTAX_BINARY || less->operation != OPERATOR_SUBTRACT ||
      condition->kind != SYNTAX_BINARY || condition->operation != OPERATOR_NOT_EQUAL)
    return false;
  struct counter_search search = {counter->variable, 0};
  syntax_visit(loop->parts[3], count_assignments, &search);
  return search.count == 0 && is_variable(less->parts[0], counter->variable) &&
         constant_integer(less->parts[1], &one) && one == 1 && is_variable(condition->parts[0], counter->variable) &&
         constant_integer(condition->parts[1], &zero) && zero == 0;
}
