#include "gen/commands/data/labelled.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/commands/data/forget.h"
#include "gen/commands/data/labels.h"
#include "gen/commands/data/spans.h"
#include "gen/commands/data/text_rows.h"
#include "gen/commands/data/watch.h"

struct work {
  const struct labelling *what;
  struct text_rows rows;
  struct labels labels;
  struct bytes targets; /* of all rows: int32 numbers of labels, of words for each token, or float32 */
  struct bytes words; /* of TASK_TOKENS, for each token of the record: int32, n of one that begins a word of label n, -1
                         - n of the others */
  struct bytes ends;  /* where those of each row end, uint64 */
  int64_t records;    /* of TASK_SPANS, whose contexts may give several rows each */
  int32_t *sorted;    /* the final number of each label */
};

/* The label of what does not count, for a loss that leaves it out. */
static const int32_t no_label = -100;

/* What a task does. */
struct task_of {
  const char *problem_type; /* as transformers' configurations name it */
  /* The label of a record; NULL: each word or each row has one. */
  bool (*take)(struct work *work, const json_t *value, struct problem *problem);
  void (*fill)(const void *work, int64_t row, void *out); /* the labels of a row */
  const char *dtype;
};

/* ---- Labels ---- */

static bool add_target(struct work *work, const void *target, struct problem *problem) {
  bytes_add(&work->targets, target, sizeof(int32_t));
  return !work->targets.failed || rt_problem(problem, "no memory for the labels");
}

static bool add_class(struct work *work, int64_t number, struct problem *problem) {
  const int32_t target = (int32_t)number;
  return number >= 0 && add_target(work, &target, problem);
}

static bool take_class(struct work *work, const json_t *value, struct problem *problem) {
  return add_class(work, labels_number(&work->labels, value, problem), problem);
}

/* Names between commas, as a cell of a table has them. */
static bool take_names(struct work *work, const char *text, struct problem *problem) {
  char *copy = strdup(text);
  bool good = copy != NULL || rt_problem(problem, "no memory for the labels");
  for (char *at = copy; good && at != NULL && text[0] != '\0';)
    good = add_class(work, labels_number_of(&work->labels, labels_next(&at), problem), problem);
  free(copy);
  return good;
}

static bool take_list(struct work *work, const json_t *value, struct problem *problem) {
  const json_t *item;
  size_t i;
  if (json_is_string(value)) return take_names(work, json_string_value(value), problem);
  if (!json_is_array(value)) {
    rt_problem(problem, "the labels are neither a list nor a text");
    return rt_help(problem, "give a list of labels, or their names between commas");
  }
  json_array_foreach(value, i, item) if (!take_class(work, item, problem)) return false;
  return true;
}

/* A finite decimal number and nothing else: strtod alone would take hexadecimal, "inf" and "nan" as well. */
static bool take_number(struct work *work, const json_t *value, struct problem *problem) {
  const char *text = json_string_value(value);
  char *end = NULL;
  double number = json_is_number(value) ? json_number_value(value) : NAN;
  if (text != NULL && text[0] != '\0' && strspn(text, "0123456789+-.eE") == strlen(text)) number = strtod(text, &end);
  if (end != NULL && *end != '\0') number = NAN;
  const float target = (float)number;
  if (isfinite(target)) return add_target(work, &target, problem);
  rt_problem(problem, "the label%s%.100s%s is not a finite decimal number", text != NULL ? " '" : "",
             text != NULL ? text : "", text != NULL ? "'" : "");
  return rt_help(problem, "--task regression takes numbers such as 4 or -0.5; --task classification takes names");
}

/* ---- Arrays of labels ---- */

static const int32_t *targets_of(const struct work *work, int64_t row, size_t *count) {
  uint64_t from = 0, to;
  if (row > 0) memcpy(&from, work->ends.text + (size_t)(row - 1) * sizeof from, sizeof from);
  memcpy(&to, work->ends.text + (size_t)row * sizeof to, sizeof to);
  *count = (size_t)(to - from) / sizeof(int32_t);
  return (const int32_t *)(const void *)(work->targets.text + from);
}

static void fill_class(const void *context, int64_t row, void *out) {
  const struct work *work = context;
  size_t count;
  memcpy(out, &work->sorted[targets_of(work, row, &count)[0]], sizeof(int32_t));
}

static void fill_list(const void *context, int64_t row, void *out) {
  const struct work *work = context;
  float *values = out;
  size_t count;
  const int32_t *targets = targets_of(work, row, &count);
  memset(out, 0, (size_t)labels_count(&work->labels) * sizeof *values);
  for (size_t i = 0; i < count; i++) values[work->sorted[targets[i]]] = 1;
}

static void fill_number(const void *context, int64_t row, void *out) {
  size_t count;
  memcpy(out, targets_of(context, row, &count), sizeof(float));
}

/* Of each token; padding has none. */
static void fill_tokens(const void *context, int64_t row, void *out) {
  const struct work *work = context;
  const struct row_span span = text_rows_span(&work->rows, row);
  int32_t *labels = out;
  size_t count;
  const int32_t *targets = targets_of(work, row, &count);
  for (int64_t i = 0; i < work->what->length; i++) labels[i] = no_label;
  for (size_t i = 0; i < count; i++) labels[span.at + i] = targets[i] >= 0 ? work->sorted[targets[i]] : no_label;
}

static void fill_span(const void *context, int64_t row, void *out) {
  size_t count;
  memcpy(out, targets_of(context, row, &count), 2 * sizeof(int32_t));
}

static const struct task_of tasks[] = {
    [TASK_CLASSIFICATION] = {"single_label_classification", take_class, fill_class, "<i4"},
    [TASK_MULTI_LABEL] = {"multi_label_classification", take_list, fill_list, "<f4"},
    [TASK_REGRESSION] = {"regression", take_number, fill_number, "<f4"},
    [TASK_TOKENS] = {NULL, NULL, fill_tokens, "<i4"},
    [TASK_SPANS] = {NULL, NULL, fill_span, "<i4"}};

/* ---- Records ---- */

/* A field of the record. NULL with a problem: it is not there. */
static const json_t *field_of(const json_t *record, const char *name, struct made_text *made, struct problem *problem) {
  char keys[200];
  const json_t *value = json_object_get(record, name);
  made->field = name;
  if (value != NULL && !json_is_null(value)) return value;
  rt_problem(problem, value == NULL ? "the record has no '%s'" : "'%s' is null", name);
  rt_help(problem, "its fields are: %s", documents_keys(record, keys, sizeof keys));
  return NULL;
}

/* A field that holds a text. NULL with a problem. */
static const json_t *text_of(const json_t *record, const char *name, struct made_text *made, struct problem *problem) {
  const json_t *value = field_of(record, name, made, problem);
  if (value == NULL) return NULL;
  if (json_is_string(value) && json_string_length(value) > 0) return value;
  if (!json_is_string(value)) {
    rt_problem(problem, "'%s' is not a text", name);
    rt_help(problem, "name a field that holds a text");
  } else {
    rt_problem(problem, "the text '%s' is empty", name);
    rt_help(problem, "leave out records without a text with --on-bad-record skip");
  }
  return NULL;
}

static bool encode_field(struct work *work, const json_t *record, const char *name, int which, struct made_text *made,
                         struct problem *problem) {
  const json_t *value = text_of(record, name, made, problem);
  return value != NULL &&
         text_rows_encode(&work->rows, which, json_string_value(value), json_string_length(value), problem);
}

static size_t strlen_of(const json_t *text) {
  return json_is_string(text) ? strlen(json_string_value(text)) : 0;
}

/* The texts and the label of a record. */
static bool take_texts(struct work *work, const json_t *record, struct made_text *made, struct problem *problem) {
  const struct labelling *what = work->what;
  if (!encode_field(work, record, what->text, 0, made, problem)) return false;
  if (what->pair != NULL && !encode_field(work, record, what->pair, 1, made, problem)) return false;
  const json_t *label = field_of(record, what->label, made, problem);
  if (label != NULL && strlen_of(label) < json_string_length(label))
    return rt_problem(problem, "the label has a NUL in it");
  return label != NULL && tasks[what->task].take(work, label, problem);
}

/* ---- Words with a label each ---- */

static bool refuse_list(const char *name, struct problem *problem) {
  rt_problem(problem, "'%s' is not a list", name);
  return rt_help(problem, "--task token-classification takes a list of words, and one of as many labels");
}

/* A word and its label. */
static bool take_word(struct work *work, const json_t *word, const json_t *label, size_t number,
                      struct problem *problem) {
  size_t before = work->rows.texts[0].count;
  if (json_string_length(word) == 0) return rt_problem(problem, "word %zu is not a text, or is empty", number);
  if (!text_rows_encode(&work->rows, 0, json_string_value(word), json_string_length(word), problem)) return false;
  const int32_t begins = (int32_t)labels_number(&work->labels, label, problem), goes_on = -1 - begins;
  if (begins < 0) return false;
  for (size_t i = before; i < work->rows.texts[0].count; i++)
    bytes_add(&work->words, (const char *)(i == before ? &begins : &goes_on), sizeof begins);
  return !work->words.failed || rt_problem(problem, "no memory for the labels");
}

static bool take_words(struct work *work, const json_t *record, struct made_text *made, struct problem *problem) {
  const char *name = work->what->text, *label = work->what->label;
  const json_t *words = field_of(record, name, made, problem);
  const json_t *labels = words != NULL ? field_of(record, label, made, problem) : NULL;
  if (labels == NULL) return false;
  if (!json_is_array(words) || !json_is_array(labels)) return refuse_list(json_is_array(words) ? label : name, problem);
  if (json_array_size(words) != json_array_size(labels) || json_array_size(words) == 0) {
    rt_problem(problem, "%zu words of '%s' have %zu labels in '%s'", json_array_size(words), name,
               json_array_size(labels), label);
    return rt_help(problem, "give each word a label, and each record a word");
  }
  work->words.size = 0;
  for (size_t i = 0; i < json_array_size(words); i++)
    if (!take_word(work, json_array_get(words, i), json_array_get(labels, i), i + 1, problem)) return false;
  return true;
}

/* The labels of the newest row's tokens: of the first one that it has of each word. */
static bool add_words(struct work *work, struct problem *problem) {
  const struct row_text *text = &work->rows.texts[0];
  const struct row_span span = text_rows_span(&work->rows, work->rows.count - 1);
  for (size_t i = 0; i < span.count; i++) {
    int32_t target = no_label;
    if (i >= text->at && i < text->at + text->kept) {
      memcpy(&target, work->words.text + (text->first + i - text->at) * sizeof target, sizeof target);
      if (target < 0) target = i == text->at ? -1 - target : no_label;
    }
    if (!add_target(work, &target, problem)) return false;
  }
  return true;
}

/* ---- Questions, contexts and answers ---- */

static bool end_row(struct work *work, struct problem *problem) {
  uint64_t end = work->targets.size;
  bytes_add(&work->ends, (const char *)&end, sizeof end);
  return !work->ends.failed || rt_problem(problem, "no memory for the labels");
}

/* The rows of a record: windows of its context. Where padding is on the left the context is the first of the two, as
 * run_qa.py has it. */
static bool take_answer(struct work *work, const json_t *record, struct made_text *made, struct problem *problem) {
  const struct labelling *what = work->what;
  const int which = work->rows.pads_left ? 0 : 1;
  struct row_windows windows;
  struct span span;
  const json_t *question = text_of(record, what->text, made, problem);
  const json_t *context = question != NULL ? text_of(record, what->pair, made, problem) : NULL;
  if (context == NULL) return false;
  const char *asked = span_question(json_string_value(question)), *text = json_string_value(context);
  const size_t size = json_string_length(context);
  if (!span_read(record, what->label, what->is_table, text, size, work->rows.special.trims, &span, made, problem))
    return false;
  const size_t left = json_string_length(question) - (size_t)(asked - json_string_value(question));
  made->field = NULL;
  if (!text_rows_encode(&work->rows, 1 - which, asked, left, problem) ||
      !text_rows_encode_marked(&work->rows, which, text, size, span.ranges, span.is_none ? 0 : 2, problem) ||
      !text_rows_windows(&work->rows, which, (size_t)what->stride, &windows, problem))
    return false;
  span_locate(&work->rows, which, &span);
  for (size_t i = 0; i < windows.count; i++) {
    int32_t label[2];
    if (!text_rows_add_window(&work->rows, &windows, i, problem)) return false;
    span_label(&work->rows, which, &span, label);
    if (!add_target(work, &label[0], problem) || !add_target(work, &label[1], problem) || !end_row(work, problem))
      return false;
  }
  work->records++;
  return true;
}

/* ---- */

/* The one row of a record. */
static bool take_row(struct work *work, const json_t *record, struct made_text *made, struct problem *problem) {
  const bool words = work->what->task == TASK_TOKENS;
  if (!(words ? take_words(work, record, made, problem) : take_texts(work, record, made, problem))) return false;
  made->field = NULL;
  return text_rows_add(&work->rows, work->what->pair != NULL ? 2 : 1, problem) &&
         (!words || add_words(work, problem)) && end_row(work, problem);
}

/* Makes the rows of a record. What was added of one that turns out to be bad is taken back. */
static bool take(void *context, json_t *record, struct made_text *made, struct problem *problem) {
  struct work *work = context;
  const size_t before = work->targets.size;
  const int64_t labels = labels_count(&work->labels);
  const bool spans = work->what->task == TASK_SPANS;
  text_rows_begin(&work->rows);
  made->text = "";
  if (spans ? take_answer(work, record, made, problem) : take_row(work, record, made, problem)) return true;
  work->targets.size = before;
  labels_cut(&work->labels, labels);
  return false;
}

static bool read_file(struct work *work, const char *path, struct problem *problem) {
  const struct labelling *what = work->what;
  const struct text_selector selector = {
      .kind = TEXT_MADE, .is_table = what->is_table, .skipped = what->skipped, .make = take, .context = work};
  struct mapping file;
  struct documents documents;
  enum document found = DOCUMENT_BAD;
  size_t forgotten = 0;
  if (!rt_map(&file, path, "give an existing file", problem)) return false;
  if (documents_begin(&documents, path, (const char *)file.bytes, file.size, selector, problem))
    while ((found = documents_next(&documents, problem)) == DOCUMENT_NEXT)
      forgotten = forget_read(&file, forgotten, documents_done(&documents));
  documents_end(&documents);
  rt_unmap(&file);
  return found == DOCUMENT_NONE;
}

/* ---- The files ---- */

static bool check(const struct work *work, struct problem *problem) {
  const struct labelling *what = work->what;
  if (work->rows.count == 0) {
    rt_problem(problem, "%s: no record gives a row", what->files[0]);
    const struct skipped *skipped = what->skipped;
    return rt_help(problem, "%s%.400s", skipped != NULL && skipped->count > 0 ? "the first that was skipped: " : "",
                   skipped != NULL && skipped->count > 0 ? skipped->first.what : "give a file with records");
  }
  if (what->task != TASK_CLASSIFICATION || work->labels.given || labels_count(&work->labels) > 1) return true;
  rt_problem(problem, "%s: all records have the same label", what->files[0]);
  return rt_help(problem, "give records of at least two classes, or all names with --labels");
}

/* Elements of a row's labels; 0: it is one. */
static int64_t columns_of(const struct work *work) {
  switch (work->what->task) {
  case TASK_MULTI_LABEL:
    return labels_count(&work->labels);
  case TASK_TOKENS:
    return work->what->length;
  case TASK_SPANS:
    return 2;
  default:
    return 0;
  }
}

static void report(const struct work *work, bool is_named) {
  const struct labelling *what = work->what;
  printf("%s: %" PRId64 " rows of %" PRId64 " tokens", what->output, work->rows.count, what->length);
  if (what->task == TASK_SPANS)
    printf(", windows of %" PRId64 " contexts", work->records);
  else
    printf(", %" PRId64 " shortened", work->rows.shortened);
  if (is_named) printf("; %" PRId64 " labels in %s", labels_count(&work->labels), what->names);
  printf("\n");
}

static bool write_files(struct work *work, struct problem *problem) {
  const struct labelling *what = work->what;
  const struct task_of *task = &tasks[what->task];
  bool is_named = what->names != NULL && what->task != TASK_REGRESSION;
  struct npz_array arrays[4];
  work->sorted = labels_sort(&work->labels);
  if (work->sorted == NULL) return rt_problem(problem, "no memory for the labels");
  text_rows_arrays(&work->rows, arrays);
  arrays[3] = (struct npz_array){"labels", task->dtype, 4, work->rows.count, columns_of(work), task->fill, work};
  /* The archive comes last: where it is, its names are, too. */
  if (what->names != NULL && !labels_write(is_named ? &work->labels : NULL, what->names, task->problem_type, problem))
    return false;
  if (!npz_write(what->output, arrays, 4, problem)) return false;
  report(work, is_named);
  return true;
}

bool labelled_write(const struct labelling *labelling, struct problem *problem) {
  struct work work = {.what = labelling};
  struct watch watch;
  bool good = watch_begin(&watch, labelling->files, labelling->count, problem) &&
              labels_begin(&work.labels, labelling->labels, problem) &&
              text_rows_open(&work.rows, labelling->tokenizer, labelling->length, labelling->pad, problem);
  for (int i = 0; good && i < labelling->count; i++) good = read_file(&work, labelling->files[i], problem);
  good = watch_check(&watch, problem) && good; /* what looks bad may be what was changed */
  good = good && check(&work, problem) && write_files(&work, problem);
  watch_end(&watch);
  text_rows_close(&work.rows);
  labels_end(&work.labels);
  bytes_free(&work.targets);
  bytes_free(&work.words);
  bytes_free(&work.ends);
  free(work.sorted);
  return good;
}
