#include "runtime/data/token_file.h"

#include "runtime/files/mapping.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEADER_BYTES = 64, AT_ONCE = 4096 };

static void put_word(uint8_t *at, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; i++) at[i] = (uint8_t)(value >> 8 * i);
}

bool rt_token_writer_open(struct token_writer *out, const char *path, int width, struct problem *problem) {
  static const uint8_t zeros[HEADER_BYTES];
  *out = (struct token_writer){.width = width};
  if (!rt_writer_open(&out->writer, path, BY_RENAME, problem) ||
      !rt_writer_add(&out->writer, zeros, sizeof zeros, problem))
    return false;
  out->writer.checksums = rt_prefix_checksums_start(); /* the header comes last */
  return true;
}

bool rt_token_writer_resume(struct token_writer *out, const char *path, struct problem *problem) {
  struct mapping mapping;
  size_t size = HEADER_BYTES + (size_t)(out->tokens * (uint64_t)out->width);
  if (!rt_writer_resume(&out->writer, path, size, problem)) return false;
  bool good = rt_map(&mapping, out->writer.partial, "remove it", problem);
  if (good) rt_prefix_checksums_add(&out->writer.checksums, mapping.bytes + HEADER_BYTES, mapping.size - HEADER_BYTES);
  if (good) rt_unmap(&mapping);
  if (!good) close(out->writer.file);
  return good;
}

/* Room for `count` words in a list of room for *capacity. */
static bool reserve(uint64_t **list, int64_t *capacity, int64_t count, const char *path, struct problem *problem) {
  if (count <= *capacity) return true;
  int64_t wider = *capacity == 0 ? 64 : 2 * *capacity;
  uint64_t *grown = realloc(*list, (size_t)wider * sizeof *grown);
  if (grown == NULL) return rt_problem(problem, "%s: no memory for the lists of documents and trained tokens", path);
  *list = grown;
  *capacity = wider;
  return true;
}

bool rt_token_writer_document(struct token_writer *out, struct problem *problem) {
  if (out->n_documents > 0 && out->documents[out->n_documents - 1] == out->tokens) return true; /* an empty one */
  if (!reserve(&out->documents, &out->capacity, out->n_documents + 1, out->writer.path, problem)) return false;
  out->documents[out->n_documents++] = out->tokens;
  return true;
}

void rt_token_writer_mark(struct token_writer *out) {
  out->marks = true;
}

uint64_t rt_token_writer_trained(const struct token_writer *out) {
  uint64_t trained = 0;
  for (int64_t i = 0; i < out->n_spans; i++) trained += out->spans[2 * i + 1] - out->spans[2 * i];
  return trained;
}

bool rt_token_writer_train(struct token_writer *out, uint64_t count, struct problem *problem) {
  if (count == 0) return true;
  uint64_t first = out->tokens - count;
  if (out->n_spans > 0 && out->spans[2 * out->n_spans - 1] == first) { /* it continues */
    out->spans[2 * out->n_spans - 1] = out->tokens;
    return true;
  }
  if (!reserve(&out->spans, &out->span_capacity, 2 * (out->n_spans + 1), out->writer.path, problem)) return false;
  out->spans[2 * out->n_spans] = first;
  out->spans[2 * out->n_spans++ + 1] = out->tokens;
  return true;
}

bool rt_token_writer_add(struct token_writer *out, const uint32_t *tokens, size_t count, struct problem *problem) {
  uint8_t bytes[4 * AT_ONCE];
  for (size_t at = 0; at < count; at += AT_ONCE) {
    size_t part = count - at < AT_ONCE ? count - at : AT_ONCE;
    for (size_t i = 0; i < part; i++) {
      uint32_t token = tokens[at + i];
      if (out->width < 4 && token >> 8 * out->width != 0)
        return rt_problem(problem, "%s: token %" PRIu32 " does not fit %d bytes", out->writer.path, token, out->width);
      put_word(bytes + i * (size_t)out->width, token, out->width);
      if (token > out->highest) out->highest = token;
    }
    if (!rt_writer_add(&out->writer, bytes, part * (size_t)out->width, problem)) return false;
    out->tokens += part;
  }
  return true;
}

bool rt_token_writer_add_bytes(struct token_writer *out, const uint8_t *tokens, size_t count, struct problem *problem) {
  uint8_t highest = 0;
  for (size_t i = 0; i < count; i++) highest = tokens[i] > highest ? tokens[i] : highest;
  if (highest > out->highest) out->highest = highest;
  if (!rt_writer_add(&out->writer, tokens, count, problem)) return false;
  out->tokens += count;
  return true;
}

/* What follows the tokens. A document without tokens at the end is none. */
static bool write_documents(struct token_writer *out, struct problem *problem) {
  static const uint8_t nothing[8];
  uint64_t odd = out->tokens * (uint64_t)out->width % 8;
  if (out->n_documents > 0 && out->documents[out->n_documents - 1] == out->tokens) out->n_documents--;
  if (out->n_documents == 0 && out->n_spans == 0) return true;
  if (odd > 0 && !rt_writer_add(&out->writer, nothing, 8 - odd, problem)) return false;
  return (out->n_documents == 0 ||
          rt_writer_add(&out->writer, out->documents, (size_t)out->n_documents * 8, problem)) &&
         (out->n_spans == 0 || rt_writer_add(&out->writer, out->spans, (size_t)out->n_spans * 16, problem));
}

static bool write_header(struct token_writer *out, uint64_t vocabulary, struct problem *problem) {
  uint8_t header[HEADER_BYTES] = "ACCELTOK";
  put_word(header + 8, out->marks ? 2 : 1, 4);
  put_word(header + 12, (uint64_t)out->width, 4);
  put_word(header + 16, out->tokens, 8);
  put_word(header + 24, vocabulary > 0 ? vocabulary : out->highest + 1, 8);
  put_word(header + 40, (uint64_t)out->n_documents, 8);
  put_word(header + 48, (uint64_t)out->n_spans, 8);
  put_word(header + 56, rt_token_writer_trained(out), 8);
  rt_checksum_add(&out->writer.checksums.checksum, header, sizeof header);
  put_word(header + 32, rt_checksum_end(&out->writer.checksums.checksum), 8);
  return pwrite(out->writer.file, header, sizeof header, 0) == (ssize_t)sizeof header ||
         rt_problem(problem, "%s: the header cannot be written", out->writer.partial);
}

bool rt_token_writer_commit(struct token_writer *out, uint64_t vocabulary, struct problem *problem) {
  bool written = write_documents(out, problem) && write_header(out, vocabulary, problem);
  free(out->documents);
  free(out->spans);
  out->documents = out->spans = NULL;
  return written && rt_writer_commit(&out->writer, problem);
}
