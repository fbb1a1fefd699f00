/* What a statement has to do with other ranks. */
#include "gen/emit/values.h"
#include "gen/program/sharding.h"
#include "gen/program/storage.h"

/* Buckets of gradients that are complete after a statement, by its iterations, and last, before it; nothing where they
 * are as before. */
static void set_complete(struct arena *arena, struct jinja_value value, const struct step *step) {
  struct jinja_value list = jinja_list(arena);
  int iterations = step->node->call != NULL ? step->node->call->count : 1;
  for (int i = 0; step->complete != NULL && i <= iterations; i++) jinja_push(arena, list, jinja_int(step->complete[i]));
  jinja_set(arena, value, "complete", list);
}

static struct jinja_value numbers_value(struct arena *arena, const int *row, int count) {
  struct jinja_value list = jinja_list(arena);
  for (int i = 0; row != NULL && i < count; i++) jinja_push(arena, list, jinja_int(row[i]));
  return list;
}

/* Of a statement whose iterations use units: what is gathered and has been sent before each; fsdp_units.count means
 * none. */
static void set_units(const struct program *program, struct jinja_value value, const struct step *step, bool gathers,
                      bool sends) {
  struct arena *arena = program->arena;
  int count = step->used != NULL ? step->node->call->count : 0;
  int *begins = arena_alloc(arena, ((size_t)count + 1) * sizeof *begins);
  int *arrives = arena_alloc(arena, ((size_t)count + 1) * sizeof *arrives);
  int *reduced = arena_alloc(arena, ((size_t)count + 1) * sizeof *reduced);
  bool comes = count > 0 && gathers, leaves = false;
  for (int i = 0; i < count; i++) {
    begins[i] = step->begins[i] >= 0 ? step->begins[i] : program->ranks.fsdp_units.count;
    arrives[i] = step->arrives[i] >= 0 ? step->arrives[i] : program->ranks.fsdp_units.count;
    reduced[i] = step->reduced != NULL && step->reduced[i] > 0 ? step->reduced[i] : 0;
    leaves |= reduced[i] > 0;
  }
  jinja_set(arena, value, "begins", numbers_value(arena, comes ? begins : NULL, count));
  jinja_set(arena, value, "arrives", numbers_value(arena, comes ? arrives : NULL, count));
  jinja_set(arena, value, "reduced", numbers_value(arena, sends && leaves ? reduced : NULL, count));
}

void set_stage_exchange(const struct program *program, struct jinja_value value, const struct step *step) {
  const struct call *call = step->node->call;
  const bool sends = step->used != NULL && call->forward != NULL && gradients_are_split(program);
  const bool gathers = step->callee != NULL && !is_deferred(step->callee) && weights_are_split(program);
  set_units(program, value, step, gathers, sends);
  jinja_set(program->arena, value, "used",
            numbers_value(program->arena, sends ? step->used : NULL, sends ? call->count : 0));
}

void set_exchange(const struct program *program, struct jinja_value value, const struct step *step, bool sends,
                  bool last) {
  if (program->ranks.pipeline.stages > 0) {
    set_stage_exchange(program, value, step);
    return;
  }
  bool otherwise = last && shard_sends_otherwise(program);
  if (sends) set_complete(program->arena, value, step);
  set_units(program, value, step, weights_come(program), sends);
  const char *sender = program->disk.in_backward ? "update_buckets" : "send_gradients";
  set_text(program->arena, value, "sender", otherwise ? "send_last_gradients" : sender);
}
