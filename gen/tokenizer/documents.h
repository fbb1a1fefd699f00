/* Documents: the texts in a file, which is unpacked where it is compressed. The whole of it is one; or each record of
 * JSON Lines has one in a field, each row of a CSV (RFC 4180) in a column; or a text is made of each record of JSON
 * Lines, or of each row of a CSV. Of a shard of WebDataset, each sample's .txt is one, or its .json is a record. */
#ifndef ACCEL_TOKENIZER_DOCUMENTS_H
#define ACCEL_TOKENIZER_DOCUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gen/tokenizer/json_field.h"
#include "gen/tokenizer/marks.h"
#include "gen/unpack/window.h"
#include "runtime/base/problem.h"

struct json_t;
struct shard;

enum text_kind { TEXT_WHOLE, TEXT_FIELD, TEXT_COLUMN, TEXT_MADE };

/* A text that was made of a record, and the ranges of it that are marked; they stay until the next one is made. */
struct made_text {
  const char *text;
  size_t length;
  const struct text_range *ranges;
  size_t n_ranges;
  const char *field; /* after a failure: the field that is wrong, where it is one */
};

/* Makes the text of a record: of JSON Lines as it is read, of a CSV an object of its cells, by their columns' names.
 * False with a problem that says what is wrong with it. */
typedef bool text_maker(void *context, struct json_t *record, struct made_text *made, struct problem *problem);

/* Bad records that were skipped: how many, and why the first was. */
struct skipped {
  int64_t count;
  struct problem first; /* empty: it was before this run, which resumes another */
};

/* Where texts are: `name` is the field's or the column's. */
struct text_selector {
  enum text_kind kind;
  const char *name;
  bool as_is;              /* of TEXT_WHOLE: a compressed file is the text */
  struct skipped *skipped; /* of the caller's: counts a record without a text. NULL: such a record is a problem */
  bool is_table;           /* of TEXT_MADE: records are the rows of a CSV, not lines of JSON */
  text_maker *make;        /* of TEXT_MADE */
  void *context;           /* of `make` */
};

/* The largest record, and the largest text that a compressed file as a whole may be, in bytes: what reading a file
 * takes of memory is a few times as much at most. */
enum { DOCUMENT_MOST = 64 << 20 };

struct documents {
  struct text_selector selector;
  const char *path;    /* the caller's */
  struct window in;    /* on the content of the file */
  bool is_broken;      /* the content cannot be read on */
  size_t at;           /* where in the window the next record begins */
  size_t record_start; /* where the newest record began, after blank lines */
  int64_t record_line; /* of a row of a CSV */
  int64_t line;        /* of that, from 1 */
  int column;          /* of a CSV, from 0; where records are its rows, how many the newest one has */
  char between;        /* its columns */
  const char *text;    /* the current document; until the next call */
  size_t length;
  const struct text_range *ranges; /* of it that are marked */
  size_t n_ranges;
  struct shard *shard; /* the file is one, and this is where its samples are read; NULL: it is not */
  char member[480];    /* of the newest sample: the name of its file */
  struct json_field field;
  struct json_t *record;
  struct json_t *names; /* of a CSV's columns, where records are its rows */
  char *cell;
  size_t capacity;
};

/* Begins with a file's `size` bytes. False with a problem where a CSV has no such column, or where it cannot be
 * unpacked. Ended also after false. */
bool documents_begin(struct documents *documents, const char *path, const char *bytes, size_t size,
                     struct text_selector selector, struct problem *problem);

/* Where in the content of the file the next record begins. */
uint64_t documents_position(const struct documents *documents);

/* Bytes of the file, packed or not, that are not needed any more. */
size_t documents_done(const struct documents *documents);

/* Goes to byte `position` of the content, after the header of a CSV, where a record began. False with a problem where
 * the content cannot be read that far. */
bool documents_seek(struct documents *documents, uint64_t position, struct problem *problem);

enum document { DOCUMENT_NONE, DOCUMENT_NEXT, DOCUMENT_BAD };

/* The next text; DOCUMENT_NONE at the end of the file, DOCUMENT_BAD with a problem, which names line and column. A bad
 * record that is skipped takes its line with it, and a row of a CSV that ends its whole row. */
enum document documents_next(struct documents *documents, struct problem *problem);

void documents_end(struct documents *documents);

/* "a, b": the first keys of a record that fit `size` bytes at `out`, for messages. Returns `out`. */
const char *documents_keys(const struct json_t *record, char *out, size_t size);

/* Whether a file, or what it unpacks to, is a shard of WebDataset. */
bool documents_is_shard(const char *bytes, size_t size);

/* Whether a file may have records, and is not Parquet or Arrow. False with a problem that has the command which writes
 * it as JSON Lines. */
bool documents_check_records(const char *path, const char *bytes, size_t size, struct problem *problem);

/* Whether a file, or what it unpacks to, is a text as a whole: by its name and by how it begins. False with a problem
 * that says what it is and what would make tokens of it. */
bool documents_check_whole(const char *path, const char *bytes, size_t size, struct problem *problem);

#endif
