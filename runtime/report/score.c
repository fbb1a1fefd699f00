/* Metrics of classification. */
#include "include/accel/collectives.h"

#include <assert.h>
#include <math.h>
#include <string.h>

struct accel_score accel_score_of(struct accel_class *classes, int64_t n_classes) {
  memset(classes, 0, (size_t)n_classes * sizeof *classes);
  return (struct accel_score){.classes = classes, .n_classes = n_classes};
}

void accel_score(struct accel_score *score, const int32_t *predictions, const int32_t *labels, int64_t count) {
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

static_assert(sizeof(struct accel_class) == 3 * sizeof(int64_t), "counts alone, in a row");

void accel_all_reduce_score(enum accel_axis axis, struct accel_score *score) {
  int64_t sums[] = {score->labels, score->right};
  accel_all_reduce_counts(axis, sums, 2);
  score->labels = sums[0];
  score->right = sums[1];
  accel_all_reduce_counts(axis, &score->classes->labels, 3 * (size_t)score->n_classes);
}

double accel_accuracy(const struct accel_score *score) {
  return score->labels > 0 ? (double)score->right / (double)score->labels : NAN;
}

static double f1(const struct accel_class *class) {
  int64_t occurrences = class->labels + class->predictions;
  return occurrences > 0 ? 2.0 * (double)class->both / (double)occurrences : 0.0;
}

double accel_f1_binary(const struct accel_score *score) {
  return f1(&score->classes[1]);
}

double accel_f1_macro(const struct accel_score *score) {
  double sum = 0.0;
  int64_t occurring = 0;
  for (int64_t i = 0; i < score->n_classes; i++) {
    const struct accel_class *class = &score->classes[i];
    sum += f1(class);
    occurring += class->labels + class->predictions > 0;
  }
  return occurring > 0 ? sum / (double)occurring : NAN;
}
