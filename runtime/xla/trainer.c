/* A program's steps: the module, the arrays of its states on the device, and what steps have left that nobody has read
 * yet. */
#include "include/accel/xla.h"
#include "runtime/base/dtype.h"
#include "runtime/base/terminal.h"
#include "runtime/process/fail.h"
#include "runtime/run/run.h"
#include "runtime/xla/xla.h"

#include <stdio.h>
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

/* An array of a state: a tensor of the program, or what the state has of it. */
struct array {
  int state;
  size_t offset; /* bytes from the start of the arena */
  const struct accel_tensor *tensor;
};

static struct trainer {
  const struct accel_program *program; /* with all layers' tensors */
  const struct accel_xla_module *module;
  struct xla *xla;
  struct xla_program *compiled;
  struct xla_buffer **arguments, **results; /* the arrays of the states first, in both after the measures */
  struct array *arrays;
  int n_arrays;
  struct evaluation {
    const struct accel_xla_module *module;
    struct xla_program *compiled;
    struct xla_buffer **arguments, **results;
    int first; /* of the arrays that it takes, one for each tensor */
  } evaluation;
  struct begun begun[UNDER_WAY];
  int n_begun;
  struct accel_report report; /* of the newest step that was read */
} trainer;

static void require(bool good, const struct problem *problem) {
  if (!good) rt_fail(problem, 1);
}

/* ---- Start ---- */

static char *join(const struct accel_xla_module *module) {
  size_t size = 1;
  for (size_t i = 0; i < module->n_pieces; i++) size += strlen(module->pieces[i]);
  char *text = malloc(size), *at = text;
  for (size_t i = 0; text != NULL && i < module->n_pieces; i++) {
    const size_t length = strlen(module->pieces[i]);
    memcpy(at, module->pieces[i], length);
    at += length;
  }
  if (text != NULL) *at = '\0';
  return text;
}

/* The folder of compiled modules; NULL: there is none. */
static const char *kept_folder(char *path, size_t size) {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  int length = -1;
  if (cache != NULL && cache[0] == '/')
    length = snprintf(path, size, "%s/accel-gen/xla", cache);
  else if (home != NULL && home[0] == '/')
    length = snprintf(path, size, "%s/.cache/accel-gen/xla", home);
  return length >= 0 && (size_t)length < size ? path : NULL;
}

static double mebibytes(int64_t bytes) {
  return (double)bytes / (1024.0 * 1024.0);
}

static void say_memory(void) {
  struct xla_memory memory;
  struct problem problem;
  const struct xla_facts facts = rt_xla_facts(trainer.xla);
  if (!rt_xla_memory(trainer.compiled, &memory, &problem)) return;
  rt_print(stdout, "XLA       %s, PJRT %d.%d: arguments %.1f MiB, of which %.1f are donated, temporary %.1f%s\n",
           facts.platform, facts.major, facts.minor, mebibytes(memory.arguments), mebibytes(memory.reused),
           mebibytes(memory.temporary), rt_xla_was_kept(trainer.compiled) ? "; compiled before" : "");
}

static void compile(const struct accel_xla_module *module, struct xla_program **compiled) {
  char folder[4096], *text = join(module);
  struct problem problem;
  require(text != NULL || rt_problem(&problem, "out of memory"), &problem);
  const bool good = rt_xla_compile(trainer.xla, text, kept_folder(folder, sizeof folder), compiled, &problem);
  free(text);
  require(good, &problem);
}

static void expect_results(const struct xla_program *compiled, int expected) {
  struct problem problem;
  const int results = rt_xla_results(compiled);
  if (results == expected) return;
  rt_problem(&problem, "the module gives %d arrays, and the program has %d", results, expected);
  rt_fail(&problem, 1);
}

static struct xla_buffer **new_buffers(int count) {
  struct problem problem;
  struct xla_buffer **buffers = calloc((size_t)count + 1, sizeof *buffers);
  require(buffers != NULL || rt_problem(&problem, "out of memory"), &problem);
  return buffers;
}

/* The slice of a state that a tensor has, by its number; NULL: none. */
static const struct accel_slice *slice_of(const struct accel_state *state, int tensor) {
  for (int i = 0; i < state->n_slices; i++)
    if (state->slices[i].parameter == tensor) return &state->slices[i];
  return NULL;
}

/* Adds the arrays of a state, in the order of the tensors. */
static void list_arrays(int state) {
  const struct accel_program *program = trainer.program;
  const struct accel_state *of = &program->states[state];
  for (int i = 0; i < program->n_tensors; i++) {
    const struct accel_slice *slice = of->slices != NULL ? slice_of(of, i) : NULL;
    if (of->slices != NULL && slice == NULL) continue;
    const size_t offset = slice != NULL ? (size_t)slice->first * rt_dtype_size(of->dtype) : program->tensors[i].offset;
    trainer.arrays[trainer.n_arrays++] =
        (struct array){.state = state, .offset = of->offset + offset, .tensor = &program->tensors[i]};
  }
}

/* The states of tensors are the first ones; what comes after them belongs to none. */
static void list_all_arrays(void) {
  struct problem problem;
  const struct accel_program *program = trainer.program;
  int count = 0;
  while (count < program->n_states &&
         (program->states[count].slices == NULL || program->states[count].slices[0].parameter >= 0))
    count++;
  trainer.arrays = calloc((size_t)count * (size_t)program->n_tensors + 1, sizeof *trainer.arrays);
  require(trainer.arrays != NULL || rt_problem(&problem, "out of memory"), &problem);
  for (int i = 0; i < count; i++) list_arrays(i);
}

void accel_xla_open(struct accel_run *run, const struct accel_xla_module *module) {
  char path[4096];
  struct problem problem;
  trainer.module = module;
  trainer.program = run->program;
  require(rt_xla_find(NULL, path, sizeof path, &problem) && rt_xla_open(path, &trainer.xla, &problem), &problem);
  compile(module, &trainer.compiled);
  list_all_arrays();
  expect_results(trainer.compiled, MEASURES + trainer.n_arrays);
  trainer.arguments = new_buffers(trainer.n_arrays + module->n_inputs);
  trainer.results = new_buffers(MEASURES + trainer.n_arrays);
  say_memory();
}

/* ---- States ---- */

void accel_xla_send_states(struct accel_run *run) {
  struct problem problem;
  for (int i = 0; i < trainer.n_arrays; i++) {
    const struct accel_tensor *tensor = trainer.arrays[i].tensor;
    const char *from = (const char *)accel_arena(run) + trainer.arrays[i].offset;
    rt_xla_drop(trainer.xla, trainer.arguments[i]);
    require(rt_xla_put(trainer.xla, tensor->dtype, tensor->shape, tensor->rank, from, &trainer.arguments[i], &problem),
            &problem);
  }
}

void accel_xla_fetch_states(struct accel_run *run) {
  struct problem problem;
  for (int i = 0; i < trainer.n_arrays; i++) {
    const struct accel_tensor *tensor = trainer.arrays[i].tensor;
    char *to = (char *)accel_arena(run) + trainer.arrays[i].offset;
    size_t bytes = rt_dtype_size(tensor->dtype);
    for (int k = 0; k < tensor->rank; k++) bytes *= (size_t)tensor->shape[k];
    require(rt_xla_get(trainer.xla, trainer.arguments[i], to, bytes, &problem), &problem);
  }
}

/* ---- Steps ---- */

static double read_measure(struct xla_buffer *buffer) {
  float value;
  struct problem problem;
  require(rt_xla_get(trainer.xla, buffer, &value, sizeof value, &problem), &problem);
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

/* Copies what a module takes anew, to be its arguments from `to` on. */
static void put_inputs(struct accel_run *run, const struct accel_xla_module *module, struct xla_buffer **to) {
  struct problem problem;
  for (int i = 0; i < module->n_inputs; i++) {
    const struct accel_xla_input *input = &module->inputs[i];
    const char *from = (const char *)accel_arena(run) + input->offset;
    require(rt_xla_put(trainer.xla, input->dtype, input->shape, input->rank, from, &to[i], &problem), &problem);
  }
}

void accel_xla_step(struct accel_run *run, int64_t at, double lr) {
  struct problem problem;
  const int n_arguments = trainer.n_arrays + trainer.module->n_inputs;
  if (trainer.n_begun == UNDER_WAY) read_oldest(run);
  put_inputs(run, trainer.module, trainer.arguments + trainer.n_arrays);
  require(rt_xla_run(trainer.compiled, trainer.arguments, n_arguments, trainer.results, &problem), &problem);
  for (int i = 0; i < n_arguments; i++) {
    rt_xla_drop(trainer.xla, trainer.arguments[i]);
    trainer.arguments[i] = i < trainer.n_arrays ? trainer.results[MEASURES + i] : NULL;
  }
  struct begun *begun = &trainer.begun[trainer.n_begun++];
  *begun = (struct begun){.at = at, .lr = lr};
  memcpy(begun->measures, trainer.results, sizeof begun->measures);
}

struct accel_report accel_xla_report(struct accel_run *run, struct accel_report report) {
  trainer.report = trainer.n_begun > 0 ? trainer.report : report;
  while (trainer.n_begun > 0) read_oldest(run);
  return trainer.report;
}

/* ---- Evaluation ---- */

void accel_xla_open_evaluation(struct accel_run *run, const struct accel_xla_module *module, const char *file) {
  struct evaluation *evaluation = &trainer.evaluation;
  const struct accel_program *program = run->program;
  evaluation->module = module;
  while (strcmp(program->states[trainer.arrays[evaluation->first].state].file, file) != 0) evaluation->first++;
  compile(module, &evaluation->compiled);
  expect_results(evaluation->compiled, module->n_outputs);
  evaluation->arguments = new_buffers(program->n_tensors + module->n_inputs);
  evaluation->results = new_buffers(module->n_outputs);
}

void accel_xla_evaluate(struct accel_run *run) {
  const struct evaluation *evaluation = &trainer.evaluation;
  const struct accel_xla_module *module = evaluation->module;
  const int n_tensors = trainer.program->n_tensors;
  struct problem problem;
  memcpy(evaluation->arguments, trainer.arguments + evaluation->first,
         (size_t)n_tensors * sizeof *evaluation->arguments);
  put_inputs(run, module, evaluation->arguments + n_tensors);
  require(rt_xla_run(evaluation->compiled, evaluation->arguments, n_tensors + module->n_inputs, evaluation->results,
                     &problem),
          &problem);
  for (int i = 0; i < module->n_inputs; i++) rt_xla_drop(trainer.xla, evaluation->arguments[n_tensors + i]);
  for (int i = 0; i < module->n_outputs; i++) {
    const struct accel_xla_output *output = &module->outputs[i];
    char *to = (char *)accel_arena(run) + output->offset;
    require(rt_xla_get(trainer.xla, evaluation->results[i], to, output->bytes, &problem), &problem);
    rt_xla_drop(trainer.xla, evaluation->results[i]);
  }
}

/* ---- End ---- */

void accel_xla_close(void) {
  for (int i = 0; i < trainer.n_arrays; i++) rt_xla_drop(trainer.xla, trainer.arguments[i]);
  if (trainer.evaluation.compiled != NULL) rt_xla_discard(trainer.evaluation.compiled);
  rt_xla_discard(trainer.compiled);
  rt_xla_close(trainer.xla);
  free(trainer.arrays);
  free(trainer.arguments);
  free(trainer.results);
  free(trainer.evaluation.arguments);
  free(trainer.evaluation.results);
}
