#include "runtime/data/tokens.h"

#include "runtime/data/npy.h"
#include "runtime/data/token_file.h"

#include <inttypes.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "token files and this machine are little endian");

/* llm.c's header (llmc/dataloader.h): 256 int32, of which magic, version and the number of tokens are used. */
enum { LLMC_HEADER_BYTES = 1024 };

/* Its two kinds, by tokenizer (dev/data/data_common.py): GPT-2's with uint16 tokens, Llama 3's with uint32. */
static const struct llmc_kind {
  uint32_t magic, version;
  int width;
} llmc_kinds[] = {{20240520, 1, 2}, {20240801, 7, 4}};

static uint32_t read_u32(const uint8_t *at) {
  return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static const struct llmc_kind *llmc_kind(const uint8_t *bytes) {
  for (size_t i = 0; i < sizeof llmc_kinds / sizeof *llmc_kinds; i++)
    if (read_u32(bytes) == llmc_kinds[i].magic) return &llmc_kinds[i];
  return NULL;
}

static bool check_kind(const struct llmc_kind *kind, const char *path, const uint8_t *bytes, struct problem *problem) {
  uint32_t version = read_u32(bytes + 4);
  if (kind == NULL) {
    rt_problem(problem, "%s: byte 0: magic %" PRIu32 " instead of llm.c's %" PRIu32 " or %" PRIu32, path,
               read_u32(bytes), llmc_kinds[0].magic, llmc_kinds[1].magic);
    return rt_help(problem,
                   "give a file of llm.c's tokenizer scripts, or the format nanogpt for a bare list of uint16");
  }
  if (version == kind->version) return true;
  rt_problem(problem, "%s: byte 4: version %" PRIu32 " of llm.c's format; %" PRIu32 " is read", path, version,
             kind->version);
  return rt_help(problem, "write the file again with llm.c's current tokenizer scripts");
}

static bool find_llmc(struct tokens *tokens, const char *path, const uint8_t *bytes, size_t size,
                      struct problem *problem) {
  if (size < LLMC_HEADER_BYTES) {
    rt_problem(problem, "%s: %zu bytes are too few for llm.c's header of %d", path, size, LLMC_HEADER_BYTES);
    return rt_help(problem, "give a whole token file with magic %" PRIu32 " or %" PRIu32, llmc_kinds[0].magic,
                   llmc_kinds[1].magic);
  }
  const struct llmc_kind *kind = llmc_kind(bytes);
  if (!check_kind(kind, path, bytes, problem)) return false;
  int64_t said = (int32_t)read_u32(bytes + 8);
  uint64_t held = size - LLMC_HEADER_BYTES;
  if (said < 0 || (uint64_t)said * (uint64_t)kind->width != held) {
    rt_problem(problem,
               "%s: byte 8: the header says %" PRId64 " tokens (%" PRId64 " bytes), but %" PRIu64 " bytes follow it",
               path, said, said * kind->width, held);
    return rt_help(problem, "the file was cut or changed: copy or write it again");
  }
  *tokens = (struct tokens){
      .bytes = bytes + LLMC_HEADER_BYTES, .count = said, .width = kind->width, .bytes_before = LLMC_HEADER_BYTES};
  return true;
}

static bool find_nanogpt(struct tokens *tokens, const char *path, const uint8_t *bytes, size_t size,
                         struct problem *problem) {
  if (size % 2 != 0) {
    rt_problem(problem, "%s: byte %zu: half a token at the end of a list of uint16", path, size - 1);
    return rt_help(problem, "the file was cut, or is not nanoGPT's format: write it again, or name its format");
  }
  if (size >= LLMC_HEADER_BYTES && llmc_kind(bytes) != NULL) {
    rt_problem(problem, "%s: byte 0: this is llm.c's token format, read as nanoGPT's", path);
    return rt_help(problem, "set the source's format to llmc in the job");
  }
  *tokens = (struct tokens){.bytes = bytes, .count = (int64_t)(size / 2), .width = 2};
  return true;
}

static bool find_npy(struct tokens *tokens, const char *path, const uint8_t *bytes, size_t size,
                     struct problem *problem) {
  struct npy npy;
  if (!rt_npy_find(&npy, path, bytes, size, problem)) return false;
  if (npy.rank != 1 || npy.type > NPY_U4) {
    rt_problem(problem, "%s: tokens are an array of one dimension of uint8, uint16 or uint32", path);
    return rt_help(problem, "save numpy.ravel(tokens).astype(numpy.uint32)");
  }
  *tokens = (struct tokens){
      .bytes = npy.elements, .count = npy.count, .width = rt_npy_width(npy.type), .bytes_before = npy.bytes_before};
  return true;
}

bool rt_tokens_find(struct tokens *tokens, enum accel_format format, const char *path, const uint8_t *bytes,
                    size_t size, struct problem *problem) {
  if (format == ACCEL_LLMC) return find_llmc(tokens, path, bytes, size, problem);
  if (format == ACCEL_NANOGPT) return find_nanogpt(tokens, path, bytes, size, problem);
  if (format == ACCEL_NPY_TOKENS) return find_npy(tokens, path, bytes, size, problem);
  if (format == ACCEL_TOKENS) return rt_token_file_find(tokens, path, bytes, size, problem);
  *tokens = (struct tokens){.bytes = bytes, .count = (int64_t)size, .width = 1};
  return true;
}

static int64_t token_at(const struct tokens *tokens, int64_t index) {
  const uint8_t *at = tokens->bytes + index * tokens->width;
  if (tokens->width == 1) return at[0];
  return tokens->width == 2 ? (int64_t)(at[0] | at[1] << 8) : (int64_t)read_u32(at);
}

/* Written by width, so that a compiler makes vector loops of all. */
static uint32_t largest(const struct tokens *tokens, int64_t first, int64_t count) {
  const uint8_t *bytes = tokens->bytes + first * tokens->width;
  uint32_t most = 0;
  if (tokens->width == 1) {
#pragma omp parallel for simd reduction(max : most)
    for (int64_t i = 0; i < count; i++) most = bytes[i] > most ? bytes[i] : most;
  } else if (tokens->width == 2) {
#pragma omp parallel for simd reduction(max : most)
    for (int64_t i = 0; i < count; i++) {
      uint16_t token;
      memcpy(&token, bytes + 2 * i, sizeof token);
      most = token > most ? token : most;
    }
  } else {
#pragma omp parallel for simd reduction(max : most)
    for (int64_t i = 0; i < count; i++) {
      uint32_t token;
      memcpy(&token, bytes + 4 * i, sizeof token);
      most = token > most ? token : most;
    }
  }
  return most;
}

bool rt_tokens_need_no_check(const struct tokens *tokens, int64_t vocabulary) {
  static const int64_t most[] = {[1] = 0xff, [2] = 0xffff, [4] = 0xffffffff};
  return vocabulary == 0 || vocabulary > most[tokens->width] ||
         (tokens->vocabulary > 0 && tokens->vocabulary <= (uint64_t)vocabulary);
}

bool rt_tokens_check(const struct tokens *tokens, int64_t first, int64_t count, const char *path, int64_t vocabulary,
                     struct problem *problem) {
  int64_t most = largest(tokens, first, count);
  if (most < vocabulary) return true;
  int64_t index = first;
  while (token_at(tokens, index) < vocabulary) index++;
  rt_problem(problem, "%s: byte %" PRId64 ": token %" PRId64 " is not below the model's vocabulary of %" PRId64, path,
             tokens->bytes_before + index * tokens->width, token_at(tokens, index), vocabulary);
  return rt_help(problem,
                 "give data made by the tokenizer of this model, or a model with vocab_size %" PRId64 " or more",
                 most + 1);
}

int64_t rt_tokens_start(const struct tokens *tokens, int64_t document) {
  if (document == tokens->documents) return tokens->count;
  uint64_t start;
  memcpy(&start, tokens->starts + 8 * document, sizeof start);
  return (int64_t)start;
}

int64_t rt_tokens_document(const struct tokens *tokens, int64_t token) {
  int64_t low = 0, high = tokens->documents;
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    if (rt_tokens_start(tokens, middle) <= token)
      low = middle;
    else
      high = middle;
  }
  return low;
}

/* The end of a span, or its beginning, by its number. */
static int64_t span_end(const struct tokens *tokens, int64_t span, bool end) {
  uint64_t token;
  memcpy(&token, tokens->ranges + 16 * span + 8 * end, sizeof token);
  return (int64_t)token;
}

/* The first span that ends after `token`; the number of spans where none does. */
static int64_t span_after(const struct tokens *tokens, int64_t token) {
  int64_t low = 0, high = tokens->spans;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (span_end(tokens, middle, true) <= token)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

int64_t rt_tokens_run(const struct tokens *tokens, int64_t first, int64_t count, bool *trained) {
  int64_t span = tokens->marked ? span_after(tokens, first) : 0, end = first + count;
  *trained = !tokens->marked || (span < tokens->spans && span_end(tokens, span, false) <= first);
  if (tokens->marked && span < tokens->spans) end = span_end(tokens, span, *trained);
  return end - first < count ? end - first : count;
}

void rt_tokens_leave_out(const struct tokens *tokens, int64_t first, int64_t count, int32_t none, int32_t *targets) {
  bool trained;
  for (int64_t t = 0, run; tokens->marked && t < count; t += run) {
    run = rt_tokens_run(tokens, first + t, count - t, &trained);
    for (int64_t i = t; !trained && i < t + run; i++) targets[i] = none;
  }
}

int64_t rt_tokens_copy(const struct tokens *tokens, int64_t first, int64_t count, int32_t *out) {
  int64_t most = 0;
  for (int64_t i = 0; i < count; i++) {
    int64_t token = token_at(tokens, first + i);
    out[i] = (int32_t)token;
    if (token > most) most = token;
  }
  return most;
}
