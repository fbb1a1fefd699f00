/* A tokenizer.json with the pieces of SentencePiece (BPE that falls back to bytes: Llama 2, Mistral, Gemma) as metadata
 * of GGUF. */
#ifndef ACCEL_COMMANDS_EXPORT_GGUF_PIECES_H
#define ACCEL_COMMANDS_EXPORT_GGUF_PIECES_H

#include "gen/commands/export/gguf_vocabulary.h"

/* Whether a tokenizer is of this kind. */
bool gguf_has_pieces(const json_t *tokenizer);

/* Adds its tokens with their scores, and whether a text gets a blank before it. llama.cpp joins the neighbours whose
 * token has the highest score, where a tokenizer.json lists the pairs to join; so the score of a token is the rank of
 * the pairs that give it. False with an error where no scores join what the pairs do, or where texts are changed
 * otherwise than by writing blanks as U+2581. */
bool gguf_add_pieces(const struct exported *of, json_t *tokenizer, struct vocabulary *vocabulary,
                     struct gguf_metadata *metadata);

#endif
