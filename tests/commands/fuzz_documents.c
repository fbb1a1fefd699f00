/* Any bytes as JSON Lines, as a CSV and as a file of unknown kind: every text is in memory that is there, a second
 * reading from where a record began gives the same, and so does a reading of the file compressed, which is seen through
 * a window of a few bytes. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "gen/tokenizer/documents.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

struct file {
  const char *bytes;
  size_t size;
};

/* The text of a record: its field or column t. */
static bool make(void *context, struct json_t *record, struct made_text *made, struct problem *problem) {
  const json_t *text = json_object_get(record, "t");
  (void)context;
  made->field = "t";
  if (!json_is_string(text)) return rt_problem(problem, "no text");
  made->text = json_string_value(text);
  made->length = json_string_length(text);
  return true;
}

static void read_again(struct file file, struct text_selector selector, const struct documents *found, uint64_t from) {
  struct problem problem;
  struct documents again;
  if (!documents_begin(&again, "fuzz.csv", file.bytes, file.size, selector, &problem)) __builtin_trap();
  if (from >= documents_position(&again) && !documents_seek(&again, from, &problem)) __builtin_trap();
  if (documents_next(&again, &problem) != DOCUMENT_NEXT || again.length != found->length) __builtin_trap();
  if (documents_position(&again) != documents_position(found) || again.line != found->line) __builtin_trap();
  if (found->length > 0 && memcmp(again.text, found->text, found->length) != 0) __builtin_trap();
  documents_end(&again);
}

/* Reads a file, and the same compressed. */
static void read_all(struct file file, struct file packed, struct text_selector selector) {
  if (documents_is_shard(packed.bytes, packed.size)) return; /* which is not read as it is; fuzz_shard.c reads it */
  struct problem problem = {0}, packed_problem = {0};
  struct documents documents, unpacked;
  struct text_selector plain = selector;
  plain.as_is = true;
  bool good = documents_begin(&documents, "fuzz.csv", file.bytes, file.size, plain, &problem);
  if (documents_begin(&unpacked, "fuzz.csv", packed.bytes, packed.size, selector, &packed_problem) != good)
    __builtin_trap();
  enum document found = DOCUMENT_NEXT;
  while (good && found == DOCUMENT_NEXT) {
    uint64_t before = documents_position(&documents);
    found = documents_next(&documents, &problem);
    if (documents_next(&unpacked, &packed_problem) != found || unpacked.line != documents.line) __builtin_trap();
    if (found != DOCUMENT_NEXT) break;
    if (unpacked.length != documents.length) __builtin_trap();
    if (documents.length > 0 && memcmp(unpacked.text, documents.text, documents.length) != 0) __builtin_trap();
    read_again(file, plain, &documents, before);
    read_again(packed, selector, &unpacked, before);
  }
  bool failed = !good || found == DOCUMENT_BAD;
  if (failed && strcmp(problem.what, packed_problem.what) != 0) __builtin_trap();
  documents_end(&documents);
  documents_end(&unpacked);
}

/* A field is found without a tree of the record as it is found in one. */
static void compare_trees(struct file file, struct text_selector field, struct text_selector made) {
  struct problem problem;
  struct documents found, in_tree;
  field.as_is = made.as_is = true;
  bool good = documents_begin(&found, "fuzz.jsonl", file.bytes, file.size, field, &problem);
  if (documents_begin(&in_tree, "fuzz.jsonl", file.bytes, file.size, made, &problem) != good) __builtin_trap();
  while (good) {
    enum document next = documents_next(&found, &problem);
    if (documents_next(&in_tree, &problem) != next || found.line != in_tree.line) __builtin_trap();
    if (next != DOCUMENT_NEXT) break;
    if (found.length != in_tree.length) __builtin_trap();
    if (found.length > 0 && memcmp(found.text, in_tree.text, found.length) != 0) __builtin_trap();
  }
  documents_end(&found);
  documents_end(&in_tree);
}

static struct file compress_copy(struct file file) {
  enum { GZIP = 16, LEAST_MEMORY = 8 };
  z_stream stream = {0};
  if (deflateInit2(&stream, 1, Z_DEFLATED, MAX_WBITS + GZIP, LEAST_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK) abort();
  size_t room = deflateBound(&stream, file.size);
  char *out = malloc(room);
  if (out == NULL) abort();
  stream.next_in = (Bytef *)(uintptr_t)file.bytes;
  stream.avail_in = (uInt)file.size;
  stream.next_out = (Bytef *)out;
  stream.avail_out = (uInt)room;
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) abort();
  deflateEnd(&stream);
  return (struct file){out, room - stream.avail_out};
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  struct problem problem;
  struct skipped skipped = {0};
  char *text = malloc(size + 1);
  if (text == NULL) return 0;
  memcpy(text, bytes, size);
  struct file file = {text, size}, packed = compress_copy(file);
  for (int skips = 0; skips < 2; skips++) {
    struct text_selector field = {.kind = TEXT_FIELD, .name = "t", .skipped = skips != 0 ? &skipped : NULL};
    struct text_selector column = {.kind = TEXT_COLUMN, .name = "t", .skipped = skips != 0 ? &skipped : NULL};
    read_all(file, packed, field);
    read_all(file, packed, column);
    struct text_selector made = {.kind = TEXT_MADE, .make = make, .skipped = skips != 0 ? &skipped : NULL};
    read_all(file, packed, made);
    compare_trees(file, field, made);
    made.is_table = true;
    read_all(file, packed, made);
  }
  documents_check_whole("fuzz", text, size, &problem);
  free((char *)(uintptr_t)packed.bytes);
  free(text);
  return 0;
}
