#include "gen/commands/tokenize.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gen/commands/progress.h"
#include "gen/tokenizer/tokenizer.h"
#include "runtime/data/token_file.h"
#include "runtime/files/mapping.h"
#include "runtime/report/stopwatch.h"

/* Seconds from one note of the progress to the next: what a killed run loses at most. */
static const double note_pace = 1.0;

struct work {
  const struct tokenizing *what;
  struct tokenizer *tokenizer;
  struct mapping json, *texts;
  uint32_t end;       /* the token that ends documents */
  uint64_t key, all;  /* what is being done, as a number; bytes of all texts */
  char note[4096];    /* where the progress is noted */
  double noted;       /* when */
  int document;       /* the one at hand */
  struct encoding at; /* in it */
  struct token_writer out;
  struct progress bar;
};

static const char text_cure[] = "give an existing file";

static bool open_inputs(struct work *work, struct problem *problem) {
  const struct tokenizing *what = work->what;
  struct checksum key = rt_checksum_start();
  if (!rt_map(&work->json, what->tokenizer, text_cure, problem)) return false;
  const char *json = (const char *)work->json.bytes;
  work->tokenizer = tokenizer_read(what->tokenizer, json != NULL ? json : "", work->json.size, problem);
  if (work->tokenizer == NULL) return false;
  rt_checksum_add(&key, json, work->json.size);
  if (what->end != NULL) rt_checksum_add(&key, what->end, strlen(what->end) + 1);
  for (int i = 0; i < what->count; i++) {
    if (!rt_map(&work->texts[i], what->texts[i], text_cure, problem)) return false;
    rt_checksum_add(&key, what->texts[i], strlen(what->texts[i]) + 1);
    rt_checksum_add(&key, &work->texts[i].size, sizeof work->texts[i].size);
    work->all += work->texts[i].size;
  }
  work->key = rt_checksum_end(&key);
  if (what->end == NULL || tokenizer_find(work->tokenizer, what->end, &work->end)) return true;
  rt_problem(problem, "%s: no token '%s'", what->tokenizer, what->end);
  return rt_help(problem, "--end is the text of one token, such as <|endoftext|>");
}

/* ---- The note of the progress ---- */

/* Everything before it is in the partial file, and there to stay. */
static bool note(struct work *work, struct problem *problem) {
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  work->noted = rt_now();
  if (out == NULL) return rt_problem(problem, "no memory to note the progress");
  fprintf(out, "accel-gen data %016" PRIx64 "\n%d %zu %zu\n%" PRIu64 " %" PRIu64 " %" PRId64 "\n", work->key,
          work->document, work->at.at, work->at.inside, work->out.tokens, work->out.highest, work->out.n_documents);
  for (int64_t i = 0; i < work->out.n_documents; i++) fprintf(out, "%" PRIu64 "\n", work->out.documents[i]);
  bool good = fclose(out) == 0 || rt_problem(problem, "no memory to note the progress");
  good = good && (fdatasync(work->out.writer.file) == 0 || rt_problem(problem, "%s: cannot be synced", work->note)) &&
         rt_write_file(work->note, BESIDE, text, size, NULL, problem);
  free(text);
  return good;
}

/* Where a run of the same key was. False: there is none, or it is not whole. */
static bool read_note(struct work *work, size_t *at, size_t *inside) {
  uint64_t key = 0, tokens = 0, highest = 0;
  int64_t documents = -1;
  FILE *in = fopen(work->note, "r");
  if (in == NULL) return false;
  bool good = fscanf(in, "accel-gen data %16" SCNx64 "\n%d %zu %zu\n%" SCNu64 " %" SCNu64 " %" SCNd64, &key,
                     &work->document, at, inside, &tokens, &highest, &documents) == 7 &&
              key == work->key && documents >= 0 && documents <= work->what->count && work->document >= 0 &&
              work->document < work->what->count && *at <= work->texts[work->document].size;
  uint64_t *list = good ? calloc((size_t)documents + 1, sizeof *list) : NULL;
  for (int64_t i = 0; list != NULL && i < documents; i++) good = good && fscanf(in, "%" SCNu64, &list[i]) == 1;
  fclose(in);
  struct token_writer *out = &work->out;
  if (good && list != NULL) {
    *out = (struct token_writer){.width = out->width,
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

/* Goes on with a file that a run left, or begins. */
static bool begin(struct work *work, struct problem *problem) {
  size_t at = 0, inside = 0;
  uint32_t vocabulary = tokenizer_vocabulary(work->tokenizer);
  int width = vocabulary <= 1 << 8 ? 1 : vocabulary <= 1 << 16 ? 2 : 4;
  work->out.width = width;
  bool found = read_note(work, &at, &inside);
  if (found && !rt_token_writer_resume(&work->out, work->what->output, problem)) {
    free(work->out.documents);
    found = false;
  }
  if (!found) {
    work->document = 0;
    at = inside = 0;
    if (!rt_token_writer_open(&work->out, work->what->output, width, problem)) return false;
  }
  const struct mapping *text = &work->texts[work->document];
  if (found) fprintf(stderr, "goes on at byte %zu of %s\n", at, work->what->texts[work->document]);
  if (!encoding_begin(&work->at, work->tokenizer, work->what->texts[work->document], (const char *)text->bytes,
                      text->size, problem))
    return false;
  encoding_seek(&work->at, at, inside);
  work->noted = rt_now();
  return found || rt_token_writer_document(&work->out, problem);
}

/* ---- The texts ---- */

static uint64_t done_before(const struct work *work) {
  uint64_t done = 0;
  for (int i = 0; i < work->document; i++) done += work->texts[i].size;
  return done;
}

/* What is left of the document at hand. */
static bool add_document(struct work *work, struct problem *problem) {
  uint64_t before = done_before(work);
  for (;;) {
    const uint32_t *tokens;
    size_t count;
    if (!encoding_next(&work->at, &tokens, &count, problem)) return false;
    if (count == 0) break;
    if (!rt_token_writer_add(&work->out, tokens, count, problem)) return false;
    if (work->out.tokens % 4096 >= count) continue; /* the clock is asked now and then */
    uint64_t done = work->at.at + work->at.inside;
    progress_tell(&work->bar, before + (done < work->at.size ? done : work->at.size));
    if (encoding_may_stop(&work->at) && rt_now() - work->noted > note_pace && !note(work, problem)) return false;
  }
  return work->what->end == NULL || rt_token_writer_add(&work->out, &work->end, 1, problem);
}

static bool add_all(struct work *work, struct problem *problem) {
  const struct tokenizing *what = work->what;
  for (;;) {
    if (!add_document(work, problem)) return false;
    encoding_end(&work->at);
    if (++work->document == what->count) return true;
    const struct mapping *text = &work->texts[work->document];
    if (!rt_token_writer_document(&work->out, problem) ||
        !encoding_begin(&work->at, work->tokenizer, what->texts[work->document], (const char *)text->bytes, text->size,
                        problem))
      return false;
  }
}

static bool tokenize_texts(struct work *work, struct problem *problem) {
  if (!open_inputs(work, problem) || !begin(work, problem)) return false;
  work->bar = progress_begin(done_before(work) + work->at.at, work->all);
  bool good = add_all(work, problem);
  progress_end(&work->bar);
  encoding_end(&work->at);
  int64_t documents = work->out.n_documents;
  if (!good || !rt_token_writer_commit(&work->out, tokenizer_vocabulary(work->tokenizer), problem)) return false;
  unlink(work->note);
  printf("%s: %" PRIu64 " tokens of %d bytes, %" PRId64 " documents, vocabulary %" PRIu32 "\n", work->what->output,
         work->out.tokens, work->out.width, documents, tokenizer_vocabulary(work->tokenizer));
  return true;
}

bool tokenize(const struct tokenizing *tokenizing, struct problem *problem) {
  struct work work = {.what = tokenizing};
  int length = snprintf(work.note, sizeof work.note, "%s.progress", tokenizing->output);
  if (length < 0 || (size_t)length >= sizeof work.note)
    return rt_problem(problem, "the name of the output is too long");
  work.texts = calloc((size_t)tokenizing->count, sizeof *work.texts);
  bool good = work.texts != NULL ? tokenize_texts(&work, problem) : rt_problem(problem, "no memory for the texts");
  for (int i = 0; work.texts != NULL && i < tokenizing->count; i++) rt_unmap(&work.texts[i]);
  free(work.texts);
  rt_unmap(&work.json);
  tokenizer_free(work.tokenizer);
  return good;
}
