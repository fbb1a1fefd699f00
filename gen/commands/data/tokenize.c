#include "gen/commands/data/tokenize.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gen/commands/data/batch.h"
#include "gen/commands/data/forget.h"
#include "gen/commands/data/note.h"
#include "gen/commands/data/skipped.h"
#include "gen/commands/data/watch.h"
#include "gen/tokenizer/tokenizer.h"
#include "runtime/base/clock.h"
#include "runtime/base/progress.h"
#include "runtime/base/terminal.h"
#include "runtime/data/token_file.h"
#include "runtime/files/mapping.h"

struct work {
  const struct tokenizing *what;
  struct tokenizer *tokenizer;
  struct mapping json, *texts;
  uint32_t end;               /* the token that ends documents */
  uint64_t key, all;          /* what is being done, as a number; bytes of all texts */
  struct note note;           /* of the progress; it lists all documents */
  int file;                   /* the current one */
  uint64_t record;            /* where in its content the current document begins, or the next one */
  size_t done, forgotten;     /* bytes of the file before that, and those that are let go of */
  bool inside;                /* the current document is started: `at` says how far it is */
  struct documents documents; /* of it */
  int64_t skipped_before;     /* records before work->record, of all files */
  struct encoding at;         /* in the document */
  struct batch *batch;        /* of documents before that one which are not written yet */
  bool is_bad;                /* a record is none: there is nothing to continue with */
  struct watch watch;         /* of the texts */
  struct token_writer out;
  struct progress bar;
};

static const char text_remedy[] = "give an existing file";

static bool open_inputs(struct work *work, struct problem *problem) {
  const struct tokenizing *what = work->what;
  struct checksum key = rt_checksum_start();
  if (!rt_map(&work->json, what->tokenizer, text_remedy, problem)) return false;
  const char *json = (const char *)work->json.bytes;
  work->tokenizer = tokenizer_read(what->tokenizer, json != NULL ? json : "", work->json.size, problem);
  if (work->tokenizer == NULL) return false;
  rt_checksum_add(&key, json, work->json.size);
  if (what->end != NULL) rt_checksum_add(&key, what->end, strlen(what->end) + 1);
  if (what->how != NULL) rt_checksum_add(&key, what->how, strlen(what->how) + 1);
  if (what->marks && !tokenizer_measure(work->tokenizer)) return rt_problem(problem, "no memory for the tokenizer");
  rt_checksum_add(&key, &what->selector.kind, sizeof what->selector.kind);
  const bool skips = what->selector.skipped != NULL;
  rt_checksum_add(&key, &skips, sizeof skips);
  if (what->selector.name != NULL) rt_checksum_add(&key, what->selector.name, strlen(what->selector.name) + 1);
  for (int i = 0; i < what->count; i++) {
    if (!rt_map(&work->texts[i], what->texts[i], text_remedy, problem)) return false;
    rt_checksum_add(&key, what->texts[i], strlen(what->texts[i]) + 1);
    rt_checksum_add(&key, &work->texts[i].size, sizeof work->texts[i].size);
    rt_checksum_add(&key, &work->watch.states[i].changed, sizeof work->watch.states[i].changed);
    work->all += work->texts[i].size;
    const char *text = (const char *)work->texts[i].bytes;
    if (what->selector.kind == TEXT_WHOLE && !what->selector.as_is &&
        !documents_check_whole(what->texts[i], text, work->texts[i].size, problem))
      return false;
  }
  work->key = rt_checksum_end(&key);
  work->batch = batch_new(work->tokenizer);
  if (work->batch == NULL) return rt_problem(problem, "no memory for the texts");
  if (what->end == NULL || tokenizer_find(work->tokenizer, what->end, &work->end)) return true;
  rt_problem(problem, "%s: no token '%s'", what->tokenizer, what->end);
  return rt_help(problem, "--end is the text of one token, such as <|endoftext|>");
}

/* ---- The note of the progress ---- */

/* Everything before it is in the partial file, and there to stay. */
static bool note(struct work *work, struct problem *problem) {
  FILE *out = note_open(&work->note, work->out.writer.file, work->out.writer.partial, problem);
  if (out == NULL) return false;
  fprintf(out,
          "accel-gen data %016" PRIx64 "\n%d %" PRIu64 " %d %zu %zu\n%" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64 "\n",
          work->key, work->file, work->record, work->inside, work->at.at, work->at.inside, work->out.tokens,
          work->out.highest, work->skipped_before, work->out.n_documents);
  for (int64_t i = 0; i < work->out.n_documents; i++) fprintf(out, "%" PRIu64 "\n", work->out.documents[i]);
  fprintf(out, "%" PRId64 "\n", work->out.n_spans);
  for (int64_t i = 0; i < 2 * work->out.n_spans; i++) fprintf(out, "%" PRIu64 "\n", work->out.spans[i]);
  return note_close(&work->note, out, problem);
}

/* `count` numbers of a note, in memory of the caller's. NULL: they are not there. */
static uint64_t *read_list(FILE *in, int64_t count) {
  uint64_t *list = calloc((size_t)count + 1, sizeof *list);
  for (int64_t i = 0; list != NULL && i < count; i++)
    if (fscanf(in, "%" SCNu64, &list[i]) != 1) {
      free(list);
      return NULL;
    }
  return list;
}

/* Where a run of the same key was. False: there is none, or it is not whole. */
static bool read_note(struct work *work, uint64_t *record, size_t *at, size_t *inside) {
  uint64_t key = 0, tokens = 0, highest = 0;
  int64_t documents = -1;
  FILE *in = fopen(work->note.path, "r");
  if (in == NULL) return false;
  int is_inside = 0;
  int64_t skipped = 0;
  bool good =
      fscanf(in,
             "accel-gen data %16" SCNx64 "\n%d %" SCNu64 " %d %zu %zu\n%" SCNu64 " %" SCNu64 " %" SCNd64 " %" SCNd64,
             &key, &work->file, record, &is_inside, at, inside, &tokens, &highest, &skipped, &documents) == 10 &&
      key == work->key && documents >= 0 && (uint64_t)documents <= tokens + 1 && work->file >= 0 &&
      work->file < work->what->count;
  uint64_t *list = good ? read_list(in, documents) : NULL, *spans = NULL;
  int64_t n_spans = 0;
  good = list != NULL && fscanf(in, "%" SCNd64, &n_spans) == 1 && n_spans >= 0 && (uint64_t)n_spans <= tokens;
  if (good) spans = read_list(in, 2 * n_spans);
  fclose(in);
  work->inside = is_inside != 0;
  work->skipped_before = skipped;
  struct token_writer *out = &work->out;
  if (spans != NULL) {
    *out = (struct token_writer){.width = out->width,
                                 .marks = out->marks,
                                 .spans = spans,
                                 .n_spans = n_spans,
                                 .span_capacity = 2 * n_spans + 1,
                                 .tokens = tokens,
                                 .highest = highest,
                                 .documents = list,
                                 .n_documents = documents,
                                 .capacity = documents + 1};
    return true;
  }
  free(list);
  return false;
}

/* Begins with the documents of the current file. */
static bool begin_file(struct work *work, struct problem *problem) {
  work->done = work->forgotten = 0;
  const struct mapping *text = &work->texts[work->file];
  bool good = documents_begin(&work->documents, work->what->texts[work->file], (const char *)text->bytes, text->size,
                              work->what->selector, problem);
  work->is_bad |= !good;
  return good;
}

/* The next document of the current file. */
static enum document next_document(struct work *work, struct problem *problem) {
  enum document found = documents_next(&work->documents, problem);
  work->is_bad |= found == DOCUMENT_BAD;
  return found;
}

/* Begins with the current document, on its way through the tokenizer. */
static bool begin_document(struct work *work, struct problem *problem) {
  const struct documents *documents = &work->documents;
  bool good = encoding_begin(&work->at, batch_encoder(work->batch), documents->path, documents->text, documents->length,
                             problem);
  if (good && documents->n_ranges > 0 && !encoding_mark(&work->at, documents->ranges, documents->n_ranges))
    good = rt_problem(problem, "%s: no memory for its tokens", documents->path);
  work->is_bad |= !good;
  work->inside = good;
  return good;
}

static bool does_not_fit(const struct work *work, struct problem *problem) {
  rt_problem(problem, "%s: it does not fit the texts", work->note.path);
  return rt_help(problem, "remove it, and begin again");
}

/* Resumes what another run left, or begins. */
static bool begin(struct work *work, struct problem *problem) {
  uint64_t record = 0;
  size_t at = 0, inside = 0;
  uint32_t vocabulary = tokenizer_vocabulary(work->tokenizer);
  int width = vocabulary <= 1 << 8 ? 1 : vocabulary <= 1 << 16 ? 2 : 4;
  work->out.width = width;
  work->out.marks = work->what->marks;
  bool resumed = read_note(work, &record, &at, &inside);
  if (resumed && !rt_token_writer_resume(&work->out, work->what->output, problem)) {
    free(work->out.documents);
    free(work->out.spans);
    resumed = false;
  }
  if (!resumed) {
    work->file = 0;
    work->inside = false;
    work->skipped_before = 0;
    unlink(work->note.path); /* another run's, which does not fit these tokens */
    if (!rt_token_writer_open(&work->out, work->what->output, width, problem)) return false;
    if (work->what->marks) rt_token_writer_mark(&work->out);
    return begin_file(work, problem);
  }
  rt_print(stderr, "resumes at byte %" PRIu64 " of %s\n", record + at, work->what->texts[work->file]);
  if (work->what->selector.skipped != NULL) work->what->selector.skipped->count = work->skipped_before;
  if (!begin_file(work, problem)) return false;
  if (record > 0 && !documents_seek(&work->documents, record, problem)) return does_not_fit(work, problem);
  work->record = record;
  work->done = documents_done(&work->documents);
  if (!work->inside) return true;
  enum document found = next_document(work, problem);
  if (found == DOCUMENT_NEXT && at <= work->documents.length) {
    if (!begin_document(work, problem)) return false;
    encoding_seek(&work->at, at, inside);
    return true;
  }
  if (found == DOCUMENT_BAD) return false;
  return does_not_fit(work, problem);
}

/* ---- The texts ---- */

static uint64_t done_before(const struct work *work) {
  uint64_t done = 0;
  for (int i = 0; i < work->file; i++) done += work->texts[i].size;
  return done + work->done;
}

/* Adds tokens, and says which are trained on. */
static bool add_tokens(struct work *work, const uint32_t *tokens, const uint8_t *marks, size_t count,
                       struct problem *problem) {
  if (!work->what->marks || marks == NULL) return rt_token_writer_add(&work->out, tokens, count, problem);
  for (size_t from = 0, to; from < count; from = to) {
    for (to = from + 1; to < count && (marks[to] != 0) == (marks[from] != 0);) to++;
    if (!rt_token_writer_add(&work->out, tokens + from, to - from, problem) ||
        (marks[from] != 0 && !rt_token_writer_train(&work->out, to - from, problem)))
      return false;
  }
  return true;
}

static bool add_end(struct work *work, struct problem *problem) {
  static const uint8_t marked[] = {1}; /* a text that is to be answered ends in it */
  return work->what->end == NULL || add_tokens(work, &work->end, marked, 1, problem);
}

/* What is left of the current document. */
static bool add_document(struct work *work, struct problem *problem) {
  uint64_t before = done_before(work);
  for (;;) {
    const uint32_t *tokens;
    size_t count;
    if (!encoding_next(&work->at, &tokens, &count, problem)) return false;
    if (count == 0) break;
    if (!add_tokens(work, tokens, encoding_marks(&work->at), count, problem)) return false;
    if (work->out.tokens % 4096 >= count) continue; /* the clock is asked now and then */
    uint64_t done = work->at.at + work->at.inside;
    rt_progress_tell(&work->bar, before + (done < work->at.size ? done : work->at.size));
    if (encoding_may_stop(&work->at) && note_is_due(&work->note) && !note(work, problem)) return false;
  }
  encoding_end(&work->at);
  work->inside = false;
  return add_end(work, problem);
}

/* Writes the documents of the batch, which are all those before work->record. */
static bool write_batch(struct work *work, struct problem *problem) {
  if (batch_count(work->batch) == 0) return true;
  if (!batch_encode(work->batch, problem)) {
    work->is_bad = true;
    return false;
  }
  for (int i = 0; i < batch_count(work->batch); i++) {
    size_t count;
    const uint32_t *tokens = batch_tokens(work->batch, i, &count);
    if (!rt_token_writer_document(&work->out, problem) ||
        !add_tokens(work, tokens, batch_marks(work->batch, i), count, problem) || !add_end(work, problem))
      return false;
  }
  batch_empty(work->batch);
  rt_progress_tell(&work->bar, done_before(work));
  return !note_is_due(&work->note) || note(work, problem);
}

/* Adds the document that was found to the batch or, where it is long, to the output. */
static bool take_document(struct work *work, struct problem *problem) {
  const struct documents *documents = &work->documents;
  if (documents->length <= BATCH_LONGEST) {
    return batch_add(work->batch, documents->path, documents->text, documents->length, documents->ranges,
                     documents->n_ranges) ||
           rt_problem(problem, "no memory for the texts");
  }
  return write_batch(work, problem) && rt_token_writer_document(&work->out, problem) && begin_document(work, problem) &&
         add_document(work, problem);
}

/* Whether the current file is read as one document, so that no position in it is after that. */
static bool is_read(const struct work *work) {
  return work->what->selector.kind == TEXT_WHOLE && work->documents.shard == NULL && work->documents.text != NULL;
}

static bool add_all(struct work *work, struct problem *problem) {
  if (work->inside && !add_document(work, problem)) return false;
  for (;;) {
    work->record = documents_position(&work->documents);
    work->done = documents_done(&work->documents);
    work->forgotten = forget_read(&work->texts[work->file], work->forgotten, work->done);
    if (work->what->selector.skipped != NULL) work->skipped_before = work->what->selector.skipped->count;
    if (batch_is_full(work->batch) && !is_read(work) && !write_batch(work, problem)) return false;
    enum document found = next_document(work, problem);
    if (found == DOCUMENT_BAD) return write_batch(work, problem) && false;
    if (found == DOCUMENT_NEXT && !take_document(work, problem)) return false;
    if (found == DOCUMENT_NEXT) continue;
    documents_end(&work->documents);
    if (++work->file == work->what->count) return write_batch(work, problem);
    if (!begin_file(work, problem)) return false;
  }
}

static void report(const struct work *work, int64_t documents, uint64_t trained) {
  char marked[64] = "";
  if (work->what->marks) snprintf(marked, sizeof marked, ", %" PRIu64 " tokens to train on", trained);
  rt_print(stdout, "%s: %" PRIu64 " tokens of %d bytes, %" PRId64 " documents, vocabulary %" PRIu32 "%s\n",
           work->what->output, work->out.tokens, work->out.width, documents, tokenizer_vocabulary(work->tokenizer),
           marked);
}

static bool tokenize_texts(struct work *work, struct problem *problem) {
  if (!watch_begin(&work->watch, work->what->texts, work->what->count, problem) || !open_inputs(work, problem))
    return false;
  bool good = begin(work, problem);
  work->bar =
      rt_progress_begin(work->what->quiet ? NULL : stderr, "tokenizes", done_before(work) + work->at.at, work->all);
  good = good && add_all(work, problem);
  if (!watch_check(&work->watch, problem)) { /* what looks bad may be what was changed */
    good = false;
    work->is_bad = true;
  }
  rt_terminal_clear();
  encoding_end(&work->at);
  documents_end(&work->documents);
  int64_t documents = work->out.n_documents;
  uint64_t trained = rt_token_writer_trained(&work->out);
  if (work->is_bad) {
    struct problem ignored;
    rt_writer_give_up(&work->out.writer, "", &ignored);
    unlink(work->note.path);
  }
  if (!good || !rt_token_writer_commit(&work->out, tokenizer_vocabulary(work->tokenizer), problem)) return false;
  unlink(work->note.path);
  if (!work->what->quiet) report(work, documents, trained);
  if (work->what->marks && trained == 0)
    rt_print(stderr, "accel-gen data: warning: no token is to be trained on: no record has a turn of the assistant\n");
  skipped_report(work->what->selector.skipped);
  return true;
}

bool tokenize(const struct tokenizing *tokenizing, struct problem *problem) {
  struct work work = {.what = tokenizing};
  if (!note_begin(&work.note, tokenizing->output, problem)) return false;
  work.texts = calloc((size_t)tokenizing->count, sizeof *work.texts);
  bool good = work.texts != NULL ? tokenize_texts(&work, problem) : rt_problem(problem, "no memory for the texts");
  for (int i = 0; work.texts != NULL && i < tokenizing->count; i++) rt_unmap(&work.texts[i]);
  free(work.texts);
  rt_unmap(&work.json);
  watch_end(&work.watch);
  batch_free(work.batch);
  tokenizer_free(work.tokenizer);
  return good;
}
