#include "gen/tokenizer/special.h"

#include <string.h>

#include "gen/tokenizer/reading.h"

static bool refuse(const struct reading *reading, const char *what) {
  rt_problem(reading->problem, "%s: post_processor: %s", reading->path, what);
  return rt_help(reading->problem, "make the arrays with the library tokenizers, and give them as format npz");
}

static bool add(const struct reading *reading, struct special_pieces *pieces, struct special_piece piece) {
  if (pieces->count == SPECIAL_MOST) return refuse(reading, "more than 32 tokens are put around a text");
  pieces->items[pieces->count++] = piece;
  pieces->tokens += piece.text < 0;
  return true;
}

/* ---- TemplateProcessing ---- */

static bool add_special(const struct reading *reading, const json_t *token, const json_t *tokens, uint8_t segment,
                        struct special_pieces *pieces) {
  const char *name = json_string_value(json_object_get(token, "id"));
  const json_t *ids = name != NULL ? json_object_get(json_object_get(tokens, name), "ids") : NULL, *id;
  size_t i;
  if (json_array_size(ids) == 0) return refuse(reading, "a special token without a number");
  json_array_foreach(ids, i, id) {
    struct special_piece piece = {.text = -1, .segment = segment};
    if (!json_token(id, &piece.token)) return refuse(reading, "a special token without a number");
    if (!add(reading, pieces, piece)) return false;
  }
  return true;
}

/* A list of {"SpecialToken": {"id", "type_id"}} and {"Sequence": {"id": "A" or "B", "type_id"}}. */
static bool read_template(const struct reading *reading, const json_t *list, const json_t *tokens, int texts,
                          struct special_pieces *pieces) {
  const json_t *item;
  size_t i;
  int seen[2] = {0};
  json_array_foreach(list, i, item) {
    const json_t *special = json_object_get(item, "SpecialToken"), *sequence = json_object_get(item, "Sequence");
    const json_t *segment = json_object_get(special != NULL ? special : sequence, "type_id");
    if (!json_is_integer(segment) || json_integer_value(segment) < 0 || json_integer_value(segment) > UINT8_MAX)
      return refuse(reading, "a part of the template without a type_id within 0 and 255");
    const uint8_t number = (uint8_t)json_integer_value(segment);
    if (special != NULL) {
      if (!add_special(reading, special, tokens, number, pieces)) return false;
      continue;
    }
    int text = json_is_text(json_object_get(sequence, "id"), "B");
    if (text >= texts || seen[text]++ > 0) return refuse(reading, "the template does not have each text once");
    if (!add(reading, pieces, (struct special_piece){.text = text, .segment = number})) return false;
  }
  return (seen[0] == 1 && seen[1] == texts - 1) || refuse(reading, "the template does not have each text once");
}

static bool read_templates(const struct reading *reading, const json_t *from, struct special *special) {
  const json_t *tokens = json_object_get(from, "special_tokens");
  return read_template(reading, json_object_get(from, "single"), tokens, 1, &special->of[0]) &&
         read_template(reading, json_object_get(from, "pair"), tokens, 2, &special->of[1]);
}

/* ---- BertProcessing, RobertaProcessing ---- */

/* "cls A sep" and "cls A sep B sep", of which B and the sep after it are segment 1. RoBERTa has a sep before B as well,
 * and segment 0 alone. */
static bool read_fixed(const struct reading *reading, const json_t *from, bool is_roberta, struct special *special) {
  struct special_piece cls = {.text = -1}, sep = {.text = -1};
  if (!json_token(json_array_get(json_object_get(from, "cls"), 1), &cls.token) ||
      !json_token(json_array_get(json_object_get(from, "sep"), 1), &sep.token))
    return refuse(reading, "'cls' or 'sep' has no number");
  const uint8_t second = is_roberta ? 0 : 1;
  struct special_piece end = sep;
  end.segment = second;
  bool good = true;
  for (int texts = 1; texts <= 2; texts++) {
    struct special_pieces *pieces = &special->of[texts - 1];
    good = good && add(reading, pieces, cls) && add(reading, pieces, (struct special_piece){.text = 0}) &&
           add(reading, pieces, sep);
    if (texts == 1) continue;
    good = good && (!is_roberta || add(reading, pieces, sep)) &&
           add(reading, pieces, (struct special_piece){.text = 1, .segment = second}) && add(reading, pieces, end);
  }
  return good;
}

/* ---- */

static bool read_processor(const struct reading *reading, const json_t *from, struct special *special) {
  const json_t *type = json_object_get(from, "type"), *item;
  size_t i;
  special->trims |= json_is_true(json_object_get(from, "trim_offsets"));
  if (json_is_text(type, "ByteLevel")) return true; /* of offsets alone */
  if (json_is_text(type, "Sequence")) {
    json_array_foreach(json_object_get(from, "processors"), i, item) {
      if (json_is_text(json_object_get(item, "type"), "Sequence")) return refuse(reading, "a Sequence in a Sequence");
      if (!read_processor(reading, item, special)) return false;
    }
    return true;
  }
  if (special->of[0].count > 0) return refuse(reading, "two processors that put tokens around texts");
  if (json_is_text(type, "TemplateProcessing")) return read_templates(reading, from, special);
  bool is_roberta = json_is_text(type, "RobertaProcessing");
  if (is_roberta || json_is_text(type, "BertProcessing")) return read_fixed(reading, from, is_roberta, special);
  return refuse(reading, "this is not TemplateProcessing, BertProcessing, RobertaProcessing or ByteLevel");
}

bool tokenizer_special(const struct tokenizer *tokenizer, const char *path, struct special *special,
                       struct problem *problem) {
  const struct reading reading = {(struct tokenizer *)tokenizer, path, problem};
  const json_t *from = json_object_get(tokenizer->root, "post_processor");
  *special = (struct special){0};
  if (!json_is_nothing(from) && !read_processor(&reading, from, special)) return false;
  if (special->of[0].count > 0) return true;
  return add(&reading, &special->of[0], (struct special_piece){.text = 0}) &&
         add(&reading, &special->of[1], (struct special_piece){.text = 0}) &&
         add(&reading, &special->of[1], (struct special_piece){.text = 1, .segment = 1});
}

bool tokenizer_padding(const struct tokenizer *tokenizer, uint32_t *token) {
  return json_token(json_object_get(json_object_get(tokenizer->root, "padding"), "pad_id"), token);
}
