#include "runtime/data/token_file.h"

#include "runtime/files/checksum.h"

#include <inttypes.h>
#include <string.h>

enum { HEADER_BYTES = 64, VERSION = 1, VERSION_MARKED = 2, SUM_AT = 32 };
static const char magic[8] = {'A', 'C', 'C', 'E', 'L', 'T', 'O', 'K'};

static uint64_t read_word(const uint8_t *at, int bytes) {
  uint64_t value = 0;
  for (int i = bytes - 1; i >= 0; i--) value = value << 8 | at[i];
  return value;
}

static bool cut(const char *path, struct problem *problem) {
  (void)path;
  return rt_help(problem, "the file was cut or changed: copy it or write it again");
}

static bool check_head(const char *path, const uint8_t *bytes, size_t size, struct problem *problem) {
  if (size < HEADER_BYTES) {
    rt_problem(problem, "%s: %zu bytes are too few for a token file's header of %d", path, size, HEADER_BYTES);
    return cut(path, problem);
  }
  if (memcmp(bytes, magic, sizeof magic) != 0) {
    rt_problem(problem, "%s: byte 0: not a token file, which begins with ACCELTOK", path);
    return rt_help(problem, "write it with 'accel-gen data', or name the format that it has");
  }
  uint64_t version = read_word(bytes + 8, 4), width = read_word(bytes + 12, 4);
  if (version != VERSION && version != VERSION_MARKED) {
    rt_problem(problem, "%s: byte 8: version %" PRIu64 " of the format; %d and %d are read", path, version, VERSION,
               VERSION_MARKED);
    return rt_help(problem, "write the file again with this version of accel-gen");
  }
  if (width == 1 || width == 2 || width == 4) return true;
  rt_problem(problem, "%s: byte 12: a token of %" PRIu64 " bytes; 1, 2 and 4 are read", path, width);
  return cut(path, problem);
}

/* What a header counts. */
struct counts {
  uint64_t tokens, width, documents, spans, trained;
  bool marked;
};

static struct counts counts_of(const uint8_t *bytes) {
  bool marked = read_word(bytes + 8, 4) == VERSION_MARKED;
  return (struct counts){.width = read_word(bytes + 12, 4),
                         .tokens = read_word(bytes + 16, 8),
                         .documents = read_word(bytes + 40, 8),
                         .spans = marked ? read_word(bytes + 48, 8) : 0,
                         .trained = marked ? read_word(bytes + 56, 8) : 0,
                         .marked = marked};
}

/* Bytes after the header; more than any file's when there cannot be so many of something. */
static uint64_t body_bytes(const struct counts *counts) {
  static const uint64_t most = (uint64_t)1 << 56;
  uint64_t tokens = counts->tokens * counts->width;
  if (counts->tokens > most || counts->documents > counts->tokens || counts->spans > counts->tokens) return UINT64_MAX;
  if (counts->documents == 0 && counts->spans == 0) return tokens;
  return (tokens + 7) / 8 * 8 + 8 * counts->documents + 16 * counts->spans;
}

static bool check_documents(const char *path, const uint8_t *at, uint64_t documents, uint64_t count,
                            struct problem *problem) {
  for (uint64_t i = 0; i < documents; i++) {
    uint64_t first = read_word(at + 8 * i, 8);
    if (i == 0 ? first == 0 : first > read_word(at + 8 * (i - 1), 8) && first < count) continue;
    rt_problem(problem, "%s: document %" PRIu64 " begins at token %" PRIu64 ", out of order", path, i, first);
    return cut(path, problem);
  }
  return true;
}

/* Spans have a token each, one at least is between two of them, and the header has counted what is in them. */
static bool check_spans(const char *path, const uint8_t *at, const struct counts *counts, struct problem *problem) {
  uint64_t after = 0, trained = 0;
  for (uint64_t i = 0; i < counts->spans; i++) {
    uint64_t first = read_word(at + 16 * i, 8), end = read_word(at + 16 * i + 8, 8);
    if ((i > 0 && first <= after) || end <= first || end > counts->tokens) {
      rt_problem(problem, "%s: span %" PRIu64 " of trained tokens is %" PRIu64 " to %" PRIu64 ", out of order", path, i,
                 first, end);
      return cut(path, problem);
    }
    after = end;
    trained += end - first;
  }
  if (trained == counts->trained) return true;
  rt_problem(problem, "%s: byte 56: %" PRIu64 " trained tokens, but the spans have %" PRIu64, path, counts->trained,
             trained);
  return cut(path, problem);
}

bool rt_token_file_find(struct tokens *tokens, const char *path, const uint8_t *bytes, size_t size,
                        struct problem *problem) {
  if (!check_head(path, bytes, size, problem)) return false;
  const struct counts counts = counts_of(bytes);
  uint64_t body = body_bytes(&counts);
  if (body != size - HEADER_BYTES) {
    rt_problem(problem,
               "%s: byte 16: the header says %" PRIu64 " tokens of %" PRIu64 " bytes and %" PRIu64
               " documents and %" PRIu64 " spans of trained tokens, but %zu bytes follow it",
               path, counts.tokens, counts.width, counts.documents, counts.spans, size - HEADER_BYTES);
    return cut(path, problem);
  }
  const uint8_t *ranges = bytes + size - 16 * counts.spans, *starts = ranges - 8 * counts.documents;
  if (!check_documents(path, starts, counts.documents, counts.tokens, problem) ||
      !check_spans(path, ranges, &counts, problem))
    return false;
  *tokens = (struct tokens){.bytes = bytes + HEADER_BYTES,
                            .count = (int64_t)counts.tokens,
                            .width = (int)counts.width,
                            .bytes_before = HEADER_BYTES,
                            .vocabulary = read_word(bytes + 24, 8),
                            .documents = (int64_t)counts.documents,
                            .starts = starts,
                            .marked = counts.marked,
                            .spans = (int64_t)counts.spans,
                            .ranges = ranges,
                            .trained = (int64_t)counts.trained};
  return true;
}

bool rt_token_file_verify(const char *path, const uint8_t *bytes, size_t size,
                          void (*forget)(const uint8_t *from, size_t size), struct problem *problem) {
  static const size_t chunk = (size_t)16 << 20;
  uint8_t header[HEADER_BYTES];
  struct checksum sum = rt_checksum_start();
  memcpy(header, bytes, sizeof header);
  memset(header + SUM_AT, 0, 8);
  for (size_t at = HEADER_BYTES; at < size; at += chunk) {
    size_t part = size - at < chunk ? size - at : chunk;
    rt_checksum_add(&sum, bytes + at, part);
    if (forget != NULL) forget(bytes + at, part);
  }
  rt_checksum_add(&sum, header, sizeof header);
  uint64_t said = read_word(bytes + SUM_AT, 8);
  if (rt_checksum_end(&sum) == said) return true;
  rt_problem(problem, "%s: byte %d: the sum of the file is %016" PRIx64 ", the header says %016" PRIx64, path, SUM_AT,
             rt_checksum_end(&sum), said);
  return cut(path, problem);
}
