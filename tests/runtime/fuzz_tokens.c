/* Any bytes as a token file of each format; what is accepted is loaded window by window. */
#include "runtime/data/order.h"
#include "runtime/data/tokens.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Tokens that are not trained on become -1, as runs of them and as targets. */
static void load(const struct tokens *tokens, int64_t first, int64_t count, int32_t *window) {
  bool trained;
  rt_tokens_copy(tokens, first, count, window);
  rt_tokens_leave_out(tokens, first, count, -1, window);
  int64_t run = rt_tokens_run(tokens, first, count, &trained);
  if (run < 1 || run > count || (!trained && window[run - 1] != -1)) abort();
}

static void load_all(const struct tokens *tokens, uint64_t seed, int64_t length, bool shuffle) {
  int32_t window[64];
  struct order order = rt_order_of_sequences(seed, ACCEL_TRAIN, shuffle, 0, tokens->count, length);
  for (int64_t position = 0; position < 2 * order.samples && position < 1000; position++)
    load(tokens, rt_order_start(&order, position), length + 1, window);
}

/* The first bytes choose format, window and vocabulary; a good llm.c header, of either kind, is put before the rest on
 * demand, as no fuzzer finds 1,024 bytes of it soon. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static uint8_t with_header[1024 + 4096];
  struct tokens tokens;
  struct problem problem;
  if (size < 4) return 0;
  static const enum accel_format formats[] = {ACCEL_BYTES, ACCEL_NANOGPT, ACCEL_LLMC, ACCEL_TOKENS};
  enum accel_format format = formats[bytes[0] % 4];
  int64_t length = 1 + bytes[1] % 63, vocabulary = bytes[2] * 257;
  bool shuffle = bytes[3] & 1, give_header = bytes[3] & 2;
  bytes += 4, size -= 4;
  if (format == ACCEL_LLMC && give_header && size <= 4096) {
    bool wide = bytes[-1] & 4;
    int32_t header[3] = {wide ? 20240801 : 20240520, wide ? 7 : 1, (int32_t)(size / (wide ? 4 : 2))};
    memset(with_header, 0, 1024);
    memcpy(with_header, header, sizeof header);
    memcpy(with_header + 1024, bytes, size);
    bytes = with_header, size += 1024;
  }
  if (!rt_tokens_find(&tokens, format, "fuzz", bytes, size, &problem)) return 0;
  if (rt_tokens_need_no_check(&tokens, vocabulary) ||
      rt_tokens_check(&tokens, 0, tokens.count, "fuzz", vocabulary, &problem))
    load_all(&tokens, size, length, shuffle);
  return 0;
}
