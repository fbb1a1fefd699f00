/* Byte-pair encoding (Sennrich, Haddow, Birch, arXiv:1508.07909) of one word: of all neighbours that a merge joins,
 * those of the lowest rank are joined, the leftmost first, until none is left. */
#ifndef ACCEL_TOKENIZER_BPE_H
#define ACCEL_TOKENIZER_BPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bpe;

/* Merges from nothing; `most` of them will be added. NULL without memory. */
struct bpe *bpe_new(size_t most);

void bpe_free(struct bpe *bpe);

/* Adds the merge of the next rank. */
void bpe_merge(struct bpe *bpe, uint32_t left, uint32_t right, uint32_t joined);

/* Joins tokens[0 … count - 1] in place; returns how many are left. False without memory. */
bool bpe_join(struct bpe *bpe, uint32_t *tokens, size_t *count);

#endif
