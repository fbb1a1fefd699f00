#include "runtime/report/score.h"

#include "include/accel/collectives.h"
#include "runtime/process/world.h"
#include "runtime/report/correlation.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Notes ---- */

void rt_score_clear(struct score *score) {
  if (score->n_classes > 0) memset(score->classes, 0, (size_t)score->n_classes * sizeof *score->classes);
  score->labels = score->right = score->samples = score->exact = score->spans = score->overlap = score->n_pairs = 0;
}

static bool reserve(struct score *score, int64_t more) {
  if (score->n_pairs + more <= score->capacity) return true;
  int64_t capacity = 2 * (score->n_pairs + more);
  struct score_pair *grown = realloc(score->pairs, (size_t)capacity * sizeof *grown);
  if (grown == NULL) return false;
  score->pairs = grown;
  score->capacity = capacity;
  return true;
}

/* Notes a class and its label; whether they are equal. */
static bool note_class(struct score *score, int64_t predicted, int64_t label) {
  score->labels++;
  score->right += predicted == label;
  score->classes[predicted].predictions++;
  if (label >= score->n_classes) return false; /* no class of the model's: never predicted */
  score->classes[label].labels++;
  score->classes[label].both += predicted == label;
  return predicted == label;
}

/* Notes whether the label of a column holds. Counts of a column are those of the samples where it does. */
static bool note_column(struct score *score, int64_t column, bool predicted, bool holds) {
  struct score_class *class = &score->classes[column];
  score->labels++;
  score->right += predicted == holds;
  class->labels += holds;
  class->predictions += predicted;
  class->both += predicted && holds;
  return predicted == holds;
}

/* Element `at` of a sample, its column `column`. *counts: whether it has a label. Returns whether that is predicted. */
static bool note_one(struct score *score, const void *predictions, const void *labels, int64_t at, int64_t column,
                     bool *counts) {
  const int32_t *classes = predictions, *numbers = labels;
  const float *scores = predictions, *values = labels;
  if (score->kind == ACCEL_PREDICTS_LABELS) {
    *counts = values[at] >= 0;
    return *counts && note_column(score, column, classes[at] > 0, values[at] > 0.5f);
  }
  if (score->kind == ACCEL_PREDICTS_VALUES) {
    score->pairs[score->n_pairs++] = (struct score_pair){scores[at], values[at]};
    *counts = true;
    return scores[at] == values[at];
  }
  *counts = numbers[at] >= 0;
  if (!*counts) return false;
  if (score->kind == ACCEL_PREDICTS_CLASSES) return note_class(score, classes[at], numbers[at]);
  score->pairs[score->n_pairs++] = (struct score_pair){scores[at], numbers[at]};
  return note_class(score, scores[at] > 0, numbers[at]);
}

/* The F1 score of a predicted span, from one position to another, and the one of the label: the harmonic mean of the
 * fractions of both that are common (Rajpurkar et al., arXiv:1606.05250, section 6.1). A whole number, so that sums do
 * not depend on their order. */
static int64_t f1_of_span(const int32_t *predicted, const int32_t *label) {
  const int64_t from = predicted[0] > label[0] ? predicted[0] : label[0];
  const int64_t to = predicted[1] < label[1] ? predicted[1] : label[1], both = to - from + 1;
  const int64_t all = (int64_t)predicted[1] - predicted[0] + 1 + ((int64_t)label[1] - label[0] + 1);
  const bool valid = predicted[0] <= predicted[1] && label[0] <= label[1] && both > 0;
  return valid ? (int64_t)(2.0 * (double)both / (double)all * 0x1p32) : 0;
}

bool rt_score_note(struct score *score, const void *predictions, const void *labels, int64_t samples, int64_t width) {
  bool keeps = score->kind == ACCEL_PREDICTS_SCORES || score->kind == ACCEL_PREDICTS_VALUES;
  if (keeps && !reserve(score, samples * width)) return false;
  for (int64_t sample = 0; sample < samples; sample++) {
    bool any = false, whole = true, all = true, counts;
    for (int64_t i = 0; i < width; i++) {
      bool right = note_one(score, predictions, labels, sample * width + i, i, &counts);
      any |= counts;
      whole &= counts;
      all &= right || !counts;
    }
    if (score->kind == ACCEL_PREDICTS_CLASSES && width == 2 && whole) {
      score->spans++;
      score->overlap += f1_of_span((const int32_t *)predictions + sample * 2, (const int32_t *)labels + sample * 2);
    }
    score->samples += any;
    score->exact += any && all;
  }
  return true;
}

/* ---- Ranks ---- */

static_assert(sizeof(struct score_class) == 3 * sizeof(int64_t), "counts alone, in a row");
static_assert(sizeof(struct score_pair) == 2 * sizeof(double), "numbers alone, in a row");

/* The pairs of all ranks, rank by rank: each adds its own to zeros, which changes no bit of them. */
static bool gather_pairs(const struct accel_program *program, enum accel_axis axis, struct score *score) {
  enum { AT_ONCE = 1 << 14 };
  int ranks = rt_length_along(program, axis), rank = rt_rank_along(program, axis);
  int64_t *counts = calloc((size_t)ranks, sizeof *counts), own = score->n_pairs, before = 0, all = 0;
  if (counts == NULL) return false;
  counts[rank] = own;
  accel_all_reduce_counts(axis, counts, (size_t)ranks);
  for (int r = 0; r < ranks; r++) {
    before += r < rank ? counts[r] : 0;
    all += counts[r];
  }
  free(counts);
  if (!reserve(score, all - own)) return false;
  struct score_pair *pairs = score->pairs;
  memmove(pairs + before, pairs, (size_t)own * sizeof *pairs);
  memset(pairs, 0, (size_t)before * sizeof *pairs);
  memset(pairs + before + own, 0, (size_t)(all - before - own) * sizeof *pairs);
  for (int64_t at = 0; at < all; at += AT_ONCE)
    accel_all_reduce_doubles(axis, &pairs[at].score, 2 * (size_t)(all - at < AT_ONCE ? all - at : AT_ONCE));
  score->n_pairs = all;
  return true;
}

bool rt_score_all_reduce(const struct accel_program *program, enum accel_axis axis, struct score *score) {
  enum { COUNTS = 6 };
  int64_t *own[COUNTS] = {&score->labels, &score->right, &score->samples,
                          &score->exact,  &score->spans, &score->overlap};
  int64_t sums[COUNTS];
  for (int i = 0; i < COUNTS; i++) sums[i] = *own[i];
  accel_all_reduce_counts(axis, sums, COUNTS);
  for (int i = 0; i < COUNTS; i++) *own[i] = sums[i];
  if (score->n_classes > 0) accel_all_reduce_counts(axis, &score->classes->labels, 3 * (size_t)score->n_classes);
  bool keeps = score->kind == ACCEL_PREDICTS_SCORES || score->kind == ACCEL_PREDICTS_VALUES;
  return !keeps || gather_pairs(program, axis, score);
}

/* ---- Metrics of counts ---- */

static double ratio(int64_t part, int64_t whole) {
  return whole > 0 ? (double)part / (double)whole : NAN;
}

static double f1(const struct score_class *class) {
  int64_t occurrences = class->labels + class->predictions;
  return occurrences > 0 ? 2.0 * (double)class->both / (double)occurrences : 0.0;
}

/* Of classes, the mean over those that occur; of columns of labels, over all. */
static double f1_macro(const struct score *score) {
  double sum = 0.0;
  int64_t occurring = 0;
  for (int64_t i = 0; i < score->n_classes; i++) {
    const struct score_class *class = &score->classes[i];
    sum += f1(class);
    occurring += score->kind == ACCEL_PREDICTS_LABELS || class->labels + class->predictions > 0;
  }
  return occurring > 0 && score->labels > 0 ? sum / (double)occurring : NAN;
}

static double f1_micro(const struct score *score) {
  if (score->kind != ACCEL_PREDICTS_LABELS) return ratio(score->right, score->labels);
  struct score_class all = {0};
  for (int64_t i = 0; i < score->n_classes; i++) {
    all.labels += score->classes[i].labels;
    all.predictions += score->classes[i].predictions;
    all.both += score->classes[i].both;
  }
  return score->labels > 0 ? f1(&all) : NAN;
}

/* The correlation of label and prediction as indicators of classes (Gorodkin, Comput. Biol. Chem. 28, 2004); 0 where
 * one of them has a single class. */
static double matthews(const struct score *score) {
  double all = (double)score->labels, both = 0.0, labels = 0.0, predictions = 0.0;
  for (int64_t i = 0; i < score->n_classes; i++) {
    const struct score_class *class = &score->classes[i];
    both += (double)class->labels * (double)class->predictions;
    labels += (double)class->labels * (double)class->labels;
    predictions += (double)class->predictions * (double)class->predictions;
  }
  double square = (all * all - labels) * (all * all - predictions);
  if (score->labels == 0) return NAN;
  return square > 0 ? ((double)score->right * all - both) / sqrt(square) : 0.0;
}

double rt_score_metric(struct score *score, const char *name) {
  if (strcmp(name, "accuracy") == 0) return ratio(score->right, score->labels);
  if (strcmp(name, "exact_match") == 0) return ratio(score->exact, score->samples);
  if (strcmp(name, "f1_macro") == 0) return f1_macro(score);
  if (strcmp(name, "f1_micro") == 0) return f1_micro(score);
  if (strcmp(name, "matthews") == 0) return matthews(score);
  if (strcmp(name, "token_f1") == 0) return ratio(score->overlap, score->spans) * 0x1p-32;
  if (strcmp(name, "margin") == 0) return rt_margin(score->pairs, score->n_pairs);
  if (strcmp(name, "auc") == 0) return rt_auc(score->pairs, score->n_pairs);
  if (strcmp(name, "pearson") == 0) return rt_pearson(score->pairs, score->n_pairs);
  if (strcmp(name, "spearman") == 0) return rt_spearman(score->pairs, score->n_pairs);
  return f1(&score->classes[1]);
}
