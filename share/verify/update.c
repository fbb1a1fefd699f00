/* What `accel-gen verify --functions` puts after the text of a trainer, too: it runs the trainer's update of the
 * weights on numbers of its own. The run that it starts is the record's (record.c), whose checkpoints, from before and
 * after an update, have the gradients as one more state of the optimizer. */

static float verify_between(float low, float high) {
  return low + (high - low) * (float)((double)(verify_draw() >> 40) * 0x1p-24);
}

/* States that are squares or sizes, which are never negative. */
static int verify_is_size(const char *name) {
  static const char *const sizes[] = {"exp_avg_sq", "exp_avg_sq_row", "exp_avg_sq_col", "exp_inf", "sum",
                                      "square_avg", "acc_delta",      "variance",       "row_var", "col_var"};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    if (strcmp(sizes[i], name) == 0) return 1;
  return 0;
}

/* Weights and gradients of [-2, 2), a few gradients of 0; states as they can be: of averages the smaller ones. */
static void verify_fill_state(const struct accel_state *state) {
  float *numbers = (float *)(void *)((char *)arena + state->offset);
  const int gradient = strcmp(state->name, "verify_gradient") == 0, weight = strcmp(state->name, "") == 0;
  const int size = verify_is_size(state->name);
  const float low = size ? 0.05f : gradient || weight ? -2 : -0.2f, high = size ? 1 : -low;
  for (int64_t i = 0; i < state->count; i++) {
    numbers[i] = verify_between(low, high);
    if (gradient && verify_draw() % 16 == 0) numbers[i] = 0;
  }
}

/* The program with its gradients among what is saved; of as many elements as a state, and in its order. NULL: there is
 * no such state. */
static const struct accel_program *verify_with_gradients(const struct accel_program *program) {
  static struct accel_program changed;
  static struct accel_state states[32];
  const int64_t count = sizeof arena->all_gradients / sizeof *arena->all_gradients;
  const struct accel_state *like = NULL;
  for (int i = program->n_states - 1; i >= 0; i--)
    if (program->states[i].dtype == ACCEL_FLOAT32 && program->states[i].count == count) like = &program->states[i];
  if (like == NULL || program->n_states >= 32) return NULL;
  memcpy(states, program->states, (size_t)program->n_states * sizeof *states);
  states[program->n_states] = *like;
  states[program->n_states].file = "optimizer";
  states[program->n_states].name = "verify_gradient";
  states[program->n_states].offset = offsetof(struct arena, all_gradients);
  changed = *program;
  changed.states = states;
  changed.n_states++;
  return &changed;
}

/* Runs the update of each step that the arguments name, with its rate and a factor of the gradient. 5: the gradients
 * are not laid out as a state is. */
static int verify_update(const struct accel_program *program, int argc, char **argv, void (*open)(void),
                         void (*call)(int64_t at, double lr, float factor)) {
  const struct accel_program *changed = verify_with_gradients(program);
  if (changed == NULL) return 5;
  struct accel_run *run = accel_start(changed, 2, (char *[]){argv[0], "--quiet", NULL});
  arena = accel_arena(run);
  if (open != NULL) open();
  accel_fill_weights(run, &arena->weights);
  for (int k = 1; k + 2 < argc; k += 3) {
    const int64_t at = atoll(argv[k]);
    for (int i = 0; i < changed->n_states; i++)
      if (changed->states[i].dtype == ACCEL_FLOAT32 && strcmp(changed->states[i].file, "ema") != 0)
        verify_fill_state(&changed->states[i]);
    accel_handle_events(run, at, (struct accel_report){0});
    call(at, strtod(argv[k + 1], NULL), strtof(argv[k + 2], NULL));
    accel_handle_events(run, at + 1, (struct accel_report){0});
  }
  return accel_finish(run);
}
