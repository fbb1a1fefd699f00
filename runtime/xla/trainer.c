/* A program's steps: the module, the arrays of its states on the devices, and what steps have left that nobody has read
 * yet. */
#include "runtime/base/dtype.h"
#include "runtime/process/fail.h"
#include "runtime/run/run.h"
#include "runtime/xla/module.h"

#include <stdlib.h>
#include <string.h>

/* Steps that may be under way: the host waits for the oldest of more. Each has its inputs in memory. */
enum { UNDER_WAY = 16 };

/* The first results: the loss, the norm of the gradient. */
enum { MEASURES = 2 };

/* A step whose loss and norm were not read. */
struct begun {
  int64_t at;
  double lr;
  struct xla_buffer *measures[MEASURES];
};

/* An array of a state: what it has of a tensor of the program. Devices have all of it, or a part. */
struct array {
  int state;
  bool divided;
  size_t offset;              /* bytes from the start of the arena */
  struct accel_tensor tensor; /* of its shape and type */
};

static struct trainer {
  const struct accel_program *program; /* with all layers' tensors */
  struct xla *xla;
  struct xla_module step; /* keeps the arrays of the states, which it gives after the measures */
  struct array *arrays;
  int n_arrays;
  struct xla_module evaluation; /* keeps some of them, one for each tensor */
  int evaluated;                /* the first one */
  struct begun begun[UNDER_WAY];
  int n_begun;
  struct accel_report report; /* of the newest step that was read */
} trainer;

/* ---- Start ---- */

/* The slice of a state that a tensor has, by its number; NULL: none. */
static const struct accel_slice *slice_of(const struct accel_state *state, int tensor) {
  for (int i = 0; i < state->n_slices; i++)
    if (state->slices[i].parameter == tensor) return &state->slices[i];
  return NULL;
}

/* What the slice is of the tensor's elements. */
static struct array sliced(const struct accel_state *of, const struct accel_tensor *tensor,
                           const struct accel_slice *slice) {
  struct array array = {.offset = of->offset + (size_t)slice->first * rt_dtype_size(of->dtype), .tensor = *tensor};
  array.tensor.dtype = of->dtype;
  array.tensor.rank = slice->rank;
  memcpy(array.tensor.shape, slice->shape, sizeof array.tensor.shape);
  return array;
}

/* The same of a state that mirrors the weights, whose elements may have fewer bits. */
static struct array mirrored(const struct accel_state *of, const struct accel_tensor *tensor) {
  const size_t size = rt_dtype_size(of->dtype), whole = rt_dtype_size(ACCEL_FLOAT32);
  struct array array = {.offset = of->offset + tensor->offset / whole * size, .tensor = *tensor};
  if (tensor->dtype == ACCEL_FLOAT32) array.tensor.dtype = of->dtype;
  return array;
}

/* Adds the arrays of a state, in the order of the tensors. */
static void list_arrays(int state, bool divided) {
  const struct accel_program *program = trainer.program;
  const struct accel_state *of = &program->states[state];
  for (int i = 0; i < program->n_tensors; i++) {
    const struct accel_slice *slice = of->slices != NULL ? slice_of(of, i) : NULL;
    if (of->slices != NULL && slice == NULL) continue;
    struct array array = slice != NULL ? sliced(of, &program->tensors[i], slice) : mirrored(of, &program->tensors[i]);
    array.state = state;
    array.divided = divided;
    trainer.arrays[trainer.n_arrays++] = array;
  }
}

/* The states of tensors are the first ones; what comes after them belongs to none. */
static void list_all_arrays(const struct accel_xla_module *module) {
  struct problem problem;
  const struct accel_program *program = trainer.program;
  int count = 0;
  while (count < program->n_states &&
         (program->states[count].slices == NULL || program->states[count].slices[0].parameter >= 0))
    count++;
  trainer.arrays = calloc((size_t)count * (size_t)program->n_tensors + 1, sizeof *trainer.arrays);
  if (trainer.arrays == NULL) {
    rt_problem(&problem, "out of memory");
    rt_fail(&problem, 1);
  }
  for (int i = 0; i < count; i++) list_arrays(i, module->devices > 1 && i >= module->whole);
}

void accel_xla_open(struct accel_run *run, const struct accel_xla_module *module) {
  trainer.program = run->program;
  trainer.xla = rt_xla_start(module);
  list_all_arrays(module);
  trainer.step = rt_xla_module(trainer.xla, module, trainer.n_arrays, MEASURES + trainer.n_arrays);
  rt_xla_say_memory(&trainer.step);
}

/* ---- States ---- */

/* Where the host has an array. */
static char *at_host(struct accel_run *run, const struct array *array) {
  return (char *)accel_arena(run) + array->offset;
}

/* Array i on a device. */
static struct xla_buffer **on_device(int device, int i) {
  return &trainer.step.arguments[device * trainer.step.n_arguments + i];
}

static struct xla_buffer *send(int device, const struct array *array, const char *values) {
  if (!array->divided) return rt_xla_send_tensor(trainer.xla, device, &array->tensor, values);
  return rt_xla_send_part(trainer.xla, device, trainer.step.of->devices, &array->tensor, values);
}

void accel_xla_send_states(struct accel_run *run) {
  for (int device = 0; device < trainer.step.of->devices; device++)
    for (int i = 0; i < trainer.n_arrays; i++) {
      struct xla_buffer **buffer = on_device(device, i);
      rt_xla_drop(trainer.xla, *buffer);
      *buffer = send(device, &trainer.arrays[i], at_host(run, &trainer.arrays[i]));
    }
}

/* What is whole is the same on all devices. */
void accel_xla_fetch_states(struct accel_run *run) {
  const int devices = trainer.step.of->devices;
  for (int i = 0; i < trainer.n_arrays; i++) {
    const struct array *array = &trainer.arrays[i];
    char *to = at_host(run, array);
    if (!array->divided) rt_xla_fetch_tensor(trainer.xla, &array->tensor, *on_device(0, i), to);
    for (int device = 0; array->divided && device < devices; device++)
      rt_xla_fetch_part(trainer.xla, device, devices, &array->tensor, *on_device(device, i), to);
  }
}

/* ---- Steps ---- */

static double read_measure(struct xla_buffer *buffer) {
  float value;
  struct problem problem;
  rt_xla_require(rt_xla_get(trainer.xla, buffer, &value, sizeof value, &problem), &problem);
  rt_xla_drop(trainer.xla, buffer);
  return value;
}

/* Reads what the oldest of the steps that are under way has left. */
static void read_oldest(struct accel_run *run) {
  const struct begun step = trainer.begun[0];
  const double loss = read_measure(step.measures[0]), norm = read_measure(step.measures[1]);
  memmove(trainer.begun, trainer.begun + 1, (size_t)--trainer.n_begun * sizeof *trainer.begun);
  accel_require_finite_loss(run, step.at, loss);
  accel_require_finite_norm(run, step.at, norm);
  trainer.report.loss = loss;
  trainer.report.grad_norm = norm;
  trainer.report.lr = step.lr;
}

/* The arrays of a device become those that a step has given. The measures are the same on all: those of the first are
 * kept. */
static void take_arrays(int device) {
  struct xla_module *step = &trainer.step;
  struct xla_buffer **results = step->results + device * step->n_results;
  for (int i = 0; i < trainer.n_arrays; i++) {
    struct xla_buffer **buffer = on_device(device, i);
    rt_xla_drop(trainer.xla, *buffer);
    *buffer = results[MEASURES + i];
  }
  for (int i = 0; i < MEASURES && device > 0; i++) rt_xla_drop(trainer.xla, results[i]);
}

void accel_xla_step(struct accel_run *run, int64_t at, double lr) {
  struct xla_module *step = &trainer.step;
  if (trainer.n_begun == UNDER_WAY) read_oldest(run);
  rt_xla_module_run(step, accel_arena(run));
  for (int device = 0; device < step->of->devices; device++) take_arrays(device);
  struct begun *begun = &trainer.begun[trainer.n_begun++];
  *begun = (struct begun){.at = at, .lr = lr};
  memcpy(begun->measures, step->results, sizeof begun->measures);
}

struct accel_report accel_xla_report(struct accel_run *run, struct accel_report report) {
  trainer.report = trainer.n_begun > 0 ? trainer.report : report;
  while (trainer.n_begun > 0) read_oldest(run);
  return trainer.report;
}

/* ---- Evaluation ---- */

void accel_xla_open_evaluation(struct accel_run *run, const struct accel_xla_module *module, const char *file) {
  const struct accel_program *program = run->program;
  while (strcmp(program->states[trainer.arrays[trainer.evaluated].state].file, file) != 0) trainer.evaluated++;
  trainer.evaluation = rt_xla_module(trainer.xla, module, program->n_tensors, module->n_outputs);
}

void accel_xla_evaluate(struct accel_run *run) {
  const struct xla_module *evaluation = &trainer.evaluation;
  const size_t n_tensors = (size_t)trainer.program->n_tensors;
  for (int device = 0; device < evaluation->of->devices; device++)
    memcpy(evaluation->arguments + device * evaluation->n_arguments, on_device(device, trainer.evaluated),
           n_tensors * sizeof *evaluation->arguments);
  rt_xla_module_run(evaluation, accel_arena(run));
  rt_xla_module_take(evaluation, accel_arena(run));
}

/* ---- End ---- */

void accel_xla_close(void) {
  for (int device = 0; device < trainer.step.of->devices; device++)
    for (int i = 0; i < trainer.n_arrays; i++) rt_xla_drop(trainer.xla, *on_device(device, i));
  rt_xla_module_close(&trainer.evaluation);
  rt_xla_module_close(&trainer.step);
  rt_xla_close(trainer.xla);
  free(trainer.arrays);
}
