/* accel-gen data: token files from files of other formats, and what is in one. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/base/path.h"
#include "gen/commands/cli/commands.h"
#include "gen/commands/cli/files.h"
#include "gen/commands/cli/inputs.h"
#include "gen/commands/data/chat.h"
#include "gen/commands/data/forget.h"
#include "gen/commands/data/images.h"
#include "gen/commands/data/labelled.h"
#include "gen/commands/data/npz_unpack.h"
#include "gen/commands/data/pairs.h"
#include "gen/commands/data/shard_names.h"
#include "gen/commands/data/skipped.h"
#include "gen/commands/data/source.h"
#include "gen/commands/data/text.h"
#include "gen/commands/data/tokenize.h"
#include "gen/commands/data/watch.h"
#include "gen/unpack/unpack.h"
#include "runtime/base/progress.h"
#include "runtime/base/terminal.h"
#include "runtime/data/token_file.h"

enum { CHUNK = 1 << 16, SHOWN = 16 };

static int fail(const struct problem *problem) {
  rt_print(stderr, "accel-gen data: error: %s\n", problem->what);
  if (problem->help[0] != '\0') rt_print(stderr, "    help: %s\n", problem->help);
  return STATUS_CANNOT;
}

/* Begins a document where one of the source does. *document: the number of the next one that begins. Returns how many
 * of `count` tokens from `at` on are of the same one; -1 with a problem. */
static int64_t begin_document(struct token_writer *out, const struct tokens *tokens, int64_t at, int64_t count,
                              int64_t *document, struct problem *problem) {
  if (*document < tokens->documents && rt_tokens_start(tokens, *document) == at) {
    (*document)++;
    if (!rt_token_writer_document(out, problem)) return -1;
  }
  int64_t left = rt_tokens_start(tokens, *document) - at;
  return left < count ? left : count;
}

/* Adds tokens of a source, and says which begin documents and which are trained on. */
static bool add_runs(struct token_writer *out, const struct tokens *tokens, int64_t at, int64_t count,
                     const int32_t *chunk, int64_t *document, struct problem *problem) {
  bool trained;
  for (int64_t i = 0, run; i < count; i += run) {
    run = begin_document(out, tokens, at + i, count - i, document, problem);
    if (run < 0) return false;
    if (out->marks) run = rt_tokens_run(tokens, at + i, run, &trained);
    if (!rt_token_writer_add(out, (const uint32_t *)chunk + i, (size_t)run, problem) ||
        (out->marks && trained && !rt_token_writer_train(out, (uint64_t)run, problem)))
      return false;
  }
  return true;
}

/* forget: called with what was copied, such as rt_map_forget; NULL: nothing is. */
static bool copy_tokens(struct token_writer *out, const struct tokens *tokens,
                        void (*forget)(const uint8_t *from, size_t size), struct problem *problem) {
  static int32_t chunk[CHUNK];
  int64_t document = 0;
  for (int64_t at = 0; at < tokens->count; at += CHUNK) {
    int64_t count = tokens->count - at < CHUNK ? tokens->count - at : CHUNK;
    rt_tokens_copy(tokens, at, count, chunk);
    if (!add_runs(out, tokens, at, count, chunk, &document, problem)) return false;
    if (forget != NULL) forget(tokens->bytes + at * tokens->width, (size_t)(count * tokens->width));
  }
  return true;
}

/* Adds bytes, which are tokens. */
static bool add_bytes(struct token_writer *out, const void *from, size_t count, struct problem *problem) {
  if (out->width == 1 && !out->marks) return rt_token_writer_add_bytes(out, from, count, problem);
  const struct tokens bytes = {.bytes = from, .count = (int64_t)count, .width = 1};
  return copy_tokens(out, &bytes, NULL, problem);
}

/* The bytes that a compressed file unpacks to. */
static bool copy_unpacked(struct token_writer *out, const struct token_source *source, struct problem *problem) {
  static char chunk[CHUNK];
  size_t count = 0, forgotten = 0;
  struct unpacker *unpacker = unpacker_new(source->path, source->mapping.bytes, source->mapping.size, problem);
  if (unpacker == NULL) return false;
  bool good;
  while (
      (good = unpacker_read(unpacker, chunk, sizeof chunk, &count, problem) && add_bytes(out, chunk, count, problem)) &&
      count > 0)
    forgotten = forget_read(&source->mapping, forgotten, unpacker_done(unpacker));
  unpacker_free(unpacker);
  return good;
}

/* A document of a whole file. */
static bool copy_whole(struct token_writer *out, const struct token_source *source, struct problem *problem) {
  return rt_token_writer_document(out, problem) &&
         (source->is_packed ? copy_unpacked(out, source, problem)
                            : copy_tokens(out, &source->tokens, rt_map_forget, problem));
}

/* The bytes of each record's text. */
static bool copy_records(struct token_writer *out, const struct token_source *source, struct text_selector selector,
                         struct problem *problem) {
  struct documents documents;
  const struct mapping *mapping = &source->mapping;
  enum document found = DOCUMENT_BAD;
  size_t forgotten = 0;
  if (documents_begin(&documents, source->path, (const char *)mapping->bytes, mapping->size, selector, problem))
    while ((found = documents_next(&documents, problem)) == DOCUMENT_NEXT) {
      if (!rt_token_writer_document(out, problem) || !add_bytes(out, documents.text, documents.length, problem)) break;
      forgotten = forget_read(mapping, forgotten, documents_done(&documents));
    }
  documents_end(&documents);
  return found == DOCUMENT_NONE;
}

/* The tokens of all sources, which must not change meanwhile. */
static bool copy_sources(struct token_writer *out, const struct token_source *sources, int count,
                         const struct tokenizing *how, const struct watch *watch, struct problem *problem) {
  bool whole = how->selector.kind == TEXT_WHOLE, good = true;
  for (int i = 0; good && i < count; i++)
    good = whole && !sources[i].is_shard ? copy_whole(out, &sources[i], problem)
                                         : copy_records(out, &sources[i], how->selector, problem);
  return watch_check(watch, problem) && good; /* what looks bad may be what was changed */
}

static int convert(struct token_source *sources, int count, const struct tokenizing *how, const struct watch *watch) {
  struct problem problem;
  struct token_writer out;
  const char *path = how->output;
  int width = 1;
  bool whole = how->selector.kind == TEXT_WHOLE, marks = false;
  for (int i = 0; i < count; i++) {
    const struct token_source *source = &sources[i];
    if (!source_open(&sources[i], how->selector.as_is, &problem)) return fail(&problem);
    if (whole && !how->selector.as_is && source->format == ACCEL_BYTES &&
        !documents_check_whole(source->path, (const char *)source->mapping.bytes, source->mapping.size, &problem))
      return fail(&problem);
    if (source->tokens.width > width) width = source->tokens.width;
    marks |= source->tokens.marked;
  }
  if (!rt_token_writer_open(&out, path, width, &problem)) return fail(&problem);
  uint64_t bytes = 0;
  for (int i = 0; i < count; i++) bytes += (uint64_t)sources[i].tokens.count * (uint64_t)width;
  struct progress progress = rt_progress_begin(how->quiet || bytes == 0 ? NULL : stderr, "writes", 0, bytes);
  out.writer.progress = &progress;
  if (marks) rt_token_writer_mark(&out);
  if (!copy_sources(&out, sources, count, how, watch, &problem)) {
    struct problem ignored;
    rt_writer_give_up(&out.writer, "", &ignored);
    return fail(&problem);
  }
  if (!rt_token_writer_commit(&out, width == 1 ? 256 : 0, &problem)) return fail(&problem);
  if (!how->quiet)
    rt_print(stdout, "%s: %" PRIu64 " tokens of %d bytes, %" PRId64 " documents\n", path, out.tokens, width,
             out.n_documents);
  skipped_report(how->selector.skipped);
  return STATUS_OK;
}

static int inspect(struct token_source *source) {
  struct problem problem;
  int32_t first[SHOWN];
  const struct tokens *tokens = &source->tokens;
  if (!source_open(source, true, &problem)) return fail(&problem);
  int64_t shown = tokens->count < SHOWN ? tokens->count : SHOWN;
  rt_print(stdout, "tokens      %" PRId64 " of %d bytes\n", tokens->count, tokens->width);
  if (tokens->vocabulary > 0) rt_print(stdout, "vocabulary  %" PRIu64 "\n", tokens->vocabulary);
  if (tokens->documents > 0) rt_print(stdout, "documents   %" PRId64 "\n", tokens->documents);
  if (tokens->marked) rt_print(stdout, "trained     %" PRId64 " tokens\n", tokens->trained);
  if (source->format == ACCEL_TOKENS && !source->is_megatron) rt_print(stdout, "sum         as the header says\n");
  rt_tokens_copy(tokens, 0, shown, first);
  char text[SHOWN * 12 + 1] = "";
  for (int64_t i = 0; i < shown; i++) snprintf(text + strlen(text), 12, " %" PRIu32, (uint32_t)first[i]);
  rt_print(stdout, "first      %s%s\n", text, tokens->count > shown ? " ..." : "");
  return STATUS_OK;
}

static enum accel_format format_of(const char *word, enum accel_format preset) {
  static const char *const words[] = {
      [ACCEL_BYTES] = "bytes", [ACCEL_NANOGPT] = "nanogpt", [ACCEL_LLMC] = "llmc", [ACCEL_TOKENS] = "tokens"};
  if (word != NULL && strcmp(word, "text") == 0) return ACCEL_BYTES;
  for (size_t i = 0; word != NULL && i < sizeof words / sizeof *words; i++)
    if (words[i] != NULL && strcmp(words[i], word) == 0) return (enum accel_format)i;
  return preset;
}

static bool is_megatron(const struct options *options) {
  return options->format != NULL && strcmp(options->format, "megatron") == 0;
}

static int refuse(const struct options *options, const char *message) {
  options_refuse(options, message, "");
  return STATUS_BAD_JOB;
}

static struct tokenizing tokenizing_of(const struct options *options) {
  struct text_selector selector = {.kind = TEXT_WHOLE, .as_is = options->format != NULL};
  if (options->text_field != NULL) selector = (struct text_selector){.kind = TEXT_FIELD, .name = options->text_field};
  if (options->chat != NULL) selector = (struct text_selector){.kind = TEXT_MADE, .make = chat_make};
  if (options->text_column != NULL)
    selector = (struct text_selector){.kind = TEXT_COLUMN, .name = options->text_column};
  if (options->on_bad_record != NULL && strcmp(options->on_bad_record, "skip") == 0)
    selector.skipped = arena_alloc(options->arena, sizeof *selector.skipped);
  return (struct tokenizing){.tokenizer = options->tokenizer,
                             .end = options->end,
                             .texts = options->arguments,
                             .count = options->n_arguments,
                             .output = options->output,
                             .quiet = options->quiet,
                             .selector = selector};
}

static enum train_on train_on_of(const struct options *options) {
  if (options->train_on == NULL) return TRAIN_ON_ASSISTANT;
  return strcmp(options->train_on, "all") == 0    ? TRAIN_ON_ALL
         : strcmp(options->train_on, "last") == 0 ? TRAIN_ON_LAST
                                                  : TRAIN_ON_ASSISTANT;
}

/* The tokens of chats. The folder's tokenizer makes them, unless another one is named. */
static int make_chats(const struct options *options) {
  struct problem problem = {0};
  struct tokenizing tokenizing = tokenizing_of(options);
  enum train_on train_on = train_on_of(options);
  struct chat *chat = chat_new(options->chat, options->chat_template, train_on, &problem);
  if (chat == NULL) return fail(&problem);
  if (tokenizing.tokenizer == NULL)
    tokenizing.tokenizer = arena_printf(options->arena, "%s/tokenizer.json", options->chat);
  tokenizing.selector.context = chat;
  tokenizing.marks = train_on != TRAIN_ON_ALL;
  tokenizing.how = chat_identity(chat);
  bool good = tokenize(&tokenizing, &problem);
  chat_free(chat);
  return good ? STATUS_OK : fail(&problem);
}

static int make_tokens(const struct options *options) {
  struct problem problem = {0};
  const struct tokenizing tokenizing = tokenizing_of(options);
  if (is_megatron(options) || format_of(options->format, ACCEL_BYTES) != ACCEL_BYTES)
    return refuse(options, "--tokenizer makes tokens of texts, which have --format text");
  return tokenize(&tokenizing, &problem) ? STATUS_OK : fail(&problem);
}

static struct token_source *sources_of(const struct options *options, int first, enum accel_format preset) {
  struct token_source *sources = arena_alloc(options->arena, ((size_t)options->n_arguments + 1) * sizeof *sources);
  for (int i = first; i < options->n_arguments; i++)
    sources[i - first] = token_source_of(options->arena, options->arguments[i], format_of(options->format, preset),
                                         is_megatron(options));
  return sources;
}

/* The files that are read: the arguments and, of a dataset of Megatron, both of its files. Ends with NULL. */
static const char **files_of(const struct options *options) {
  const struct token_source *sources = sources_of(options, 0, ACCEL_BYTES);
  const char **files = arena_alloc(options->arena, (2 * (size_t)options->n_arguments + 1) * sizeof *files);
  int count = 0;
  for (int i = 0; i < options->n_arguments; i++) {
    files[count++] = sources[i].path;
    if (sources[i].is_megatron) files[count++] = sources[i].index_path;
  }
  files[count] = NULL;
  return files;
}

/* What is read of the folders of a tokenizer and of a chat model. */
static void add_folders(struct inputs *inputs, const struct options *options) {
  static const char *const names[] = {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja"};
  for (int i = 0; options->chat != NULL && i < 3; i++)
    inputs_add(inputs, "a file of the chat model", arena_printf(options->arena, "%s/%s", options->chat, names[i]));
  inputs_add(inputs, "the chat template", options->chat_template);
  if (options->label == NULL || options->tokenizer == NULL) return;
  const int folder = (int)(name_in_folder(options->tokenizer) - options->tokenizer);
  inputs_add(inputs, "the configuration of the tokenizer",
             arena_printf(options->arena, "%.*s%s", folder, options->tokenizer, names[1]));
}

/* Whether none of the outputs, which end with NULL, or what they are called until they are whole, is one of the files
 * that are read. */
static bool spares_inputs(const struct options *options, const char *const outputs[]) {
  struct inputs inputs = inputs_in(options->arena);
  for (const char **file = files_of(options); *file != NULL; file++) inputs_add(&inputs, "one of the files", *file);
  inputs_add(&inputs, "the tokenizer", options->tokenizer);
  inputs_add(&inputs, "the list of labels", options->labels);
  add_folders(&inputs, options);
  for (int i = 0; outputs[i] != NULL; i++) {
    const char *partial = arena_printf(options->arena, "%s.partial", outputs[i]); /* until it is whole */
    if (!inputs_spare(&inputs, outputs[i]) || !inputs_spare(&inputs, partial)) return false;
  }
  return true;
}

/* Rows of labelled texts. */
static int make_labelled(const struct options *options) {
  static const char *const tasks[] = {"classification", "multi-label", "regression", "token-classification",
                                      "question-answering"};
  struct problem problem = {0};
  const struct tokenizing from = tokenizing_of(options);
  const char *stem = without_ending(options->arena, options->output, ".npz");
  if (stem == NULL) return refuse(options, "--label writes arrays: the name after -o ends in .npz");
  if (from.selector.kind == TEXT_WHOLE || options->tokenizer == NULL || options->max_length == 0)
    return refuse(options, "--label needs --tokenizer, --max-length, and --text-column or --text-field");
  if (options->chat != NULL || options->end != NULL)
    return refuse(options, "--label reads texts and labels, without --chat and --end");
  enum task task = TASK_CLASSIFICATION;
  for (int i = 0; options->task != NULL && i < 5; i++)
    if (strcmp(tasks[i], options->task) == 0) task = (enum task)i;
  if (task == TASK_TOKENS && (options->text_column != NULL || options->text_pair != NULL))
    return refuse(options,
                  "--task token-classification reads a list of words, by --text-field and without --text-pair");
  if ((task == TASK_REGRESSION || task == TASK_SPANS) && options->labels != NULL)
    return refuse(options, task == TASK_SPANS ? "--labels does not apply to --task question-answering"
                                              : "--task regression has numbers as labels, without --labels");
  if (task == TASK_SPANS && options->text_pair == NULL)
    return refuse(options, "--task question-answering reads a question and its context, which --text-pair names");
  if (task != TASK_SPANS && options->doc_stride > 0)
    return refuse(options, "--doc-stride requires --task question-answering");
  const struct labelling how = {.task = task,
                                .files = options->arguments,
                                .count = options->n_arguments,
                                .is_table = options->text_column != NULL,
                                .text = from.selector.name,
                                .pair = options->text_pair,
                                .label = options->label,
                                .labels = options->labels,
                                .tokenizer = options->tokenizer,
                                .pad = options->pad,
                                .length = options->max_length,
                                .stride = options->doc_stride,
                                .output = options->output,
                                .names = task == TASK_SPANS ? NULL : arena_printf(options->arena, "%s.json", stem),
                                .skipped = from.selector.skipped,
                                .quiet = options->quiet};
  const char *const outputs[] = {how.output, arena_printf(options->arena, "%s.rows", how.output),
                                 arena_printf(options->arena, "%s.progress", how.output), how.names, NULL};
  if (!spares_inputs(options, outputs)) return STATUS_CANNOT;
  if (!labelled_write(&how, &problem)) return fail(&problem);
  skipped_report(how.skipped);
  return STATUS_OK;
}

/* Whether all files are called as shards are, whose samples are records. */
static bool are_shards(const struct options *options) {
  static const char *const endings[] = {".tar", ".tar.gz", ".tgz", ".tar.zst"};
  for (int i = 0, known; i < options->n_arguments; i++) {
    known = 0;
    for (int k = 0; k < 4; k++) known += has_ending(options->arguments[i], endings[k]);
    if (known == 0) return false;
  }
  return true;
}

/* Pairs of completions. The folder's tokenizer makes the tokens, unless another one is named. */
static int make_pairs(const struct options *options) {
  struct problem problem = {0};
  const struct tokenizing from = tokenizing_of(options);
  if (without_ending(options->arena, options->output, ".npz") == NULL)
    return refuse(options, "--task preference writes arrays: the name after -o ends in .npz");
  if (options->chat == NULL || options->max_length == 0)
    return refuse(options, "--task preference needs --chat and --max-length");
  if (options->label != NULL || options->text_pair != NULL || options->labels != NULL || options->train_on != NULL ||
      options->doc_stride > 0)
    return refuse(options, "--task preference reads 'prompt', 'chosen' and 'rejected', without --label, --text-pair, "
                           "--labels, --train-on and --doc-stride");
  const char *const outputs[] = {options->output, NULL};
  if (!spares_inputs(options, outputs)) return STATUS_CANNOT;
  const struct pairing how = {.files = options->arguments,
                              .count = options->n_arguments,
                              .chat = chat_new(options->chat, options->chat_template, TRAIN_ON_ASSISTANT, &problem),
                              .tokenizer = options->tokenizer != NULL
                                               ? options->tokenizer
                                               : arena_printf(options->arena, "%s/tokenizer.json", options->chat),
                              .pad = options->pad,
                              .end = options->end,
                              .length = options->max_length,
                              .output = options->output,
                              .quiet = options->quiet,
                              .skipped = from.selector.skipped};
  if (how.chat == NULL) return fail(&problem);
  const bool written = pairs_write(&how, &problem);
  chat_free(how.chat);
  if (!written) return fail(&problem);
  skipped_report(how.skipped);
  return STATUS_OK;
}

static int write_file_of_tokens(const struct options *options) {
  if (options->output == NULL) return refuse(options, "a file to write is missing: -o FILE");
  if (options->tokenizer == NULL && options->chat == NULL && options->end != NULL)
    return refuse(options, "--end belongs to --tokenizer");
  if (options->chat == NULL && (options->chat_template != NULL || options->train_on != NULL))
    return refuse(options, "--chat-template and --train-on belong to --chat");
  if (options->chat != NULL && (options->text_field != NULL || options->text_column != NULL || options->format != NULL))
    return refuse(options, "--chat reads messages, without --text-field, --text-column and --format");
  if (options->text_field != NULL && options->text_column != NULL)
    return refuse(options, "--text-field and --text-column both name where texts are: give one of them");
  if ((options->text_field != NULL || options->text_column != NULL) && options->format != NULL)
    return refuse(options, "--format is of files that are read whole, without --text-field and --text-column");
  if (options->on_bad_record != NULL && options->text_field == NULL && options->text_column == NULL &&
      options->chat == NULL && !are_shards(options))
    return refuse(options, "--on-bad-record is of records, by --text-field, --text-column or --chat, or of samples in "
                           "tar archives");
  if (options->task != NULL && strcmp(options->task, "preference") == 0) return make_pairs(options);
  if (options->label != NULL) return make_labelled(options);
  if (options->text_pair != NULL || options->task != NULL || options->labels != NULL || options->pad != NULL ||
      options->max_length > 0 || options->doc_stride > 0)
    return refuse(options, "--text-pair, --task, --labels, --max-length, --doc-stride and --pad belong to --label");
  const char *const outputs[] = {options->output, arena_printf(options->arena, "%s.progress", options->output), NULL};
  if (!spares_inputs(options, outputs)) return STATUS_CANNOT;
  if (options->chat != NULL) return make_chats(options);
  if (options->tokenizer != NULL) return make_tokens(options);
  struct token_source *sources = sources_of(options, 0, ACCEL_BYTES);
  const struct tokenizing how = tokenizing_of(options);
  struct problem problem;
  struct watch watch;
  const char **files = files_of(options);
  int count = options->n_arguments * (is_megatron(options) ? 2 : 1);
  if (!watch_begin(&watch, files, count, &problem)) return fail(&problem);
  int status = convert(sources, options->n_arguments, &how, &watch);
  watch_end(&watch);
  for (int i = 0; i < options->n_arguments; i++) source_close(&sources[i]);
  return status;
}

static bool has_image_options(const struct options *options) {
  return options->size != NULL || options->fit != NULL || options->gray;
}

static bool has_options(const struct options *options) {
  return options->output != NULL || options->tokenizer != NULL || options->end != NULL || options->text_field != NULL ||
         options->text_column != NULL || options->on_bad_record != NULL || options->chat != NULL ||
         options->chat_template != NULL || options->train_on != NULL || options->label != NULL ||
         options->text_pair != NULL || options->task != NULL || options->labels != NULL || options->pad != NULL ||
         options->max_length > 0 || options->doc_stride > 0 || has_image_options(options);
}

static int print_file(const struct options *options) {
  if (options->n_arguments != 2 || has_options(options))
    return refuse(options, "inspect takes one file and writes none");
  struct token_source *source = sources_of(options, 1, ACCEL_TOKENS);
  int status = inspect(source);
  source_close(source);
  return status;
}

static int print_text(const struct options *options, bool encodes) {
  struct problem problem = {0};
  if (options->n_arguments < 2) return refuse(options, "a tokenizer.json is missing");
  if (options->n_arguments > 2 || has_options(options) || options->format != NULL)
    return refuse(options, "encode and decode take one tokenizer.json; the text comes from standard input");
  return (encodes ? text_encode : text_decode)(options->second, &problem) ? STATUS_OK : fail(&problem);
}

static int write_images(const struct options *options) {
  struct problem problem = {0};
  struct skipped skipped = {0};
  const char *stem = without_ending(options->arena, options->output != NULL ? options->output : "", ".npy");
  bool skips = options->on_bad_record != NULL && strcmp(options->on_bad_record, "skip") == 0;
  const bool folder = is_folder(options->argument);
  struct imaging imaging = {.arena = options->arena,
                            .paths = options->arguments,
                            .count = options->n_arguments,
                            .is_folder = folder,
                            .label = options->label,
                            .given = options->labels,
                            .frame = {.channels = options->gray ? 1 : 3,
                                      .stretches = options->fit != NULL && strcmp(options->fit, "stretch") == 0},
                            .skipped = skips ? &skipped : NULL,
                            .quiet = options->quiet,
                            .output = options->output};
  if (folder && options->n_arguments != 1)
    return refuse(options, "images are of one folder, which has a folder for each class");
  if (options->tokenizer != NULL || options->end != NULL || options->text_field != NULL ||
      options->text_column != NULL || options->chat != NULL || options->chat_template != NULL ||
      options->train_on != NULL || options->format != NULL || (folder && options->label != NULL) ||
      options->text_pair != NULL || options->task != NULL || options->pad != NULL || options->max_length > 0 ||
      options->doc_stride > 0)
    return refuse(options,
                  folder
                      ? "a folder is of images: only --size, --fit, --gray, --labels and --on-bad-record go with it"
                      : "an array is made of images: only --size, --fit, --gray, --label, --labels and --on-bad-record "
                        "go with it");
  if (stem == NULL) return refuse(options, "an array to write is missing: -o FILE.npy");
  imaging.labels = arena_printf(options->arena, "%s.labels.npy", stem);
  imaging.names = arena_printf(options->arena, "%s.json", stem);
  if (options->fit != NULL && options->size == NULL) return refuse(options, "--fit belongs to --size");
  if (options->size != NULL && !images_size(options->size, &imaging.frame))
    return refuse(options, "--size is HEIGHTxWIDTH or one number for both, of 1 to 4096, such as 224 or 32x48");
  const char *const outputs[] = {imaging.output, imaging.labels, imaging.names, NULL};
  if (!spares_inputs(options, outputs)) return STATUS_CANNOT;
  return images_write(&imaging, &problem) ? STATUS_OK : fail(&problem);
}

/* An archive of arrays that is not compressed. */
static int unpack_arrays(const struct options *options) {
  struct problem problem = {0};
  struct options others = *options;
  others.output = NULL;
  if (options->n_arguments != 1 || has_options(&others) || options->format != NULL)
    return refuse(options, "an archive of arrays is unpacked alone: data PACKED.npz -o FILE.npz");
  const char *const outputs[] = {options->output, NULL};
  if (!spares_inputs(options, outputs)) return STATUS_CANNOT;
  return npz_unpack(options->argument, options->output, &problem) ? STATUS_OK : fail(&problem);
}

static int make_data(const struct options *options) {
  const char *word = options->argument;
  if (strcmp(word, "inspect") == 0) return print_file(options);
  if (strcmp(word, "encode") == 0 || strcmp(word, "decode") == 0) return print_text(options, word[0] == 'e');
  if (is_folder(word) || (options->output != NULL && has_ending(options->output, ".npy"))) return write_images(options);
  if (has_ending(word, ".npz") && options->output != NULL && has_ending(options->output, ".npz"))
    return unpack_arrays(options);
  if (has_image_options(options)) return refuse(options, "--size, --fit and --gray are of a folder of images");
  return write_file_of_tokens(options);
}

int command_data(const struct options *options) {
  struct options expanded = *options;
  struct shard_names names = {0};
  struct problem problem = {0};
  for (int i = 0; i < options->n_arguments; i++)
    if (!shard_names_add(&names, options->arena, options->arguments[i], &problem)) return fail(&problem);
  expanded.arguments = names.items;
  expanded.n_arguments = names.count;
  if (names.count > 0) expanded.argument = names.items[0];
  return make_data(&expanded);
}
