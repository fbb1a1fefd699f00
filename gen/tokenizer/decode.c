#include "gen/tokenizer/decode.h"

#include <stdlib.h>
#include <string.h>

#include "gen/tokenizer/parts.h"

enum { CHARACTERS = 512 }; /* all that stand for bytes are below */

struct spelling {
  const char *text; /* NULL: no token has this number */
  size_t size;
  bool added;
};

struct decoder {
  struct spelling *spellings; /* by token */
  uint32_t end;
  uint8_t byte_of[CHARACTERS];
  char *bytes; /* of the token at hand: no more than its text has */
};

static size_t fill(struct decoder *decoder, const struct tokenizer *tokenizer) {
  const char *text;
  json_t *number;
  size_t longest = 1;
  json_object_foreach((json_t *)tokenizer->vocabulary, text, number) {
    size_t size = strlen(text);
    decoder->spellings[json_integer_value(number)] = (struct spelling){text, size, false};
    if (size > longest) longest = size;
  }
  for (size_t i = 0; i < tokenizer->n_added; i++) {
    const struct added *added = &tokenizer->added[i];
    decoder->spellings[added->token] = (struct spelling){added->text, added->size, true};
  }
  return longest;
}

struct decoder *decoder_new(const struct tokenizer *tokenizer) {
  struct decoder *decoder = calloc(1, sizeof *decoder);
  if (decoder == NULL) return NULL;
  decoder->end = tokenizer->tokens_end;
  decoder->spellings = calloc(decoder->end, sizeof *decoder->spellings);
  for (int byte = 0; byte < 256; byte++) decoder->byte_of[byte_character(byte)] = (uint8_t)byte;
  if (decoder->spellings != NULL) decoder->bytes = malloc(fill(decoder, tokenizer));
  if (decoder->bytes != NULL) return decoder;
  decoder_free(decoder);
  return NULL;
}

void decoder_free(struct decoder *decoder) {
  if (decoder == NULL) return;
  free(decoder->spellings);
  free(decoder->bytes);
  free(decoder);
}

const char *decoder_bytes(struct decoder *decoder, uint32_t token, size_t *size) {
  const struct spelling *spelling = token < decoder->end ? &decoder->spellings[token] : NULL;
  *size = 0;
  if (spelling == NULL || spelling->text == NULL) return NULL;
  if (spelling->added) return *size = spelling->size, spelling->text;
  for (size_t i = 0; i < spelling->size; i++) {
    unsigned character = (unsigned char)spelling->text[i];
    if (character >= 128 && i + 1 < spelling->size)
      character = (character & 0x1f) << 6 | ((unsigned char)spelling->text[++i] & 0x3f);
    decoder->bytes[(*size)++] = (char)decoder->byte_of[character % CHARACTERS];
  }
  return decoder->bytes;
}
