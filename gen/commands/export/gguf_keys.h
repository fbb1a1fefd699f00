/* The metadata of a file of GGUF. */
#ifndef ACCEL_COMMANDS_EXPORT_GGUF_KEYS_H
#define ACCEL_COMMANDS_EXPORT_GGUF_KEYS_H

#include "gen/commands/export/export.h"
#include "gen/commands/export/gguf_header.h"

/* Adds what the family's table gguf_keys has. False with errors: a value that such a file cannot have, a field of the
 * config that no row has, a family without the table. */
bool gguf_add_keys(struct exported *of, struct gguf_metadata *metadata);

/* Adds the folder's tokenizer, with a token for each of the model's numbers. False with errors. */
bool gguf_add_tokenizer(struct exported *of, struct gguf_metadata *metadata);

#endif
