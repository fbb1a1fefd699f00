/* A file of tokens that is read. */
#ifndef ACCEL_COMMANDS_DATA_SOURCE_H
#define ACCEL_COMMANDS_DATA_SOURCE_H

#include "gen/base/arena.h"
#include "runtime/data/tokens.h"
#include "runtime/files/mapping.h"

struct token_source {
  const char *path;
  enum accel_format format;
  bool is_megatron; /* instead of a format: `path` is the .bin of a dataset, and `index_path` its .idx */
  const char *index_path;
  struct mapping mapping; /* of the file that has the tokens */
  struct mapping index;   /* of Megatron's .idx */
  bool is_packed;         /* its content is bytes that are unpacked */
  bool is_shard;          /* its content has samples */
  struct tokens tokens;   /* of a file that is not packed */
};

/* A source of `path`; of a dataset of Megatron that is its .idx, its .bin or its name without ending. Texts are the
 * arena's. */
struct token_source token_source_of(struct arena *arena, const char *path, enum accel_format format, bool is_megatron);

/* Opens source->path and checks it. as_is: a compressed file of format bytes is not unpacked. False with a problem; to
 * be closed also then. */
bool source_open(struct token_source *source, bool as_is, struct problem *problem);

void source_close(struct token_source *source);

#endif
