/* The data of a run: all files opened, checked, and cut into splits. */
#ifndef RUNTIME_DATA_DATA_H
#define RUNTIME_DATA_DATA_H

#include "include/accel/trainer.h"
#include "runtime/base/problem.h"
#include "runtime/data/data_file.h"
#include "runtime/data/mixture.h"
#include "runtime/data/paths.h"

/* The files of one source of the job. */
struct data_files {
  struct paths paths;
  struct paths arrays[MOST_INPUTS]; /* by input: its own files, as many as paths; none: the paths have its numbers */
  struct data_file *files;          /* as many as paths */
  double *weights;                  /* of the files; NULL: none */
  int64_t count;                    /* tokens or rows of all files */
};

struct data_split {
  const struct data_files *source; /* NULL: this split does not exist */
  struct mixture mixture;
  int64_t shift; /* from the positions of the program to those in the mixture, among those of other ranks */
};

struct data {
  const struct accel_program *program; /* that it is for */
  struct data_files source[ACCEL_SPLITS];
  struct data_split split[ACCEL_SPLITS];
  struct data_rank own;
};

/* Opens and checks what `program` names, which it keeps, as the process `own`; `train_path` replaces its training path
 * unless NULL. Closed even after false. */
bool rt_data_open(struct data *data, const struct accel_program *program, struct data_rank own, const char *train_path,
                  struct problem *problem);

/* Opens and checks the evaluation split alone: of `path` unless NULL, else of what `program` names. */
bool rt_data_open_eval(struct data *data, const struct accel_program *program, const char *path,
                       struct problem *problem);

/* The position in its split's mixture of the first of this rank's samples from `position` on, as the program counts
 * them.
 */
int64_t rt_data_position(const struct data *data, enum accel_split which, int64_t position);

/* The tokens of a source that are trained on; -1 where all are, for no file says which. */
int64_t rt_data_trained(const struct data_files *source);

/* One line for the headline of a trainer: "corpus.txt: 1,115,394 tokens, 15,684 sequences to train on, 1,742 to
 * evaluate". */
void rt_data_describe(const struct data *data, char *out, size_t size);

void rt_data_close(struct data *data);

#endif
