#include "gen/commands/data/batch.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "gen/tokenizer/bytes.h"

/* A document, and its tokens. */
struct document_tokens {
  const char *path;
  size_t from, size; /* of its text in the batch's */
  uint32_t *tokens;  /* memory that stays for the documents of the next batch */
  uint8_t *marks;    /* as many, and as long */
  size_t count, capacity;
  struct text_range *ranges; /* of its text */
  size_t n_ranges, ranges_capacity;
  bool failed;
  struct problem problem; /* where it failed */
};

struct batch {
  struct encoder **encoders;
  int n_encoders;
  struct bytes text; /* of all documents, one after another */
  struct document_tokens *documents;
  int count, capacity;
};

/* Room for `count` documents, of which new ones have no memory yet. */
static bool reserve(struct batch *batch, int count) {
  if (count <= batch->capacity) return true;
  const int capacity = 2 * batch->capacity > count ? 2 * batch->capacity : count;
  struct document_tokens *grown = realloc(batch->documents, (size_t)capacity * sizeof *grown);
  if (grown == NULL) return false;
  memset(grown + batch->capacity, 0, (size_t)(capacity - batch->capacity) * sizeof *grown);
  batch->documents = grown;
  batch->capacity = capacity;
  return true;
}

struct batch *batch_new(const struct tokenizer *tokenizer) {
  struct batch *batch = calloc(1, sizeof *batch);
  if (batch == NULL) return NULL;
  int threads = omp_get_max_threads();
  batch->encoders = calloc((size_t)threads, sizeof *batch->encoders);
  bool good = batch->encoders != NULL && reserve(batch, BATCH_DOCUMENTS);
  for (; good && batch->n_encoders < threads; batch->n_encoders++) {
    batch->encoders[batch->n_encoders] = encoder_new(tokenizer);
    good = batch->encoders[batch->n_encoders] != NULL;
  }
  if (good) return batch;
  batch_free(batch);
  return NULL;
}

void batch_free(struct batch *batch) {
  if (batch == NULL) return;
  for (int i = 0; i < batch->n_encoders; i++) encoder_free(batch->encoders[i]);
  for (int i = 0; i < batch->capacity; i++) {
    free(batch->documents[i].tokens);
    free(batch->documents[i].marks);
    free(batch->documents[i].ranges);
  }
  free(batch->encoders);
  bytes_free(&batch->text);
  free(batch->documents);
  free(batch);
}

struct encoder *batch_encoder(struct batch *batch) {
  return batch->encoders[0];
}

bool batch_is_full(const struct batch *batch) {
  return batch->count >= BATCH_DOCUMENTS || batch->text.size >= BATCH_BYTES;
}

int batch_count(const struct batch *batch) {
  return batch->count;
}

static bool copy_ranges(struct document_tokens *document, const struct text_range *ranges, size_t count) {
  document->n_ranges = count;
  if (count > document->ranges_capacity) {
    struct text_range *grown = realloc(document->ranges, 2 * count * sizeof *grown);
    if (grown == NULL) return false;
    document->ranges = grown;
    document->ranges_capacity = 2 * count;
  }
  if (count > 0) memcpy(document->ranges, ranges, count * sizeof *ranges);
  return true;
}

bool batch_add(struct batch *batch, const char *path, const char *text, size_t size, const struct text_range *ranges,
               size_t count) {
  if (!reserve(batch, batch->count + 1)) return false;
  struct document_tokens *document = &batch->documents[batch->count++];
  document->path = path;
  document->from = batch->text.size;
  document->size = size;
  bytes_add(&batch->text, text, size);
  return !batch->text.failed && copy_ranges(document, ranges, count);
}

static bool add_tokens(struct document_tokens *document, const uint32_t *tokens, const uint8_t *marks, size_t count) {
  if (document->count + count > document->capacity) {
    size_t capacity = 2 * document->capacity + count + 64;
    uint32_t *grown = realloc(document->tokens, capacity * sizeof *grown);
    if (grown != NULL) document->tokens = grown;
    uint8_t *wider = realloc(document->marks, capacity * sizeof *wider);
    if (wider != NULL) document->marks = wider;
    if (grown == NULL || wider == NULL)
      return rt_problem(&document->problem, "%s: no memory for its tokens", document->path);
    document->capacity = capacity;
  }
  memcpy(document->tokens + document->count, tokens, count * sizeof *tokens);
  for (size_t i = 0; i < count; i++) document->marks[document->count + i] = marks != NULL ? marks[i] : 0;
  document->count += count;
  return true;
}

static void encode(struct document_tokens *document, const char *text, struct encoder *encoder) {
  struct encoding encoding;
  const uint32_t *tokens;
  size_t count = 1;
  document->count = 0;
  bool good = encoding_begin(&encoding, encoder, document->path, text, document->size, &document->problem);
  if (good && document->n_ranges > 0 && !encoding_mark(&encoding, document->ranges, document->n_ranges))
    good = rt_problem(&document->problem, "%s: no memory for its tokens", document->path);
  while (good && count > 0)
    good = encoding_next(&encoding, &tokens, &count, &document->problem) &&
           add_tokens(document, tokens, encoding_marks(&encoding), count);
  encoding_end(&encoding);
  document->failed = !good;
}

bool batch_encode(struct batch *batch, struct problem *problem) {
#pragma omp parallel for schedule(dynamic) num_threads(batch->n_encoders)
  for (int i = 0; i < batch->count; i++)
    encode(&batch->documents[i], batch->text.text + batch->documents[i].from, batch->encoders[omp_get_thread_num()]);
  for (int i = 0; i < batch->count; i++) {
    if (!batch->documents[i].failed) continue;
    *problem = batch->documents[i].problem;
    return false;
  }
  return true;
}

const uint32_t *batch_tokens(const struct batch *batch, int i, size_t *count) {
  *count = batch->documents[i].count;
  return batch->documents[i].tokens;
}

const uint8_t *batch_marks(const struct batch *batch, int i) {
  return batch->documents[i].marks;
}

void batch_empty(struct batch *batch) {
  batch_cut(batch, 0);
}

void batch_cut(struct batch *batch, int count) {
  if (count < batch->count) batch->text.size = batch->documents[count].from;
  batch->count = count;
}
