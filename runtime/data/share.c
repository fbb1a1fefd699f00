#include "runtime/data/share.h"

static int64_t quotient_up(int64_t a, int64_t b) {
  return a / b + (a % b != 0);
}

struct accel_share rt_share(const struct sharing *sharing, int64_t at) {
  int64_t in_step = sharing->in_step;
  if (!sharing->with_epochs) return (struct accel_share){at * in_step, in_step};
  int64_t steps = quotient_up(sharing->in_epoch, in_step), taken = at % steps * in_step;
  int64_t left = sharing->in_epoch - taken;
  return (struct accel_share){at / steps * sharing->in_epoch + taken, left < in_step ? left : in_step};
}

struct cadence rt_share_cadence(const struct sharing *sharing, struct accel_epochs epochs) {
  int64_t in_step = sharing->in_step;
  if (!sharing->with_epochs) return (struct cadence){epochs.count * sharing->in_epoch, epochs.parts * in_step};
  return (struct cadence){epochs.count * quotient_up(sharing->in_epoch, in_step), epochs.parts};
}

int64_t rt_share_steps(const struct sharing *sharing, int64_t micro_batches) {
  int64_t in_step = sharing->in_step;
  if (!sharing->with_epochs) return quotient_up(micro_batches, in_step);
  int64_t epochs = micro_batches / sharing->in_epoch, rest = micro_batches % sharing->in_epoch;
  return epochs * quotient_up(sharing->in_epoch, in_step) + quotient_up(rest, in_step);
}
