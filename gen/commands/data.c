/* accel-gen data: token files from files of other formats, and what stands in one. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/commands/commands.h"
#include "gen/commands/inputs.h"
#include "gen/commands/text.h"
#include "gen/commands/tokenize.h"
#include "runtime/data/token_file.h"
#include "runtime/files/mapping.h"

static const char usage[] =
    "usage: accel-gen data FILE... -o FILE.tok [--format F]\n"
    "       accel-gen data TEXT... -o FILE.tok --tokenizer tokenizer.json [--end TOKEN]\n"
    "       accel-gen data inspect FILE [--format F]\n"
    "       accel-gen data encode|decode tokenizer.json <TEXT or NUMBERS\n"
    "  Writes the tokens of all files into one, each file a document, with a sum over all.\n"
    "  --format F    of the files: bytes (a byte is a token), nanogpt, llmc or tokens; bytes is the default when\n"
    "                writing, tokens when inspecting\n"
    "  --tokenizer F a tokenizer.json of Hugging Face's, of byte-level BPE: makes tokens from UTF-8 texts. When it is\n"
    "                killed, the same command goes on where it was\n"
    "  --end TOKEN   the text of a token that ends each document, such as '<|endoftext|>'\n";

enum { AT_ONCE = 1 << 16, SHOWN = 16 };

struct token_source {
  const char *path;
  enum accel_format format;
  struct mapping mapping;
  struct tokens tokens;
};

static int fail(const struct problem *problem) {
  fprintf(stderr, "accel-gen data: error: %s\n", problem->what);
  if (problem->help[0] != '\0') fprintf(stderr, "    help: %s\n", problem->help);
  return STATUS_CANNOT;
}

static bool open_source(struct token_source *source, struct problem *problem) {
  const struct mapping *mapping = &source->mapping;
  if (!rt_map(&source->mapping, source->path, "give an existing file", problem)) return false;
  return rt_tokens_find(&source->tokens, source->format, source->path, mapping->bytes, mapping->size, problem) &&
         (source->format != ACCEL_TOKENS ||
          rt_token_file_verify(source->path, mapping->bytes, mapping->size, rt_map_forget, problem));
}

static bool copy_tokens(struct token_writer *out, const struct tokens *tokens, struct problem *problem) {
  static int32_t piece[AT_ONCE];
  for (int64_t at = 0; at < tokens->count; at += AT_ONCE) {
    int64_t count = tokens->count - at < AT_ONCE ? tokens->count - at : AT_ONCE;
    rt_tokens_copy(tokens, at, count, piece);
    if (!rt_token_writer_add(out, (const uint32_t *)piece, (size_t)count, problem)) return false;
    rt_map_forget(tokens->bytes + at * tokens->width, (size_t)(count * tokens->width));
  }
  return true;
}

static int convert(struct token_source *sources, int count, const char *path) {
  struct problem problem;
  struct token_writer out;
  int width = 1;
  for (int i = 0; i < count; i++) {
    if (!open_source(&sources[i], &problem)) return fail(&problem);
    if (sources[i].tokens.width > width) width = sources[i].tokens.width;
  }
  if (!rt_token_writer_open(&out, path, width, &problem)) return fail(&problem);
  for (int i = 0; i < count; i++)
    if (!rt_token_writer_document(&out, &problem) || !copy_tokens(&out, &sources[i].tokens, &problem))
      return fail(&problem);
  if (!rt_token_writer_commit(&out, width == 1 ? 256 : 0, &problem)) return fail(&problem);
  printf("%s: %" PRIu64 " tokens of %d bytes, %" PRId64 " documents\n", path, out.tokens, width, out.n_documents);
  return STATUS_OK;
}

static int inspect(struct token_source *source) {
  struct problem problem;
  int32_t first[SHOWN];
  const struct tokens *tokens = &source->tokens;
  if (!open_source(source, &problem)) return fail(&problem);
  int64_t shown = tokens->count < SHOWN ? tokens->count : SHOWN;
  printf("tokens      %" PRId64 " of %d bytes\n", tokens->count, tokens->width);
  if (tokens->vocabulary > 0) printf("vocabulary  %" PRIu64 "\n", tokens->vocabulary);
  if (tokens->documents > 0) printf("documents   %" PRId64 "\n", tokens->documents);
  if (source->format == ACCEL_TOKENS) printf("sum         as the header says\n");
  rt_tokens_copy(tokens, 0, shown, first);
  printf("first      ");
  for (int64_t i = 0; i < shown; i++) printf(" %" PRIu32, (uint32_t)first[i]);
  printf("%s\n", tokens->count > shown ? " ..." : "");
  return STATUS_OK;
}

static bool read_format(const char *word, enum accel_format *format) {
  static const char *const words[] = {
      [ACCEL_BYTES] = "bytes", [ACCEL_NANOGPT] = "nanogpt", [ACCEL_LLMC] = "llmc", [ACCEL_TOKENS] = "tokens"};
  for (size_t i = 0; word != NULL && i < sizeof words / sizeof *words; i++)
    if (words[i] != NULL && strcmp(words[i], word) == 0) return *format = (enum accel_format)i, true;
  return false;
}

/* what: is wrong; word: with which of the arguments, or "". */
static int complain(const char *what, const char *word) {
  fprintf(stderr, "accel-gen data: %s%s\n%s", what, word, usage);
  return STATUS_BAD_JOB;
}

static int make_tokens(struct tokenizing *tokenizing, const struct token_source *sources, int count, const char *output,
                       enum accel_format format) {
  struct problem problem = {0};
  if (format != ACCEL_BYTES) return complain("--tokenizer makes tokens of texts, which have no --format", "");
  tokenizing->texts = calloc((size_t)count, sizeof *tokenizing->texts);
  if (tokenizing->texts == NULL) return STATUS_CANNOT;
  for (int i = 0; i < count; i++) tokenizing->texts[i] = sources[i].path;
  tokenizing->count = count;
  tokenizing->output = output;
  bool good = tokenize(tokenizing, &problem);
  free(tokenizing->texts);
  return good ? STATUS_OK : fail(&problem);
}

/* Also the names that the output has while it is written. */
static bool spares_inputs(const struct token_source *sources, int count, const char *tokenizer, const char *output) {
  static const char *const endings[] = {"", ".partial", ".progress"};
  struct arena *arena = arena_new();
  struct inputs inputs = inputs_in(arena);
  bool spares = true;
  for (int i = 0; i < count; i++) inputs_add(&inputs, "one of the files", sources[i].path);
  inputs_add(&inputs, "the tokenizer", tokenizer);
  for (int i = 0; i < 3 && spares; i++) spares = inputs_spare(&inputs, arena_printf(arena, "%s%s", output, endings[i]));
  arena_free(arena);
  return spares;
}

static int run(struct token_source *sources, int argc, char **argv) {
  bool inspects = argc > 1 && strcmp(argv[1], "inspect") == 0;
  enum accel_format format = inspects ? ACCEL_TOKENS : ACCEL_BYTES;
  struct tokenizing tokenizing = {0};
  const char *output = NULL;
  int count = 0;
  for (int i = inspects ? 2 : 1; i < argc; i++) {
    if (strcmp(argv[i], "-o") == 0 && i + 1 < argc)
      output = argv[++i];
    else if (!inspects && strcmp(argv[i], "--tokenizer") == 0 && i + 1 < argc)
      tokenizing.tokenizer = argv[++i];
    else if (!inspects && strcmp(argv[i], "--end") == 0 && i + 1 < argc)
      tokenizing.end = argv[++i];
    else if (strcmp(argv[i], "--format") == 0 && i + 1 < argc && read_format(argv[i + 1], &format))
      i++;
    else if (argv[i][0] == '-')
      return complain("no option, or one without a value that it takes: ", argv[i]);
    else
      sources[count++].path = argv[i];
  }
  for (int i = 0; i < count; i++) sources[i].format = format;
  if (inspects && (count != 1 || output != NULL)) return complain("inspect takes one file and writes none", "");
  if (count == 0) return complain("a file to read is missing", "");
  if (!inspects && output == NULL) return complain("a file to write is missing: -o FILE", "");
  if (!inspects && !spares_inputs(sources, count, tokenizing.tokenizer, output)) return STATUS_CANNOT;
  if (tokenizing.tokenizer == NULL && tokenizing.end != NULL) return complain("--end belongs to --tokenizer", "");
  if (tokenizing.tokenizer != NULL) return make_tokens(&tokenizing, sources, count, output, format);
  return inspects ? inspect(&sources[0]) : convert(sources, count, output);
}

/* encode or decode: status, or -1 where it is neither. */
static int run_text(int argc, char **argv) {
  struct problem problem = {0};
  bool encodes = argc > 1 && strcmp(argv[1], "encode") == 0, decodes = argc > 1 && strcmp(argv[1], "decode") == 0;
  if (!encodes && !decodes) return -1;
  if (argc < 3) return complain("a tokenizer.json is missing", "");
  if (argc > 3) return complain("one argument too many, as the text comes by standard input: ", argv[3]);
  return (encodes ? text_encode : text_decode)(argv[2], &problem) ? STATUS_OK : fail(&problem);
}

int command_data(int argc, char **argv) {
  int text = run_text(argc, argv);
  if (text >= 0) return text;
  if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
    fputs(usage, stdout);
    return STATUS_OK;
  }
  struct token_source *sources = calloc((size_t)argc, sizeof *sources);
  int status = sources != NULL ? run(sources, argc, argv) : STATUS_CANNOT;
  for (int i = 0; sources != NULL && i < argc; i++) rt_unmap(&sources[i].mapping);
  free(sources);
  return status;
}
