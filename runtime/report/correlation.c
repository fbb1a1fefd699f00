#include "runtime/report/correlation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int order(double a, double b) {
  return (a > b) - (a < b);
}

static int by_score(const void *a, const void *b) {
  const struct score_pair *p = a, *q = b;
  const int scores = order(p->score, q->score);
  return scores != 0 ? scores : order(p->label, q->label);
}

static int by_label(const void *a, const void *b) {
  const struct score_pair *p = a, *q = b;
  return order(p->label, q->label);
}

/* Sorts by scores. False where a number is not one, which has no order. */
static bool sort(struct score_pair *pairs, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    if (isnan(pairs[i].score) || isnan(pairs[i].label)) return false;
  if (count > 0) qsort(pairs, (size_t)count, sizeof *pairs, by_score);
  return count > 0;
}

/* The sum of the positive labels' ranks among the scores, less the smallest that it can be (Mann and Whitney). Twice
 * the ranks are whole numbers, so the sum is exact. */
double rt_auc(struct score_pair *pairs, int64_t count) {
  double ranks = 0.0, positive = 0.0;
  if (!sort(pairs, count)) return NAN;
  for (int64_t from = 0, to; from < count; from = to) {
    int64_t among = 0;
    for (to = from; to < count && pairs[to].score == pairs[from].score; to++) among += pairs[to].label > 0.5;
    ranks += (double)among * (double)(from + to + 1); /* twice the mean of from + 1 ... to */
    positive += (double)among;
  }
  double negative = (double)count - positive;
  return positive > 0 && negative > 0 ? (ranks - positive * (positive + 1)) / (2 * positive * negative) : NAN;
}

double rt_margin(struct score_pair *pairs, int64_t count) {
  double sum = 0.0;
  if (!sort(pairs, count)) return NAN;
  for (int64_t i = 0; i < count; i++) sum += pairs[i].label > 0.5 ? pairs[i].score : -pairs[i].score;
  return sum / (double)count;
}

/* Of pairs in an order that the pairs alone decide. */
static double correlation(const struct score_pair *pairs, int64_t count) {
  double scores = 0.0, labels = 0.0, both = 0.0, square_scores = 0.0, square_labels = 0.0;
  for (int64_t i = 0; i < count; i++) {
    scores += pairs[i].score;
    labels += pairs[i].label;
  }
  for (int64_t i = 0; i < count; i++) {
    double score = pairs[i].score - scores / (double)count, label = pairs[i].label - labels / (double)count;
    both += score * label;
    square_scores += score * score;
    square_labels += label * label;
  }
  return square_scores > 0 && square_labels > 0 ? both / (sqrt(square_scores) * sqrt(square_labels)) : NAN;
}

double rt_pearson(struct score_pair *pairs, int64_t count) {
  return sort(pairs, count) ? correlation(pairs, count) : NAN;
}

/* Replaces the scores or, by their order, the labels by twice their ranks. */
static void rank_scores(struct score_pair *pairs, int64_t count) {
  for (int64_t from = 0, to; from < count; from = to) {
    double score = pairs[from].score;
    for (to = from; to < count && pairs[to].score == score;) to++;
    for (int64_t i = from; i < to; i++) pairs[i].score = (double)(from + to + 1);
  }
}

static void rank_labels(struct score_pair *pairs, int64_t count) {
  for (int64_t from = 0, to; from < count; from = to) {
    double label = pairs[from].label;
    for (to = from; to < count && pairs[to].label == label;) to++;
    for (int64_t i = from; i < to; i++) pairs[i].label = (double)(from + to + 1);
  }
}

double rt_spearman(struct score_pair *pairs, int64_t count) {
  if (!sort(pairs, count)) return NAN;
  struct score_pair *ranks = malloc((size_t)count * sizeof *ranks);
  if (ranks == NULL) return NAN;
  memcpy(ranks, pairs, (size_t)count * sizeof *ranks);
  rank_scores(ranks, count);
  qsort(ranks, (size_t)count, sizeof *ranks, by_label);
  rank_labels(ranks, count);
  double result = rt_pearson(ranks, count);
  free(ranks);
  return result;
}
