#include "runtime/report/score.h"

#include "include/accel/collectives.h"

#include <assert.h>
#include <math.h>
#include <string.h>

void rt_score_clear(struct score *score) {
  if (score->n_classes > 0) memset(score->classes, 0, (size_t)score->n_classes * sizeof *score->classes);
  score->labels = score->right = 0;
}

void rt_score_note(struct score *score, const int32_t *predictions, const int32_t *labels, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    if (labels[i] < 0) continue;
    score->labels++;
    score->right += predictions[i] == labels[i];
    score->classes[predictions[i]].predictions++;
    if (labels[i] >= score->n_classes) continue; /* no class of the model's: never predicted */
    score->classes[labels[i]].labels++;
    score->classes[labels[i]].both += predictions[i] == labels[i];
  }
}

static_assert(sizeof(struct score_class) == 3 * sizeof(int64_t), "counts alone, in a row");

void rt_score_all_reduce(enum accel_axis axis, struct score *score) {
  int64_t sums[] = {score->labels, score->right};
  accel_all_reduce_counts(axis, sums, 2);
  score->labels = sums[0];
  score->right = sums[1];
  accel_all_reduce_counts(axis, &score->classes->labels, 3 * (size_t)score->n_classes);
}

static double accuracy(const struct score *score) {
  return score->labels > 0 ? (double)score->right / (double)score->labels : NAN;
}

static double f1(const struct score_class *class) {
  int64_t occurrences = class->labels + class->predictions;
  return occurrences > 0 ? 2.0 * (double)class->both / (double)occurrences : 0.0;
}

static double f1_macro(const struct score *score) {
  double sum = 0.0;
  int64_t occurring = 0;
  for (int64_t i = 0; i < score->n_classes; i++) {
    const struct score_class *class = &score->classes[i];
    sum += f1(class);
    occurring += class->labels + class->predictions > 0;
  }
  return occurring > 0 ? sum / (double)occurring : NAN;
}

double rt_score_metric(const struct score *score, const char *name) {
  if (strcmp(name, "accuracy") == 0) return accuracy(score);
  return strcmp(name, "f1_macro") == 0 ? f1_macro(score) : f1(&score->classes[1]);
}
