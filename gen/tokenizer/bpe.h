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

/* What joining needs while it runs; zero to begin with. */
struct bpe_scratch {
  struct bpe_pair *heap;
  struct bpe_symbol *symbols;
  size_t n_heap, capacity; /* capacity: of symbols; the heap has three times as many */
};

/* Joins tokens[0 … *count - 1] in place; *count: how many are left. False without memory. */
bool bpe_join(const struct bpe *bpe, struct bpe_scratch *scratch, uint32_t *tokens, size_t *count);

void bpe_scratch_free(struct bpe_scratch *scratch);

#endif
