/* One text of a record of JSON, found without making a tree of the record. Most of the time of a tree is that of its
 * strings, which jansson reads byte by byte; yajl passes over them. */
#ifndef ACCEL_TOKENIZER_JSON_FIELD_H
#define ACCEL_TOKENIZER_JSON_FIELD_H

#include <stdbool.h>
#include <stddef.h>

#include "gen/tokenizer/bytes.h"

struct json_field {
  const char *text; /* in the record, or in `own` where it has escapes; until the next call */
  size_t length;
  struct bytes own;
};

/* Finds the text that the object of `size` bytes at `record` has under `name`. False where it is not there, where the
 * record is bad, and also where neither is known: records that jansson might refuse, or that have more fields or levels
 * than are counted here. Their tree says what they are. */
bool json_field_find(struct json_field *field, const char *name, const char *record, size_t size);

void json_field_end(struct json_field *field);

#endif
