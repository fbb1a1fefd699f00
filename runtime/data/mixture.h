/* Which sample of which file a position is: a pure function of (seed, split, position, ranks).
 *
 * Without weights an epoch has every sample of every file once; shuffled, in one order over all files. With weights it
 * has as many samples as all files together, of which each file gives its fraction, going round in its own epochs. */
#ifndef RUNTIME_DATA_MIXTURE_H
#define RUNTIME_DATA_MIXTURE_H

#include "runtime/data/batch_sharding.h"
#include "runtime/data/order.h"
#include "runtime/data/sampler.h"

struct mixture {
  uint64_t seed;
  enum accel_split split;
  bool shuffle;
  struct sampler *sampler; /* of training, from user code; NULL: none */
  struct order *parts;     /* a file's samples each */
  const double *weights;   /* of the parts, above 0; NULL: none */
  int64_t *before;         /* samples of the parts before each */
  int64_t count;           /* of parts */
  int64_t has;             /* samples of all parts */
  int64_t samples;         /* of an epoch; the same, unless a sampler takes others */
  int64_t taken;           /* positions of an epoch: what is left out of one is another when shuffled */
  struct batch_sharding sharding;
};

/* A sample: where it begins in its file, a token or a row. At a position without a sample it is another one, which is
 * not to count. */
struct sample {
  int64_t part, start;
  bool counts;
};

/* A mixture of `count` parts, at least 1, distributed in batches, of `epoch_samples` an epoch of training (0: all). It
 * takes copies of the parts; `weights` stays the caller's. False when there is no memory. */
bool rt_mixture_make(struct mixture *mixture, const struct order *parts, const double *weights, int64_t count,
                     int64_t epoch_samples, struct batch_sharding sharding);

/* Lets user code say which samples an epoch of training takes. False when there is no memory. */
bool rt_mixture_sample_by(struct mixture *mixture, accel_order_hook *fill);

void rt_mixture_free(struct mixture *mixture);

/* The sample at `position` >= 0. taken >= 1. */
struct sample rt_mixture_find(const struct mixture *mixture, int64_t position);

/* The same for a thread that reads ahead: false where user code has not been asked for the epoch yet. */
bool rt_mixture_peek(const struct mixture *mixture, int64_t position, struct sample *sample);

/* The same of the `count` <= FOUND_AT_ONCE positions from there on, into `samples`; faster than one by one. */
enum { FOUND_AT_ONCE = 64 };
void rt_mixture_find_all(const struct mixture *mixture, int64_t position, int count, struct sample *samples);

#endif
