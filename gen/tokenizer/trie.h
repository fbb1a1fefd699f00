/* A trie: the texts of a vocabulary, byte by byte, and the token that each of them is. */
#ifndef ACCEL_TOKENIZER_TRIE_H
#define ACCEL_TOKENIZER_TRIE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trie;

/* The node of the empty text; no node at all. */
enum { TRIE_ROOT = 1, TRIE_NONE = 0 };

/* An empty trie; its texts will have at most `bytes` bytes together. NULL without memory. */
struct trie *trie_new(size_t bytes);

void trie_free(struct trie *trie);

/* Adds a text; of two of the same the last counts. */
void trie_add(struct trie *trie, const char *text, size_t size, uint32_t token);

/* The node of a node's text and one more byte; TRIE_NONE where no text of the trie begins so. */
uint32_t trie_step(const struct trie *trie, uint32_t node, unsigned char byte);

/* The node of a node's text and more of them. */
uint32_t trie_descend(const struct trie *trie, uint32_t node, const char *text, size_t size);

/* The token that a node's text is. False where it is none, as for TRIE_NONE. */
bool trie_token(const struct trie *trie, uint32_t node, uint32_t *token);

/* The token that a text is. */
bool trie_find(const struct trie *trie, const char *text, size_t size, uint32_t *token);

#endif
