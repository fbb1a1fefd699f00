#include "gen/base/quantity.h"

#include <string.h>

#include "gen/base/text.h"

const char *count_text(struct arena *arena, int64_t number) {
  const char *digits = arena_printf(arena, "%lld", (long long)number);
  struct text text = text_in(arena);
  size_t length = strlen(digits);
  for (size_t i = 0; i < length; i++) {
    if (i > 0 && (length - i) % 3 == 0) text_puts(&text, ",");
    text_add(&text, digits + i, 1);
  }
  return text_string(&text);
}

const char *flops_text(struct arena *arena, double flops) {
  static const char *const units[] = {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"};
  int unit = 0;
  for (; flops >= 1000 && unit < 5; unit++) flops /= 1000;
  return arena_printf(arena, "%.3g %s", flops, units[unit]);
}

const char *bytes_text(struct arena *arena, int64_t bytes) {
  static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
  double amount = (double)bytes / 1024;
  int unit = 0;
  for (; amount >= 1024 && unit < 3; unit++) amount /= 1024;
  return arena_printf(arena, "%.1f %s", amount, units[unit]);
}
