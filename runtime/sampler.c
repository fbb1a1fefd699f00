#include "sampler.h"

#include "philox.h"

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
  float least = -INFINITY;
  if (sampler->top_k > 0 && sampler->top_k < vocabulary) {
    memcpy(scratch, logits, (size_t)vocabulary * sizeof *scratch);
    least = kth_largest(scratch, vocabulary, sampler->top_k);
  }
  double total = 0, scale = 1 / sampler->temperature;
  for (int64_t i = 0; i < vocabulary; i++)
    if (logits[i] >= least) total += exp(((double)logits[i] - logits[best]) * scale);
  double left = uniform(sampler->seed, index) * total;
  for (int64_t i = 0; i < vocabulary; i++) {
    double weight = logits[i] >= least ? exp(((double)logits[i] - logits[best]) * scale) : 0;
    if (weight == 0) continue;
    chosen = i; /* rounding may leave a rest behind the last one */
    left -= weight;
    if (left < 0) break;
  }
  return chosen;
}
