#include "gen/tokenizer/trie.h"

#include <stdlib.h>

/* An edge in an open hash table, by the node that it leaves and its byte. */
struct edge {
  uint64_t key; /* 0: the slot is free */
  uint32_t to;
};

struct trie {
  struct edge *edges;
  size_t mask;
  uint32_t *tokens; /* by node, counted from 1; 0: none */
  uint32_t count;   /* nodes, with TRIE_NONE */
};

struct trie *trie_new(size_t bytes) {
  size_t slots = 16;
  if (bytes >= UINT32_MAX / 4) return NULL;
  while (slots < 2 * bytes) slots *= 2;
  struct trie *trie = calloc(1, sizeof *trie);
  if (trie == NULL) return NULL;
  trie->mask = slots - 1;
  trie->count = TRIE_ROOT + 1;
  trie->edges = calloc(slots, sizeof *trie->edges);
  trie->tokens = calloc(bytes + trie->count, sizeof *trie->tokens);
  if (trie->edges != NULL && trie->tokens != NULL) return trie;
  trie_free(trie);
  return NULL;
}

void trie_free(struct trie *trie) {
  if (trie == NULL) return;
  free(trie->edges);
  free(trie->tokens);
  free(trie);
}

/* The slot of an edge, or where it would be. */
static struct edge *find(const struct trie *trie, uint64_t key) {
  size_t at = (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & trie->mask;
  while (trie->edges[at].key != 0 && trie->edges[at].key != key) at = (at + 1) & trie->mask;
  return &trie->edges[at];
}

static uint64_t key_of(uint32_t node, unsigned char byte) {
  return (uint64_t)node << 8 | byte;
}

uint32_t trie_step(const struct trie *trie, uint32_t node, unsigned char byte) {
  return node != TRIE_NONE ? find(trie, key_of(node, byte))->to : TRIE_NONE;
}

void trie_add(struct trie *trie, const char *text, size_t size, uint32_t token) {
  uint32_t node = TRIE_ROOT;
  for (size_t i = 0; i < size; i++) {
    struct edge *edge = find(trie, key_of(node, (unsigned char)text[i]));
    if (edge->key == 0) *edge = (struct edge){key_of(node, (unsigned char)text[i]), trie->count++};
    node = edge->to;
  }
  trie->tokens[node] = token + 1;
}

uint32_t trie_descend(const struct trie *trie, uint32_t node, const char *text, size_t size) {
  for (size_t i = 0; i < size && node != TRIE_NONE; i++) node = trie_step(trie, node, (unsigned char)text[i]);
  return node;
}

bool trie_token(const struct trie *trie, uint32_t node, uint32_t *token) {
  if (node == TRIE_NONE || trie->tokens[node] == 0) return false;
  *token = trie->tokens[node] - 1;
  return true;
}

bool trie_find(const struct trie *trie, const char *text, size_t size, uint32_t *token) {
  return trie_token(trie, trie_descend(trie, TRIE_ROOT, text, size), token);
}
