#include "tests/xla/compare.h"

#include <math.h>
#include <stdio.h>

static const char *put(struct arena *arena, struct xla *xla, const struct hlo_operand *operand, const double *elements,
                       struct xla_buffer **buffer) {
  const int64_t count = shape_count(operand->shape);
  const bool whole = !dtype_is_float(operand->dtype), is_wide = operand->dtype == DTYPE_INT64;
  float *reals = arena_alloc(arena, (size_t)count * sizeof *reals);
  int32_t *numbers = arena_alloc(arena, (size_t)count * sizeof *numbers);
  int64_t *wide = arena_alloc(arena, (size_t)count * sizeof *wide);
  struct problem problem;
  if (elements == NULL) return arena_printf(arena, "there are no elements of '%s'", operand->name);
  for (int64_t i = 0; i < count; i++) {
    if (whole) numbers[i] = (int32_t)elements[i];
    if (is_wide) wide[i] = (int64_t)elements[i];
    reals[i] = (float)elements[i];
  }
  const enum accel_dtype dtype = is_wide ? ACCEL_INT64 : whole ? ACCEL_INT32 : ACCEL_FLOAT32;
  const void *values = is_wide ? (void *)wide : whole ? (void *)numbers : reals;
  const bool good = rt_xla_put(xla, 0, dtype, operand->shape.dim, operand->shape.rank, values, buffer, &problem);
  return good ? NULL : arena_printf(arena, "%s", problem.what);
}

static const char *check(struct arena *arena, struct xla *xla, const struct hlo_operand *operand,
                         struct xla_buffer *buffer, const struct sides *sides, double tolerance) {
  const int64_t count = shape_count(operand->shape);
  double scale = 1e-2, most = 0;
  const double *expected = sides->result(sides->context, operand->name, &scale);
  const size_t bytes = (size_t)count * (size_t)dtype_size(operand->dtype);
  void *got = arena_alloc(arena, bytes);
  struct problem problem;
  if (expected == NULL) return arena_printf(arena, "the reference has no '%s'", operand->name);
  if (!rt_xla_get(xla, buffer, got, bytes, &problem)) return arena_printf(arena, "%s", problem.what);
  for (int64_t i = 0; i < count; i++) {
    const double number = dtype_is_float(operand->dtype)  ? ((float *)got)[i]
                          : operand->dtype == DTYPE_INT64 ? (double)((int64_t *)got)[i]
                                                          : ((int32_t *)got)[i];
    scale = fmax(scale, fabs(expected[i]));
    const double error = fabs(number - expected[i]);
    if (!(error <= most)) most = error;
  }
  if (most / scale < tolerance) return NULL;
  return arena_printf(arena, "'%s' is %g off", operand->name, most / scale);
}

static const char *run(struct arena *arena, struct xla *xla, struct xla_program *program,
                       const struct hlo_module *module, const struct sides *sides, double tolerance,
                       struct xla_buffer **arguments, struct xla_buffer **results) {
  const char *wrong = NULL;
  struct problem problem;
  if (rt_xla_results(program) != module->results.count) return "main has another number of results";
  for (int i = 0; i < module->arguments.count && wrong == NULL; i++) {
    const struct hlo_operand *operand = &module->arguments.items[i];
    wrong = put(arena, xla, operand, sides->argument(sides->context, operand->name), &arguments[i]);
  }
  if (wrong != NULL) return wrong;
  if (!rt_xla_run(program, arguments, module->arguments.count, results, &problem))
    return arena_printf(arena, "%s", problem.what);
  for (int i = 0; i < module->results.count && wrong == NULL; i++)
    wrong = check(arena, xla, &module->results.items[i], results[i], sides, tolerance);
  return wrong;
}

const char *compare_module(struct arena *arena, struct xla *xla, const struct hlo_module *module,
                           const struct sides *sides, double tolerance) {
  struct xla_buffer **arguments = arena_alloc(arena, ((size_t)module->arguments.count + 1) * sizeof *arguments);
  struct xla_buffer **results = arena_alloc(arena, ((size_t)module->results.count + 1) * sizeof *results);
  struct xla_program *program;
  struct problem problem;
  if (!rt_xla_compile(xla, module->text, 1, NULL, &program, &problem)) return arena_printf(arena, "%s", problem.what);
  const char *wrong = run(arena, xla, program, module, sides, tolerance, arguments, results);
  for (int i = 0; i < module->arguments.count; i++) rt_xla_drop(xla, arguments[i]);
  for (int i = 0; i < module->results.count; i++) rt_xla_drop(xla, results[i]);
  rt_xla_discard(program);
  return wrong;
}

struct xla *open_plugin(void) {
  char path[4096];
  struct xla *xla;
  struct problem problem;
  if (rt_xla_find(NULL, path, sizeof path, &problem) && rt_xla_open(path, 1, &xla, &problem)) return xla;
  printf("%s\n", problem.what);
  return NULL;
}
