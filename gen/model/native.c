/* Natives: the functions that the reader evaluates itself. They make no tensors: scopes, shapes, and math.h. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "gen/model/evaluate.h"

/* ---- Scopes ---- */

/* Names of parameters reach files and programs: letters, digits, '_' and '-', parts separated by dots. */
void evaluate_check_name(struct evaluator *evaluator, const char *name, struct location where) {
  bool good = name[0] != '\0' && name[0] != '.' && strlen(name) < 256;
  for (const char *at = name; *at != '\0'; at++) {
    if (*at == '.')
      good = good && at[1] != '.' && at[1] != '\0';
    else
      good = good && (isalnum((unsigned char)*at) || *at == '_' || *at == '-');
  }
  if (!good)
    evaluate_fail(evaluator, where, "letters, digits, '_' and '-', with dots between parts: \"attn.c_proj\"",
                  "\"%s\" is not a name for a scope or parameter", name);
}

void evaluate_check_parameter_name(struct evaluator *evaluator, const char *name, struct location where) {
  evaluate_check_name(evaluator, name, where);
  if (strcmp(name, "__metadata__") == 0)
    evaluate_fail(evaluator, where, "give the parameter another name",
                  "\"%s\" is not a name for a parameter: files of safetensors reserve it for their metadata", name);
}

static struct cvalue call_at(struct evaluator *evaluator, const struct native *native, const struct syntax *node,
                             const struct cvalue *arguments) {
  (void)native;
  evaluate_check_name(evaluator, arguments[1].string, node->parts[2]->where);
  return cvalue_scope(builder_scope(evaluator->builder, arguments[0].scope, arguments[1].string));
}

static struct cvalue call_nth(struct evaluator *evaluator, const struct native *native, const struct syntax *node,
                              const struct cvalue *arguments) {
  (void)native;
  evaluate_check_name(evaluator, arguments[1].string, node->parts[2]->where);
  if (arguments[2].integer < 0)
    evaluate_fail(evaluator, node->parts[3]->where, NULL, "scopes count from 0, not from %lld",
                  (long long)arguments[2].integer);
  const char *name = arena_printf(evaluator->arena, "%s.%lld", arguments[1].string, (long long)arguments[2].integer);
  return cvalue_scope(builder_scope(evaluator->builder, arguments[0].scope, name));
}

static struct cvalue call_init_sinusoid(struct evaluator *evaluator, const struct native *native,
                                        const struct syntax *node, const struct cvalue *arguments) {
  struct initializer init = {.kind = INIT_SINUSOID, .a = arguments[1].real};
  if (!(init.a > 0) || isinf(init.a))
    evaluate_fail(evaluator, node->parts[2]->where, NULL, "'%s' needs a finite ratio above 0, not %g", native->name,
                  init.a);
  if (node->n_parts == 4) {
    init.b = (double)arguments[2].integer;
    if (init.b < 1)
      evaluate_fail(evaluator, node->parts[3]->where, NULL, "a row of the grid has at least one position, not %g",
                    init.b);
  }
  return cvalue_scope(builder_scope_init(evaluator->builder, arguments[0].scope, init));
}

static struct cvalue call_init(struct evaluator *evaluator, const struct native *native, const struct syntax *node,
                               const struct cvalue *arguments) {
  struct initializer init = {.kind = INIT_ZEROS};
  if (strcmp(native->name, "init_ones") == 0) init.kind = INIT_ONES;
  if (strcmp(native->name, "init_constant") == 0) {
    const double value = arguments[1].real;
    if (!isfinite(value))
      evaluate_fail(evaluator, node->parts[2]->where, NULL, "'init_constant' needs a finite number, not %g", value);
    init = (struct initializer){INIT_UNIFORM, value, value};
  } else if (node->n_parts == 3) {
    double size = arguments[1].real;
    if (!(size >= 0) || isinf(size))
      evaluate_fail(evaluator, node->parts[2]->where, NULL, "'%s' needs a finite number that is not negative, not %g",
                    native->name, size);
    bool normal = strcmp(native->name, "init_normal") == 0;
    init = normal ? (struct initializer){INIT_NORMAL, 0, size} : (struct initializer){INIT_UNIFORM, -size, size};
  }
  return cvalue_scope(builder_scope_init(evaluator->builder, arguments[0].scope, init));
}

/* ---- Shapes ---- */

static struct cvalue call_dim(struct evaluator *evaluator, const struct native *native, const struct syntax *node,
                              const struct cvalue *arguments) {
  (void)native;
  struct shape shape = arguments[0].tensor->shape;
  int axis = shape_axis(shape, arguments[1].integer);
  if (axis < 0)
    evaluate_fail(evaluator, node->parts[2]->where, NULL, "there is no axis %lld: the tensor has shape %s",
                  (long long)arguments[1].integer, shape_text(evaluator->arena, shape));
  return convert_value(evaluator,
                       (struct cvalue){.kind = CVALUE_INTEGER,
                                       .type = &(const struct type){TYPE_INTEGER, .size = 8, .is_signed = true},
                                       .integer = shape.dim[axis]},
                       &type_int, node->where);
}

static struct cvalue call_rank(struct evaluator *evaluator, const struct native *native, const struct syntax *node,
                               const struct cvalue *arguments) {
  (void)evaluator, (void)native, (void)node;
  return cvalue_integer(arguments[0].tensor->shape.rank);
}

/* ---- The C library ---- */

static struct cvalue call_strcmp(struct evaluator *evaluator, const struct native *native, const struct syntax *node,
                                 const struct cvalue *arguments) {
  (void)native;
  for (int i = 0; i < 2; i++)
    if (arguments[i].kind != CVALUE_STRING)
      evaluate_fail(evaluator, node->parts[i + 1]->where, NULL, "strcmp needs strings, not %s",
                    cvalue_text(evaluator->arena, arguments[i]));
  int order = strcmp(arguments[0].string, arguments[1].string);
  return cvalue_integer((order > 0) - (order < 0));
}

static struct cvalue call_abs(struct evaluator *evaluator, const struct native *native, const struct syntax *node,
                              const struct cvalue *arguments) {
  (void)native;
  if (arguments[0].integer >= 0) return arguments[0];
  return evaluate_sign(evaluator, OPERATOR_MINUS, arguments[0], node->where);
}

static struct cvalue call_math(struct evaluator *evaluator, const struct native *native, const struct syntax *node,
                               const struct cvalue *arguments) {
  int expected = native->unary != NULL ? 1 : 2;
  const char *name = node->function->name;
  for (int i = 0; i < expected; i++)
    if (node->n_parts != expected + 1 || arguments[i].kind != CVALUE_REAL)
      evaluate_fail(evaluator, node->where, NULL, "a model cannot call this '%s': include <math.h>", name);
  double a = arguments[0].real;
  double value = native->unary != NULL ? native->unary(a) : native->binary(a, arguments[1].real);
  if (!isfinite(value))
    evaluate_fail(evaluator, node->where, NULL, "the result of %s(%s%s) is not a finite number", name,
                  cvalue_text(evaluator->arena, arguments[0]),
                  expected == 1 ? "" : arena_printf(evaluator->arena, ", %g", arguments[1].real));
  return convert_value(evaluator, cvalue_real(value), node->type, node->where);
}

/* ---- The table ---- */

#define UNARY(name) {#name, call_math, name, NULL}
#define BINARY(name) {#name, call_math, NULL, name}

const struct native natives[] = {
    {"at", call_at, NULL, NULL},
    {"nth", call_nth, NULL, NULL},
    {"init_normal", call_init, NULL, NULL},
    {"init_uniform", call_init, NULL, NULL},
    {"init_zeros", call_init, NULL, NULL},
    {"init_ones", call_init, NULL, NULL},
    {"init_constant", call_init, NULL, NULL},
    {"init_sinusoid", call_init_sinusoid, NULL, NULL},
    {"init_sinusoid_grid", call_init_sinusoid, NULL, NULL},
    {"dim", call_dim, NULL, NULL},
    {"rank", call_rank, NULL, NULL},
    {"strcmp", call_strcmp, NULL, NULL},
    {"abs", call_abs, NULL, NULL},
    {"labs", call_abs, NULL, NULL},
    UNARY(sqrt),
    UNARY(cbrt),
    UNARY(exp),
    UNARY(exp2),
    UNARY(expm1),
    UNARY(log),
    UNARY(log2),
    UNARY(log10),
    UNARY(log1p),
    UNARY(fabs),
    UNARY(floor),
    UNARY(ceil),
    UNARY(round),
    UNARY(trunc),
    UNARY(sin),
    UNARY(cos),
    UNARY(tan),
    UNARY(asin),
    UNARY(acos),
    UNARY(atan),
    UNARY(sinh),
    UNARY(cosh),
    UNARY(tanh),
    UNARY(erf),
    BINARY(pow),
    BINARY(fmin),
    BINARY(fmax),
    BINARY(fmod),
    BINARY(atan2),
    BINARY(hypot),
};

const int native_count = sizeof natives / sizeof natives[0];

/* Whether a name is a math function's, or that of its float form: "sqrtf". */
static bool names_math(const struct native *native, const char *name) {
  size_t length = strlen(native->name);
  return native->call == call_math && strncmp(native->name, name, length) == 0 && strcmp(name + length, "f") == 0;
}

const struct native *native_find(const char *name) {
  for (int i = 0; i < native_count; i++)
    if (strcmp(natives[i].name, name) == 0 || names_math(&natives[i], name)) return &natives[i];
  return NULL;
}
