/* The factors of Llama 3's angles, which GGUF has as a tensor: 1 for short waves, `factor` for long ones, and between
 * them the mean that Llama 3.1 has (rope_llama3 of examples/models/rope.h). Frequencies are divided by them. */
#include <math.h>
#include <string.h>

#include "gen/commands/export/gguf_tensors.h"

#define TWO_PI 6.283185307179586

static double number_at(const struct exported *of, const char *path) {
  const struct model_value *field = exported_field(of, path);
  return field != NULL ? field->number : NAN;
}

static double factor_at(const struct exported *of, double frequency) {
  const double factor = number_at(of, "rope.factor"), length = number_at(of, "rope.original_length");
  const double low = number_at(of, "rope.low_freq_factor"), high = number_at(of, "rope.high_freq_factor");
  const double wave = TWO_PI / frequency, smooth = (length / wave - low) / (high - low);
  if (wave < length / high) return 1;
  return wave > length / low ? factor : 1 / ((1 - smooth) / factor + smooth);
}

bool gguf_rope_factors(const struct exported *of, const char *width, const struct stored_tensor **factors) {
  struct model_value dims;
  struct stored_tensor *tensor = arena_alloc(of->arena, sizeof *tensor);
  const double theta = number_at(of, "rope.theta");
  if (!exported_number(of, width, &dims) || dims.number < 2 || dims.number > 1 << 20) return false;
  const int64_t count = (int64_t)dims.number / 2;
  float *values = arena_alloc(of->arena, (size_t)count * sizeof *values);
  for (int64_t i = 0; i < count; i++) {
    values[i] = (float)factor_at(of, pow(theta, -2.0 * (double)i / dims.number));
    if (!isfinite(values[i])) return false;
  }
  *tensor = (struct stored_tensor){.name = "rope_freqs.weight", .dtype = "F32", .rank = 1, .shape = {count}};
  tensor->bytes = (const uint8_t *)values;
  tensor->size = (size_t)count * sizeof *values;
  *factors = tensor;
  return true;
}
