#include "gen/tokenizer/decode.h"

#include <stdlib.h>
#include <string.h>

#include "gen/tokenizer/reading.h"

enum { CHARACTERS = 512 }; /* all that encode bytes are below */

/* A token's text. */
struct spelling {
  const char *text; /* NULL: no token has this number */
  size_t size;
  bool added;
};

enum decode_kind {
  DECODE_BYTES,     /* characters to the bytes that they encode */
  DECODE_FALLBACK,  /* <0x0A> to its byte */
  DECODE_REPLACE,   /* a text to another one */
  DECODE_STRIP,     /* characters at the beginning: of the whole after DECODE_FUSE, else of each token */
  DECODE_FUSE,      /* what follows is for the whole text */
  DECODE_PIECES,    /* a blank between tokens, but before one with the prefix of those that continue a word */
  DECODE_METASPACE, /* the mark of a blank to one, at the beginning to nothing */
  DECODE_SUFFIX,    /* the end of a word to a blank, at the end of the text to nothing */
  DECODE_BLANKS,    /* a blank between tokens */
};

struct decode_step {
  enum decode_kind kind;
  const char *from, *to; /* REPLACE; `from` also STRIP, PIECES, METASPACE, SUFFIX */
  int64_t most;          /* STRIP: characters */
  bool cleans;           /* PIECES: no blank before punctuation and English contractions */
  bool begins;           /* METASPACE: at the beginning of a text it becomes nothing */
};

enum { DECODE_MOST = 8 };

struct decoder {
  struct spelling *spellings; /* by token */
  uint32_t end;
  struct decode_step steps[DECODE_MOST];
  int n_steps;
  uint8_t byte_of[CHARACTERS];
  bool began;       /* a token was decoded */
  int64_t stripped; /* characters of the whole text, so far; -1: no more */
  bool owes_blank;  /* of the end of a word */
  struct bytes now, next;
};

/* ---- Reading ---- */

static bool add(const struct reading *reading, struct decoder *decoder, struct decode_step step) {
  if (decoder->n_steps == DECODE_MOST) return reading_refuse(reading, "decoder", "too many steps");
  decoder->steps[decoder->n_steps++] = step;
  return true;
}

static const char *text_of(const json_t *step, const char *key, const char *otherwise) {
  const char *text = json_string_value(json_object_get(step, key));
  return text != NULL && *text != '\0' ? text : otherwise;
}

static bool read_replace(const struct reading *reading, struct decoder *decoder, const json_t *step) {
  const char *from = text_of(json_object_get(step, "pattern"), "String", NULL);
  const char *to = json_string_value(json_object_get(step, "content"));
  if (from == NULL || to == NULL) return reading_refuse(reading, "decoder", "a Replace of something that is not text");
  return add(reading, decoder, (struct decode_step){.kind = DECODE_REPLACE, .from = from, .to = to});
}

static bool read_strip(const struct reading *reading, struct decoder *decoder, const json_t *step) {
  if (!json_is_nothing(json_object_get(step, "stop"))) return reading_refuse(reading, "decoder", "a Strip at the end");
  return add(reading, decoder,
             (struct decode_step){.kind = DECODE_STRIP,
                                  .from = text_of(step, "content", " "),
                                  .most = json_integer_value(json_object_get(step, "start"))});
}

static bool read_metaspace(const struct reading *reading, struct decoder *decoder, const json_t *step) {
  const json_t *scheme = json_object_get(step, "prepend_scheme");
  bool begins =
      scheme != NULL ? !json_is_text(scheme, "never") : !json_is_false(json_object_get(step, "add_prefix_space"));
  return add(
      reading, decoder,
      (struct decode_step){.kind = DECODE_METASPACE, .from = text_of(step, "replacement", "▁"), .begins = begins});
}

static bool read_pieces(const struct reading *reading, struct decoder *decoder, const json_t *step) {
  return add(reading, decoder,
             (struct decode_step){.kind = DECODE_PIECES,
                                  .from = text_of(step, "prefix", "##"),
                                  .cleans = json_is_true(json_object_get(step, "cleanup"))});
}

static bool read_suffix(const struct reading *reading, struct decoder *decoder, const json_t *step) {
  return add(reading, decoder, (struct decode_step){.kind = DECODE_SUFFIX, .from = text_of(step, "suffix", "</w>")});
}

static bool read_step(const struct reading *reading, struct decoder *decoder, const json_t *step) {
  static const struct {
    const char *type;
    bool (*read)(const struct reading *reading, struct decoder *decoder, const json_t *step);
    enum decode_kind kind; /* where nothing is to be read */
  } kinds[] = {{"BPEDecoder", read_suffix, 0},    {"ByteFallback", NULL, DECODE_FALLBACK},
               {"ByteLevel", NULL, DECODE_BYTES}, {"Fuse", NULL, DECODE_FUSE},
               {"Metaspace", read_metaspace, 0},  {"Replace", read_replace, 0},
               {"Strip", read_strip, 0},          {"WordPiece", read_pieces, 0}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (!json_is_text(json_object_get(step, "type"), kinds[i].type)) continue;
    if (kinds[i].read != NULL) return kinds[i].read(reading, decoder, step);
    return add(reading, decoder, (struct decode_step){.kind = kinds[i].kind});
  }
  return reading_refuse(reading, "decoder", "a step that is none of those that are read");
}

/* Without a decoder, bytes are bytes, and other tokens are separate words. */
static bool read_decoder(const struct reading *reading, struct decoder *decoder) {
  const json_t *root = json_object_get(reading->tokenizer->root, "decoder"), *list = json_object_get(root, "decoders");
  bool maps_bytes = reading->tokenizer->maps_bytes;
  if (json_is_nothing(root))
    return add(reading, decoder, (struct decode_step){.kind = maps_bytes ? DECODE_BYTES : DECODE_BLANKS});
  if (!json_is_text(json_object_get(root, "type"), "Sequence")) return read_step(reading, decoder, root);
  for (size_t i = 0; i < json_array_size(list); i++)
    if (!read_step(reading, decoder, json_array_get(list, i))) return false;
  return true;
}

static void spell(struct decoder *decoder, uint32_t token, const char *text, size_t size, bool added) {
  if (text != NULL && token < decoder->end) decoder->spellings[token] = (struct spelling){text, size, added};
}

/* The texts of all tokens; of an added one its normal form, where that is looked for, as in the library. */
static void fill(struct decoder *decoder, const struct tokenizer *tokenizer) {
  json_t *vocabulary = json_object_get(json_object_get(tokenizer->root, "model"), "vocab"), *number;
  const char *text;
  json_object_foreach(vocabulary, text, number)
      spell(decoder, (uint32_t)json_integer_value(number), text, strlen(text), false);
  for (size_t i = 0; i < json_array_size(vocabulary); i++) {
    const json_t *token = json_array_get(json_array_get(vocabulary, i), 0);
    spell(decoder, (uint32_t)i, json_string_value(token), json_string_length(token), false);
  }
  for (size_t i = 0; i < tokenizer->n_added; i++)
    spell(decoder, tokenizer->added[i].token, tokenizer->added[i].text, tokenizer->added[i].size, true);
}

struct decoder *decoder_new(const struct tokenizer *tokenizer, const char *path, struct problem *problem) {
  struct decoder *decoder = calloc(1, sizeof *decoder);
  struct reading reading = {(struct tokenizer *)(uintptr_t)tokenizer, path, problem};
  if (decoder == NULL) return reading_no_memory(&reading), NULL;
  decoder->end = tokenizer->tokens_end;
  decoder->spellings = calloc((size_t)decoder->end + 1, sizeof *decoder->spellings);
  for (int byte = 0; byte < 256; byte++) decoder->byte_of[byte_character(byte)] = (uint8_t)byte;
  if (decoder->spellings == NULL) reading_no_memory(&reading);
  if (decoder->spellings == NULL || !read_decoder(&reading, decoder)) return decoder_free(decoder), NULL;
  fill(decoder, tokenizer);
  return decoder;
}

void decoder_free(struct decoder *decoder) {
  if (decoder == NULL) return;
  free(decoder->spellings);
  bytes_free(&decoder->now);
  bytes_free(&decoder->next);
  free(decoder);
}

/* ---- Steps ---- */

static bool begins_with(const char *text, size_t size, const char *with) {
  size_t length = strlen(with);
  return size >= length && memcmp(text, with, length) == 0;
}

static void put_bytes(const struct decoder *decoder, const char *text, size_t size, struct bytes *out) {
  for (size_t at = 0, length; at < size; at += length) {
    int32_t character = character_at(text + at, size - at, &length);
    char byte = (char)decoder->byte_of[(uint32_t)character % CHARACTERS];
    bytes_add(out, &byte, 1);
  }
}

static void put_fallback(const char *text, size_t size, struct bytes *out) {
  char *end = NULL;
  bool is_byte = size == 6 && begins_with(text, size, "<0x") && text[5] == '>';
  char digits[3] = {is_byte ? text[3] : 'x', is_byte ? text[4] : 'x', '\0'};
  char byte = (char)strtol(digits, &end, 16);
  if (end == digits + 2)
    bytes_add(out, &byte, 1);
  else
    bytes_add(out, text, size);
}

static void put_replaced(const char *text, size_t size, const char *from, const char *to, struct bytes *out) {
  for (size_t at = 0; at < size;) {
    bool found = begins_with(text + at, size - at, from);
    bytes_add(out, found ? to : text + at, found ? strlen(to) : 1);
    at += found ? strlen(from) : 1;
  }
}

static void put_stripped(struct decoder *decoder, const struct decode_step *step, bool whole, const char *text,
                         size_t size, struct bytes *out) {
  int64_t count = whole ? decoder->stripped : 0;
  while (count >= 0 && count < step->most && begins_with(text, size, step->from)) {
    text += strlen(step->from);
    size -= strlen(step->from);
    count++;
  }
  if (whole) decoder->stripped = size > 0 ? -1 : count;
  bytes_add(out, text, size);
}

/* What the library's cleanup takes for what, in this order. */
static void clean(struct decoder *decoder, struct bytes *out) {
  static const char *const pairs[][2] = {{" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
                                         {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
                                         {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    struct bytes before = *out;
    *out = decoder->next;
    out->size = 0;
    put_replaced(before.text, before.size, pairs[i][0], pairs[i][1], out);
    decoder->next = before;
  }
}

static void put_piece(const struct decoder *decoder, const struct decode_step *step, const char *text, size_t size,
                      struct bytes *out) {
  bool continues = begins_with(text, size, step->from);
  if (decoder->began && !continues) bytes_add(out, " ", 1);
  size_t cut = decoder->began && continues ? strlen(step->from) : 0;
  bytes_add(out, text + cut, size - cut);
}

/* The blank of the last word's end comes with the token after it. */
static void put_suffixed(struct decoder *decoder, const struct decode_step *step, const char *text, size_t size,
                         struct bytes *out) {
  size_t length = strlen(step->from);
  if (decoder->owes_blank) bytes_add(out, " ", 1);
  decoder->owes_blank = size >= length && begins_with(text + size - length, length, step->from);
  if (decoder->owes_blank) size -= length;
  put_replaced(text, size, step->from, " ", out);
}

static void decode(struct decoder *decoder, const struct decode_step *step, bool added, bool whole,
                   const struct bytes *in, struct bytes *out) {
  switch (step->kind) {
  case DECODE_BYTES:
    if (added)
      bytes_add(out, in->text, in->size);
    else
      put_bytes(decoder, in->text, in->size, out);
    break;
  case DECODE_FALLBACK:
    put_fallback(in->text, in->size, out);
    break;
  case DECODE_REPLACE:
    put_replaced(in->text, in->size, step->from, step->to, out);
    break;
  case DECODE_STRIP:
    put_stripped(decoder, step, whole, in->text, in->size, out);
    break;
  case DECODE_FUSE:
    bytes_add(out, in->text, in->size);
    break;
  case DECODE_PIECES:
    put_piece(decoder, step, in->text, in->size, out);
    break;
  case DECODE_METASPACE:
    put_replaced(in->text, in->size, step->from, step->begins && !decoder->began ? "" : " ", out);
    break;
  case DECODE_SUFFIX:
    put_suffixed(decoder, step, in->text, in->size, out);
    break;
  case DECODE_BLANKS:
    if (decoder->began) bytes_add(out, " ", 1);
    bytes_add(out, in->text, in->size);
  }
}

const char *decoder_bytes(struct decoder *decoder, uint32_t token, size_t *size) {
  const struct spelling *spelling = token < decoder->end ? &decoder->spellings[token] : NULL;
  bool whole = false;
  *size = 0;
  if (spelling == NULL || spelling->text == NULL) return NULL;
  decoder->now.size = 0;
  bytes_add(&decoder->now, spelling->text, spelling->size);
  for (int i = 0; i < decoder->n_steps; i++) {
    const struct decode_step *step = &decoder->steps[i];
    decoder->next.size = 0;
    decode(decoder, step, spelling->added, whole, &decoder->now, &decoder->next);
    struct bytes before = decoder->now;
    decoder->now = decoder->next;
    decoder->next = before;
    if (step->kind == DECODE_PIECES && step->cleans) clean(decoder, &decoder->now);
    whole |= step->kind == DECODE_FUSE;
  }
  decoder->began = true;
  *size = decoder->now.size;
  if (decoder->now.failed) return NULL;
  return *size > 0 ? decoder->now.text : "";
}
