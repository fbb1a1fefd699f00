/* Spans: the answer to a question as the tokens of its context where it begins and ends, as run_qa.py of transformers'
 * examples labels SQuAD's records. */
#ifndef ACCEL_COMMANDS_DATA_SPANS_H
#define ACCEL_COMMANDS_DATA_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gen/commands/data/text_rows.h"
#include "gen/tokenizer/documents.h"

struct json_t;

/* The answer of a record. */
struct span {
  bool is_none;                /* the context does not answer the question */
  struct text_range ranges[2]; /* of the context: up to the answer's first character, and from its last one on */
  size_t begins, ends;         /* tokens of the context: as many begin up to its start; the first that ends after it */
};

/* Reads the first answer of a record, whose context has `size` bytes: an object in the field `name`, {"text": [...],
 * "answer_start": [...]}, or a list of {"text": ..., "answer_start": ...}; of a table, the columns NAME.text and
 * NAME.answer_start. answer_start counts characters of the context. `trims`: tokens are without the blanks around them.
 * False with a problem, and made->field. */
bool span_read(const struct json_t *record, const char *name, bool is_table, const char *context, size_t size,
               bool trims, struct span *span, struct made_text *made, struct problem *problem);

/* Finds the answer among the tokens of text `which`, which was encoded with the ranges marked. */
void span_locate(const struct text_rows *rows, int which, struct span *span);

/* Where the newest row has the answer, whose context is text `which`: its first and its last token, or, where the row
 * does not have all of it, twice the token that says so: the first cls_token, else the first bos_token, else 0. */
void span_label(const struct text_rows *rows, int which, const struct span *span, int32_t label[2]);

/* What is left of a question without the white space before it. */
const char *span_question(const char *question);

#endif
