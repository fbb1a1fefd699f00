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

bool text_rows_open(struct text_rows *rows, const char *tokenizer, int64_t length, const char *pad,
                    struct problem *problem) {
  *rows = (struct text_rows){.path = tokenizer, .length = length};
  if (!rt_map(&rows->json, tokenizer, "give the tokenizer.json of the model", problem)) return false;
  rows->tokenizer = tokenizer_read(tokenizer, (const char *)rows->json.bytes, rows->json.size, problem);
  if (rows->tokenizer == NULL || !tokenizer_special(rows->tokenizer, tokenizer, &rows->special, problem) ||
      !read_config(rows, pad, problem))
    return false;
  rows->encoder = encoder_new(rows->tokenizer);
  return rows->encoder != NULL || rt_problem(problem, "%s: no memory for its tokens", tokenizer);
}

void text_rows_close(struct text_rows *rows) {
  for (int i = 0; i < 2; i++) {
    bytes_free(&rows->texts[i].tokens);
    bytes_free(&rows->texts[i].marks);
  }
  json_decref(rows->config);
  bytes_free(&rows->ids);
  bytes_free(&rows->segments);
  bytes_free(&rows->ends);
  encoder_free(rows->encoder);
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

static bool add_marks(struct row_text *of, const uint8_t *marks, size_t count) {
  if (marks != NULL) bytes_add(&of->marks, (const char *)marks, count);
  return !of->marks.failed;
}

bool text_rows_encode_marked(struct text_rows *rows, int which, const char *text, size_t size,
                             const struct text_range *ranges, size_t n_ranges, struct problem *problem) {
  struct row_text *of = &rows->texts[which];
  struct encoding encoding;
  const uint32_t *tokens;
  size_t count = 1;
  if (n_ranges > 0 && !rows->measured && !(rows->measured = tokenizer_measure(rows->tokenizer)))
    return rt_problem(problem, "%s: no memory for its tokens", rows->path);
  bool good = encoding_begin(&encoding, rows->encoder, rows->path, text, size, problem);
  if (good && n_ranges > 0 && !encoding_mark(&encoding, ranges, n_ranges))
    good = rt_problem(problem, "no memory for the tokens of a text");
  while (good && count > 0) {
    good = encoding_next(&encoding, &tokens, &count, problem);
    if (!good) break;
    bytes_add(&of->tokens, (const char *)tokens, count * sizeof *tokens);
    of->count += count;
    if (of->tokens.failed || !add_marks(of, encoding_marks(&encoding), count))
      good = rt_problem(problem, "no memory for the tokens of a text");
  }
  encoding_end(&encoding);
  return good;
}

bool text_rows_encode(struct text_rows *rows, int which, const char *text, size_t size, struct problem *problem) {
  return text_rows_encode_marked(rows, which, text, size, NULL, 0, problem);
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
static bool shorten(struct text_rows *rows, int n_texts, struct problem *problem) {
  size_t kept[2] = {rows->texts[0].count, n_texts == 2 ? rows->texts[1].count : 0};
  const size_t special = (size_t)rows->special.of[n_texts - 1].tokens, all = (size_t)rows->length;
  if (special >= all) {
    rt_problem(problem, "%" PRId64 " tokens of a row are taken by the %zu special ones", rows->length, special);
    return rt_help(problem, "raise --max-length");
  }
  size_t room = all - special;
  bool fits = kept[0] + kept[1] <= room;
  if (!fits && n_texts == 2) {
    share_longest_first(room, &kept[0], &kept[1]);
  } else if (!fits) {
    kept[0] = room;
  }
  rows->shortened += !fits;
  for (int i = 0; i < n_texts; i++) {
    struct row_text *of = &rows->texts[i];
    of->kept = kept[i];
    of->first = rows->cuts_left ? of->count - kept[i] : 0;
  }
  return true;
}

/* Adds the row of what each text keeps, with the special tokens around it. */
static bool add_row(struct text_rows *rows, int n_texts, struct problem *problem) {
  const struct special_pieces *pieces = &rows->special.of[n_texts - 1];
  size_t at = 0;
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
  uint64_t end = rows->ids.size / sizeof(uint32_t);
  bytes_add(&rows->ends, (const char *)&end, sizeof end);
  rows->count++;
  if (!rows->ids.failed && !rows->segments.failed && !rows->ends.failed) return true;
  return rt_problem(problem, "no memory for the tokens of %" PRId64 " rows", rows->count);
}

bool text_rows_add(struct text_rows *rows, int n_texts, struct problem *problem) {
  return shorten(rows, n_texts, problem) && add_row(rows, n_texts, problem);
}

/* ---- Windows ---- */

/* As Encoding::truncate of the library tokenizers (tokenizers/src/tokenizer/encoding.rs) cuts. */
bool text_rows_windows(const struct text_rows *rows, int text, size_t stride, struct row_windows *windows,
                       struct problem *problem) {
  const size_t taken = (size_t)rows->special.of[1].tokens + rows->texts[1 - text].count, all = (size_t)rows->length;
  const size_t count = rows->texts[text].count, room = taken < all ? all - taken : 0;
  *windows = (struct row_windows){.text = text, .width = count, .step = 1, .count = 1};
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

bool text_rows_add_window(struct text_rows *rows, const struct row_windows *windows, size_t i,
                          struct problem *problem) {
  struct row_text *whole = &rows->texts[1 - windows->text], *of = &rows->texts[windows->text];
  const size_t from = i * windows->step;
  const size_t to = from + windows->width < of->count ? from + windows->width : of->count;
  whole->first = 0;
  whole->kept = whole->count;
  of->first = rows->cuts_left ? of->count - to : from;
  of->kept = to - from;
  return add_row(rows, 2, problem);
}

bool text_rows_token(const struct text_rows *rows, const char *key, uint32_t *token) {
  const char *text = special_text(rows->config, key);
  return text != NULL && tokenizer_find(rows->tokenizer, text, token);
}

/* ---- The arrays ---- */

static uint64_t end_of(const struct text_rows *rows, int64_t row) {
  uint64_t end = 0;
  if (row >= 0) memcpy(&end, rows->ends.text + (size_t)row * sizeof end, sizeof end);
  return end;
}

struct row_span text_rows_span(const struct text_rows *rows, int64_t row) {
  uint64_t first = end_of(rows, row - 1);
  size_t count = (size_t)(end_of(rows, row) - first);
  return (struct row_span){first, count, rows->pads_left ? (size_t)rows->length - count : 0};
}

int32_t text_rows_find(const struct text_rows *rows, int64_t row, uint32_t token) {
  const struct row_span span = text_rows_span(rows, row);
  if (span.at > 0 && rows->pad == token) return 0;
  for (size_t i = 0; i < span.count; i++)
    if (memcmp(rows->ids.text + (span.first + i) * sizeof token, &token, sizeof token) == 0)
      return (int32_t)(span.at + i);
  return span.at == 0 && rows->pad == token && (int64_t)span.count < rows->length ? (int32_t)span.count : 0;
}

static void fill_ids(const void *context, int64_t row, void *out) {
  const struct text_rows *rows = context;
  const struct row_span span = text_rows_span(rows, row);
  uint32_t *ids = out;
  for (int64_t i = 0; i < rows->length; i++) ids[i] = rows->pad;
  memcpy(ids + span.at, rows->ids.text + span.first * sizeof *ids, span.count * sizeof *ids);
}

static void fill_mask(const void *context, int64_t row, void *out) {
  const struct text_rows *rows = context;
  const struct row_span span = text_rows_span(rows, row);
  memset(out, 0, (size_t)rows->length);
  memset((char *)out + span.at, 1, span.count);
}

static void fill_segments(const void *context, int64_t row, void *out) {
  const struct text_rows *rows = context;
  const struct row_span span = text_rows_span(rows, row);
  memset(out, 0, (size_t)rows->length);
  memcpy((char *)out + span.at, rows->segments.text + span.first, span.count);
}

void text_rows_arrays(const struct text_rows *rows, struct npz_array arrays[3]) {
  const struct npz_array all[] = {{"input_ids", "<i4", 4, rows->count, rows->length, fill_ids, rows},
                                  {"attention_mask", "|u1", 1, rows->count, rows->length, fill_mask, rows},
                                  {"token_type_ids", "|u1", 1, rows->count, rows->length, fill_segments, rows}};
  memcpy(arrays, all, sizeof all);
}
