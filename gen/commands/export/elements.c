/* What the formats share of elements and files. */
#include <string.h>

#include "gen/commands/cli/commands.h"
#include "gen/commands/export/export.h"
#include "runtime/base/half.h"

void exported_elements(const struct stored_tensor *tensor, int64_t first, int64_t count, float *values) {
  const bool brain = tensor->dtype[0] == 'B';
  if (strcmp(tensor->dtype, "F32") == 0) {
    memcpy(values, tensor->bytes + 4 * first, (size_t)count * sizeof *values);
    return;
  }
  for (int64_t i = 0; i < count; i++) {
    uint16_t half;
    memcpy(&half, tensor->bytes + 2 * (first + i), sizeof half);
    values[i] = brain ? rt_widen_bfloat16(half) : rt_widen_float16(half);
  }
}

int exported_cannot_write(const struct exported *of, const struct problem *problem) {
  diag_error(of->diags, (struct location){0}, "%s", problem->what);
  diag_help(of->diags, "%s", problem->help);
  return STATUS_CANNOT;
}
