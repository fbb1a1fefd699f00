/* The optimizer and its schedule as values. */
#include "gen/emit/values.h"
#include "gen/plan/border.h"
#include "gen/plan/optimizers.h"
#include "gen/plan/schedule.h"

static struct jinja_value spans_value(const struct program *program) {
  struct arena *arena = program->arena;
  struct jinja_value list = jinja_list(arena);
  for (int i = 0; i < program->n_spans; i++) {
    struct jinja_value value = jinja_map(arena);
    set_comment(arena, value, "name", program->spans[i].name);
    set_int(arena, value, "first", program->spans[i].first);
    set_int(arena, value, "end", program->spans[i].end);
    set_real(arena, value, "lr_scale", program->spans[i].lr_scale);
    set_real(arena, value, "decay", program->spans[i].weight_decay);
    jinja_push(arena, list, value);
  }
  return list;
}

/* Whether any weight decays. */
static bool decays(const struct program *program) {
  for (int i = 0; i < program->n_spans; i++)
    if (program->spans[i].weight_decay > 0) return true;
  return program->n_spans == 0 && program->job->optimizer.weight_decay > 0;
}

struct jinja_value optimizer_value(const struct program *program) {
  struct arena *arena = program->arena;
  const struct job *job = program->job;
  struct jinja_value value = jinja_map(arena);
  set_text(arena, value, "name", job_optimizer(job)->name);
  set_real(arena, value, "lr", job->optimizer.lr);
  set_real(arena, value, "beta1", job->optimizer.beta1);
  set_real(arena, value, "beta2", job->optimizer.beta2);
  set_real(arena, value, "eps", job->optimizer.eps);
  set_bool(arena, value, "decays", decays(program));
  set_real(arena, value, "decay", job->optimizer.weight_decay);
  if (program->n_spans > 0) set_text(arena, value, "decay", "span->decay");
  jinja_set(arena, value, "spans", spans_value(program));
  set_real(arena, value, "momentum", job->optimizer.momentum);
  set_real(arena, value, "dampening", job->optimizer.dampening);
  set_bool(arena, value, "nesterov", job->optimizer.nesterov);
  set_real(arena, value, "alpha", job->optimizer.alpha);
  set_bool(arena, value, "centered", job->optimizer.centered);
  set_real(arena, value, "momentum_decay", job->optimizer.momentum_decay);
  set_real(arena, value, "clip_grad_norm", job->optimizer.clip_grad_norm);
  set_text(arena, value, "norm_type", job->optimizer.norm_type == NORM_INF ? "inf" : "2");
  set_real(arena, value, "clip_grad_value", job->optimizer.clip_grad_value);
  set_bool(arena, value, "scales_gradient", job_border(job).factor);
  set_bool(arena, value, "unscales", job_border(job).unscales);
  set_bool(arena, value, "coupled", job_optimizer(job)->coupled);
  set_bool(arena, value, "counts_steps", optimizer_counts_steps(job));
  set_int(arena, value, "states", optimizer_states(job));
  return value;
}

struct jinja_value schedule_value(struct arena *arena, const struct job *job) {
  static const char *const names[] = {"constant",   "linear",       "cosine",      "cosine_with_restarts",
                                      "polynomial", "inverse_sqrt", "exponential", "step",
                                      "one_cycle",  "wsd"};
  static const char *const anneals[] = {"cosine", "linear"}, *const decays[] = {"linear", "cosine", "sqrt"};
  struct jinja_value value = jinja_map(arena);
  struct schedule_steps steps = schedule_steps(job);
  set_text(arena, value, "name", names[job->schedule.name]);
  set_int(arena, value, "warmup_steps", steps.warmup);
  set_int(arena, value, "stable_until", steps.stable);
  set_int(arena, value, "decay_steps", steps.decay);
  set_real(arena, value, "min_lr", job->schedule.min_lr);
  set_int(arena, value, "cycles", job->schedule.cycles);
  set_real(arena, value, "power", job->schedule.power);
  set_int(arena, value, "timescale", steps.timescale);
  set_real(arena, value, "gamma", job->schedule.gamma);
  set_int(arena, value, "step_size", job->schedule.step_size);
  set_text(arena, value, "anneal", anneals[job->schedule.anneal]);
  set_real(arena, value, "peak", steps.peak);
  set_real(arena, value, "div_factor", job->schedule.div_factor);
  set_real(arena, value, "final_div_factor", job->schedule.final_div_factor);
  set_text(arena, value, "decay_type", decays[job->schedule.decay_type]);
  return value;
}
