#include "gen/program/experts.h"

#include <stdlib.h>
#include <string.h>

/* A part of a name between dots, counted from the end. */
static const char *part_of(const char *name, int part) {
  const char *at = name + strlen(name);
  for (int dots = 0; at > name && !(at[-1] == '.' && dots++ == part); at--) continue;
  return at;
}

const char *expert_name(struct arena *arena, const struct weight *weight, int64_t rank) {
  const struct placement placement = weight->parameter->placement;
  if (placement.form != PLACED_EXPERT) return weight->path;
  const char *at = part_of(weight->path, placement.dim);
  char *rest;
  const long long number = strtoll(at, &rest, 10) + rank * placement.blocks;
  return arena_printf(arena, "%.*s%lld%s", (int)(at - weight->path), weight->path, number, rest);
}

static bool check_weight(const struct program *program, const struct weight *weight, pattern_of *matched,
                         struct location (*where)(const struct job *job, int pattern), struct diagnostics *diags) {
  const struct job *job = program->job;
  const int own = matched(job, weight->path);
  for (int64_t rank = 1; rank < job->parallelism.axes[weight->parameter->axis]; rank++) {
    const char *name = expert_name(program->arena, weight, rank);
    const int other = matched(job, name);
    if (own == other) continue;
    diag_error(diags, where(job, own >= 0 ? own : other), "the pattern takes '%s' and not '%s'",
               own >= 0 ? weight->path : name, own >= 0 ? name : weight->path);
    diag_note(diags, job_where(job, "parallelism.ep"), "each rank has one of these");
    diag_help(diags, "let the pattern take all experts or none, as with a *");
    return false;
  }
  return true;
}

bool check_expert_names(const struct program *program, pattern_of *matched,
                        struct location (*where)(const struct job *job, int pattern), struct diagnostics *diags) {
  for (int i = 0; i < program->weights->count; i++) {
    const struct weight *weight = &program->weights->items[i];
    if (weight->parameter->placement.form == PLACED_EXPERT && !check_weight(program, weight, matched, where, diags))
      return false;
  }
  return true;
}
