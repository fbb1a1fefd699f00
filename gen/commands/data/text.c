#include "gen/commands/data/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/tokenizer/decode.h"
#include "runtime/files/mapping.h"

static const char standard[] = "standard input";

static struct tokenizer *open_tokenizer(const char *path, struct mapping *json, struct problem *problem) {
  if (!rt_map(json, path, "give a tokenizer.json", problem)) return NULL;
  struct tokenizer *tokenizer = tokenizer_read(path, (const char *)json->bytes, json->size, problem);
  if (tokenizer == NULL) rt_unmap(json);
  return tokenizer;
}

/* All of standard input; NULL with a problem. */
static char *read_input(size_t *size, struct problem *problem) {
  char *text = NULL;
  FILE *all = open_memstream(&text, size);
  char part[1 << 12];
  for (size_t count; all != NULL && (count = fread(part, 1, sizeof part, stdin)) > 0;) fwrite(part, 1, count, all);
  if (all != NULL && fclose(all) == 0 && !ferror(stdin)) return text;
  rt_problem(problem, "%s: cannot be read: %s", standard, strerror(errno));
  free(text);
  return NULL;
}

static bool print_tokens(struct encoder *encoder, const char *text, size_t size, struct problem *problem) {
  struct encoding encoding;
  const uint32_t *tokens;
  size_t count;
  if (!encoding_begin(&encoding, encoder, standard, text, size, problem)) return false;
  bool good;
  for (const char *between = ""; (good = encoding_next(&encoding, &tokens, &count, problem)) && count > 0;)
    for (size_t i = 0; i < count; i++, between = " ") printf("%s%" PRIu32, between, tokens[i]);
  if (good) putchar('\n');
  encoding_end(&encoding);
  return good;
}

bool text_encode(const char *path, struct problem *problem) {
  struct mapping json;
  struct tokenizer *tokenizer = open_tokenizer(path, &json, problem);
  if (tokenizer == NULL) return false;
  size_t size;
  char *text = read_input(&size, problem);
  struct encoder *encoder = encoder_new(tokenizer);
  bool good = encoder != NULL || rt_problem(problem, "no memory for %s", path);
  good = good && text != NULL && print_tokens(encoder, text, size, problem);
  free(text);
  encoder_free(encoder);
  tokenizer_free(tokenizer);
  rt_unmap(&json);
  return good;
}

static bool print_text(struct decoder *decoder, const char *path, struct problem *problem) {
  uint32_t token;
  for (int read; (read = scanf("%" SCNu32, &token)) != EOF;) {
    size_t size = 0;
    const char *bytes = read == 1 ? decoder_bytes(decoder, token, &size) : NULL;
    if (read != 1) {
      rt_problem(problem, "%s: token numbers are separated by white space", standard);
      return rt_help(problem, "a program that accel-gen --program generate makes prints them so");
    }
    if (bytes == NULL) {
      rt_problem(problem, "%s: no token has the number %" PRIu32, path, token);
      return rt_help(problem, "give the tokenizer that made the tokens of the model's data");
    }
    fwrite(bytes, 1, size, stdout);
    fflush(stdout);
  }
  putchar('\n');
  return true;
}

bool text_decode(const char *path, struct problem *problem) {
  struct mapping json;
  struct tokenizer *tokenizer = open_tokenizer(path, &json, problem);
  if (tokenizer == NULL) return false;
  struct decoder *decoder = decoder_new(tokenizer, path, problem);
  bool good = decoder != NULL && print_text(decoder, path, problem);
  decoder_free(decoder);
  tokenizer_free(tokenizer);
  rt_unmap(&json);
  return good;
}
