#include "gen/plan/kernels/predict.h"

#include <string.h>

#include "gen/base/text.h"
#include "gen/ir/op.h"
#include "gen/program/choose.h"
#include "gen/program/kernels.h"
#include "gen/program/parts.h"
#include "gen/program/target.h"
#include "gen/tuning/tuning.h"

/* Operations a byte from which on arithmetic bounds a kernel. */
enum { INTENSE = 8 };

struct rates {
  double flops, bytes; /* a second; 0: unknown */
};

static double fastest(const struct tuned *entry) {
  double least = entry->variants.items[0].seconds;
  for (int k = 1; k < entry->variants.count; k++)
    if (entry->variants.items[k].seconds < least) least = entry->variants.items[k].seconds;
  return least;
}

/* The rates of all that the table knows, by their fastest variants. */
static struct rates rates_of(const struct tuning *tuning) {
  double flops = 0, flop_seconds = 0, bytes = 0, byte_seconds = 0;
  for (int i = 0; i < tuning->entries.count; i++) {
    const struct tuned *entry = &tuning->entries.items[i];
    const double least = fastest(entry);
    if (entry->flops > INTENSE * entry->bytes) {
      flops += entry->flops;
      flop_seconds += least;
    } else {
      bytes += entry->bytes;
      byte_seconds += least;
    }
  }
  return (struct rates){flop_seconds > 0 ? flops / flop_seconds : 0, byte_seconds > 0 ? bytes / byte_seconds : 0};
}

static double estimate(struct rates rates, double flops, double bytes) {
  if (flops > INTENSE * bytes) return rates.flops > 0 ? flops / rates.flops : 0;
  return rates.bytes > 0 ? bytes / rates.bytes : 0;
}

/* Adds how often a run of a function executes each kernel. */
static void count_runs(const struct program *program, const struct function *function, double times, double *runs) {
  for (int s = 0; s < function->n_steps; s++) {
    const struct step *step = &function->steps[s];
    if (step->callee != NULL) count_runs(program, step->callee, times * step->node->call->count, runs);
    int kernel = kernel_index(program, step->kernel);
    if (step->callee == NULL && kernel >= 0) runs[kernel] += times;
  }
}

/* ---- Of statements, compared with each other ---- */

const double *kernel_times(const struct program *program) {
  double *times = arena_alloc(program->arena, ((size_t)program->kernels.count + 1) * sizeof *times);
  bool known = program->choices.tuning != NULL && program->choices.tuning->forced < 0;
  const struct rates rates = known ? rates_of(program->choices.tuning) : (struct rates){INTENSE, 1};
  for (int i = 0; i < program->kernels.count; i++) {
    const struct kernel *kernel = program->kernels.items[i];
    const struct tuned *entry =
        known ? tuning_find(program->choices.tuning, kernel->subject, tuned_threads(program), 0) : NULL;
    times[i] = entry != NULL ? tuned_seconds(entry, kernel->variant) : 0;
    if (times[i] <= 0) times[i] = estimate(rates, op_flops(kernel->node), kernel_bytes(kernel));
  }
  return times;
}

double statement_time(const struct program *program, const double *times, const struct step *step) {
  double time = 0;
  for (int s = 0; step->callee != NULL && s < step->callee->n_steps; s++) {
    const struct step *inner = &step->callee->steps[s];
    time += statement_time(program, times, inner) * (inner->callee != NULL ? inner->node->call->count : 1);
  }
  int kernel = kernel_index(program, step->kernel);
  return step->callee == NULL && kernel >= 0 ? times[kernel] : time;
}

double kernel_fraction(const struct program *program) {
  struct prediction step;
  return predict_step(program, &step) && step.seconds > 0 ? step.kernels / step.seconds : 1;
}

/* ---- Of a step ---- */

static void add_kernel(const struct program *program, const struct kernel *kernel, double runs, struct rates rates,
                       struct prediction *to) {
  const struct tuned *entry = tuning_find(program->choices.tuning, kernel->subject, tuned_threads(program), 0);
  double seconds = entry != NULL ? tuned_seconds(entry, kernel->variant) : 0;
  to->n_kernels++;
  to->n_measured += seconds > 0;
  double guess = seconds > 0 ? 0 : estimate(rates, op_flops(kernel->node), kernel_bytes(kernel));
  to->kernels += runs * (seconds + guess);
  if (op_matmul_flops(kernel->node) > 0) to->matmuls += runs * (entry != NULL ? fastest(entry) : guess);
  to->estimated += runs * guess;
}

/* Of sizes that were not measured, the nearest one's rate. */
static void add_part(const struct program *program, const struct step_part *part, struct rates rates,
                     struct prediction *to) {
  const struct tuned *entry = tuning_find(program->choices.tuning, part->subject, tuned_threads(program), part->bytes);
  double seconds = entry != NULL ? tuned_seconds(entry, part->variant) : 0;
  double scale = entry != NULL && entry->bytes > 0 ? part->bytes / entry->bytes : 1;
  double guess = seconds > 0 ? 0 : estimate(rates, 0, part->bytes);
  to->around += part->times * (seconds * scale + guess);
  to->estimated += part->times * guess;
}

bool predict_step(const struct program *program, struct prediction *prediction) {
  *prediction = (struct prediction){0};
  if (program->kind != PROGRAM_TRAIN || !program->target->kernels.in_order || program->choices.tuning == NULL ||
      program->choices.tuning->forced >= 0)
    return false;
  const struct rates rates = rates_of(program->choices.tuning);
  double *runs = arena_alloc(program->arena, ((size_t)program->kernels.count + 1) * sizeof *runs);
  double micro_batches = program->job->accumulation.num_steps;
  count_runs(program, program->entry.forward, micro_batches, runs);
  if (program->entry.backward != NULL) count_runs(program, program->entry.backward, micro_batches, runs);
  if (program->entry.deferred != NULL) count_runs(program, program->entry.deferred, micro_batches, runs);
  for (int i = 0; i < program->kernels.count; i++)
    if (runs[i] > 0) add_kernel(program, program->kernels.items[i], runs[i], rates, prediction);
  struct step_part parts[MAX_PARTS_AROUND];
  int n_parts = step_parts(program, parts);
  for (int i = 0; i < n_parts; i++)
    if (strcmp(parts[i].name, "exchange") != 0) add_part(program, &parts[i], rates, prediction);
  add_part(program, &(struct step_part){step_rest, step_rest, "", 1, 0}, rates, prediction);
  prediction->seconds = prediction->kernels + prediction->around;
  return true;
}

const char *prediction_text(const struct program *program) {
  struct prediction p;
  if (!predict_step(program, &p)) return "";
  struct text text = text_in(program->arena);
  text_printf(&text,
              "predicted %.4g ms a step: kernels %.4g ms, of which %d of %d were measured, around them %.4g ms\n",
              1e3 * p.seconds, 1e3 * p.kernels, p.n_measured, p.n_kernels, 1e3 * p.around);
  if (p.estimated > 0)
    text_printf(&text, "          %.4g ms of it by the rates of what was measured; accel-gen tune measures the rest\n",
                1e3 * p.estimated);
  return text_string(&text);
}

json_t *prediction_json(const struct program *program) {
  struct prediction p;
  if (!predict_step(program, &p)) return NULL;
  return json_pack("{s:f, s:f, s:f, s:f, s:f, s:i, s:i}", "seconds", p.seconds, "kernels", p.kernels, "matmuls",
                   p.matmuls, "around", p.around, "estimated", p.estimated, "measured", p.n_measured, "of",
                   p.n_kernels);
}
