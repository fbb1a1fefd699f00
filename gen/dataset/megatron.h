/* Megatron-LM's indexed datasets (megatron/core/datasets/indexed_dataset.py): NAME.idx says what is in NAME.bin, which
 * has tokens and nothing else. Little endian:
 *
 *    0  "MMIDIDX" and two zeros
 *    9  uint64   version: 1
 *   17  uint8    type of a token: 1 uint8, 2 int8, 3 int16, 4 int32, 5 int64, 6 float64, 7 float32, 8 uint16
 *   18  uint64   sequences
 *   26  uint64   numbers of the last list below: one more than documents
 *   34  int32    for each sequence its tokens
 *       int64    for each sequence the byte of NAME.bin where it begins
 *       int64    for each document its first sequence, and then the number of sequences
 *       int8     with several modalities, for each sequence its mode
 *
 * Knows nothing of files, so that it can be fuzzed. */
#ifndef ACCEL_DATASET_MEGATRON_H
#define ACCEL_DATASET_MEGATRON_H

#include "runtime/data/tokens.h"

/* A file in memory. */
struct dataset_file {
  const char *path; /* for messages */
  const uint8_t *bytes;
  size_t size;
};

/* Finds the tokens of a dataset, and where its documents begin; a document without tokens is left out. The starts are
 * memory of the caller's, tokens->starts, to be freed. `forget` is called after each chunk of `bin` that was read,
 * unless it is NULL. False with a problem, without memory to be freed. */
bool megatron_find(struct tokens *tokens, struct dataset_file idx, struct dataset_file bin,
                   void (*forget)(const uint8_t *from, size_t size), struct problem *problem);

#endif
