/* Scores compared with labels. Each function sorts the pairs first, so that the bits of a result do not depend on
 * the order in which ranks saw them. */
#ifndef RUNTIME_REPORT_CORRELATION_H
#define RUNTIME_REPORT_CORRELATION_H

#include "runtime/report/score.h"

/* The fraction of pairs of a label 1 and a label 0 of which the first has the larger score, equal ones by half: the
 * area under the ROC curve. Not a number where all labels are equal or a score is not a number. */
double rt_auc(struct score_pair *pairs, int64_t count);

/* The mean score where a label is 1, and of its negative where it is 0. Not a number without any, or where a score is
 * not a number. */
double rt_margin(struct score_pair *pairs, int64_t count);

/* Pearson's correlation. Not a number where all scores or all labels are equal. */
double rt_pearson(struct score_pair *pairs, int64_t count);

/* Spearman's: Pearson's of the ranks, of which equal values share the mean. No memory: not a number. */
double rt_spearman(struct score_pair *pairs, int64_t count);

#endif
