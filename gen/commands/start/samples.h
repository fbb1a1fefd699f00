/* Samples: what a file of training data is, by its name and its first bytes. */
#ifndef ACCEL_COMMANDS_START_SAMPLES_H
#define ACCEL_COMMANDS_START_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

#include "gen/base/arena.h"
#include "gen/model/sample.h"
#include "runtime/base/problem.h"

struct samples {
  const char *format; /* as data.train.format has it */
  int64_t features;   /* of a row, without its label; 0: the file has tokens */
  bool chats;         /* JSON Lines of messages, or of prompts and completions */
  bool texts;         /* JSON Lines with a field `text` */
  bool compressed;    /* by gzip or zstd, which a job does not unpack */
};

/* Looks at a file. False, and why in errno, where it cannot be read. */
bool samples_look(struct arena *arena, const char *path, struct samples *samples);

/* Of a .npz: the arrays that are inputs of the model, as data.inputs in YAML's flow form, with the shape of a sample.
 * An input that is among `known` has the type that it has there; others are int32 where an array is of integers. False
 * with a problem where it cannot be read, or has none of them. */
bool samples_inputs(struct arena *arena, const char *path, const struct tree *model, const struct sample_tensors *known,
                    const char **inputs, struct problem *problem);

#endif
