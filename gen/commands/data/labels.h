/* Labels: the names of classes and their numbers, as id2label of a config.json has them. */
#ifndef ACCEL_COMMANDS_DATA_LABELS_H
#define ACCEL_COMMANDS_DATA_LABELS_H

#include <stdint.h>

#include "runtime/base/problem.h"

struct json_t;

struct labels {
  struct json_t *numbers; /* by name */
  bool given;             /* no other name may occur */
};

/* The next name of a list between commas, without the blanks around it: ends it in the text, and moves *at to the rest,
 * or to NULL where none follows. */
char *labels_next(char **at);

/* Begins with the names of a list: "a,b,c", or a JSON file with id2label, such as a config.json; NULL: with none, and
 * each name that occurs becomes one. False with a problem. Ended also after false. */
bool labels_begin(struct labels *labels, const char *list, struct problem *problem);

int64_t labels_count(const struct labels *labels);

/* The number of a label, a text, a whole number or a truth value of JSON. -1 with a problem: it has no name, or one
 * that is not in the given list. */
int64_t labels_number(struct labels *labels, const struct json_t *value, struct problem *problem);

/* The number of the label whose name is text. -1 with a problem. */
int64_t labels_number_of(struct labels *labels, const char *name, struct problem *problem);

/* Forgets the names after the first `count`: those of a record that turned out to be bad. */
void labels_cut(struct labels *labels, int64_t count);

/* Forgets names that were not given and that none of `count` labels has: those of samples that were left out. Renumbers
 * the labels. False: no memory. */
bool labels_drop_unused(struct labels *labels, int32_t *numbers, int64_t count);

/* Sorts names that were not given: by their numbers where all are whole numbers, else by their bytes. Returns the new
 * number of each old one, memory of the caller's; NULL without memory. */
int32_t *labels_sort(struct labels *labels);

/* Writes id2label, label2id, num_labels and problem_type as JSON. NULL: `labels` of a value, which has no names. */
bool labels_write(const struct labels *labels, const char *path, const char *problem_type, struct problem *problem);

void labels_end(struct labels *labels);

#endif
