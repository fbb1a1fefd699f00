#include "runtime/generation/sampler.h"

#include "runtime/random/philox.h"

#include <math.h>
#include <string.h>

/* The k-th largest of n values, which it reorders: Hoare's selection ("Algorithm 65: Find", CACM 4, 1961). */
static float kth_largest(float *values, int64_t n, int64_t k) {
  int64_t low = 0, high = n - 1;
  while (low < high) {
    float pivot = values[low + (high - low) / 2];
    int64_t i = low, j = high;
    while (i <= j) {
      while (values[i] > pivot) i++;
      while (values[j] < pivot) j--;
      if (i > j) break;
      float swap = values[i];
      values[i++] = values[j];
      values[j--] = swap;
    }
    if (k - 1 <= j)
      high = j;
    else if (k - 1 >= i)
      low = i;
    else
      break;
  }
  return values[k - 1];
}

/* Lets the value at `at` of a heap, the largest on top, sink to where it belongs. */
static void sink(float *heap, int64_t n, int64_t at) {
  for (int64_t child; (child = 2 * at + 1) < n; at = child) {
    if (child + 1 < n && heap[child + 1] > heap[child]) child++;
    if (heap[at] >= heap[child]) return;
    float swap = heap[at];
    heap[at] = heap[child];
    heap[child] = swap;
  }
}

/* The least of the largest of n values, which it reorders, whose probabilities first add up to `fraction`. */
static float nucleus(float *values, int64_t n, double scale, double fraction) {
  for (int64_t i = n / 2; i-- > 0;) sink(values, n, i);
  double best = values[0], total = 0, sum = 0;
  for (int64_t i = 0; i < n; i++) total += exp((values[i] - best) * scale);
  for (;;) {
    sum += exp((values[0] - best) * scale);
    if (sum >= fraction * total || n == 1) return values[0];
    values[0] = values[--n];
    sink(values, n, 0);
  }
}

void rt_penalize(const struct sampler *sampler, const int32_t *text, int64_t count, const float *logits,
                 float *penalized) {
  if (sampler->penalty == 0 || sampler->penalty == 1) return;
  float penalty = (float)sampler->penalty;
  for (int64_t i = 0; i < count; i++) {
    float logit = logits[text[i]];
    penalized[text[i]] = logit < 0 ? logit * penalty : logit / penalty;
  }
}

float rt_least_logit(const struct sampler *sampler, const float *logits, int64_t vocabulary, float *scratch) {
  float least = -INFINITY;
  int64_t left = 0;
  memcpy(scratch, logits, (size_t)vocabulary * sizeof *scratch);
  if (sampler->top_k > 0 && sampler->top_k < vocabulary) least = kth_largest(scratch, vocabulary, sampler->top_k);
  if (sampler->top_p <= 0 || sampler->top_p >= 1) return least;
  for (int64_t i = 0; i < vocabulary; i++)
    if (logits[i] >= least) scratch[left++] = logits[i];
  return nucleus(scratch, left, 1 / sampler->temperature, sampler->top_p);
}

/* The first of the largest logits; -1 when one is not a number. */
static int64_t largest(const float *logits, int64_t n) {
  int64_t best = 0;
  for (int64_t i = 0; i < n; i++) {
    if (isnan(logits[i])) return -1;
    if (logits[i] > logits[best]) best = i;
  }
  return best;
}

/* A number in [0, 1) with 53 random bits. */
static double uniform(uint64_t seed, uint64_t index) {
  struct philox_block words = rt_philox_block(seed, RT_STREAM(RT_USE_SAMPLE, 0), index);
  return (double)((uint64_t)words.word[0] << 21 | words.word[1] >> 11) * 0x1p-53;
}

int64_t rt_sample(const struct sampler *sampler, const float *logits, int64_t vocabulary, uint64_t index,
                  float *scratch) {
  int64_t best = largest(logits, vocabulary), chosen = best;
  if (best < 0 || sampler->temperature == 0 || isinf(logits[best])) return best;
  float least = rt_least_logit(sampler, logits, vocabulary, scratch);
  double total = 0, scale = 1 / sampler->temperature;
  for (int64_t i = 0; i < vocabulary; i++)
    if (logits[i] >= least) total += exp(((double)logits[i] - logits[best]) * scale);
  double left = uniform(sampler->seed, index) * total;
  for (int64_t i = 0; i < vocabulary; i++) {
    double weight = logits[i] >= least ? exp(((double)logits[i] - logits[best]) * scale) : 0;
    if (weight == 0) continue;
    chosen = i; /* rounding may leave a rest after the last one */
    left -= weight;
    if (left < 0) break;
  }
  return chosen;
}
