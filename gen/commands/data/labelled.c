#include "gen/commands/data/labelled.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gen/commands/data/forget.h"
#include "gen/commands/data/labelled_parts.h"
#include "gen/commands/data/note.h"
#include "gen/commands/data/spans.h"
#include "gen/commands/data/watch.h"
#include "gen/tokenizer/tokenizer.h"
#include "runtime/base/clock.h"
#include "runtime/base/progress.h"
#include "runtime/base/terminal.h"
#include "runtime/files/checksum.h"

struct work {
  const struct labelling *what;
  struct text_rows rows;
  struct labels labels;
  struct mapping *files;
  struct watch watch;         /* of them */
  uint64_t key, all;          /* what is being done, as a number; bytes of all files */
  struct note note;           /* of the progress */
  int file;                   /* the current one; of all that are read, their number */
  uint64_t record;            /* where in its content the next record begins */
  size_t done, forgotten;     /* bytes of the file before that, and those that are let go of */
  int64_t skipped_before;     /* records before work->record, of all files */
  struct documents documents; /* of the file */
  struct waiting waiting;     /* the records before work->record that are no rows yet */
  struct row_log log;         /* the rows before these */
  int64_t records;            /* that they are of */
  bool is_bad;                /* there is nothing to continue with */
  struct progress bar;
};

/* ---- Rows ---- */

/* The labels of the row's tokens: each word's first token that the row has gets the word's. `targets` has a label for
 * each word, `of` a number for each token of the text: the word's, or -1 - the word's where it is not its first. */
static void label_tokens(const struct text_rows *rows, const int32_t *targets, const int32_t *of, int32_t *labels,
                         size_t count) {
  const struct row_text *text = &rows->texts[0];
  for (size_t i = 0; i < count; i++) {
    labels[i] = NO_LABEL;
    if (i < text->at || i >= text->at + text->kept) continue;
    const int32_t word = of[text->first + i - text->at];
    if (word >= 0 || i == text->at) labels[i] = targets[word >= 0 ? word : -1 - word];
  }
}

/* Takes the tokens of a record's texts into the row; of words, *of gets the number of each token's word. */
static void take_tokens(struct work *work, const struct waiting_record *record, struct bytes *of) {
  const bool words = work->what->task == TASK_TOKENS;
  text_rows_begin(&work->rows);
  for (int i = 0; i < record->n_texts; i++) {
    size_t count;
    const uint32_t *tokens = batch_tokens(work->waiting.batch, record->texts + i, &count);
    text_rows_take(&work->rows, words ? 0 : i, tokens, batch_marks(work->waiting.batch, record->texts + i), count);
    for (size_t k = 0; words && k < count; k++) {
      const int32_t word = k == 0 ? i : -1 - i;
      bytes_add(of, (const char *)&word, sizeof word);
    }
  }
}

/* The newest row that was made. */
static struct row row_of(const struct text_rows *rows, const int32_t *targets, uint32_t n_targets) {
  return (struct row){.n_ids = (uint32_t)(rows->ids.size / sizeof(uint32_t)),
                      .n_targets = n_targets,
                      .ids = (const uint32_t *)(const void *)rows->ids.text,
                      .targets = targets,
                      .segments = (const uint8_t *)rows->segments.text};
}

/* Makes the rows of a record of TASK_SPANS: windows of its context. */
static bool add_windows(struct work *work, const struct waiting_record *record, struct problem *problem) {
  struct text_rows *rows = &work->rows;
  const int which = rows->pads_left ? 0 : 1;
  struct span span = {.is_none = record->no_answer};
  struct row_windows windows;
  take_tokens(work, record, NULL);
  if (!text_rows_windows(rows, rows->texts[1 - which].count, rows->texts[which].count, (size_t)work->what->stride,
                         &windows, problem))
    return false;
  span_locate(rows, which, &span);
  for (size_t i = 0; i < windows.count; i++) {
    int32_t label[2];
    if (!text_rows_make_window(rows, &windows, i, problem)) return false;
    span_label(rows, which, &span, label);
    const struct row row = row_of(rows, label, 2);
    row_log_add(&work->log, &row);
  }
  return true;
}

/* Makes the row of a record, whose labels are at `targets`. */
static bool add_row(struct work *work, const struct waiting_record *record, const int32_t *targets,
                    struct problem *problem) {
  struct bytes of = {0};
  int32_t *labels = NULL;
  take_tokens(work, record, &of);
  bool good = text_rows_make(&work->rows, problem);
  struct row row = row_of(&work->rows, targets, record->n_targets);
  const uint32_t count = row.n_ids;
  if (good && work->what->task == TASK_TOKENS) {
    labels = calloc((size_t)count + 1, sizeof *labels);
    good = (labels != NULL && !of.failed) || rt_problem(problem, "no memory for the labels");
    if (good) label_tokens(&work->rows, targets, (const int32_t *)(const void *)of.text, labels, count);
    row.targets = labels;
    row.n_targets = count;
  }
  if (good) row_log_add(&work->log, &row);
  bytes_free(&of);
  free(labels);
  return good;
}

/* ---- The note of the progress ---- */

static bool note(struct work *work, struct problem *problem) {
  const char *name;
  json_t *number, *names = json_array();
  char key[24];
  snprintf(key, sizeof key, "%016" PRIx64, work->key);
  json_object_foreach(work->labels.numbers, name, number) {
    (void)number;
    json_array_append_new(names, json_string(name)); /* in the order of their numbers, as they were added */
  }
  json_t *all = json_pack("{ss si sI sI sI sI sI sI so}", "key", key, "file", work->file, "record",
                          (json_int_t)work->record, "skipped", (json_int_t)work->skipped_before, "rows",
                          (json_int_t)work->log.rows, "bytes", (json_int_t)work->log.size, "shortened",
                          (json_int_t)work->rows.shortened, "records", (json_int_t)work->records, "labels", names);
  FILE *out = all != NULL ? note_open(&work->note, work->log.writer.file, work->log.writer.partial, problem) : NULL;
  if (all == NULL) rt_problem(problem, "no memory to note the progress");
  bool good = out != NULL;
  if (good && json_dumpf(all, out, JSON_COMPACT) != 0) good = rt_problem(problem, "no memory to note the progress");
  good = (out == NULL || note_close(&work->note, out, problem)) && good;
  json_decref(all);
  return good;
}

/* Resumes with the labels of a note. */
static bool take_labels(struct work *work, const json_t *names) {
  struct problem ignored;
  for (size_t i = work->labels.given ? json_array_size(names) : 0; i < json_array_size(names); i++) {
    const char *name = json_string_value(json_array_get(names, i));
    if (name == NULL || labels_number_of(&work->labels, name, &ignored) != (int64_t)i) return false;
  }
  return true;
}

/* Where a run of the same key was. False: there is none, or its rows are not there. */
static bool resume(struct work *work) {
  json_int_t record, skipped, rows, bytes, shortened, records;
  json_t *all = json_load_file(work->note.path, 0, NULL), *names;
  const char *key;
  char wanted[24];
  struct problem ignored;
  snprintf(wanted, sizeof wanted, "%016" PRIx64, work->key);
  bool good = json_unpack(all, "{ss si sI sI sI sI sI sI so}", "key", &key, "file", &work->file, "record", &record,
                          "skipped", &skipped, "rows", &rows, "bytes", &bytes, "shortened", &shortened, "records",
                          &records, "labels", &names) == 0 &&
              strcmp(key, wanted) == 0 && work->file >= 0 && work->file <= work->what->count && rows >= 0 &&
              bytes >= 0 && row_log_resume(&work->log, work->what->output, rows, (uint64_t)bytes, &ignored) &&
              take_labels(work, names);
  work->record = good ? (uint64_t)record : 0;
  work->skipped_before = good ? skipped : 0;
  work->rows.shortened = good ? shortened : 0;
  work->records = good ? records : 0;
  json_decref(all);
  return good;
}

/* ---- The files ---- */

static bool take(void *context, json_t *record, struct made_text *made, struct problem *problem) {
  struct work *work = context;
  return labelled_take(work->what, &work->rows, &work->labels, &work->waiting, record, made, problem);
}

static bool begin_file(struct work *work, struct problem *problem) {
  const struct labelling *what = work->what;
  const struct mapping *file = &work->files[work->file];
  const struct text_selector selector = {
      .kind = TEXT_MADE, .is_table = what->is_table, .skipped = what->skipped, .make = take, .context = work};
  work->done = work->forgotten = 0;
  work->is_bad |= !documents_begin(&work->documents, what->files[work->file], (const char *)file->bytes, file->size,
                                   selector, problem);
  return !work->is_bad;
}

/* Resumes what another run left, or begins. */
static bool begin(struct work *work, struct problem *problem) {
  const struct labelling *what = work->what;
  if (!resume(work)) {
    row_log_end(&work->log, false);
    labels_cut(&work->labels, work->labels.given ? labels_count(&work->labels) : 0);
    work->file = 0;
    unlink(work->note.path); /* another run's, which does not fit these rows */
    return row_log_begin(&work->log, what->output, problem) && begin_file(work, problem);
  }
  if (what->skipped != NULL) what->skipped->count = work->skipped_before;
  rt_print(stderr, "resumes after %" PRId64 " rows\n", work->log.rows);
  if (work->file == what->count) return true;
  if (!begin_file(work, problem)) return false;
  if (work->record == 0 || documents_seek(&work->documents, work->record, problem)) return true;
  rt_problem(problem, "%s: it does not fit the files", work->note.path);
  return rt_help(problem, "remove it, and begin again");
}

static uint64_t done_before(const struct work *work) {
  uint64_t done = work->file < work->what->count ? work->done : 0;
  for (int i = 0; i < work->file; i++) done += work->files[i].size;
  return done;
}

/* Makes the rows of the records that wait, and writes them. */
static bool write_rows(struct work *work, struct problem *problem) {
  struct waiting *waiting = &work->waiting;
  const struct waiting_record *records = (const struct waiting_record *)(const void *)waiting->records.text;
  const int32_t *targets = (const int32_t *)(const void *)waiting->targets.text;
  if (waiting->count == 0) return true;
  if (!batch_encode(waiting->batch, problem)) {
    work->is_bad = true;
    return false;
  }
  for (int i = 0; i < waiting->count; targets += records[i++].n_targets)
    if (!(work->what->task == TASK_SPANS ? add_windows(work, &records[i], problem)
                                         : add_row(work, &records[i], targets, problem)))
      return false;
  work->records += waiting->count;
  batch_empty(waiting->batch);
  waiting->records.size = waiting->targets.size = 0;
  waiting->count = 0;
  rt_progress_tell(&work->bar, done_before(work));
  return row_log_write(&work->log, problem) && (!note_is_due(&work->note) || note(work, problem));
}

static bool read_files(struct work *work, struct problem *problem) {
  while (work->file < work->what->count) {
    work->record = documents_position(&work->documents);
    work->done = documents_done(&work->documents);
    work->forgotten = forget_read(&work->files[work->file], work->forgotten, work->done);
    if (work->what->skipped != NULL) work->skipped_before = work->what->skipped->count;
    if (batch_is_full(work->waiting.batch) && !write_rows(work, problem)) return false;
    enum document found = documents_next(&work->documents, problem);
    work->is_bad |= found == DOCUMENT_BAD;
    if (found == DOCUMENT_BAD) return false;
    if (found == DOCUMENT_NEXT) continue;
    documents_end(&work->documents);
    if (++work->file < work->what->count && !begin_file(work, problem)) return false;
  }
  if (work->what->skipped != NULL) work->skipped_before = work->what->skipped->count;
  return write_rows(work, problem) && (work->note.took == 0 || note(work, problem));
}

/* ---- */

/* What the rows depend on but the files' content. */
static uint64_t key_of(const struct work *work) {
  const struct labelling *what = work->what;
  const struct text_rows *rows = &work->rows;
  const char *const words[] = {what->text, what->pair, what->label, what->labels};
  uint32_t special[2] = {0};
  text_rows_token(rows, "cls_token", &special[0]);
  text_rows_token(rows, "bos_token", &special[1]);
  const int64_t numbers[] = {what->task,   what->is_table,  what->length,    what->skipped != NULL,
                             what->stride, rows->pads_left, rows->cuts_left, (int64_t)rows->pad,
                             special[0],   special[1]};
  struct checksum key = rt_checksum_start();
  rt_checksum_add(&key, rows->json.bytes, rows->json.size);
  rt_checksum_add(&key, numbers, sizeof numbers);
  for (int i = 0; i < 4; i++)
    rt_checksum_add(&key, words[i] != NULL ? words[i] : "", strlen(words[i] != NULL ? words[i] : "") + 1);
  const char *name;
  json_t *number;
  json_object_foreach(work->labels.numbers, name, number) rt_checksum_add(&key, name, strlen(name) + 1);
  (void)number;
  for (int i = 0; i < what->count; i++) {
    const struct file_state *state = &work->watch.states[i];
    rt_checksum_add(&key, what->files[i], strlen(what->files[i]) + 1);
    rt_checksum_add(&key, &state->size, sizeof state->size);
    rt_checksum_add(&key, &state->changed, sizeof state->changed);
  }
  return rt_checksum_end(&key);
}

static bool open_inputs(struct work *work, struct problem *problem) {
  const struct labelling *what = work->what;
  work->files = calloc((size_t)what->count, sizeof *work->files);
  if (work->files == NULL) return rt_problem(problem, "no memory for the files");
  if (!watch_begin(&work->watch, what->files, what->count, problem) ||
      !labels_begin(&work->labels, what->labels, problem) ||
      !text_rows_open(&work->rows, what->tokenizer, what->length, what->pair != NULL ? 2 : 1, what->pad, problem))
    return false;
  for (int i = 0; i < what->count; i++) {
    if (!rt_map(&work->files[i], what->files[i], "give an existing file", problem)) return false;
    work->all += work->files[i].size;
  }
  work->key = key_of(work);
  if (what->task == TASK_SPANS && !tokenizer_measure(work->rows.tokenizer))
    return rt_problem(problem, "%s: no memory for its tokens", what->tokenizer);
  work->waiting.batch = batch_new(work->rows.tokenizer);
  return (work->waiting.batch != NULL || rt_problem(problem, "no memory for the texts")) &&
         note_begin(&work->note, what->output, problem);
}

static bool check(const struct work *work, struct problem *problem) {
  const struct labelling *what = work->what;
  if (work->log.rows == 0) {
    rt_problem(problem, "%s: no record gives a row", what->files[0]);
    const struct skipped *skipped = what->skipped;
    return rt_help(problem, "%s%.400s", skipped != NULL && skipped->count > 0 ? "the first that was skipped: " : "",
                   skipped != NULL && skipped->count > 0 ? skipped->first.what : "give a file with records");
  }
  if (what->task != TASK_CLASSIFICATION || work->labels.given || labels_count(&work->labels) > 1) return true;
  rt_problem(problem, "%s: all records have the same label", what->files[0]);
  return rt_help(problem, "give records of at least two classes, or all names with --labels");
}

static bool make_rows(struct work *work, struct problem *problem) {
  bool good = begin(work, problem);
  work->bar = rt_progress_begin(work->what->quiet ? NULL : stderr, "reads records", done_before(work), work->all);
  good = good && read_files(work, problem);
  rt_terminal_clear();
  if (!watch_check(&work->watch, problem)) { /* what looks bad may be what was changed */
    good = false;
    work->is_bad = true;
  }
  if (good && !check(work, problem)) {
    good = false;
    work->is_bad = true;
  }
  good = good && row_log_read(&work->log, (uint32_t)work->what->length, problem) &&
         labelled_write_arrays(work->what, &work->rows, &work->labels, &work->log, work->records, problem);
  if (good || work->is_bad) unlink(work->note.path);
  row_log_end(&work->log, access(work->note.path, F_OK) == 0);
  return good;
}

bool labelled_write(const struct labelling *labelling, struct problem *problem) {
  struct work work = {.what = labelling};
  bool good = open_inputs(&work, problem) && make_rows(&work, problem);
  documents_end(&work.documents);
  for (int i = 0; work.files != NULL && i < labelling->count; i++) rt_unmap(&work.files[i]);
  free(work.files);
  watch_end(&work.watch);
  batch_free(work.waiting.batch);
  bytes_free(&work.waiting.records);
  bytes_free(&work.waiting.targets);
  text_rows_close(&work.rows);
  labels_end(&work.labels);
  return good;
}
