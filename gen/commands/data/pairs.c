#include "gen/commands/data/pairs.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "gen/commands/data/forget.h"
#include "gen/commands/data/npz.h"
#include "gen/commands/data/text_rows.h"
#include "gen/commands/data/watch.h"
#include "gen/tokenizer/tokenizer.h"
#include "runtime/base/progress.h"
#include "runtime/base/terminal.h"

/* The rows of a pair, in this order. */
enum { REJECTED, CHOSEN, SIDES };
static const char *const names[SIDES] = {"rejected", "chosen"};

struct work {
  const struct pairing *what;
  struct text_rows tokenizer; /* and its padding; the rows are made here, without special tokens */
  struct encoder *encoder;
  uint32_t end;                  /* the token of what->end */
  struct bytes tokens, marks;    /* of the text that is encoded: uint32; uint8, 1 for one of a completion */
  struct bytes ids, completions; /* of all rows, SIDES for each record, the same */
  struct bytes ends;             /* where each row ends, uint64 */
  int64_t count, shortened;      /* rows; those that were longer */
};

/* ---- The prompt ---- */

/* How many messages both completions begin with, where they are whole conversations. */
static size_t common_messages(const json_t *a, const json_t *b) {
  size_t count = 0;
  while (count < json_array_size(a) && count < json_array_size(b) &&
         json_equal(json_array_get(a, count), json_array_get(b, count)))
    count++;
  const size_t least = json_array_size(a) < json_array_size(b) ? json_array_size(a) : json_array_size(b);
  return count < least || least == 0 ? count : least - 1; /* of equal ones all but the last message */
}

/* The bytes that both texts begin with, up to the end of a character, and without a blank at their end. Where one text
 * begins with the other, its last character is not among them. */
static size_t common_bytes(const json_t *one, const json_t *other) {
  const char *a = json_string_value(one), *b = json_string_value(other);
  const size_t of_a = json_string_length(one), of_b = json_string_length(other), least = of_a < of_b ? of_a : of_b;
  size_t count = 0;
  while (count < least && a[count] == b[count]) count++;
  const bool is_whole = count == least && least > 0;
  if (is_whole) count--;
  while (count > 0 && ((unsigned char)a[count] & 0xc0) == 0x80) count--;
  return !is_whole && count > 0 && a[count - 1] == ' ' ? count - 1 : count;
}

static json_t *part_of(const json_t *list, size_t from, size_t to) {
  json_t *part = json_array();
  for (size_t i = from; i < to; i++) json_array_append(part, json_array_get(list, i));
  return part;
}

/* Divides two whole conversations into what they have in common and the rest of `one`, as TRL's extract_prompt does. */
static void divide(const json_t *one, const json_t *other, json_t **prompt, json_t **completion) {
  if (json_is_array(one)) {
    const size_t count = common_messages(one, other);
    *prompt = part_of(one, 0, count);
    *completion = part_of(one, count, json_array_size(one));
    return;
  }
  const char *text = json_string_value(one);
  const size_t count = common_bytes(one, other);
  *prompt = json_stringn(text, count);
  *completion = json_stringn(text + count, json_string_length(one) - count);
}

/* The record's own prompt; NULL: it has none. */
static const json_t *prompt_of(const json_t *record) {
  const json_t *prompt = json_object_get(record, "prompt");
  return json_is_null(prompt) ? NULL : prompt;
}

static bool check_sides(const json_t *record, struct problem *problem) {
  const json_t *chosen = json_object_get(record, "chosen"), *rejected = json_object_get(record, "rejected");
  const json_t *prompt = prompt_of(record);
  char keys[200];
  if (chosen == NULL || rejected == NULL) {
    rt_problem(problem, "the record has no '%s'", chosen == NULL ? "chosen" : "rejected");
    return rt_help(problem, "its fields are: %s", documents_keys(record, keys, sizeof keys));
  }
  const bool texts = json_is_string(chosen) && json_is_string(rejected) && (prompt == NULL || json_is_string(prompt));
  const bool lists = json_is_array(chosen) && json_is_array(rejected) && (prompt == NULL || json_is_array(prompt));
  if (json_equal(chosen, rejected)) {
    rt_problem(problem, "'chosen' and 'rejected' are the same");
    return rt_help(problem, "a pair has two completions; leave such records out with --on-bad-record skip");
  }
  if (texts || lists) return true;
  rt_problem(problem, "'prompt', 'chosen' and 'rejected' are neither texts nor lists of messages");
  return rt_help(problem,
                 "give all of them as texts, or all as lists; 'prompt' may be left out where both others begin "
                 "with it");
}

/* A record of a prompt and the completion of one side, as chat_make takes it; the caller's. */
static json_t *completion_of(const json_t *record, int side) {
  static const char *const gone[] = {"chosen", "rejected", "messages", "conversations"};
  json_t *one = json_copy((json_t *)record), *prompt = NULL, *completion = NULL;
  const json_t *own = json_object_get(record, names[side]), *other = json_object_get(record, names[1 - side]);
  if (prompt_of(record) == NULL) divide(own, other, &prompt, &completion);
  for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) json_object_del(one, gone[i]);
  if (prompt != NULL) json_object_set_new(one, "prompt", prompt);
  if (completion != NULL)
    json_object_set_new(one, "completion", completion);
  else
    json_object_set(one, "completion", (json_t *)own);
  return one;
}

/* ---- Rows ---- */

/* The tokens of a text and, last, the one that ends it. */
static bool encode(struct work *work, const struct made_text *made, struct problem *problem) {
  static const uint8_t completes = 1;
  struct encoding encoding;
  const uint32_t *tokens;
  size_t count = 1;
  work->tokens.size = work->marks.size = 0;
  bool good = encoding_begin(&encoding, work->encoder, work->tokenizer.path, made->text, made->length, problem);
  if (good && !encoding_mark(&encoding, made->ranges, made->n_ranges))
    good = rt_problem(problem, "no memory for the tokens of a text");
  while (good && (good = encoding_next(&encoding, &tokens, &count, problem)) && count > 0) {
    bytes_add(&work->tokens, (const char *)tokens, count * sizeof *tokens);
    for (size_t i = 0; i < count; i++) {
      const uint8_t mark = encoding_marks(&encoding)[i] != 0;
      bytes_add(&work->marks, (const char *)&mark, 1);
    }
  }
  encoding_end(&encoding);
  if (good && work->what->end != NULL) {
    bytes_add(&work->tokens, (const char *)&work->end, sizeof work->end);
    bytes_add(&work->marks, (const char *)&completes, 1);
  }
  return good;
}

/* Adds the row of the text that was encoded, of the tokens that fit. */
static bool add_row(struct work *work, int side, struct problem *problem) {
  const size_t count = work->marks.size, most = (size_t)work->what->length, kept = count < most ? count : most;
  const size_t first = work->tokenizer.cuts_left ? count - kept : 0;
  if (kept > 0) bytes_add(&work->ids, work->tokens.text + first * sizeof(uint32_t), kept * sizeof(uint32_t));
  if (kept > 0) bytes_add(&work->completions, work->marks.text + first, kept);
  const uint64_t end = work->completions.size;
  bytes_add(&work->ends, (const char *)&end, sizeof end);
  if (work->tokens.failed || work->marks.failed || work->ids.failed || work->completions.failed || work->ends.failed)
    return rt_problem(problem, "no memory for the tokens of pairs");
  work->count++;
  work->shortened += kept < count;
  if (kept > 0 && memchr(work->marks.text + first, 1, kept) != NULL) return true;
  rt_problem(problem, "'%s' has no token%s", names[side],
             kept < count ? " within the first ones, which the prompt takes" : "");
  return rt_help(problem, "raise --max-length; leave such records out with --on-bad-record skip");
}

static bool add_side(struct work *work, const json_t *record, int side, struct problem *problem) {
  struct made_text made = {0};
  json_t *one = completion_of(record, side);
  bool good = one != NULL || rt_problem(problem, "no memory for a record");
  good = good && chat_make(work->what->chat, one, &made, problem) && encode(work, &made, problem) &&
         add_row(work, side, problem);
  json_decref(one);
  return good;
}

/* Makes the rows of a record. What was added of one that turns out to be bad is taken back. */
static bool take(void *context, json_t *record, struct made_text *made, struct problem *problem) {
  struct work *work = context;
  const struct work before = *work;
  made->text = "";
  if (check_sides(record, problem) && add_side(work, record, REJECTED, problem) &&
      add_side(work, record, CHOSEN, problem))
    return true;
  work->ids.size = before.ids.size;
  work->completions.size = before.completions.size;
  work->ends.size = before.ends.size;
  work->count = before.count;
  work->shortened = before.shortened;
  return false;
}

static bool read_file(struct work *work, const char *path, struct problem *problem) {
  const struct text_selector selector = {
      .kind = TEXT_MADE, .skipped = work->what->skipped, .make = take, .context = work};
  struct mapping file;
  struct documents documents;
  enum document found = DOCUMENT_BAD;
  size_t forgotten = 0;
  if (!rt_map(&file, path, "give an existing file", problem)) return false;
  struct progress progress = rt_progress_begin(work->what->quiet ? NULL : stderr, "reads records", 0, file.size);
  if (documents_begin(&documents, path, (const char *)file.bytes, file.size, selector, problem))
    while ((found = documents_next(&documents, problem)) == DOCUMENT_NEXT) {
      forgotten = forget_read(&file, forgotten, documents_done(&documents));
      rt_progress_tell(&progress, documents_done(&documents));
    }
  rt_terminal_clear();
  documents_end(&documents);
  rt_unmap(&file);
  return found == DOCUMENT_NONE;
}

/* ---- The file ---- */

/* Where a row begins among all, and how many tokens it has. */
static size_t begin_of(const struct work *work, int64_t row, size_t *count) {
  uint64_t from = 0, to;
  if (row > 0) memcpy(&from, work->ends.text + (size_t)(row - 1) * sizeof from, sizeof from);
  memcpy(&to, work->ends.text + (size_t)row * sizeof to, sizeof to);
  *count = (size_t)(to - from);
  return (size_t)from;
}

static void fill_ids(const void *context, int64_t row, void *out) {
  const struct work *work = context;
  uint32_t *ids = out;
  size_t count;
  const size_t from = begin_of(work, row, &count);
  for (int64_t i = 0; i < work->what->length; i++) ids[i] = work->tokenizer.pad;
  memcpy(ids, work->ids.text + from * sizeof *ids, count * sizeof *ids);
}

static void fill_attention(const void *context, int64_t row, void *out) {
  const struct work *work = context;
  size_t count;
  begin_of(work, row, &count);
  memset(out, 0, (size_t)work->what->length);
  memset(out, 1, count);
}

static void fill_completion(const void *context, int64_t row, void *out) {
  const struct work *work = context;
  size_t count;
  const size_t from = begin_of(work, row, &count);
  memset(out, 0, (size_t)work->what->length);
  memcpy(out, work->completions.text + from, count);
}

static void fill_preferred(const void *context, int64_t row, void *out) {
  static const int32_t chosen = CHOSEN;
  (void)context;
  (void)row;
  memcpy(out, &chosen, sizeof chosen);
}

static bool write_file(const struct work *work, struct problem *problem) {
  const struct pairing *what = work->what;
  const int64_t pairs = work->count / SIDES, length = what->length;
  if (pairs == 0) {
    rt_problem(problem, "%s: no record gives a pair", what->files[0]);
    const struct skipped *skipped = what->skipped;
    return rt_help(problem, "%s%.400s", skipped != NULL && skipped->count > 0 ? "the first that was skipped: " : "",
                   skipped != NULL && skipped->count > 0 ? skipped->first.what : "give a file with records");
  }
  const struct npz_array arrays[] = {{"input_ids", "<i4", 4, work->count, length, fill_ids, work, SIDES},
                                     {"attention_mask", "|u1", 1, work->count, length, fill_attention, work, SIDES},
                                     {"completion_mask", "|u1", 1, work->count, length, fill_completion, work, SIDES},
                                     {"labels", "<i4", 4, pairs, 0, fill_preferred, work, 0}};
  if (!npz_write(what->output, arrays, 4, problem)) return false;
  if (!what->quiet)
    rt_print(stdout, "%s: %" PRId64 " pairs of %" PRId64 " tokens a side, %" PRId64 " shortened\n", what->output, pairs,
             length, work->shortened);
  return true;
}

static bool open_tokenizer(struct work *work, struct problem *problem) {
  const struct pairing *what = work->what;
  if (!text_rows_open(&work->tokenizer, what->tokenizer, what->length, 1, what->pad, problem)) return false;
  struct tokenizer *tokenizer = work->tokenizer.tokenizer;
  if (what->end != NULL && !tokenizer_find(tokenizer, what->end, &work->end)) {
    rt_problem(problem, "%s: no token '%s'", what->tokenizer, what->end);
    return rt_help(problem, "name one of the tokenizer's tokens with --end TOKEN");
  }
  if (tokenizer_measure(tokenizer)) work->encoder = encoder_new(tokenizer);
  return work->encoder != NULL || rt_problem(problem, "%s: no memory for its tokens", what->tokenizer);
}

bool pairs_write(const struct pairing *pairing, struct problem *problem) {
  struct work work = {.what = pairing};
  struct watch watch;
  struct bytes *const own[] = {&work.tokens, &work.marks, &work.ids, &work.completions, &work.ends};
  bool good = watch_begin(&watch, pairing->files, pairing->count, problem) && open_tokenizer(&work, problem);
  for (int i = 0; good && i < pairing->count; i++) good = read_file(&work, pairing->files[i], problem);
  good = watch_check(&watch, problem) && good; /* what looks bad may be what was changed */
  good = good && write_file(&work, problem);
  watch_end(&watch);
  encoder_free(work.encoder);
  text_rows_close(&work.tokenizer);
  for (size_t i = 0; i < sizeof own / sizeof *own; i++) bytes_free(own[i]);
  return good;
}
