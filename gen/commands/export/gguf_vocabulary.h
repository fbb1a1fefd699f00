/* The vocabulary of a tokenizer.json as metadata of GGUF. */
#ifndef ACCEL_COMMANDS_EXPORT_GGUF_VOCABULARY_H
#define ACCEL_COMMANDS_EXPORT_GGUF_VOCABULARY_H

#include <jansson.h>

#include "gen/commands/export/export.h"
#include "gen/commands/export/gguf_header.h"

/* As llama.cpp numbers them. */
enum token_type { TOKEN_NORMAL = 1, TOKEN_CONTROL = 3, TOKEN_OWN = 4, TOKEN_UNUSED = 5, TOKEN_BYTE = 6 };

struct vocabulary {
  const char **texts; /* by number */
  int32_t *types;     /* enum token_type of each */
  uint64_t count;     /* the model's vocab_size */
  json_t *numbers;    /* each text's number: an object of who reads the vocabulary, empty at first */
  bool strips;        /* blanks after added tokens, as llama.cpp strips them of Phi 3 */
};

/* Adds an error in a file of the folder; `help` may be NULL. False. */
bool tokenizer_fail(const struct exported *of, const char *file, const char *why, const char *help);

/* The text of a key; "": it has none. */
const char *tokenizer_text(const json_t *object, const char *key);

/* Reads the tokens of the model and the added ones. False with an error: a number twice or beyond vocab_size, a text
 * twice, an added token that llama.cpp would find elsewhere. */
bool vocabulary_read(const struct exported *of, json_t *tokenizer, struct vocabulary *vocabulary);

/* The number of the token with a text of `length` bytes; -1: there is none. */
int64_t vocabulary_find(const struct vocabulary *vocabulary, const char *text, size_t length);

/* "a b" of each merge, in the arena. False with an error where one is no pair, or where there is none. */
bool vocabulary_merges(const struct exported *of, const json_t *merges, const char ***pairs);

/* Adds the numbers of bos, eos, unk and pad, and whether a text has bos before and eos after it. False with an error
 * where a named one is no token, or where a text gets other tokens. */
bool vocabulary_add_specials(const struct exported *of, const json_t *tokenizer, const json_t *config,
                             const struct vocabulary *vocabulary, struct gguf_metadata *metadata);

#endif
