#include "runtime/data/mixture.h"

#include "runtime/random/permutation.h"
#include "runtime/random/philox.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool rt_mixture_make(struct mixture *mixture, const struct order *parts, const double *weights, int64_t count,
                     int64_t epoch_samples, struct batch_sharding sharding) {
  *mixture = (struct mixture){.seed = parts[0].seed,
                              .split = parts[0].split,
                              .shuffle = parts[0].shuffle,
                              .weights = parts[0].split == ACCEL_TRAIN ? weights : NULL,
                              .count = count,
                              .sharding =
                                  parts[0].split == ACCEL_TRAIN ? sharding : (struct batch_sharding){1, 1, 0, 0, 0, 0}};
  mixture->parts = calloc((size_t)count, sizeof *mixture->parts);
  mixture->before = calloc((size_t)count, sizeof *mixture->before);
  if (mixture->parts == NULL || mixture->before == NULL) return rt_mixture_free(mixture), false;
  memcpy(mixture->parts, parts, (size_t)count * sizeof *parts);
  for (int64_t i = 0; i < count; i++) {
    mixture->before[i] = mixture->has;
    mixture->has += parts[i].samples;
    if (mixture->weights != NULL) mixture->parts[i].stream = RT_STREAM(RT_USE_PART, (uint64_t)i << 40);
  }
  mixture->samples = mixture->split == ACCEL_TRAIN && epoch_samples > 0 ? epoch_samples : mixture->has;
  mixture->taken = rt_batch_sharding_positions(&mixture->sharding, mixture->samples);
  return true;
}

bool rt_mixture_sample_by(struct mixture *mixture, accel_order_hook *fill) {
  mixture->sampler = rt_sampler_make(fill, mixture->seed, mixture->has, mixture->samples);
  return mixture->sampler != NULL;
}

void rt_mixture_free(struct mixture *mixture) {
  rt_sampler_free(mixture->sampler);
  free(mixture->parts);
  free(mixture->before);
  *mixture = (struct mixture){0};
}

/* The last part that begins at or before a sample; parts without samples are passed over. */
static int64_t part_of(const struct mixture *mixture, int64_t sample) {
  int64_t low = 0, high = mixture->count;
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    if (mixture->before[middle] <= sample)
      low = middle;
    else
      high = middle;
  }
  return low;
}

static double weight_of(const struct mixture *mixture, int64_t low, int64_t high) {
  double weight = 0;
  for (int64_t i = low; i < high; i++) weight += mixture->weights[i];
  return weight;
}

/* The part that gives draw *draw, which becomes the number of that part's own draw. Parts are halved until one is left;
 * of the first p draws of a group of which one half weighs the fraction f, that half has ⌊p f⌋. */
static int64_t drawn_from(const struct mixture *mixture, int64_t *draw) {
  int64_t low = 0, high = mixture->count;
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    double fraction = weight_of(mixture, low, middle) / weight_of(mixture, low, high);
    int64_t before = (int64_t)floor((double)*draw * fraction), with = (int64_t)floor((double)(*draw + 1) * fraction);
    if (with > before) {
      *draw = before;
      high = middle;
    } else {
      *draw -= before;
      low = middle;
    }
  }
  return low;
}

/* The epoch of a position. Evaluation always sees the same samples: its epoch is 0. */
static int64_t epoch_of(const struct mixture *mixture, int64_t position) {
  return mixture->split == ACCEL_EVAL ? 0 : position / mixture->taken;
}

/* The position of a sample of an epoch, by its number after the shuffle. */
static void set_sample(const struct mixture *mixture, int64_t epoch, int64_t index, struct sample *sample) {
  if (mixture->weights != NULL) {
    int64_t draw = epoch * mixture->samples + index;
    sample->part = drawn_from(mixture, &draw);
    sample->start = rt_order_start(&mixture->parts[sample->part], draw);
  } else {
    sample->part = part_of(mixture, index);
    sample->start = rt_order_at(&mixture->parts[sample->part], (uint64_t)epoch, index - mixture->before[sample->part]);
  }
}

/* Of positions of one epoch. False: its order is not known, and it was not `fills`. */
static bool find_in_epoch(const struct mixture *mixture, int64_t position, bool fills, int count,
                          struct sample *samples) {
  static_assert((int)FOUND_AT_ONCE <= (int)PERMUTED_AT_ONCE, "they are shuffled together");
  int64_t epoch = epoch_of(mixture, position);
  uint64_t indices[FOUND_AT_ONCE];
  for (int i = 0; i < count; i++)
    indices[i] = (uint64_t)rt_batch_sharding_sample(&mixture->sharding, mixture->samples,
                                                    (position + i) % mixture->taken, &samples[i].counts);
  if (mixture->shuffle)
    rt_permute_all(mixture->seed, rt_order_stream(mixture->split, (uint64_t)epoch), (uint64_t)mixture->samples, count,
                   indices);
  else if (mixture->sampler != NULL && !rt_sampler_take(mixture->sampler, epoch, fills, count, indices))
    return false;
  for (int i = 0; i < count; i++) set_sample(mixture, epoch, (int64_t)indices[i], &samples[i]);
  return true;
}

void rt_mixture_find_all(const struct mixture *mixture, int64_t position, int count, struct sample *samples) {
  for (int first = 0, end; first < count; first = end) {
    for (end = first + 1; end < count; end++)
      if (epoch_of(mixture, position + end) != epoch_of(mixture, position + first)) break;
    find_in_epoch(mixture, position + first, true, end - first, samples + first);
  }
}

struct sample rt_mixture_find(const struct mixture *mixture, int64_t position) {
  struct sample sample;
  rt_mixture_find_all(mixture, position, 1, &sample);
  return sample;
}

bool rt_mixture_peek(const struct mixture *mixture, int64_t position, struct sample *sample) {
  return find_in_epoch(mixture, position, false, 1, sample);
}
