/* A file of tokens that is read. */
#ifndef ACCEL_COMMANDS_DATA_SOURCE_H
#define ACCEL_COMMANDS_DATA_SOURCE_H

#include "runtime/data/tokens.h"
#include "runtime/files/mapping.h"

struct token_source {
  const char *path;
  enum accel_format format;
  bool is_megatron;       /* instead of a format: the path is of its .idx, of its .bin, or without ending */
  struct mapping mapping; /* of the file that has the tokens */
  struct mapping index;   /* of Megatron's .idx */
  bool is_packed;         /* its content is bytes that are unpacked */
  struct tokens tokens;   /* of a file that is not packed */
};

/* Opens source->path and checks it. as_is: a compressed file of format bytes is not unpacked. False with a problem; to
 * be closed also then. */
bool source_open(struct token_source *source, bool as_is, struct problem *problem);

void source_close(struct token_source *source);

#endif
