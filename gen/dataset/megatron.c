#include "gen/dataset/megatron.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER_BYTES = 34, VERSION = 1, VERSION_AT = 9, TYPE_AT = 17, SEQUENCES_AT = 18, DOCUMENTS_AT = 26 };
static const char magic[9] = "MMIDIDX\0";

static const char cut_remedy[] = "the files were cut or changed, or are not of one dataset: copy or write them again";

/* By its number; width 0: a type that tokens do not have. */
static const struct token_type {
  const char *name;
  int width;
  bool is_signed;
} types[] = {{"", 0, false},     {"uint8", 1, false},  {"int8", 1, true},    {"int16", 2, true},  {"int32", 4, true},
             {"int64", 0, true}, {"float64", 0, true}, {"float32", 0, true}, {"uint16", 2, false}};

/* What the header says, and the lists after it. */
struct layout {
  struct token_type type;
  uint64_t sequences, indices;
  const uint8_t *lengths, *pointers, *documents;
};

static uint64_t read_word(const uint8_t *at, int bytes) {
  uint64_t value = 0;
  for (int i = bytes - 1; i >= 0; i--) value = value << 8 | at[i];
  return value;
}

static bool bad(struct problem *problem, const char *remedy) {
  return rt_help(problem, "%s", remedy);
}

static bool check_head(struct dataset_file idx, struct problem *problem) {
  if (idx.size >= 8 && memcmp(idx.bytes, "TNTIDX\0\0", 8) == 0) {
    rt_problem(problem, "%s: byte 0: an index of Megatron's older format, TNTIDX", idx.path);
    return bad(problem, "write the dataset again with --dataset-impl mmap, or with a newer Megatron");
  }
  if (idx.size < HEADER_BYTES || memcmp(idx.bytes, magic, sizeof magic) != 0) {
    rt_problem(problem, "%s: byte 0: not an index of Megatron-LM, which begins with MMIDIDX and has %d bytes or more",
               idx.path, HEADER_BYTES);
    return bad(problem, "give the .idx or the .bin of a dataset that Megatron's preprocess_data.py wrote");
  }
  uint64_t version = read_word(idx.bytes + VERSION_AT, 8);
  if (version == VERSION) return true;
  rt_problem(problem, "%s: byte %d: version %" PRIu64 " of the format; %d is read", idx.path, VERSION_AT, version,
             VERSION);
  return bad(problem, cut_remedy);
}

static bool read_type(struct layout *layout, struct dataset_file idx, struct problem *problem) {
  uint8_t type = idx.bytes[TYPE_AT];
  if (type < sizeof types / sizeof *types) layout->type = types[type];
  if (layout->type.width > 0) return true;
  rt_problem(problem, "%s: byte %d: tokens of type %d%s%s; whole numbers of 8, 16 and 32 bits are read", idx.path,
             TYPE_AT, type, layout->type.name != NULL ? ", " : "", layout->type.name != NULL ? layout->type.name : "");
  return bad(problem, "write the dataset again with tokens of uint16 or int32, as Megatron does by itself");
}

static bool read_layout(struct layout *layout, struct dataset_file idx, struct problem *problem) {
  static const uint64_t most = (uint64_t)1 << 48;
  if (!check_head(idx, problem) || !read_type(layout, idx, problem)) return false;
  layout->sequences = read_word(idx.bytes + SEQUENCES_AT, 8);
  layout->indices = read_word(idx.bytes + DOCUMENTS_AT, 8);
  bool fits = layout->sequences < most && layout->indices < most;
  uint64_t size = HEADER_BYTES + 12 * layout->sequences + 8 * layout->indices;
  if (fits && idx.size == size + layout->sequences && layout->sequences > 0) {
    rt_problem(problem, "%s: byte %" PRIu64 ": the sequences have modes, of a dataset with several modalities",
               idx.path, size);
    return bad(problem, "give a dataset of texts alone");
  }
  if (!fits || idx.size != size || layout->indices == 0) {
    rt_problem(problem,
               "%s: byte %d: the header says %" PRIu64 " sequences and %" PRIu64
               " numbers of documents, but the file has %zu bytes",
               idx.path, SEQUENCES_AT, layout->sequences, layout->indices, idx.size);
    return bad(problem, cut_remedy);
  }
  layout->lengths = idx.bytes + HEADER_BYTES;
  layout->pointers = layout->lengths + 4 * layout->sequences;
  layout->documents = layout->pointers + 8 * layout->sequences;
  return true;
}

/* Checks that the sequences follow each other, and that the documents are of all of them. starts: for each document the
 * number of its first token. */
static bool find_documents(const struct layout *layout, struct dataset_file idx, uint64_t tokens, uint64_t *starts,
                           int64_t *count, struct problem *problem) {
  uint64_t at = 0, document = 0, begin = UINT64_MAX;
  for (uint64_t sequence = 0; sequence <= layout->sequences; sequence++) {
    bool begins = false;
    for (; document < layout->indices && read_word(layout->documents + 8 * document, 8) == sequence; document++)
      begins = true;
    if (begins && sequence < layout->sequences) begin = at;
    if (sequence == layout->sequences || (sequence == 0 && !begins)) break;
    uint64_t length = read_word(layout->lengths + 4 * sequence, 4);
    uint64_t pointer = read_word(layout->pointers + 8 * sequence, 8);
    if (length > INT32_MAX || pointer != at * (uint64_t)layout->type.width || length > tokens - at) {
      rt_problem(problem,
                 "%s: sequence %" PRIu64 " has %" PRIu64 " tokens from byte %" PRIu64
                 " on, and not where the one before it ends",
                 idx.path, sequence, length, pointer);
      return bad(problem, cut_remedy);
    }
    if (length > 0 && begin != UINT64_MAX) starts[(*count)++] = begin;
    if (length > 0) begin = UINT64_MAX;
    at += length;
  }
  if (document == layout->indices && read_word(layout->documents, 8) == 0 &&
      read_word(layout->documents + 8 * (document - 1), 8) == layout->sequences && at == tokens)
    return true;
  if (document == layout->indices && at != tokens)
    rt_problem(problem, "%s: the sequences have %" PRIu64 " tokens, and the .bin has %" PRIu64, idx.path, at, tokens);
  else
    rt_problem(problem, "%s: number %" PRIu64 " of the documents is out of order, or not all sequences are in one",
               idx.path, document);
  return bad(problem, cut_remedy);
}

/* Of a signed type, whether no token is below 0. */
static bool check_signs(const struct tokens *tokens, struct dataset_file bin,
                        void (*forget)(const uint8_t *from, size_t size), struct problem *problem) {
  enum { CHUNK = 1 << 22 };
  const int width = tokens->width;
  for (int64_t first = 0; first < tokens->count; first += CHUNK) {
    int64_t count = tokens->count - first < CHUNK ? tokens->count - first : CHUNK;
    const uint8_t *from = tokens->bytes + first * width;
    for (int64_t i = 0; i < count; i++) {
      if ((from[(i + 1) * width - 1] & 0x80) == 0) continue;
      rt_problem(problem, "%s: byte %" PRId64 ": a token below 0", bin.path, (first + i) * width);
      return bad(problem, cut_remedy);
    }
    if (forget != NULL) forget(from, (size_t)(count * width));
  }
  return true;
}

bool megatron_find(struct tokens *tokens, struct dataset_file idx, struct dataset_file bin,
                   void (*forget)(const uint8_t *from, size_t size), struct problem *problem) {
  struct layout layout = {0};
  if (!read_layout(&layout, idx, problem)) return false;
  const int width = layout.type.width;
  if (bin.size % (size_t)width != 0) {
    rt_problem(problem, "%s: byte %zu: a part of a token of %s at the end", bin.path, bin.size, layout.type.name);
    return bad(problem, cut_remedy);
  }
  uint64_t *starts = calloc(layout.indices, sizeof *starts);
  if (starts == NULL) return rt_problem(problem, "%s: no memory for its documents", idx.path);
  *tokens = (struct tokens){.bytes = bin.bytes, .count = (int64_t)(bin.size / (size_t)width), .width = width};
  tokens->starts = (const uint8_t *)starts;
  if (find_documents(&layout, idx, (uint64_t)tokens->count, starts, &tokens->documents, problem) &&
      (!layout.type.is_signed || check_signs(tokens, bin, forget, problem)))
    return true;
  free(starts);
  *tokens = (struct tokens){0};
  return false;
}
