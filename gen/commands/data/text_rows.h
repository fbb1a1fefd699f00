/* Rows of texts as a model takes them: one or two texts, with a tokenizer's special tokens around them, shortened and
 * padded to one length, as transformers' tokenizer(text, pair, truncation=True, padding="max_length") makes them. */
#ifndef ACCEL_COMMANDS_DATA_TEXT_ROWS_H
#define ACCEL_COMMANDS_DATA_TEXT_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "gen/commands/data/npz.h"
#include "gen/tokenizer/bytes.h"
#include "gen/tokenizer/marks.h"
#include "gen/tokenizer/special.h"
#include "runtime/base/problem.h"
#include "runtime/files/mapping.h"

struct json_t;
struct tokenizer;
struct encoder;

/* The tokens of a text, and which of them the newest row has: `kept` from `first` on, at `at` of what is not padding.
 */
struct row_text {
  struct bytes tokens, marks; /* uint32 each; uint8, of the ranges of the text (mark_of_range) */
  size_t count, first, kept, at;
};

struct text_rows {
  const char *path; /* of the tokenizer.json */
  struct mapping json;
  struct tokenizer *tokenizer;
  struct encoder *encoder;
  struct special special;
  struct json_t *config; /* of the tokenizer_config.json, or NULL */
  bool measured;         /* the tokenizer can mark */
  int64_t length;        /* tokens of a row */
  uint32_t pad;
  bool pads_left, cuts_left;        /* padding_side and truncation_side of the tokenizer_config.json */
  struct row_text texts[2];         /* of the row that is made */
  int64_t count, shortened;         /* rows; those whose texts did not fit */
  struct bytes ids, segments, ends; /* of all rows, without padding: uint32, uint8; where each row ends, uint64 */
};

/* Reads a tokenizer.json and, for the padding token and the sides, the tokenizer_config.json next to it. `pad`: the
 * text of the padding token, or NULL. False with a problem. Closed also after false. */
bool text_rows_open(struct text_rows *rows, const char *tokenizer, int64_t length, const char *pad,
                    struct problem *problem);

/* Begins a row: its texts have no tokens yet. */
void text_rows_begin(struct text_rows *rows);

/* Appends the tokens of a text to text `which` of the row, 0 or 1. */
bool text_rows_encode(struct text_rows *rows, int which, const char *text, size_t size, struct problem *problem);

/* The same, and marks the tokens of `count` ranges of the text. */
bool text_rows_encode_marked(struct text_rows *rows, int which, const char *text, size_t size,
                             const struct text_range *ranges, size_t count, struct problem *problem);

/* The mark of token i of text `which`. */
uint8_t text_rows_mark(const struct text_rows *rows, int which, size_t i);

/* Adds the row of `n_texts` texts, 1 or 2. False with a problem, and without the row. */
bool text_rows_add(struct text_rows *rows, int n_texts, struct problem *problem);

/* Rows of one text each and another one whole: windows of `width` tokens, of which each begins `step` after the one
 * before, as return_overflowing_tokens of transformers makes them. */
struct row_windows {
  int text; /* 0 or 1: the one that is cut */
  size_t width, step, count;
};

/* Divides text `text` of the row's two into windows, of which neighbours share `stride` tokens. False with a problem:
 * the other text leaves no room for more than that. */
bool text_rows_windows(const struct text_rows *rows, int text, size_t stride, struct row_windows *windows,
                       struct problem *problem);

/* Adds the row of window i. Where the tokenizer cuts texts on their left, window 0 is the text's end. */
bool text_rows_add_window(struct text_rows *rows, const struct row_windows *windows, size_t i, struct problem *problem);

/* The number of a token by its text, which is `key` of the tokenizer_config.json ("cls_token"). False: it has none. */
bool text_rows_token(const struct text_rows *rows, const char *key, uint32_t *token);

/* Where a row, padding among it, first has the token; 0 where it does not. */
int32_t text_rows_find(const struct text_rows *rows, int64_t row, uint32_t token);

/* The tokens of a row, `count` from `first` of all rows' on, and where the row has them, after padding on its left. */
struct row_span {
  uint64_t first;
  size_t count, at;
};

/* Of a row that was added. */
struct row_span text_rows_span(const struct text_rows *rows, int64_t row);

/* What fills the arrays input_ids (int32), attention_mask and token_type_ids (uint8), [rows][length], which live as
 * long as the rows. */
void text_rows_arrays(const struct text_rows *rows, struct npz_array arrays[3]);

void text_rows_close(struct text_rows *rows);

#endif
