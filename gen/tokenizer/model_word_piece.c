/* WordPiece (Schuster, Nakajima, ICASSP 2012), as BERT's tokenizer takes it: at each place of a word the longest token,
 * and a word that cannot be spelled so is unknown as a whole. */
#include "gen/tokenizer/bytes.h"
#include "gen/tokenizer/reading.h"

static bool read_word_piece(const struct reading *reading, const json_t *model) {
  struct tokenizer *tokenizer = reading->tokenizer;
  struct model_data *data = &tokenizer->data;
  const json_t *prefix = json_object_get(model, "continuing_subword_prefix");
  const json_t *most = json_object_get(model, "max_input_chars_per_word");
  if (!read_vocabulary(reading, model) || !read_unknown(reading, model)) return false;
  if (data->unknown == TOKEN_NONE) return reading_refuse(reading, "model.unk_token", "there is none");
  if (most != NULL && (!json_is_integer(most) || json_integer_value(most) < 0))
    return reading_refuse(reading, "model.max_input_chars_per_word", "this is not a number of characters");
  data->most_characters = most != NULL ? (size_t)json_integer_value(most) : 100;
  const char *text = json_is_string(prefix) ? json_string_value(prefix) : "##";
  size_t size = json_is_string(prefix) ? json_string_length(prefix) : 2;
  data->prefix = text;
  data->continues = trie_descend(tokenizer->vocabulary, TRIE_ROOT, text, size);
  return true;
}

/* The longest token at the beginning of a text, after the text of a node: its bytes of the text; 0: there is none. */
static size_t longest(const struct trie *vocabulary, uint32_t node, const char *text, size_t size, uint32_t *token) {
  size_t found = 0;
  for (size_t i = 0; i < size && node != TRIE_NONE; i++) {
    node = trie_step(vocabulary, node, (unsigned char)text[i]);
    if (trie_token(vocabulary, node, token)) found = i + 1;
  }
  return found;
}

static size_t characters_of(const char *text, size_t size) {
  size_t count = 0, length;
  for (size_t at = 0; at < size; at += length, count++) character_at(text + at, size - at, &length);
  return count;
}

static enum word_result encode(struct encoder *encoder, const char *word, size_t size, size_t *count) {
  const struct tokenizer *tokenizer = encoder->tokenizer;
  const struct model_data *data = &tokenizer->data;
  bool known = characters_of(word, size) <= data->most_characters;
  if (!encoder_reserve(encoder, size)) return WORD_NO_MEMORY;
  *count = 0;
  for (size_t at = 0, length; known && at < size; at += length) {
    length = longest(tokenizer->vocabulary, at == 0 ? TRIE_ROOT : data->continues, word + at, size - at,
                     &encoder->tokens[*count]);
    known = length > 0;
    ++*count;
  }
  if (!known) encoder->tokens[0] = data->unknown, *count = 1;
  return WORD_ENCODED;
}

const struct model model_word_piece = {"WordPiece", read_word_piece, encode};
