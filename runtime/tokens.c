#include "tokens.h"

#include <inttypes.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "token files and this machine are little endian");

/* llm.c's header (llmc/dataloader.h): 256 int32, of which magic, version and the number of tokens are used. */
enum { LLMC_HEADER_BYTES = 1024, LLMC_MAGIC = 20240520, LLMC_VERSION = 1, LLMC_MAGIC_WIDE = 20240801 };

static uint32_t read_u32(const uint8_t *at) {
  return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static bool check_magic(const char *path, const uint8_t *bytes, struct problem *problem) {
  uint32_t magic = read_u32(bytes), version = read_u32(bytes + 4);
  if (magic == LLMC_MAGIC_WIDE) {
    rt_problem(problem, "%s: byte 0: magic %" PRIu32 " is llm.c's format of 32-bit tokens, which is not read here",
               path, magic);
    return rt_help(problem, "write the file with 16-bit tokens (magic %d)", LLMC_MAGIC);
  }
  if (magic != LLMC_MAGIC) {
    rt_problem(problem, "%s: byte 0: magic %" PRIu32 " instead of llm.c's %d", path, magic, LLMC_MAGIC);
    return rt_help(problem,
                   "give a file of llm.c's tokenizer scripts, or the format nanogpt for a bare list of uint16");
  }
  if (version != LLMC_VERSION) {
    rt_problem(problem, "%s: byte 4: version %" PRIu32 " of llm.c's format; %d is read", path, version, LLMC_VERSION);
    return rt_help(problem, "write the file again with llm.c's current tokenizer scripts");
  }
  return true;
}

static bool find_llmc(struct tokens *tokens, const char *path, const uint8_t *bytes, size_t size,
                      struct problem *problem) {
  if (size < LLMC_HEADER_BYTES) {
    rt_problem(problem, "%s: %zu bytes are too few for llm.c's header of %d", path, size, LLMC_HEADER_BYTES);
    return rt_help(problem, "give a whole token file with magic %d", LLMC_MAGIC);
  }
  if (!check_magic(path, bytes, problem)) return false;
  int64_t said = (int32_t)read_u32(bytes + 8);
  uint64_t held = size - LLMC_HEADER_BYTES;
  if (said < 0 || (uint64_t)said * 2 != held) {
    rt_problem(problem,
               "%s: byte 8: the header says %" PRId64 " tokens (%" PRId64 " bytes), but %" PRIu64 " bytes follow it",
               path, said, said * 2, held);
    return rt_help(problem, "the file was cut or changed: copy or write it again");
  }
  *tokens = (struct tokens){bytes + LLMC_HEADER_BYTES, said, 2, LLMC_HEADER_BYTES};
  return true;
}

static bool find_nanogpt(struct tokens *tokens, const char *path, const uint8_t *bytes, size_t size,
                         struct problem *problem) {
  if (size % 2 != 0) {
    rt_problem(problem, "%s: byte %zu: half a token at the end of a list of uint16", path, size - 1);
    return rt_help(problem, "the file was cut, or is not nanoGPT's format: write it again, or name its format");
  }
  if (size >= LLMC_HEADER_BYTES && read_u32(bytes) == LLMC_MAGIC) {
    rt_problem(problem, "%s: byte 0: this is llm.c's token format, read as nanoGPT's", path);
    return rt_help(problem, "set the source's format to llmc in the job");
  }
  *tokens = (struct tokens){bytes, (int64_t)(size / 2), 2, 0};
  return true;
}

bool rt_tokens_find(struct tokens *tokens, enum accel_format format, const char *path, const uint8_t *bytes,
                    size_t size, struct problem *problem) {
  if (format == ACCEL_LLMC) return find_llmc(tokens, path, bytes, size, problem);
  if (format == ACCEL_NANOGPT) return find_nanogpt(tokens, path, bytes, size, problem);
  *tokens = (struct tokens){bytes, (int64_t)size, 1, 0};
  return true;
}

static int32_t token_at(const struct tokens *tokens, int64_t place) {
  if (tokens->width == 1) return tokens->bytes[place];
  return tokens->bytes[2 * place] | tokens->bytes[2 * place + 1] << 8;
}

/* Written by width, so that a compiler makes vector loops of both. */
static int32_t largest(const struct tokens *tokens, int64_t first, int64_t count) {
  const uint8_t *bytes = tokens->bytes + first * tokens->width;
  int32_t most = 0;
  if (tokens->width == 1) {
#pragma omp parallel for simd reduction(max : most)
    for (int64_t i = 0; i < count; i++) most = bytes[i] > most ? bytes[i] : most;
    return most;
  }
#pragma omp parallel for simd reduction(max : most)
  for (int64_t i = 0; i < count; i++) {
    uint16_t token;
    memcpy(&token, bytes + 2 * i, sizeof token);
    most = token > most ? token : most;
  }
  return most;
}

bool rt_tokens_need_no_check(const struct tokens *tokens, int64_t vocabulary) {
  return vocabulary == 0 || vocabulary > (tokens->width == 1 ? 255 : 65535);
}

bool rt_tokens_check(const struct tokens *tokens, int64_t first, int64_t count, const char *path, int64_t vocabulary,
                     struct problem *problem) {
  int32_t most = largest(tokens, first, count);
  if (most < vocabulary) return true;
  int64_t place = first;
  while (token_at(tokens, place) < vocabulary) place++;
  rt_problem(problem, "%s: byte %" PRId64 ": token %d is not below the model's vocabulary of %" PRId64, path,
             tokens->bytes_before + place * tokens->width, token_at(tokens, place), vocabulary);
  return rt_help(problem, "give data made by the tokenizer of this model, or a model with vocab_size %d or more",
                 most + 1);
}

int32_t rt_tokens_copy(const struct tokens *tokens, int64_t first, int64_t count, int32_t *out) {
  int32_t most = 0;
  for (int64_t i = 0; i < count; i++) {
    out[i] = token_at(tokens, first + i);
    if (out[i] > most) most = out[i];
  }
  return most;
}
