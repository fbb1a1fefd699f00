/* Calls of functions of the libraries: by what they mean, as their headers and manuals say. */
#include <math.h>
#include <string.h>

#include "gen/verify/proof/lift_private.h"

static struct lifted number(const struct term *term) {
  return (struct lifted){false, 0, term};
}

/* ---- Of numbers ---- */

typedef const struct term *meaning(struct terms *terms, const struct term *const *x);

static const struct term *mean_exp(struct terms *terms, const struct term *const *x) {
  return term_exp(terms, x[0]);
}
static const struct term *mean_log(struct terms *terms, const struct term *const *x) {
  return term_log(terms, x[0]);
}
static const struct term *mean_log1p(struct terms *terms, const struct term *const *x) {
  return term_log(terms, term_add(terms, term_number(terms, 1), x[0]));
}
static const struct term *mean_tanh(struct terms *terms, const struct term *const *x) {
  return term_tanh(terms, x[0]);
}
static const struct term *mean_normal(struct terms *terms, const struct term *const *x) {
  return term_call(terms, TERM_NORMAL, x[0]);
}
static const struct term *mean_sigmoid(struct terms *terms, const struct term *const *x) {
  return term_call(terms, TERM_SIGMOID, x[0]);
}
static const struct term *mean_sin(struct terms *terms, const struct term *const *x) {
  return term_call(terms, TERM_SIN, x[0]);
}
static const struct term *mean_cos(struct terms *terms, const struct term *const *x) {
  return term_call(terms, TERM_COS, x[0]);
}
static const struct term *mean_sqrt(struct terms *terms, const struct term *const *x) {
  return term_power(terms, x[0], 0.5);
}
static const struct term *mean_larger(struct terms *terms, const struct term *const *x) {
  return term_larger(terms, x[0], x[1]);
}
static const struct term *mean_smaller(struct terms *terms, const struct term *const *x) {
  return term_subtract(terms, term_add(terms, x[0], x[1]), term_larger(terms, x[0], x[1]));
}
static const struct term *mean_size(struct terms *terms, const struct term *const *x) {
  return term_larger(terms, x[0], term_scale(terms, x[0], -1));
}
static const struct term *mean_power(struct terms *terms, const struct term *const *x) {
  double power;
  if (term_is_number(x[1], &power)) return term_power(terms, x[0], power);
  return term_exp(terms, term_multiply(terms, x[1], term_log(terms, x[0])));
}
/* (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2 */
static const struct term *mean_gate(struct terms *terms, const struct term *const *x) {
  static const double root = 0.79788456080286535588; /* sqrt(2 / pi) */
  const struct term *cube = term_multiply(terms, x[0], term_multiply(terms, x[0], x[0]));
  const struct term *inner = term_scale(terms, term_add(terms, x[0], term_scale(terms, cube, 0.044715)), root);
  return term_scale(terms, term_add(terms, term_number(terms, 1), term_tanh(terms, inner)), 0.5);
}
/* The derivative of x times that. */
static const struct term *mean_gate_slope(struct terms *terms, const struct term *const *x) {
  const struct term *variable = term_symbol(terms);
  const struct term *product = term_multiply(terms, variable, mean_gate(terms, &variable));
  const struct term *slope = term_slope(terms, product, term_atom(variable));
  return term_with(terms, slope, term_atom(variable), x[0]);
}

static const struct term *mean_floor(struct terms *terms, const struct term *const *x) {
  return term_call(terms, TERM_FLOOR, x[0]);
}
/* What is left of a quotient that is cut off to a whole number. */
static const struct term *mean_rest(struct terms *terms, const struct term *const *x) {
  const struct term *quotient = term_call(terms, TERM_WHOLE, term_divide(terms, x[0], x[1]));
  return term_subtract(terms, x[0], term_multiply(terms, quotient, x[1]));
}

static const struct {
  const char *name;
  int count;
  meaning *of;
} functions[] = {
    {"accel_exp", 1, mean_exp},
    {"accel_exp_finite", 1, mean_exp},
    {"expf", 1, mean_exp},
    {"exp", 1, mean_exp},
    {"accel_log", 1, mean_log},
    {"logf", 1, mean_log},
    {"log", 1, mean_log},
    {"accel_log1p", 1, mean_log1p},
    {"accel_tanh", 1, mean_tanh},
    {"tanhf", 1, mean_tanh},
    {"accel_normal", 1, mean_normal},
    {"accel_sigmoid", 1, mean_sigmoid},
    {"accel_gelu_gate", 1, mean_gate},
    {"accel_gelu_slope", 1, mean_gate_slope},
    {"sinf", 1, mean_sin},
    {"cosf", 1, mean_cos},
    {"sin", 1, mean_sin},
    {"cos", 1, mean_cos},
    {"sqrtf", 1, mean_sqrt},
    {"sqrt", 1, mean_sqrt},
    {"fmaxf", 2, mean_larger},
    {"fmax", 2, mean_larger},
    {"fminf", 2, mean_smaller},
    {"fmin", 2, mean_smaller},
    {"fabsf", 1, mean_size},
    {"fabs", 1, mean_size},
    {"floor", 1, mean_floor},
    {"fmod", 2, mean_rest},
    {"pow", 2, mean_power},
    {"powf", 2, mean_power},
};

static bool of_numbers(struct lift *lift, const struct syntax *node, struct lifted *result) {
  const struct term *x[2];
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    if (strcmp(functions[i].name, node->function->name) != 0 || node->n_parts != functions[i].count + 1) continue;
    for (int k = 0; k < functions[i].count; k++) x[k] = lift_number(lift, node->parts[k + 1]);
    if (!lift_has_failed(lift)) *result = number(functions[i].of(lift->terms, x));
    return true;
  }
  return false;
}

/* ---- Of arrays ---- */

enum { FLOAT = 4 };

static const struct term *element(struct lift *lift, struct lifted at, const struct term *i) {
  return lift_read(lift, at.memory, term_add(lift->terms, at.term, term_scale(lift->terms, i, FLOAT)));
}

static struct lifted address(struct lift *lift, const struct syntax *node) {
  const struct lifted at = lift_value(lift, node);
  if (!at.is_address) lift_fail(lift, "it gives no address");
  return at;
}

/* A constant argument. */
static int64_t whole(struct lift *lift, const struct syntax *node) {
  double x = 0;
  if (!term_is_number(lift_number(lift, node), &x) || x < 0) lift_fail(lift, "it gives a number that is no constant");
  return (int64_t)x;
}

/* The sum or the largest of so many elements, or of a function of them. */
static const struct term *over(struct lift *lift, struct lifted at, int64_t count, bool sums,
                               const struct term *scale) {
  struct terms *terms = lift->terms;
  const struct term *i = term_variable(terms, count);
  if (lift_has_failed(lift)) return i;
  const struct term *x = element(lift, at, i);
  if (scale != NULL) {
    x = term_multiply(terms, x, scale);
    x = term_multiply(terms, x, x);
  }
  if (lift_has_failed(lift)) return i;
  return sums ? term_sum(terms, x, term_atom(i)) : term_most(terms, x, term_atom(i));
}

static void copy(struct lift *lift, const struct syntax *node) {
  const struct lifted to = address(lift, node->parts[1]), from = address(lift, node->parts[2]);
  const int64_t bytes = whole(lift, node->parts[3]);
  if (bytes % FLOAT != 0) lift_fail(lift, "it copies parts of numbers");
  if (lift_has_failed(lift)) return;
  const struct term *i = term_variable(lift->terms, bytes / FLOAT);
  const struct term *value = element(lift, from, i);
  lift_write_all(lift, to.memory, to.term, FLOAT, term_atom(i), value);
}

static void clear(struct lift *lift, const struct syntax *node) {
  const struct lifted to = address(lift, node->parts[1]);
  const int64_t with = whole(lift, node->parts[2]), bytes = whole(lift, node->parts[3]);
  if (with != 0 || bytes % FLOAT != 0) lift_fail(lift, "it sets bytes to what is not 0");
  if (lift_has_failed(lift)) return;
  const struct term *i = term_variable(lift->terms, bytes / FLOAT);
  lift_write_all(lift, to.memory, to.term, FLOAT, term_atom(i), term_number(lift->terms, 0));
}

/* A product of matrices: element [i][k] of a is a_row i + a_column k from its first one. */
struct multiplied {
  struct lifted y, a, b;
  int64_t rows, columns, depth, y_row, a_row, a_column, b_row, b_column;
  const struct term *beta; /* what was there is added, times this */
};

static void multiply(struct lift *lift, const struct multiplied *m) {
  struct terms *terms = lift->terms;
  if (lift_has_failed(lift)) return;
  const struct term *i = term_variable(terms, m->rows), *j = term_variable(terms, m->columns);
  const struct term *k = term_variable(terms, m->depth);
  const struct term *of_a =
      term_add(terms, term_scale(terms, i, (double)m->a_row), term_scale(terms, k, (double)m->a_column));
  const struct term *of_b =
      term_add(terms, term_scale(terms, k, (double)m->b_row), term_scale(terms, j, (double)m->b_column));
  const struct term *product = term_multiply(terms, element(lift, m->a, of_a), element(lift, m->b, of_b));
  const struct term *sum = term_sum(terms, product, term_atom(k));
  const struct term *place = term_add(terms, term_scale(terms, i, (double)m->y_row), j);
  struct piece piece = {.start = term_add(terms, m->y.term, term_scale(terms, place, FLOAT)), .value = sum};
  if (m->beta->count > 0) piece.value = term_add(terms, sum, term_multiply(terms, m->beta, element(lift, m->y, place)));
  if (lift->region > 0 && lift->now.memories[m->y.memory].depth < lift->region)
    lift_fail(lift, "all threads write the same");
  const bool good = lift_add_digits(lift, &piece, term_atom(i)) && lift_add_digits(lift, &piece, term_atom(j));
  if (!good) lift_fail(lift, "the rows of a product overlap");
  if (!lift_has_failed(lift)) lift_push(lift, m->y.memory, piece);
}

/* accel_gemm(transa, transb, rows, columns, depth, a, a_step, b, b_step, beta, c, c_step): c = a b + beta c. */
static void gemm(struct lift *lift, const struct syntax *node) {
  const bool ta = whole(lift, node->parts[1]) == 'T', tb = whole(lift, node->parts[2]) == 'T';
  const int64_t a_step = whole(lift, node->parts[7]), b_step = whole(lift, node->parts[9]);
  const struct multiplied m = {.rows = whole(lift, node->parts[3]),
                               .columns = whole(lift, node->parts[4]),
                               .depth = whole(lift, node->parts[5]),
                               .a = address(lift, node->parts[6]),
                               .b = address(lift, node->parts[8]),
                               .beta = lift_number(lift, node->parts[10]),
                               .y = address(lift, node->parts[11]),
                               .y_row = whole(lift, node->parts[12]),
                               .a_row = ta ? 1 : a_step,
                               .a_column = ta ? a_step : 1,
                               .b_row = tb ? 1 : b_step,
                               .b_column = tb ? b_step : 1};
  multiply(lift, &m);
}

/* accel_gemv(columns, depth, y, x, b, b_step, beta): y = b x + beta y. */
static void gemv(struct lift *lift, const struct syntax *node) {
  const struct multiplied m = {.rows = 1,
                               .columns = whole(lift, node->parts[1]),
                               .depth = whole(lift, node->parts[2]),
                               .y = address(lift, node->parts[3]),
                               .a = address(lift, node->parts[4]),
                               .b = address(lift, node->parts[5]),
                               .beta = lift_number(lift, node->parts[7]),
                               .y_row = whole(lift, node->parts[1]),
                               .a_row = whole(lift, node->parts[2]),
                               .a_column = 1,
                               .b_row = 1,
                               .b_column = whole(lift, node->parts[6])};
  multiply(lift, &m);
}

/* ---- accel_multiply, by the shape that its first argument's variable has in the text ---- */

struct uses {
  const struct variable *variable;
  int all, calls;
};

static bool count_uses(struct syntax *node, void *data) {
  struct uses *uses = data;
  uses->all += node->kind == SYNTAX_VARIABLE && node->variable == uses->variable;
  if (node->kind != SYNTAX_CALL || node->function == NULL || node->n_parts < 2) return true;
  if (strcmp(node->function->name, "accel_multiply") != 0 && strcmp(node->function->name, "accel_open_gemm") != 0)
    return true;
  const struct syntax *first = syntax_bare(node->parts[1]);
  const bool address = first->kind == SYNTAX_UNARY && first->operation == OPERATOR_ADDRESS;
  uses->calls += address && first->parts[0]->kind == SYNTAX_VARIABLE && first->parts[0]->variable == uses->variable;
  return true;
}

/* Whether nothing but calls of these two functions names a variable, so that it keeps its shape. */
static bool keeps_its_value(const struct lift *lift, const struct variable *variable) {
  struct uses uses = {variable, 0, 0};
  for (int i = 0; i < lift->tree->n_functions; i++)
    if (lift->tree->functions[i]->body != NULL) syntax_visit(lift->tree->functions[i]->body, count_uses, &uses);
  for (int i = 0; i < lift->tree->n_statics; i++)
    if (lift->tree->statics[i]->initial != NULL) syntax_visit(lift->tree->statics[i]->initial, count_uses, &uses);
  return uses.all == uses.calls;
}

/* The member of an initial value; what C gives it where it is not named. */
static int64_t member_of(struct lift *lift, const struct syntax *list, const char *name) {
  int64_t found = 0;
  for (int i = 0; i < list->n_parts; i++) {
    const struct syntax *part = list->parts[i];
    if (part->kind != SYNTAX_DESIGNATED || part->n_parts != 2) {
      lift_fail(lift, "a product's shape is not named member by member");
      return 0;
    }
    if (strcmp(part->parts[0]->text, name) == 0) found = whole(lift, part->parts[1]);
  }
  return found;
}

static void multiply_shaped(struct lift *lift, const struct syntax *node) {
  const struct syntax *first = syntax_bare(node->parts[1]);
  const struct variable *shape =
      first->kind == SYNTAX_UNARY && first->operation == OPERATOR_ADDRESS && first->parts[0]->kind == SYNTAX_VARIABLE
          ? first->parts[0]->variable
          : NULL;
  const struct syntax *list = shape != NULL ? shape->initial : NULL;
  if (list == NULL || list->kind != SYNTAX_LIST || !keeps_its_value(lift, shape)) {
    lift_fail(lift, "a product has a shape that may change");
    return;
  }
  const struct multiplied m = {.y = address(lift, node->parts[2]),
                               .a = address(lift, node->parts[3]),
                               .b = address(lift, node->parts[4]),
                               .rows = member_of(lift, list, "rows"),
                               .columns = member_of(lift, list, "columns"),
                               .depth = member_of(lift, list, "depth"),
                               .y_row = member_of(lift, list, "y_row"),
                               .a_row = member_of(lift, list, "a_row"),
                               .a_column = member_of(lift, list, "a_column"),
                               .b_row = member_of(lift, list, "b_row"),
                               .b_column = member_of(lift, list, "b_column"),
                               .beta = term_number(lift->terms, (double)member_of(lift, list, "accumulate"))};
  const struct type *type = syntax_bare(node->parts[2])->type;
  const int64_t types = member_of(lift, list, "type") + member_of(lift, list, "result"); /* ACCEL_F32 is 0 */
  const bool floats =
      types == 0 && type->element != NULL && type->element->kind == TYPE_REAL && type->element->size == FLOAT;
  if (member_of(lift, list, "batch_rank") != 0 || !floats || m.a_row * m.a_column * m.b_row * m.b_column == 0)
    lift_fail(lift, "a product's shape is not followed");
  multiply(lift, &m);
}

static bool of_arrays(struct lift *lift, const struct syntax *node, struct lifted *result) {
  const char *name = node->function->name;
  if (strcmp(name, "memcpy") == 0 && node->n_parts == 4) {
    copy(lift, node);
    return true;
  }
  if (strcmp(name, "memset") == 0 && node->n_parts == 4) {
    clear(lift, node);
    return true;
  }
  if (strcmp(name, "accel_gemm") == 0 && node->n_parts == 13) {
    gemm(lift, node);
    return true;
  }
  if (strcmp(name, "accel_gemv") == 0 && node->n_parts == 8) {
    gemv(lift, node);
    return true;
  }
  if (strcmp(name, "accel_multiply") == 0 && node->n_parts == 5) {
    multiply_shaped(lift, node);
    return true;
  }
  const bool lanes = strcmp(name, "accel_sum_lanes") == 0, most = strcmp(name, "accel_max") == 0;
  const bool squares = strcmp(name, "accel_sum_of_squares") == 0;
  if (!lanes && !most && !squares) return false;
  const struct lifted at = address(lift, node->parts[1]);
  const int64_t count = lanes ? 16 : whole(lift, node->parts[2]);
  const struct term *scale = squares ? lift_number(lift, node->parts[3]) : NULL;
  *result = number(over(lift, at, count, !most, scale));
  return true;
}

struct lifted lift_call(struct lift *lift, const struct syntax *node) {
  struct lifted result = number(term_number(lift->terms, 0));
  const struct function *function = node->function;
  if (function == NULL) {
    lift_fail(lift, "it calls through a pointer");
    return result;
  }
  if (function->body != NULL && strcmp(function->where.file, lift->tree->file) == 0)
    return lift_own_call(lift, function, node);
  if (function->has_label || function->is_defined != (function->body != NULL))
    lift_fail(lift, "it calls what has another name");
  if (!of_numbers(lift, node, &result) && !of_arrays(lift, node, &result))
    lift_fail(lift, "it calls a function whose meaning is not known");
  return result;
}
