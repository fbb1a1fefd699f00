/* The data of a run: both sources opened, checked, and cut into splits. */
#ifndef RUNTIME_DATA_H
#define RUNTIME_DATA_H

#include "csv.h"
#include "mapping.h"
#include "order.h"
#include "problem.h"
#include "tokens.h"
#include "trainer.h"

/* A file: tokens or a table. */
struct data_file {
  const char *path; /* NULL: not open */
  enum accel_format format;
  struct mapping mapping; /* of token files; tables live in memory */
  struct tokens tokens;
  struct table table;
};

struct data_split {
  const struct data_file *file; /* NULL: this split does not exist */
  struct order order;
  int64_t shift; /* from the positions of the program to those in the order, beside those of other ranks */
};

struct data {
  struct data_file file[ACCEL_SPLITS];
  struct data_split split[ACCEL_SPLITS];
  int64_t sequence_length, vocabulary;
  struct world world;
};

/* Opens and checks what `program` names, for a process of `world`; `train_path` replaces its training path unless
 * NULL. */
bool rt_data_open(struct data *data, const struct accel_program *program, struct world world, const char *train_path,
                  struct problem *problem);

/* The place in its split's order of the first of this rank's samples from `position` on, as the program counts them. */
int64_t rt_data_position(const struct data *data, enum accel_split which, int64_t position);

/* One line for the headline: "corpus.txt: 1,115,394 tokens, 15,684 windows to train on, 1,742 to evaluate". */
void rt_data_describe(const struct data *data, char *out, size_t size);

void rt_data_close(struct data *data);

#endif
