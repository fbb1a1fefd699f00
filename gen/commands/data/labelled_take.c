/* Records of texts and labels: what must be in them. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gen/commands/data/labelled_parts.h"
#include "gen/commands/data/spans.h"
#include "gen/tokenizer/tokenizer.h"

/* A record that is taken. */
struct taking {
  const struct labelling *what;
  const struct text_rows *rows;
  struct labels *labels;
  struct waiting *waiting;
  struct made_text *made;
};

/* ---- Labels ---- */

static bool add_target(struct taking *of, const void *target, struct problem *problem) {
  bytes_add(&of->waiting->targets, target, sizeof(int32_t));
  return !of->waiting->targets.failed || rt_problem(problem, "no memory for the labels");
}

static bool add_class(struct taking *of, int64_t number, struct problem *problem) {
  const int32_t target = (int32_t)number;
  return number >= 0 && add_target(of, &target, problem);
}

static bool take_class(struct taking *of, const json_t *value, struct problem *problem) {
  return add_class(of, labels_number(of->labels, value, problem), problem);
}

/* Names between commas, as a cell of a table has them. */
static bool take_names(struct taking *of, const char *text, struct problem *problem) {
  char *copy = strdup(text);
  bool good = copy != NULL || rt_problem(problem, "no memory for the labels");
  for (char *at = copy; good && at != NULL && text[0] != '\0';)
    good = add_class(of, labels_number_of(of->labels, labels_next(&at), problem), problem);
  free(copy);
  return good;
}

static bool take_list(struct taking *of, const json_t *value, struct problem *problem) {
  const json_t *item;
  size_t i;
  if (json_is_string(value)) return take_names(of, json_string_value(value), problem);
  if (!json_is_array(value)) {
    rt_problem(problem, "the labels are neither a list nor a text");
    return rt_help(problem, "give a list of labels, or their names between commas");
  }
  json_array_foreach(value, i, item) if (!take_class(of, item, problem)) return false;
  return true;
}

/* A finite decimal number and nothing else: strtod alone would take hexadecimal, "inf" and "nan" as well. */
static bool take_number(struct taking *of, const json_t *value, struct problem *problem) {
  const char *text = json_string_value(value);
  char *end = NULL;
  double number = json_is_number(value) ? json_number_value(value) : NAN;
  if (text != NULL && text[0] != '\0' && strspn(text, "0123456789+-.eE") == strlen(text)) number = strtod(text, &end);
  if (end != NULL && *end != '\0') number = NAN;
  const float target = (float)number;
  if (isfinite(target)) return add_target(of, &target, problem);
  rt_problem(problem, "the label%s%.100s%s is not a finite decimal number", text != NULL ? " '" : "",
             text != NULL ? text : "", text != NULL ? "'" : "");
  return rt_help(problem, "--task regression takes numbers such as 4 or -0.5; --task classification takes names");
}

static bool take_label(struct taking *of, const json_t *value, struct problem *problem) {
  if (json_is_string(value) && strlen(json_string_value(value)) < json_string_length(value))
    return rt_problem(problem, "the label has a NUL in it");
  if (of->what->task == TASK_REGRESSION) return take_number(of, value, problem);
  return of->what->task == TASK_MULTI_LABEL ? take_list(of, value, problem) : take_class(of, value, problem);
}

/* ---- Texts ---- */

/* A field of the record. NULL with a problem: it is not there. */
static const json_t *field_of(struct taking *of, const json_t *record, const char *name, struct problem *problem) {
  char keys[200];
  const json_t *value = json_object_get(record, name);
  of->made->field = name;
  if (value != NULL && !json_is_null(value)) return value;
  rt_problem(problem, value == NULL ? "the record has no '%s'" : "'%s' is null", name);
  rt_help(problem, "its fields are: %s", documents_keys(record, keys, sizeof keys));
  return NULL;
}

/* A field that holds a text. NULL with a problem. */
static const json_t *text_of(struct taking *of, const json_t *record, const char *name, struct problem *problem) {
  const json_t *value = field_of(of, record, name, problem);
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

static bool add_text(struct taking *of, const char *text, size_t size, const struct text_range *ranges, size_t count,
                     struct problem *problem) {
  return batch_add(of->waiting->batch, of->what->tokenizer, text, size, ranges, count) ||
         rt_problem(problem, "no memory for the texts");
}

static bool take_text(struct taking *of, const json_t *record, const char *name, struct problem *problem) {
  const json_t *text = text_of(of, record, name, problem);
  return text != NULL && add_text(of, json_string_value(text), json_string_length(text), NULL, 0, problem);
}

/* The texts and the label of a record. */
static bool take_texts(struct taking *of, const json_t *record, struct problem *problem) {
  const struct labelling *what = of->what;
  if (!take_text(of, record, what->text, problem)) return false;
  if (what->pair != NULL && !take_text(of, record, what->pair, problem)) return false;
  const json_t *label = field_of(of, record, what->label, problem);
  return label != NULL && take_label(of, label, problem);
}

/* ---- Words with a label each ---- */

static bool refuse_list(const char *name, struct problem *problem) {
  rt_problem(problem, "'%s' is not a list", name);
  return rt_help(problem, "--task token-classification takes a list of words, and one of as many labels");
}

enum { MOST_WORDS = 1 << 16 }; /* of a record: each is tokenized by itself, in memory of its own */

/* A word and its label. */
static bool take_word(struct taking *of, const json_t *word, const json_t *label, size_t number,
                      struct problem *problem) {
  if (json_string_length(word) == 0) return rt_problem(problem, "word %zu is not a text, or is empty", number);
  return add_text(of, json_string_value(word), json_string_length(word), NULL, 0, problem) &&
         take_class(of, label, problem);
}

static bool take_words(struct taking *of, const json_t *record, struct problem *problem) {
  const char *name = of->what->text, *label = of->what->label;
  const json_t *words = field_of(of, record, name, problem);
  const json_t *labels = words != NULL ? field_of(of, record, label, problem) : NULL;
  if (labels == NULL) return false;
  if (!json_is_array(words) || !json_is_array(labels)) return refuse_list(json_is_array(words) ? label : name, problem);
  if (json_array_size(words) != json_array_size(labels) || json_array_size(words) == 0) {
    rt_problem(problem, "%zu words of '%s' have %zu labels in '%s'", json_array_size(words), name,
               json_array_size(labels), label);
    return rt_help(problem, "give each word a label, and each record a word");
  }
  if (json_array_size(words) > MOST_WORDS) {
    rt_problem(problem, "'%s' has more than %d words", name, MOST_WORDS);
    return rt_help(problem, "make several records of it");
  }
  for (size_t i = 0; i < json_array_size(words); i++)
    if (!take_word(of, json_array_get(words, i), json_array_get(labels, i), i + 1, problem)) return false;
  return true;
}

/* ---- Questions, contexts and answers ---- */

/* How many tokens a text has. */
static bool count_tokens(struct taking *of, const char *text, size_t size, size_t *found, struct problem *problem) {
  struct encoding encoding;
  const uint32_t *tokens;
  size_t count = 1;
  *found = 0;
  bool good = encoding_begin(&encoding, batch_encoder(of->waiting->batch), of->what->tokenizer, text, size, problem);
  for (; good && count > 0; *found += good ? count : 0) good = encoding_next(&encoding, &tokens, &count, problem);
  encoding_end(&encoding);
  return good;
}

/* Whether the question leaves room for windows of the context. It is short, and a long context is only looked at where
 * it would have to fit as a whole. */
static bool leaves_room(struct taking *of, const char *question, size_t length, const char *context, size_t size,
                        struct problem *problem) {
  const size_t stride = (size_t)of->what->stride;
  struct row_windows windows;
  struct problem ignored;
  size_t asked, count;
  if (!count_tokens(of, question, length, &asked, problem)) return false;
  return text_rows_windows(of->rows, asked, SIZE_MAX / 2, stride, &windows, &ignored) ||
         (count_tokens(of, context, size, &count, problem) &&
          text_rows_windows(of->rows, asked, count, stride, &windows, problem));
}

/* The question and the context, in the order that they have in a row, and where the answer is. */
static bool take_answer(struct taking *of, const json_t *record, bool *no_answer, struct problem *problem) {
  const struct labelling *what = of->what;
  struct span span;
  const json_t *question = text_of(of, record, what->text, problem);
  const json_t *context = question != NULL ? text_of(of, record, what->pair, problem) : NULL;
  if (context == NULL) return false;
  const char *asked = span_question(json_string_value(question)), *text = json_string_value(context);
  const size_t size = json_string_length(context);
  const size_t left = json_string_length(question) - (size_t)(asked - json_string_value(question));
  if (!span_read(record, what->label, what->is_table, text, size, of->rows->special.trims, &span, of->made, problem))
    return false;
  of->made->field = NULL;
  *no_answer = span.is_none;
  const size_t ranges = span.is_none ? 0 : 2;
  if (!leaves_room(of, asked, left, text, size, problem)) return false;
  return of->rows->pads_left
             ? add_text(of, text, size, span.ranges, ranges, problem) && add_text(of, asked, left, NULL, 0, problem)
             : add_text(of, asked, left, NULL, 0, problem) && add_text(of, text, size, span.ranges, ranges, problem);
}

/* ---- */

bool labelled_take(const struct labelling *what, const struct text_rows *rows, struct labels *labels,
                   struct waiting *waiting, const struct json_t *record, struct made_text *made,
                   struct problem *problem) {
  struct taking of = {what, rows, labels, waiting, made};
  struct waiting_record taken = {.texts = batch_count(waiting->batch)};
  const int64_t known = labels_count(labels);
  const size_t before = waiting->targets.size;
  bool good = what->task == TASK_SPANS    ? take_answer(&of, record, &taken.no_answer, problem)
              : what->task == TASK_TOKENS ? take_words(&of, record, problem)
                                          : take_texts(&of, record, problem);
  if (!good) {
    waiting->targets.size = before;
    batch_cut(waiting->batch, taken.texts);
    labels_cut(labels, known);
    return false;
  }
  taken.n_texts = batch_count(waiting->batch) - taken.texts;
  taken.n_targets = (uint32_t)((waiting->targets.size - before) / sizeof(int32_t));
  bytes_add(&waiting->records, (const char *)&taken, sizeof taken);
  waiting->count++;
  made->field = NULL;
  made->text = "";
  return !waiting->records.failed || rt_problem(problem, "no memory for the records");
}
