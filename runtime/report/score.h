/* Metrics of an evaluation: predictions compared with labels. Classes are counted; scores are kept, to be sorted. */
#ifndef RUNTIME_REPORT_SCORE_H
#define RUNTIME_REPORT_SCORE_H

#include "include/accel/program.h"

/* How often a class was the label, was predicted, and was both. */
struct score_class {
  int64_t labels, predictions, both;
};

/* A score and the label that it is for. */
struct score_pair {
  double score, label;
};

/* The classes belong to the caller. */
struct score {
  enum accel_prediction kind; /* what predictions and labels are */
  struct score_class *classes;
  int64_t n_classes, labels, right; /* of all classes */
  int64_t samples, exact;           /* samples with a label; those of which all are right */
  int64_t spans, overlap;           /* samples with two labels, a span; the sum of the F1 of these, in 2^-32 */
  struct score_pair *pairs;         /* of scores and of values */
  int64_t n_pairs, capacity;
};

/* Makes the score empty. */
void rt_score_clear(struct score *score);

/* Notes the predictions for `samples` samples of `width` labels each, both of the types that score->kind says. A label
 * below 0 does not count. False: no memory for the pairs. */
bool rt_score_note(struct score *score, const void *predictions, const void *labels, int64_t samples, int64_t width);

/* Adds up the scores of all ranks along `axis` of the program's mesh, and gives each the pairs of all. The number of
 * classes is the same on all. False: no memory for the pairs. */
bool rt_score_all_reduce(const struct accel_program *program, enum accel_axis axis, struct score *score);

/* The metric of this name, as docs/training.md defines it. It is not a number without any label, and where its
 * definition divides by nothing: "auc" of labels of one class, "pearson" and "spearman" of values that are all equal.
 * Sorts the pairs. */
double rt_score_metric(struct score *score, const char *name);

#endif
