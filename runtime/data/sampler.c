#include "runtime/data/sampler.h"

#include "include/accel/order.h"
#include "runtime/process/fail.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

enum { ORDERS = 2 }; /* of the epoch at hand and of the one before, where a thread may still read ahead */

struct sampler {
  accel_order_hook *fill;
  uint64_t seed;
  int64_t samples, count;
  pthread_mutex_t lock;
  struct {
    int64_t epoch;
    int64_t *indices;
  } orders[ORDERS];
};

struct sampler *rt_sampler_make(accel_order_hook *fill, uint64_t seed, int64_t samples, int64_t count) {
  struct sampler *sampler = malloc(sizeof *sampler);
  if (sampler == NULL) return NULL;
  *sampler = (struct sampler){.fill = fill, .seed = seed, .samples = samples, .count = count};
  pthread_mutex_init(&sampler->lock, NULL);
  for (int i = 0; i < ORDERS; i++) {
    sampler->orders[i].epoch = -1;
    sampler->orders[i].indices = calloc((size_t)count + 1, sizeof(int64_t));
    if (sampler->orders[i].indices == NULL) return rt_sampler_free(sampler), NULL;
  }
  return sampler;
}

void rt_sampler_free(struct sampler *sampler) {
  if (sampler == NULL) return;
  for (int i = 0; i < ORDERS; i++) free(sampler->orders[i].indices);
  pthread_mutex_destroy(&sampler->lock);
  free(sampler);
}

static void check(const struct sampler *sampler, int64_t epoch, const int64_t *indices) {
  struct problem problem;
  for (int64_t i = 0; i < sampler->count; i++) {
    if (indices[i] >= 0 && indices[i] < sampler->samples) continue;
    rt_problem(&problem, "hooks.on_order: epoch %" PRId64 ", position %" PRId64 ": there is no sample %" PRId64, epoch,
               i, indices[i]);
    rt_help(&problem, "the samples to train on are numbered from 0 to %" PRId64, sampler->samples - 1);
    rt_fail(&problem, 1);
  }
}

/* -1 in what user code leaves out. */
static void fill(const struct sampler *sampler, int64_t epoch, int64_t *indices) {
  struct accel_order order = {epoch, sampler->samples, sampler->seed, sampler->count, indices};
  for (int64_t i = 0; i < sampler->count; i++) indices[i] = -1;
  sampler->fill(&order);
  check(sampler, epoch, indices);
}

bool rt_sampler_take(struct sampler *sampler, int64_t epoch, bool fills, int count, uint64_t *positions) {
  pthread_mutex_lock(&sampler->lock);
  int64_t *known = &sampler->orders[epoch % ORDERS].epoch, *indices = sampler->orders[epoch % ORDERS].indices;
  if (*known != epoch && fills) {
    fill(sampler, epoch, indices);
    *known = epoch;
  }
  const bool has = *known == epoch;
  for (int i = 0; i < count && has; i++) positions[i] = (uint64_t)indices[positions[i]];
  pthread_mutex_unlock(&sampler->lock);
  return has;
}
