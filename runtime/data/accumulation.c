#include "runtime/data/accumulation.h"

static int64_t quotient_up(int64_t a, int64_t b) {
  return a / b + (a % b != 0);
}

struct accel_micro_batches rt_accumulation_of(const struct accumulation *accumulation, int64_t at) {
  int64_t in_step = accumulation->in_step;
  if (!accumulation->with_epochs) return (struct accel_micro_batches){at * in_step, in_step};
  int64_t steps = quotient_up(accumulation->in_epoch, in_step), taken = at % steps * in_step;
  int64_t left = accumulation->in_epoch - taken;
  return (struct accel_micro_batches){at / steps * accumulation->in_epoch + taken, left < in_step ? left : in_step};
}

struct cadence rt_accumulation_cadence(const struct accumulation *accumulation, struct accel_epochs epochs) {
  int64_t in_step = accumulation->in_step;
  if (!accumulation->with_epochs)
    return (struct cadence){epochs.count * accumulation->in_epoch, epochs.parts * in_step};
  return (struct cadence){epochs.count * quotient_up(accumulation->in_epoch, in_step), epochs.parts};
}

int64_t rt_accumulation_steps(const struct accumulation *accumulation, int64_t micro_batches) {
  int64_t in_step = accumulation->in_step;
  if (!accumulation->with_epochs) return quotient_up(micro_batches, in_step);
  int64_t epochs = micro_batches / accumulation->in_epoch, rest = micro_batches % accumulation->in_epoch;
  return epochs * quotient_up(accumulation->in_epoch, in_step) + quotient_up(rest, in_step);
}
