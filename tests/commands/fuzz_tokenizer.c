/* Any bytes as a tokenizer.json; with one that is read, what follows its last brace is made into tokens. */
#include <string.h>

#include "gen/tokenizer/special.h"
#include "gen/tokenizer/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  struct problem problem;
  struct encoding encoding;
  size_t end = size;
  while (end > 0 && bytes[end - 1] != '}') end--;
  struct tokenizer *tokenizer = tokenizer_read("fuzz", (const char *)bytes, end, &problem);
  if (tokenizer == NULL) return 0;
  struct special special;
  tokenizer_special(tokenizer, "fuzz", &special, &problem);
  struct encoder *encoder = encoder_new(tokenizer);
  if (encoder == NULL) return tokenizer_free(tokenizer), 0;
  size_t count = encoding_begin(&encoding, encoder, "fuzz", (const char *)bytes + end, size - end, &problem);
  const struct text_range half = {(size - end) / 2, size - end};
  if (count > 0 && (!tokenizer_measure(tokenizer) || !encoding_mark(&encoding, &half, 1))) __builtin_trap();
  while (count > 0) {
    const uint32_t *tokens;
    if (!encoding_next(&encoding, &tokens, &count, &problem)) break;
    for (size_t i = 0; i < count; i++)
      if (tokens[i] >= tokenizer_vocabulary(tokenizer) || (encoding_marks(&encoding)[i] && half.to == 0))
        __builtin_trap();
  }
  encoding_end(&encoding);
  encoder_free(encoder);
  tokenizer_free(tokenizer);
  return 0;
}
