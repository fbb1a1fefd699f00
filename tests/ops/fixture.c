#include "tests/ops/fixture.h"

#include <math.h>
#include <string.h>

#include "gen/ir/evaluate.h"
#include "gen/ops/support/support.h"
#include "gen/plan/graph/differentiate.h"

static const int64_t odd_extents[] = {1, 3, 5, 7, 17};

struct fixture *fixture_new(uint64_t seed) {
  struct arena *arena = arena_new();
  struct fixture *fixture = arena_alloc(arena, sizeof *fixture);
  fixture->arena = arena;
  fixture->state = seed;
  fixture->extents = odd_extents;
  fixture->diags = diagnostics_in(arena);
  fixture->builder = builder_new(arena, &fixture->diags);
  builder_begin_entry(fixture->builder, "fixture", (struct location){0}, &fixture->root);
  return fixture;
}

void fixture_free(struct fixture *fixture) {
  arena_free(fixture->arena);
}

/* ---- Random numbers: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) ---- */

static uint64_t next(struct fixture *fixture) {
  uint64_t z = fixture->state += 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

int64_t fixture_random(struct fixture *fixture, int64_t bound) {
  return (int64_t)(next(fixture) % (uint64_t)bound);
}

static double uniform(struct fixture *fixture) {
  return (double)(next(fixture) >> 11) / 9007199254740992.0;
}

int64_t fixture_extent(struct fixture *fixture) {
  return fixture->extents[fixture_random(fixture, 5)];
}

struct shape fixture_shape(struct fixture *fixture, int rank, int64_t most) {
  for (;;) {
    struct shape shape = {.rank = rank};
    for (int i = 0; i < rank; i++) shape.dim[i] = fixture_extent(fixture);
    if (shape_count(shape) <= most) return shape;
  }
}

static double random_element(struct fixture *fixture, enum range range) {
  double x = 2 * uniform(fixture) - 1;
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

static double *random_elements(struct fixture *fixture, struct shape shape, enum range range) {
  double *elements = arena_alloc(fixture->arena, (size_t)shape_count(shape) * sizeof *elements);
  for (int64_t i = 0; i < shape_count(shape); i++) elements[i] = random_element(fixture, range);
  return elements;
}

/* ---- Arguments ---- */

static void push(struct fixture *fixture, struct argument argument) {
  fixture->arguments[fixture->count++] = argument;
}

struct value *fixture_tensor(struct fixture *fixture, struct shape shape, enum range range) {
  const char *name = arena_printf(fixture->arena, "x%d", fixture->parameters.count);
  struct value *value = builder_parameter(fixture->builder, fixture->root, name, shape, (struct initializer){0});
  struct fixture_tensor tensor = {name, shape, random_elements(fixture, shape, range)};
  ARENA_PUSH(fixture->arena, fixture->parameters, tensor);
  push(fixture, (struct argument){.kind = ARGUMENT_TENSOR, .tensor = value});
  return value;
}

void fixture_apart(struct fixture *fixture, struct shape shape) {
  fixture_tensor(fixture, shape, COMB_A);
  double *elements = fixture->parameters.items[fixture->parameters.count - 1].elements;
  int64_t count = shape_count(shape);
  for (int64_t i = 0; i < count; i++) elements[i] += 0.2 / (double)count * (double)i; /* on a comb of 0.2 */
}

static struct value *new_input(struct fixture *fixture, struct shape shape, enum dtype dtype, double *elements) {
  const char *name = arena_printf(fixture->arena, "in%d", fixture->inputs.count);
  struct fixture_tensor tensor = {name, shape, elements};
  ARENA_PUSH(fixture->arena, fixture->inputs, tensor);
  return builder_input(fixture->builder, name, shape, dtype);
}

void fixture_tokens(struct fixture *fixture, struct shape shape, int64_t bound) {
  double *elements = arena_alloc(fixture->arena, (size_t)shape_count(shape) * sizeof *elements);
  for (int64_t i = 0; i < shape_count(shape); i++) elements[i] = (double)fixture_random(fixture, bound);
  push(fixture, (struct argument){.kind = ARGUMENT_TENSOR, .tensor = new_input(fixture, shape, DTYPE_INT32, elements)});
}

struct fixture_tensor *fixture_fixed(struct fixture *fixture, struct shape shape) {
  double *elements = random_elements(fixture, shape, AROUND_ZERO);
  push(fixture,
       (struct argument){.kind = ARGUMENT_TENSOR, .tensor = new_input(fixture, shape, DTYPE_FLOAT32, elements)});
  return &fixture->inputs.items[fixture->inputs.count - 1];
}

void fixture_scope(struct fixture *fixture) {
  push(fixture, (struct argument){.kind = ARGUMENT_SCOPE, .scope = fixture->root});
}

void fixture_int(struct fixture *fixture, int64_t value) {
  push(fixture, (struct argument){.kind = ARGUMENT_INT, .integer = value, .real = (double)value});
}

void fixture_real(struct fixture *fixture, double value) {
  push(fixture, (struct argument){.kind = ARGUMENT_REAL, .real = value});
}

void fixture_string(struct fixture *fixture, const char *value) {
  push(fixture, (struct argument){.kind = ARGUMENT_STRING, .string = value});
}

struct value *fixture_call(struct fixture *fixture, const char *function) {
  return builder_call(fixture->builder, op_function_find(function), fixture->arguments, fixture->count);
}

/* ---- Measuring ---- */

/* The elements of a parameter; one that the function made itself gets random ones at the first request. */
static const double *lookup(void *context, const char *name, const struct parameter *parameter) {
  struct fixture *fixture = context;
  for (int i = 0; i < fixture->parameters.count; i++)
    if (strcmp(fixture->parameters.items[i].name, name) == 0) return fixture->parameters.items[i].elements;
  struct fixture_tensor tensor = {name, parameter->shape, random_elements(fixture, parameter->shape, AROUND_ZERO)};
  for (int64_t i = 0; i < shape_count(tensor.shape) && !dtype_is_float(parameter->dtype); i++)
    tensor.elements[i] = floor(8 * tensor.elements[i]);
  ARENA_PUSH(fixture->arena, fixture->parameters, tensor);
  return tensor.elements;
}

static const double **input_elements(struct fixture *fixture) {
  const double **inputs = arena_alloc(fixture->arena, ((size_t)fixture->inputs.count + 1) * sizeof *inputs);
  for (int i = 0; i < fixture->inputs.count; i++) inputs[i] = fixture->inputs.items[i].elements;
  return inputs;
}

/* The loss under the elements of now. */
static double loss_now(struct fixture *fixture, const struct graph *graph, const double *const *inputs) {
  struct arena *arena = arena_new();
  struct evaluator *evaluator = evaluator_new(arena, graph, lookup, fixture);
  double loss = *evaluated(evaluate_region(evaluator, graph->entry, inputs), graph->entry->results.items[0]);
  arena_free(arena);
  return loss;
}

/* The weighted sum of y: a loss in which every element of y counts otherwise. */
static void close_entry(struct fixture *fixture, struct value *y) {
  struct value *weights = new_input(fixture, y->shape, DTYPE_FLOAT32, random_elements(fixture, y->shape, AROUND_ZERO));
  struct argument product = {.kind = ARGUMENT_TENSOR, .tensor = builder_binary(fixture->builder, "mul", y, weights)};
  struct value *loss = builder_call(fixture->builder, op_function_find("sum_all"), &product, 1);
  builder_end_region(fixture->builder, &loss, 1, NULL);
}

/* The slope of the loss along one element, by central differences of the fourth order. */
static double slope(struct fixture *fixture, const struct graph *graph, const double *const *inputs, double *element) {
  static const double step = 1e-4, steps[] = {1, -1, 2, -2}, factors[] = {8, -8, -1, 1};
  double before = *element, sum = 0;
  for (int i = 0; i < 4; i++) {
    *element = before + steps[i] * step;
    sum += factors[i] * loss_now(fixture, graph, inputs);
  }
  *element = before;
  return sum / (12 * step);
}

/* Compares one gradient with central differences, in at most 48 of its elements. */
static void compare(struct fixture *fixture, struct fixture_result *result, int index, const double *const *inputs) {
  const struct fixture_tensor *tensor = &fixture->parameters.items[index];
  int64_t count = shape_count(tensor->shape);
  for (int64_t n = 0; n < count && n < 48; n++) {
    int64_t i = count <= 48 ? n : fixture_random(fixture, count);
    double expected = slope(fixture, result->graph, inputs, &tensor->elements[i]);
    double gradient = result->gradients[index] != NULL ? result->gradients[index][i] : 0;
    double error = fabs(expected - gradient) / (1 + fabs(expected));
    if (isnan(result->worst) || error <= result->worst) continue;
    result->worst = error;
    result->worst_name = tensor->name;
  }
}

/* Of the inputs of now. */
static struct fixture_result run_backward(struct fixture *fixture, struct value *y, const double *const *inputs) {
  struct region *backward = differentiate(fixture->builder, &(struct seed){.constant = 1});
  struct fixture_result result = {.graph = builder_graph(fixture->builder), .y_value = y};
  struct evaluator *evaluator = evaluator_new(fixture->arena, result.graph, lookup, fixture);
  struct frame_data *frame = evaluate_region(evaluator, result.graph->entry, inputs);
  evaluate_backward(evaluator, backward, frame, NULL);
  result.y = evaluated(frame, y);
  result.frame = frame;
  result.gradients = arena_alloc(fixture->arena, ((size_t)fixture->parameters.count + 1) * sizeof *result.gradients);
  for (int i = 0; i < fixture->parameters.count; i++)
    result.gradients[i] = evaluated_gradient(evaluator, fixture->parameters.items[i].name);
  return result;
}

struct fixture_result fixture_differentiate(struct fixture *fixture, struct value *y) {
  close_entry(fixture, y);
  return run_backward(fixture, y, input_elements(fixture));
}

struct fixture_result fixture_measure(struct fixture *fixture, struct value *y) {
  close_entry(fixture, y);
  const double **inputs = input_elements(fixture);
  struct fixture_result result = run_backward(fixture, y, inputs);
  for (int i = 0; i < fixture->parameters.count; i++) compare(fixture, &result, i, inputs);
  return result;
}

struct frame_data *fixture_run(struct fixture *fixture, struct value *y) {
  builder_end_region(fixture->builder, &y, 1, NULL);
  const struct graph *graph = builder_graph(fixture->builder);
  struct evaluator *evaluator = evaluator_new(fixture->arena, graph, lookup, fixture);
  return evaluate_region(evaluator, graph->entry, input_elements(fixture));
}

/* ---- Printing ---- */

void fixture_print_tensor(FILE *out, const char *name, struct shape shape, const double *elements) {
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

void fixture_print(FILE *out, const struct fixture *fixture, const char *function,
                   const struct fixture_result *result) {
  fprintf(out, "{\"function\": \"%s\", \"arguments\": [", function);
  for (int i = 0; i < fixture->count; i++) {
    if (i > 0) fprintf(out, ", ");
    print_argument(out, &fixture->arguments[i]);
  }
  fprintf(out, "], \"tensors\": {");
  for (int i = 0; i < fixture->parameters.count; i++) {
    fixture_print_tensor(out, fixture->parameters.items[i].name, fixture->parameters.items[i].shape,
                         fixture->parameters.items[i].elements);
    fprintf(out, ", ");
  }
  for (int i = 0; i + 1 < fixture->inputs.count; i++) {
    fixture_print_tensor(out, fixture->inputs.items[i].name, fixture->inputs.items[i].shape,
                         fixture->inputs.items[i].elements);
    fprintf(out, ", ");
  }
  fixture_print_tensor(out, "weights", result->y_value->shape,
                       fixture->inputs.items[fixture->inputs.count - 1].elements);
  fprintf(out, "}, \"gradients\": {");
  const char *separator = "";
  for (int i = 0; i < fixture->parameters.count; i++) {
    if (result->gradients[i] == NULL) continue;
    fprintf(out, "%s", separator);
    fixture_print_tensor(out, fixture->parameters.items[i].name, fixture->parameters.items[i].shape,
                         result->gradients[i]);
    separator = ", ";
  }
  fprintf(out, "}, ");
  fixture_print_tensor(out, "y", result->y_value->shape, result->y);
  fprintf(out, "}\n");
}
