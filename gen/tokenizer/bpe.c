#include "gen/tokenizer/bpe.h"

#include <stdlib.h>

/* A merge in an open hash table. */
struct merge {
  uint32_t left, right, joined, rank; /* rank counts from 1; 0: the slot is free */
};

/* A pair of neighbours that can be joined. */
struct bpe_pair {
  uint32_t rank, at; /* the index of the left symbol */
  uint32_t left, right, joined;
};

struct bpe_symbol {
  uint32_t token;
  int32_t before, after; /* -1: none */
};

struct bpe {
  struct merge *merges;
  size_t mask;
  uint32_t count;
};

struct bpe *bpe_new(size_t most) {
  struct bpe *bpe = calloc(1, sizeof *bpe);
  size_t size = 16;
  while (size < 2 * most) size *= 2;
  if (bpe == NULL) return NULL;
  bpe->mask = size - 1;
  bpe->merges = calloc(size, sizeof *bpe->merges);
  if (bpe->merges != NULL) return bpe;
  free(bpe);
  return NULL;
}

void bpe_free(struct bpe *bpe) {
  if (bpe == NULL) return;
  free(bpe->merges);
  free(bpe);
}

/* Where a pair is, or would be. */
static struct merge *find(const struct bpe *bpe, uint32_t left, uint32_t right) {
  uint64_t key = ((uint64_t)left << 32 | right) * UINT64_C(0x9e3779b97f4a7c15);
  size_t at = (size_t)(key >> 32) & bpe->mask;
  while (bpe->merges[at].rank != 0 && (bpe->merges[at].left != left || bpe->merges[at].right != right))
    at = (at + 1) & bpe->mask;
  return &bpe->merges[at];
}

void bpe_merge(struct bpe *bpe, uint32_t left, uint32_t right, uint32_t joined) {
  *find(bpe, left, right) = (struct merge){left, right, joined, ++bpe->count}; /* of two of the same the last counts */
}

static bool is_before(const struct bpe_pair *a, const struct bpe_pair *b) {
  return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void push(struct bpe_scratch *scratch, struct bpe_pair pair) {
  size_t at = scratch->n_heap++;
  for (; at > 0 && is_before(&pair, &scratch->heap[(at - 1) / 2]); at = (at - 1) / 2)
    scratch->heap[at] = scratch->heap[(at - 1) / 2];
  scratch->heap[at] = pair;
}

static struct bpe_pair pop(struct bpe_scratch *scratch) {
  struct bpe_pair first = scratch->heap[0], last = scratch->heap[--scratch->n_heap];
  size_t at = 0;
  for (size_t next; (next = 2 * at + 1) < scratch->n_heap; at = next) {
    if (next + 1 < scratch->n_heap && is_before(&scratch->heap[next + 1], &scratch->heap[next])) next++;
    if (!is_before(&scratch->heap[next], &last)) break;
    scratch->heap[at] = scratch->heap[next];
  }
  scratch->heap[at] = last;
  return first;
}

/* Notes that the symbol and the one after it can be joined, if they can. */
static void note(const struct bpe *bpe, struct bpe_scratch *scratch, int32_t at) {
  if (at < 0 || scratch->symbols[at].after < 0) return;
  uint32_t left = scratch->symbols[at].token, right = scratch->symbols[scratch->symbols[at].after].token;
  const struct merge *merge = find(bpe, left, right);
  if (merge->rank != 0) push(scratch, (struct bpe_pair){merge->rank, (uint32_t)at, left, right, merge->joined});
}

static bool reserve(struct bpe_scratch *scratch, size_t count) {
  if (count <= scratch->capacity) return true;
  if (count > INT32_MAX / 4) return false;
  free(scratch->heap);
  free(scratch->symbols);
  scratch->heap =
      malloc(3 * count * sizeof *scratch->heap); /* each join notes two more, and there are fewer than count */
  scratch->symbols = malloc(count * sizeof *scratch->symbols);
  scratch->capacity = scratch->heap != NULL && scratch->symbols != NULL ? count : 0;
  return scratch->capacity > 0;
}

bool bpe_join(const struct bpe *bpe, struct bpe_scratch *scratch, uint32_t *tokens, size_t *count) {
  int32_t n = (int32_t)*count;
  if (*count < 2) return true;
  if (!reserve(scratch, *count)) return false;
  for (int32_t i = 0; i < n; i++) scratch->symbols[i] = (struct bpe_symbol){tokens[i], i - 1, i + 1 < n ? i + 1 : -1};
  scratch->n_heap = 0;
  for (int32_t i = 0; i + 1 < n; i++) note(bpe, scratch, i);
  while (scratch->n_heap > 0) {
    struct bpe_pair pair = pop(scratch);
    struct bpe_symbol *left = &scratch->symbols[pair.at];
    /* What was noted before one of the two changed is no pair any more. A merged symbol has no neighbours. */
    if (left->after < 0 || left->token != pair.left || scratch->symbols[left->after].token != pair.right) continue;
    struct bpe_symbol *right = &scratch->symbols[left->after];
    left->token = pair.joined;
    left->after = right->after;
    if (left->after >= 0) scratch->symbols[left->after].before = (int32_t)pair.at;
    right->after = -1;
    note(bpe, scratch, left->before);
    note(bpe, scratch, (int32_t)pair.at);
  }
  *count = 0;
  for (int32_t i = 0; i >= 0; i = scratch->symbols[i].after) tokens[(*count)++] = scratch->symbols[i].token;
  return true;
}

void bpe_scratch_free(struct bpe_scratch *scratch) {
  free(scratch->heap);
  free(scratch->symbols);
  *scratch = (struct bpe_scratch){0};
}
