#include "gen/commands/data/text_rows.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "gen/base/path.h"
#include "gen/tokenizer/tokenizer.h"

/* ---- The tokenizer ---- */

/* A side of the configuration: "left" or, otherwise, right. */
static bool is_left(const json_t *config, const char *key) {
  const char *side = json_string_value(json_object_get(config, key));
  return side != NULL && strcmp(side, "left") == 0;
}

static bool find_pad(struct text_rows *rows, const char *pad, struct problem *problem) {
  if (pad != NULL && tokenizer_find(rows->tokenizer, pad, &rows->pad)) return true;
  if (pad == NULL && tokenizer_padding(rows->tokenizer, &rows->pad)) return true;
  if (pad != NULL)
    rt_problem(problem, "%s: the tokenizer has no token '%s' to pad with", rows->path, pad);
  else
    rt_problem(problem, "%s: no tokenizer_config.json next to it names a padding token (pad_token)", rows->path);
  return rt_help(problem, "name one of the tokenizer's tokens with --pad TOKEN");
}

/* The text of a special token: itself, or the content of an added token. */
static const char *special_text(const json_t *config, const char *key) {
  const json_t *token = json_object_get(config, key);
  return json_string_value(json_is_object(token) ? json_object_get(token, "content") : token);
}

static bool read_config(struct text_rows *rows, const char *pad, struct problem *problem) {
  char path[4096];
  const char *name = name_in_folder(rows->path);
  int length = snprintf(path, sizeof path, "%.*stokenizer_config.json", (int)(name - rows->path), rows->path);
  struct mapping file = {0};
  struct problem absent;
  json_t *config = NULL;
  json_error_t error;
  if (length > 0 && (size_t)length < sizeof path && rt_map(&file, path, "", &absent)) {
    config = json_loadb((const char *)file.bytes, file.size, JSON_DECODE_INT_AS_REAL, &error);
    if (config == NULL) {
      rt_unmap(&file);
      rt_problem(problem, "%s:%d:%d: %s", path, error.line, error.column, error.text);
      return rt_help(problem, "fetch the file again");
    }
  }
  if (pad == NULL) pad = special_text(config, "pad_token");
  rows->pads_left = is_left(config, "padding_side");
  rows->cuts_left = is_left(config, "truncation_side");
  rows->config = config;
  rt_unmap(&file);
  return find_pad(rows, pad, problem);
}

/* Whether the special tokens leave room for others. */
static bool has_room(const struct text_rows *rows, struct problem *problem) {
  const int special = rows->special.of[rows->n_texts - 1].tokens;
  if (special < rows->length) return true;
  rt_problem(problem, "%" PRId64 " tokens of a row are taken by the %d special ones", rows->length, special);
  return rt_help(problem, "raise --max-length");
}

bool text_rows_open(struct text_rows *rows, const char *tokenizer, int64_t length, int n_texts, const char *pad,
                    struct problem *problem) {
  *rows = (struct text_rows){.path = tokenizer, .length = length, .n_texts = n_texts};
  if (!rt_map(&rows->json, tokenizer, "give the tokenizer.json of the model", problem)) return false;
  rows->tokenizer = tokenizer_read(tokenizer, (const char *)rows->json.bytes, rows->json.size, problem);
  return rows->tokenizer != NULL && tokenizer_special(rows->tokenizer, tokenizer, &rows->special, problem) &&
         has_room(rows, problem) && read_config(rows, pad, problem);
}

void text_rows_close(struct text_rows *rows) {
  for (int i = 0; i < 2; i++) {
    bytes_free(&rows->texts[i].tokens);
    bytes_free(&rows->texts[i].marks);
  }
  json_decref(rows->config);
  bytes_free(&rows->ids);
  bytes_free(&rows->segments);
  tokenizer_free(rows->tokenizer);
  rt_unmap(&rows->json);
  *rows = (struct text_rows){0};
}

/* ---- A row ---- */

void text_rows_begin(struct text_rows *rows) {
  for (int i = 0; i < 2; i++) {
    rows->texts[i].tokens.size = rows->texts[i].marks.size = 0;
    rows->texts[i].count = 0;
  }
}

void text_rows_take(struct text_rows *rows, int which, const uint32_t *tokens, const uint8_t *marks, size_t count) {
  struct row_text *of = &rows->texts[which];
  bytes_add(&of->tokens, (const char *)tokens, count * sizeof *tokens);
  bytes_add(&of->marks, (const char *)marks, count);
  of->count += count;
}

uint8_t text_rows_mark(const struct text_rows *rows, int which, size_t i) {
  return (uint8_t)rows->texts[which].marks.text[i];
}

/* Divides `room` tokens among two texts of a and b tokens that are more together, as the library tokenizers does with
 * the strategy longest_first (tokenizers/src/utils/truncation.rs): the longer one loses tokens first. */
static void share_longest_first(size_t room, size_t *a, size_t *b) {
  bool swapped = *a > *b;
  size_t less = swapped ? *b : *a, more;
  more = less > room || room - less < less ? less : room - less;
  if (less + more > room) {
    less = room / 2;
    more = less + room % 2;
  }
  *a = swapped ? more : less;
  *b = swapped ? less : more;
}

/* How many tokens of each text the row keeps. */
static void shorten(struct text_rows *rows) {
  size_t kept[2] = {rows->texts[0].count, rows->n_texts == 2 ? rows->texts[1].count : 0};
  const size_t room = (size_t)rows->length - (size_t)rows->special.of[rows->n_texts - 1].tokens;
  bool fits = kept[0] + kept[1] <= room;
  if (!fits && rows->n_texts == 2) {
    share_longest_first(room, &kept[0], &kept[1]);
  } else if (!fits) {
    kept[0] = room;
  }
  rows->shortened += !fits;
  for (int i = 0; i < rows->n_texts; i++) {
    struct row_text *of = &rows->texts[i];
    of->kept = kept[i];
    of->first = rows->cuts_left ? of->count - kept[i] : 0;
  }
}

/* Makes the row of what each text keeps, with the special tokens around it. */
static bool make(struct text_rows *rows, struct problem *problem) {
  const struct special_pieces *pieces = &rows->special.of[rows->n_texts - 1];
  size_t at = 0;
  rows->ids.size = rows->segments.size = 0;
  for (int i = 0; i < pieces->count; i++) {
    const struct special_piece *piece = &pieces->items[i];
    struct row_text *of = piece->text >= 0 ? &rows->texts[piece->text] : NULL;
    const char *tokens = of != NULL ? of->tokens.text + of->first * sizeof(uint32_t) : (const char *)&piece->token;
    size_t count = of != NULL ? of->kept : 1;
    if (of != NULL) of->at = at;
    if (count > 0) bytes_add(&rows->ids, tokens, count * sizeof(uint32_t));
    for (size_t k = 0; k < count; k++) bytes_add(&rows->segments, (const char *)&piece->segment, 1);
    at += count;
  }
  for (int i = 0; i < 2; i++)
    if (rows->texts[i].tokens.failed || rows->texts[i].marks.failed) rows->ids.failed = true;
  return (!rows->ids.failed && !rows->segments.failed) || rt_problem(problem, "no memory for the tokens of a row");
}

bool text_rows_make(struct text_rows *rows, struct problem *problem) {
  shorten(rows);
  return make(rows, problem);
}

/* ---- Windows ---- */

/* As Encoding::truncate of the library tokenizers (tokenizers/src/tokenizer/encoding.rs) cuts. Where padding is on the
 * left the text that is cut is the first of the two, as run_qa.py has it. */
bool text_rows_windows(const struct text_rows *rows, size_t other, size_t count, size_t stride,
                       struct row_windows *windows, struct problem *problem) {
  const size_t taken = (size_t)rows->special.of[1].tokens + other, all = (size_t)rows->length;
  const size_t room = taken < all ? all - taken : 0;
  *windows = (struct row_windows){.text = rows->pads_left ? 0 : 1, .width = count, .step = 1, .count = 1};
  if (count <= room && room > 0) return true;
  if (room <= stride) {
    rt_problem(problem, "the other text and the special tokens leave %zu of %zu tokens of a row", room, all);
    return rt_help(problem, "raise --max-length%s; leave such records out with --on-bad-record skip",
                   stride > 0 ? ", or lower --doc-stride" : "");
  }
  windows->width = room;
  windows->step = room - stride;
  windows->count = 1 + (count - room + windows->step - 1) / windows->step;
  return true;
}

bool text_rows_make_window(struct text_rows *rows, const struct row_windows *windows, size_t i,
                           struct problem *problem) {
  struct row_text *whole = &rows->texts[1 - windows->text], *of = &rows->texts[windows->text];
  const size_t from = i * windows->step;
  const size_t to = from + windows->width < of->count ? from + windows->width : of->count;
  whole->first = 0;
  whole->kept = whole->count;
  of->first = rows->cuts_left ? of->count - to : from;
  of->kept = to - from;
  return make(rows, problem);
}

/* ---- The row that was made ---- */

bool text_rows_token(const struct text_rows *rows, const char *key, uint32_t *token) {
  const char *text = special_text(rows->config, key);
  return text != NULL && tokenizer_find(rows->tokenizer, text, token);
}

size_t text_rows_first(const struct text_rows *rows) {
  return rows->pads_left ? (size_t)rows->length - rows->ids.size / sizeof(uint32_t) : 0;
}

int32_t text_rows_find(const struct text_rows *rows, uint32_t token) {
  const size_t at = text_rows_first(rows), count = rows->ids.size / sizeof token;
  if (at > 0 && rows->pad == token) return 0;
  for (size_t i = 0; i < count; i++)
    if (memcmp(rows->ids.text + i * sizeof token, &token, sizeof token) == 0) return (int32_t)(at + i);
  return at == 0 && rows->pad == token && (int64_t)count < rows->length ? (int32_t)count : 0;
}
