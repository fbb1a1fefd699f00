/* Samples: what a file of training data is, by its name and its first bytes. */
#ifndef ACCEL_COMMANDS_START_SAMPLES_H
#define ACCEL_COMMANDS_START_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

#include "gen/base/arena.h"

struct samples {
  const char *format; /* as data.train.format has it */
  int64_t features;   /* of a row, without its label; 0: the file has tokens */
  bool chats;         /* JSON Lines of messages, or of prompts and completions */
  bool texts;         /* JSON Lines with a field `text` */
};

/* Looks at a file. False, and why in errno, where it cannot be read. */
bool samples_look(struct arena *arena, const char *path, struct samples *samples);

#endif
