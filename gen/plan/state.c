#include "gen/plan/state.h"

#include "gen/plan/border.h"
#include "gen/plan/optimizers.h"
#include "gen/plan/place.h"

int64_t state_bytes(const struct state *state) {
  return arena_aligned(state->count * dtype_size(state->dtype));
}

static void add(struct program *program, struct state state) {
  ARENA_PUSH(program->arena, program->states, state);
}

static void add_optimizer(struct program *program, int64_t elements) {
  const char *names[MAX_OPTIMIZER_STATES];
  int count = optimizer_state_names(program->job, names);
  for (int i = 0; i < count; i++)
    add(program, (struct state){.file = "optimizer",
                                .name = names[i],
                                .member = arena_printf(program->arena, "moment_%d", i + 1),
                                .count = elements});
}

/* One number, which belongs to no parameter. */
static void add_number(struct program *program, const char *file, const char *name, const char *member,
                       enum dtype dtype) {
  struct state_slice *slice = arena_alloc(program->arena, sizeof *slice);
  add(program,
      (struct state){
          .file = file, .name = name, .member = member, .dtype = dtype, .count = 1, .slices = slice, .n_slices = 1});
}

static void add_border(struct program *program) {
  struct border border = job_border(program->job);
  if (border.scaler) {
    add_number(program, "scaler", "scale", "scale", DTYPE_FLOAT32);
    add_number(program, "scaler", "_growth_tracker", "growth_tracker", DTYPE_INT32);
  }
  if (border.skips) add_number(program, "progress", "skipped", "skipped", DTYPE_INT32);
}

void plan_state(struct program *program) {
  int64_t elements = program->structs[program->n_structs - 1]->bytes / dtype_size(DTYPE_FLOAT32);
  if (program->kind != PROGRAM_TRAIN) return;
  add(program, (struct state){.file = "model", .name = "", .member = "weights", .count = elements});
  add_optimizer(program, elements);
  add_border(program);
}
