/* A charsmap: SentencePiece's table of replacements, such as nmt_nfkc, as its models and tokenizer.json carry it
 * (precompiled_charsmap): 4 bytes with the size of a trie, the trie as a double array of darts-clone, and the texts
 * that replace, each ending with a zero byte. All numbers are little endian. */
#ifndef ACCEL_TOKENIZER_CHARSMAP_H
#define ACCEL_TOKENIZER_CHARSMAP_H

#include "gen/tokenizer/bytes.h"

struct charsmap {
  unsigned char *bytes; /* its own */
  const unsigned char *units, *texts;
  size_t n_units, n_texts; /* texts: bytes of them, which end with 0 */
};

/* Reads a charsmap from its base64. False where it is none, or there is no memory: free it all the same. */
bool charsmap_read(struct charsmap *charsmap, const char *base64, size_t size);

void charsmap_free(struct charsmap *charsmap);

/* Adds a text with its replacements to `form`. As the library tokenizers does it, what is looked up is a grapheme
 * cluster of less than 6 bytes, and else each of its characters; of the entries that begin it, the shortest counts. */
void charsmap_apply(const struct charsmap *charsmap, const char *text, size_t size, struct bytes *form);

#endif
