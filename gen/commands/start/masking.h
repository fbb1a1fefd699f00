/* Masking: which token of a folder of Hugging Face hides others in masked language modelling. */
#ifndef ACCEL_COMMANDS_START_MASKING_H
#define ACCEL_COMMANDS_START_MASKING_H

#include <stdint.h>

#include "gen/base/arena.h"

/* The number of the token that tokenizer_config.json or special_tokens_map.json of the folder calls mask_token, by the
 * added tokens of its tokenizer.json; -1: the folder names none. */
int64_t masking_token(struct arena *arena, const char *folder);

#endif
