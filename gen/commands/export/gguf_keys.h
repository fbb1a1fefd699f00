/* The metadata of a file of GGUF. */
#ifndef ACCEL_COMMANDS_EXPORT_GGUF_KEYS_H
#define ACCEL_COMMANDS_EXPORT_GGUF_KEYS_H

#include "gen/commands/export/export.h"
#include "gen/commands/export/gguf_header.h"

/* Adds what the family's table gguf_keys has. False with errors: a value that such a file cannot have, a field of the
 * config that no row has, a family without the table. */
bool gguf_add_keys(struct exported *of, struct gguf_metadata *metadata);

/* The number of layers, which the table calls "block_count". False with an error where it has no such row. */
bool gguf_layers(struct exported *of, int64_t *layers);

/* Adds the folder's tokenizer, with a token for each of the model's numbers. *strips becomes whether it strips blanks
 * after its added tokens as Phi 3's do. False with errors. */
bool gguf_add_tokenizer(struct exported *of, struct gguf_metadata *metadata, bool *strips);

#endif
