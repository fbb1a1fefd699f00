#include "runtime/report/scalars.h"

#include <stdlib.h>

static bool add(struct scalars *scalars, const char *name, const char *format, double value) {
  if (scalars->count == scalars->capacity) {
    int capacity = scalars->capacity > 0 ? 2 * scalars->capacity : 32;
    struct scalar *items = realloc(scalars->items, (size_t)capacity * sizeof *items);
    if (items == NULL) return false;
    scalars->items = items;
    scalars->capacity = capacity;
  }
  scalars->items[scalars->count++] = (struct scalar){.name = name, .format = format, .value = value};
  return true;
}

/* The figures of steps, which the line of step 0 does not have. */
static bool add_step(struct scalars *to, const struct figures *figures) {
  bool good = add(to, "lr", "%.9g", figures->lr) && add(to, "grad_norm", "%.9g", figures->grad_norm) &&
              add(to, "tokens_per_s", "%.1f", figures->tokens_per_s) && add(to, "step_ms", "%.4f", figures->step_ms) &&
              add(to, "input_wait_ms", "%.4f", figures->input_wait_ms);
  if (figures->peak_mib > 0) good &= add(to, "peak_memory_mib", "%.1f", figures->peak_mib);
  if (figures->first_step_s >= 0) {
    good &= add(to, "start_to_first_step_s", "%.3f", figures->first_step_s);
    good &= add(to, "weights_s", "%.4f", figures->weights_s);
  }
  if (figures->save_stall_ms > 0) good &= add(to, "save_stall_ms", "%.3f", figures->save_stall_ms);
  if (figures->loss_scale > 0) good &= add(to, "loss_scale", "%.9g", figures->loss_scale);
  if (figures->skipped > 0) good &= add(to, "skipped", "%.0f", (double)figures->skipped);
  return good;
}

bool rt_scalars_of(struct scalars *scalars, const struct figures *figures) {
  const struct extras *extras = figures->extras;
  bool good = true;
  scalars->count = 0;
  /* 9 digits separate every float32 from its neighbours. */
  if (figures->step > 0) good &= add(scalars, "loss", "%.9g", figures->loss);
  if (figures->has_eval) good &= add(scalars, "eval_loss", "%.9g", figures->eval_loss);
  for (int i = 0; extras != NULL && i < extras->count; i++)
    if (extras->items[i].waits) good &= add(scalars, extras->items[i].name, "%.9g", extras->items[i].value);
  return good && (figures->step == 0 || add_step(scalars, figures));
}

void rt_scalars_free(struct scalars *scalars) {
  free(scalars->items);
  *scalars = (struct scalars){0};
}
