/* Metrics of classification: predictions compared with labels, class by class. */
#ifndef RUNTIME_REPORT_SCORE_H
#define RUNTIME_REPORT_SCORE_H

#include "include/accel/program.h"

/* How often a class was the label, was predicted, and was both. */
struct score_class {
  int64_t labels, predictions, both;
};

/* The classes belong to the caller. */
struct score {
  struct score_class *classes;
  int64_t n_classes, labels, right; /* of all classes */
};

/* Makes the score empty. */
void rt_score_clear(struct score *score);

/* Notes `count` predictions and their labels. A label below 0 does not count. */
void rt_score_note(struct score *score, const int32_t *predictions, const int32_t *labels, int64_t count);

/* Adds up the scores of all ranks along `axis`. The number of classes is the same on all. */
void rt_score_all_reduce(enum accel_axis axis, struct score *score);

/* The metric of this name: "accuracy", the fraction of labels that were predicted; "f1_binary", F1 of class 1, which is
 * 2 both / (labels + predictions) and 0 where it does not occur (f1_score of scikit-learn with average "binary");
 * "f1_macro", the mean of F1 over the classes that occur (average "macro"). Within 0 and 1; not a number without any
 * label or class. */
double rt_score_metric(const struct score *score, const char *name);

#endif
