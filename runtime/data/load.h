/* Samples for a step, by their positions. No allocation, no system call: the files are mapped, the tables are in
 * memory. A sample that is no more what it was when the data was opened ends the process, and so does a split that does
 * not exist.
 *
 * All functions give the samples `position` ... `position` + `count` - 1 of a split, positions counted as the program
 * counts them for this rank. An array that is NULL is not asked for. The target, or class, of a position without a
 * sample is program->no_target. */
#ifndef RUNTIME_DATA_LOAD_H
#define RUNTIME_DATA_LOAD_H

#include "runtime/data/data.h"

/* Sequences: tokens and those that follow them, [count][sequence_length] each. */
void rt_load_sequences(const struct data *data, enum accel_split which, int64_t position, int64_t count,
                       int32_t *tokens, int32_t *targets);

/* The same of documents, one after the other in a sequence, or each in one of its own: of each position also where its
 * document begins in the sequence, and how far it is from there. */
void rt_load_documents(const struct data *data, enum accel_split which, int64_t position, int64_t count,
                       int32_t *tokens, int32_t *targets, int32_t *starts, int32_t *positions);

/* Sequences for masked language modelling; not both arrays are NULL. */
void rt_load_masked(const struct data *data, enum accel_split which, int64_t position, int64_t count, int32_t *tokens,
                    int32_t *targets);

/* An input of rows, by its index, of its dtype: [count][width]. */
void rt_load_input(const struct data *data, enum accel_split which, int64_t position, int64_t count, int input,
                   void *values);

#endif
