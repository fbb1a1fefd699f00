#include "gen/commands/report/limit.h"

#include <stdlib.h>
#include <string.h>

#include "gen/commands/tune/profile.h"
#include "gen/search/hardware.h"

double report_products(const struct report_run *run) {
  return report_number(run->record, "matmul_flops_per_step", 0);
}

/* A product on its own: "matmul_nt_512x64x256", with whatever follows it in the same function. */
static bool is_product(const struct profile_part *part) {
  return strncmp(part->name, "matmul", 6) == 0 && part->flops > 0 && part->seconds > 0;
}

static struct run_limit measured_limit(struct arena *arena, const struct report_run *run) {
  struct run_limit limit = {0};
  struct step_profile profile;
  if (run->trace == NULL || !profile_read(arena, run->trace, &profile)) return limit;
  for (int i = 0; i < profile.count; i++) {
    const struct profile_part *part = &profile.items[i];
    const double flops = is_product(part) ? part->flops * part->times / part->seconds : 0;
    if (flops > limit.flops)
      limit = (struct run_limit){flops, arena_printf(arena, "the fastest product of its profile, %s", part->name)};
  }
  return limit;
}

/* A key's value as YAML; "" where the job has none. */
static const char *value_of(const struct report_run *run, const char *name) {
  for (int i = 0; i < run->n_keys; i++)
    if (strcmp(run->keys[i].name, name) == 0) return run->keys[i].value;
  return "";
}

static bool is_16_bits(const char *type) {
  return strcmp(type, "bf16") == 0 || strcmp(type, "fp16") == 0;
}

static struct run_limit stated_limit(struct arena *arena, const struct report_run *run) {
  const double stated = strtod(value_of(run, "devices.peak_flops"), NULL);
  const char *product = value_of(run, "devices.hardware");
  const bool bits16 =
      is_16_bits(value_of(run, "precision.mixed_precision")) || is_16_bits(value_of(run, "precision.param_dtype"));
  const bool tf32 = strcmp(value_of(run, "precision.tf32"), "true") == 0;
  if (stated > 0) return (struct run_limit){stated, "devices.peak_flops"};
  return (struct run_limit){product_peak(product, bits16, tf32), arena_printf(arena, "published of %s in %s", product,
                                                                              bits16 ? "16 bits"
                                                                              : tf32 ? "TF32"
                                                                                     : "float32")};
}

struct run_limit report_limit(struct arena *arena, const struct report_run *run) {
  const struct run_limit limit = stated_limit(arena, run);
  return limit.flops > 0 ? limit : measured_limit(arena, run);
}

void report_add_share(struct arena *arena, struct report_run *run) {
  struct metrics *metrics = &run->metrics;
  const struct series *rate = metrics_find(metrics, "tokens_per_s");
  const double limit = report_limit(arena, run).flops, units = report_number(run->record, "units_per_step", 0);
  if (rate == NULL || limit <= 0 || units <= 0 || report_products(run) <= 0) return;
  const double by = 100 * report_products(run) / units / limit;
  struct series share = *rate, *all = arena_alloc(arena, ((size_t)metrics->n_series + 1) * sizeof *all);
  share.name = "limit_share";
  share.last *= by;
  share.cells = arena_alloc(arena, (size_t)metrics->n_columns * sizeof *share.cells);
  for (int k = 0; k < metrics->n_columns; k++) {
    const struct cell *cell = &rate->cells[k];
    share.cells[k] = (struct cell){by * cell->least, by * cell->most, by * cell->sum, cell->count};
  }
  memcpy(all, metrics->series, (size_t)metrics->n_series * sizeof *all);
  all[metrics->n_series++] = share;
  metrics->series = all;
}
