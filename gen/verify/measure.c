#include "gen/verify/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gen/verify/keys.h"
#include "gen/verify/tape/philox.h"

/* An element may be eight times as far off as the noisiest one was. */
enum { MARGIN = 8 };

static const struct micro_batch *current;

static tensor input(const char *name) {
  for (int i = 0; i < current->count; i++) {
    const struct loaded *loaded = &current->tensors[i];
    if (strcmp(loaded->name, name) == 0) return reading_input(loaded->rank, loaded->dim, loaded->whole, loaded->values);
  }
  tape_refuse("the program loads no '%s', which the model takes", name);
}

/* A run of the model. */
struct once {
  const struct measuring *how;
  const struct micro_batch *batch;
  double factor; /* of its gradient; 0: none is wanted */
  bool by_count; /* the gradient and the loss are sums over what the loss is a mean over */
  double loss, count;
  struct arena *arena; /* where the keys of random numbers will be, which this run shows; NULL: they are known */
};

static void find_keys(struct reading *reading, struct arena *arena) {
  const char *reason = NULL;
  if (reading->trace->draws == 0) return;
  reading->draws = keys_of(arena, reading->trace, &reason);
  if (reading->draws == NULL) tape_refuse("random numbers: %s", reason);
  reading->n_draws = reading->trace->draws;
}

static void run_once(void *context) {
  struct once *once = context;
  struct reading *reading = once->how->reading;
  current = once->batch;
  reading->entropies = 0;
  reading->drawn = 0;
  reading->key = draw_key((uint64_t)once->how->job->training.seed, (uint64_t)once->batch->number, 0);
  tensor loss = once->how->model(reading_scope(reading), input);
  if (loss == NULL || loss->count != 1) tape_refuse("the model gives no scalar");
  if (once->arena != NULL) find_keys(reading, once->arena);
  if (reading->drawn != reading->n_draws && reading->trace == NULL)
    tape_refuse("one run of the model draws more random numbers than another");
  if (once->by_count && reading->entropies > 1)
    tape_refuse("accumulation.normalize: tokens of a loss with several cross-entropies");
  once->count =
      once->by_count ? reading->entropies == 1 ? reading->counted : (double)once->batch->tensors[0].dim[0] : 1;
  once->loss = once->count == 0 ? 0 : loss->values[0] * once->count;
  if (once->factor != 0 && once->count > 0) tape_backward(loss, once->factor * once->count);
}

static bool evaluate(struct once *once) {
  const bool good = reading_run(once->how->reading, run_once, once);
  tape_clear(once->how->reading);
  return good;
}

bool measure_parameters(struct measuring *how, struct arena *arena, const struct micro_batch *batch) {
  struct once once = {.how = how, .batch = batch, .arena = arena};
  struct trace trace = {0};
  how->reading->trace = &trace;
  const bool good = evaluate(&once);
  how->reading->trace = NULL;
  trace_free(&trace);
  tape_release();
  return good;
}

/* ---- A step ---- */

static void clear_gradients(const struct measuring *how) {
  for (struct stored *at = how->reading->first; at != NULL; at = at->next)
    if (at->gradient != NULL) memset(at->gradient, 0, (size_t)at->count * sizeof *at->gradient);
}

static void divide_gradients(const struct measuring *how, double by) {
  for (struct stored *at = how->reading->first; at != NULL; at = at->next)
    for (int64_t k = 0; at->gradient != NULL && by > 0 && k < at->count; k++) at->gradient[k] /= by;
}

/* torch.nn.utils.clip_grad_value_ and clip_grad_norm_, over the parameters that are trained. The norm before it. */
static double clip(const struct measuring *how) {
  const struct job *job = how->job;
  const double most = job->optimizer.clip_grad_value, limit = job->optimizer.clip_grad_norm;
  double norm = 0;
  int i = 0;
  for (struct stored *at = how->reading->first; at != NULL; at = at->next, i++)
    for (int64_t k = 0; !how->frozen[i] && at->gradient != NULL && k < at->count; k++) {
      const double size = fabs(at->gradient[k]);
      if (job->optimizer.norm_type == NORM_INF)
        norm = fmax(norm, size);
      else
        norm += job->optimizer.norm_type == NORM_1 ? size : size * size;
      if (most > 0) at->gradient[k] = fmin(fmax(at->gradient[k], -most), most);
    }
  if (job->optimizer.norm_type == NORM_2) norm = sqrt(norm);
  const double factor = limit > 0 ? fmin(limit / (norm + 1e-6), 1) : 1;
  for (struct stored *at = how->reading->first; at != NULL && factor != 1; at = at->next)
    for (int64_t k = 0; at->gradient != NULL && k < at->count; k++) at->gradient[k] *= factor;
  return norm;
}

/* The mean of the micro-batches' gradients, as many as the job has in a step, clipped. */
static bool read_step(const struct measuring *how, const struct micro_batch *batches, int count, double share,
                      double noise, double *loss, double *norm) {
  how->reading->noise = noise;
  clear_gradients(how);
  *loss = 0;
  double total = 0;
  const bool by_count = how->job->accumulation.normalize == NORMALIZE_TOKENS;
  for (int i = 0; i < count; i++) {
    struct once once = {.how = how, .batch = &batches[i], .factor = by_count ? 1 : share, .by_count = by_count};
    if (!evaluate(&once)) return false;
    *loss += once.loss;
    total += once.count;
  }
  how->reading->noise = 0;
  *loss = total > 0 ? *loss / total : 0;
  if (by_count) divide_gradients(how, total);
  *norm = clip(how);
  return true;
}

/* The buffers as they were before the step. */
static void restore(struct measured *measured, double *const *before) {
  for (int i = 0; i < measured->count; i++) {
    struct stored *stored = measured->tensors[i].stored;
    if (before[i] != NULL) memcpy(stored->values, before[i], (size_t)stored->count * sizeof *stored->values);
  }
}

static double *copied(const double *from, int64_t count) {
  double *copy = malloc((size_t)(count + 1) * sizeof *copy);
  if (copy != NULL) memcpy(copy, from, (size_t)count * sizeof *copy);
  return copy;
}

static void widen(struct measured_tensor *tensor) {
  const struct stored *stored = tensor->stored;
  const double *exact = tensor->gradient != NULL ? tensor->gradient : tensor->after;
  const double *noisy = tensor->gradient != NULL ? stored->gradient : stored->values;
  for (int64_t k = 0; k < stored->count; k++) tensor->spread = fmax(tensor->spread, fabs(noisy[k] - exact[k]));
}

/* One batch of all micro-batches. */
static struct micro_batch joined_batch(const struct micro_batch *batches, int count) {
  struct micro_batch all = batches[0];
  for (int t = 0; t < all.count; t++) {
    struct loaded *loaded = &all.tensors[t];
    int64_t each = 1;
    for (int i = 0; i < loaded->rank; i++) each *= loaded->dim[i];
    double *values = malloc((size_t)(each * count + 1) * sizeof *values);
    for (int b = 0; b < count && values != NULL; b++)
      memcpy(values + b * each, batches[b].tensors[t].values, (size_t)each * sizeof *values);
    loaded->values = values;
    loaded->dim[0] *= count;
  }
  return all;
}

static bool read_one(const struct measuring *how, const struct micro_batch *batches, int count,
                     struct measured *measured) {
  struct micro_batch all = joined_batch(batches, count);
  double loss, norm, highest = 0, farthest = 0;
  const bool good = read_step(how, &all, 1, 1, 0, &loss, &norm);
  for (int i = 0; good && i < measured->count; i++) {
    const struct measured_tensor *tensor = &measured->tensors[i];
    for (int64_t k = 0; tensor->gradient != NULL && k < tensor->stored->count; k++) {
      highest = fmax(highest, fabs(tensor->gradient[k]));
      farthest = fmax(farthest, fabs(tensor->gradient[k] - tensor->stored->gradient[k]));
    }
  }
  for (int t = 0; t < all.count; t++) free(all.tensors[t].values);
  measured->has_one = good;
  measured->one = highest > 0 ? farthest / highest : farthest;
  return good;
}

static void begin(const struct measuring *how, struct measured *measured, double **before) {
  int i = 0;
  for (struct stored *at = how->reading->first; at != NULL; at = at->next, i++) {
    measured->tensors[i].stored = at;
    before[i] = at->trained ? NULL : copied(at->values, at->count);
  }
}

static void keep(struct measured *measured) {
  for (int i = 0; i < measured->count; i++) {
    struct measured_tensor *tensor = &measured->tensors[i];
    const struct stored *stored = tensor->stored;
    if (stored->trained)
      tensor->gradient = copied(stored->gradient, stored->count);
    else
      tensor->after = copied(stored->values, stored->count);
  }
}

bool measure_step(struct measuring *how, const struct micro_batch *batches, int count, bool with_one,
                  struct measured *measured) {
  const double share = 1 / (double)(how->job->accumulation.num_steps * job_batch_ranks(how->job));
  *measured = (struct measured){.count = how->reading->count};
  measured->tensors = calloc((size_t)measured->count + 1, sizeof *measured->tensors);
  double **before = calloc((size_t)measured->count + 1, sizeof *before), loss = 0, norm = 0;
  begin(how, measured, before);
  bool good = read_step(how, batches, count, share, 0, &measured->loss, &measured->norm);
  if (good) keep(measured);
  for (int i = 0; good && i < how->readings; i++) {
    restore(measured, before);
    good = read_step(how, batches, count, share, how->roundings * how->unit, &loss, &norm);
    measured->loss_spread = fmax(measured->loss_spread, fabs(loss - measured->loss));
    measured->norm_spread = fmax(measured->norm_spread, fabs(norm - measured->norm));
    for (int k = 0; good && k < measured->count; k++) widen(&measured->tensors[k]);
  }
  restore(measured, before);
  /* One batch of all micro-batches would draw other numbers than they do. */
  if (good && with_one && count > 1 && how->reading->n_draws == 0) {
    good = read_one(how, batches, count, measured);
    restore(measured, before);
  }
  for (int i = 0; i < measured->count; i++) free(before[i]);
  free(before);
  tape_release();
  return good;
}

void measured_free(struct measured *measured) {
  for (int i = 0; i < measured->count; i++) {
    free(measured->tensors[i].gradient);
    free(measured->tensors[i].after);
  }
  free(measured->tensors);
  *measured = (struct measured){0};
}

double measured_bound(const struct measuring *how, const struct measured_tensor *tensor) {
  const double *values = tensor->gradient != NULL ? tensor->gradient : tensor->after;
  double highest = 0;
  for (int64_t k = 0; k < tensor->stored->count; k++) highest = fmax(highest, fabs(values[k]));
  return MARGIN * (tensor->spread + how->unit * highest);
}
