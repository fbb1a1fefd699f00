#include "tests/ops/lab.h"

#include <math.h>
#include <string.h>

#include "gen/ir/evaluate.h"
#include "gen/ops/support/support.h"
#include "gen/plan/graph/differentiate.h"

struct lab *lab_new(uint64_t seed) {
  struct arena *arena = arena_new();
  struct lab *lab = arena_alloc(arena, sizeof *lab);
  lab->arena = arena;
  lab->state = seed;
  lab->diags = diagnostics_in(arena);
  lab->builder = builder_new(arena, &lab->diags);
  builder_begin_entry(lab->builder, "lab", (struct location){0}, &lab->root);
  return lab;
}

void lab_free(struct lab *lab) {
  arena_free(lab->arena);
}

/* ---- Random numbers: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) ---- */

static uint64_t next(struct lab *lab) {
  uint64_t z = lab->state += 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

int64_t lab_random(struct lab *lab, int64_t bound) {
  return (int64_t)(next(lab) % (uint64_t)bound);
}

static double uniform(struct lab *lab) {
  return (double)(next(lab) >> 11) / 9007199254740992.0;
}

int64_t lab_extent(struct lab *lab) {
  static const int64_t extents[] = {1, 3, 5, 7, 17};
  return extents[lab_random(lab, 5)];
}

struct shape lab_shape(struct lab *lab, int rank, int64_t most) {
  for (;;) {
    struct shape shape = {.rank = rank};
    for (int i = 0; i < rank; i++) shape.dim[i] = lab_extent(lab);
    if (shape_count(shape) <= most) return shape;
  }
}

static double random_element(struct lab *lab, enum range range) {
  double x = 2 * uniform(lab) - 1;
  switch (range) {
  case AROUND_ZERO:
    return 1.5 * x;
  case POSITIVE:
    return 1.25 + 0.75 * x;
  case AWAY_FROM_ZERO:
    return x < 0 ? x - 0.05 : x + 0.05;
  case COMB_A:
    return 0.2 * floor(5 * x) + 0.05;
  case COMB_B:
    return 0.2 * floor(5 * x) - 0.05;
  }
  return x;
}

static double *random_elements(struct lab *lab, struct shape shape, enum range range) {
  double *elements = arena_alloc(lab->arena, (size_t)shape_count(shape) * sizeof *elements);
  for (int64_t i = 0; i < shape_count(shape); i++) elements[i] = random_element(lab, range);
  return elements;
}

/* ---- Arguments ---- */

static void push(struct lab *lab, struct argument argument) {
  lab->arguments[lab->count++] = argument;
}

struct value *lab_tensor(struct lab *lab, struct shape shape, enum range range) {
  const char *name = arena_printf(lab->arena, "x%d", lab->parameters.count);
  struct value *value = builder_parameter(lab->builder, lab->root, name, shape, (struct initializer){0});
  struct lab_tensor tensor = {name, shape, random_elements(lab, shape, range)};
  ARENA_PUSH(lab->arena, lab->parameters, tensor);
  push(lab, (struct argument){.kind = ARGUMENT_TENSOR, .tensor = value});
  return value;
}

void lab_apart(struct lab *lab, struct shape shape) {
  lab_tensor(lab, shape, COMB_A);
  double *elements = lab->parameters.items[lab->parameters.count - 1].elements;
  int64_t count = shape_count(shape);
  for (int64_t i = 0; i < count; i++) elements[i] += 0.2 / (double)count * (double)i; /* on a comb of 0.2 */
}

static struct value *new_input(struct lab *lab, struct shape shape, enum dtype dtype, double *elements) {
  const char *name = arena_printf(lab->arena, "in%d", lab->inputs.count);
  struct lab_tensor tensor = {name, shape, elements};
  ARENA_PUSH(lab->arena, lab->inputs, tensor);
  return builder_input(lab->builder, name, shape, dtype);
}

void lab_tokens(struct lab *lab, struct shape shape, int64_t bound) {
  double *elements = arena_alloc(lab->arena, (size_t)shape_count(shape) * sizeof *elements);
  for (int64_t i = 0; i < shape_count(shape); i++) elements[i] = (double)lab_random(lab, bound);
  push(lab, (struct argument){.kind = ARGUMENT_TENSOR, .tensor = new_input(lab, shape, DTYPE_INT32, elements)});
}

struct lab_tensor *lab_fixed(struct lab *lab, struct shape shape) {
  double *elements = random_elements(lab, shape, AROUND_ZERO);
  push(lab, (struct argument){.kind = ARGUMENT_TENSOR, .tensor = new_input(lab, shape, DTYPE_FLOAT32, elements)});
  return &lab->inputs.items[lab->inputs.count - 1];
}

void lab_scope(struct lab *lab) {
  push(lab, (struct argument){.kind = ARGUMENT_SCOPE, .scope = lab->root});
}

void lab_int(struct lab *lab, int64_t value) {
  push(lab, (struct argument){.kind = ARGUMENT_INT, .integer = value, .real = (double)value});
}

void lab_real(struct lab *lab, double value) {
  push(lab, (struct argument){.kind = ARGUMENT_REAL, .real = value});
}

void lab_string(struct lab *lab, const char *value) {
  push(lab, (struct argument){.kind = ARGUMENT_STRING, .string = value});
}

struct value *lab_call(struct lab *lab, const char *function) {
  return builder_call(lab->builder, op_function_find(function), lab->arguments, lab->count);
}

/* ---- Measuring ---- */

/* The elements of a parameter; one that the function made itself gets random ones at the first request. */
static const double *lookup(void *context, const char *name, const struct parameter *parameter) {
  struct lab *lab = context;
  for (int i = 0; i < lab->parameters.count; i++)
    if (strcmp(lab->parameters.items[i].name, name) == 0) return lab->parameters.items[i].elements;
  struct lab_tensor tensor = {name, parameter->shape, random_elements(lab, parameter->shape, AROUND_ZERO)};
  ARENA_PUSH(lab->arena, lab->parameters, tensor);
  return tensor.elements;
}

static const double **input_elements(struct lab *lab) {
  const double **inputs = arena_alloc(lab->arena, ((size_t)lab->inputs.count + 1) * sizeof *inputs);
  for (int i = 0; i < lab->inputs.count; i++) inputs[i] = lab->inputs.items[i].elements;
  return inputs;
}

/* The loss under the elements of now. */
static double loss_now(struct lab *lab, const struct graph *graph, const double *const *inputs) {
  struct arena *arena = arena_new();
  struct evaluator *evaluator = evaluator_new(arena, graph, lookup, lab);
  double loss = *evaluated(evaluate_region(evaluator, graph->entry, inputs), graph->entry->results.items[0]);
  arena_free(arena);
  return loss;
}

/* The weighted sum of y: a loss in which every element of y counts otherwise. */
static void close_entry(struct lab *lab, struct value *y) {
  struct value *weights = new_input(lab, y->shape, DTYPE_FLOAT32, random_elements(lab, y->shape, AROUND_ZERO));
  struct argument product = {.kind = ARGUMENT_TENSOR, .tensor = builder_binary(lab->builder, "mul", y, weights)};
  struct value *loss = builder_call(lab->builder, op_function_find("sum_all"), &product, 1);
  builder_end_region(lab->builder, &loss, 1, NULL);
}

/* The slope of the loss along one element, by central differences of the fourth order. */
static double slope(struct lab *lab, const struct graph *graph, const double *const *inputs, double *element) {
  static const double step = 1e-4, steps[] = {1, -1, 2, -2}, factors[] = {8, -8, -1, 1};
  double kept = *element, sum = 0;
  for (int i = 0; i < 4; i++) {
    *element = kept + steps[i] * step;
    sum += factors[i] * loss_now(lab, graph, inputs);
  }
  *element = kept;
  return sum / (12 * step);
}

/* Compares one gradient with central differences, in at most 48 of its elements. */
static void compare(struct lab *lab, struct lab_result *result, int index, const double *const *inputs) {
  const struct lab_tensor *tensor = &lab->parameters.items[index];
  int64_t count = shape_count(tensor->shape);
  for (int64_t n = 0; n < count && n < 48; n++) {
    int64_t i = count <= 48 ? n : lab_random(lab, count);
    double expected = slope(lab, result->graph, inputs, &tensor->elements[i]);
    double gradient = result->gradients[index] != NULL ? result->gradients[index][i] : 0;
    double error = fabs(expected - gradient) / (1 + fabs(expected));
    if (isnan(result->worst) || error <= result->worst) continue;
    result->worst = error;
    result->worst_name = tensor->name;
  }
}

struct lab_result lab_measure(struct lab *lab, struct value *y) {
  close_entry(lab, y);
  struct region *backward = differentiate(lab->builder, &(struct seed){.constant = 1});
  struct lab_result result = {.graph = builder_graph(lab->builder), .y_value = y};
  struct evaluator *evaluator = evaluator_new(lab->arena, result.graph, lookup, lab);
  const double **inputs = input_elements(lab);
  struct frame_data *frame = evaluate_region(evaluator, result.graph->entry, inputs);
  evaluate_backward(evaluator, backward, frame, NULL);
  result.y = evaluated(frame, y);
  result.gradients = arena_alloc(lab->arena, ((size_t)lab->parameters.count + 1) * sizeof *result.gradients);
  for (int i = 0; i < lab->parameters.count; i++)
    result.gradients[i] = evaluated_gradient(evaluator, lab->parameters.items[i].name);
  for (int i = 0; i < lab->parameters.count; i++) compare(lab, &result, i, inputs);
  return result;
}

/* ---- Printing ---- */

static void print_tensor(FILE *out, const char *name, struct shape shape, const double *elements) {
  fprintf(out, "\"%s\": {\"shape\": [", name);
  for (int i = 0; i < shape.rank; i++) fprintf(out, "%s%lld", i > 0 ? ", " : "", (long long)shape.dim[i]);
  fprintf(out, "], \"elements\": [");
  for (int64_t i = 0; i < shape_count(shape); i++) fprintf(out, "%s%.17g", i > 0 ? ", " : "", elements[i]);
  fprintf(out, "]}");
}

static void print_argument(FILE *out, const struct argument *argument) {
  switch (argument->kind) {
  case ARGUMENT_TENSOR:
    fprintf(out, "\"%s\"", argument->tensor->name);
    break;
  case ARGUMENT_INT:
    fprintf(out, "%lld", (long long)argument->integer);
    break;
  case ARGUMENT_STRING:
    fprintf(out, "\"%s\"", argument->string);
    break;
  case ARGUMENT_REAL:
    fprintf(out, "%.17g", argument->real);
    break;
  default:
    fprintf(out, "null");
    break;
  }
}

void lab_print(FILE *out, const struct lab *lab, const char *function, const struct lab_result *result) {
  fprintf(out, "{\"function\": \"%s\", \"arguments\": [", function);
  for (int i = 0; i < lab->count; i++) {
    if (i > 0) fprintf(out, ", ");
    print_argument(out, &lab->arguments[i]);
  }
  fprintf(out, "], \"tensors\": {");
  for (int i = 0; i < lab->parameters.count; i++) {
    print_tensor(out, lab->parameters.items[i].name, lab->parameters.items[i].shape, lab->parameters.items[i].elements);
    fprintf(out, ", ");
  }
  for (int i = 0; i + 1 < lab->inputs.count; i++) {
    print_tensor(out, lab->inputs.items[i].name, lab->inputs.items[i].shape, lab->inputs.items[i].elements);
    fprintf(out, ", ");
  }
  print_tensor(out, "weights", result->y_value->shape, lab->inputs.items[lab->inputs.count - 1].elements);
  fprintf(out, "}, \"gradients\": {");
  const char *separator = "";
  for (int i = 0; i < lab->parameters.count; i++) {
    if (result->gradients[i] == NULL) continue;
    fprintf(out, "%s", separator);
    print_tensor(out, lab->parameters.items[i].name, lab->parameters.items[i].shape, result->gradients[i]);
    separator = ", ";
  }
  fprintf(out, "}, ");
  print_tensor(out, "y", result->y_value->shape, result->y);
  fprintf(out, "}\n");
}
