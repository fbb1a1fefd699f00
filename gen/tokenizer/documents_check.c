/* Files that are no text: by what they are called and how they begin. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "gen/base/path.h"
#include "gen/tokenizer/documents.h"
#include "gen/unpack/shard.h"
#include "runtime/data/foreign.h"

static const char lines_remedy[] =
    "--text-field NAME makes a document of each record's text, and --chat FOLDER one of its messages";
static const char table_remedy[] = "--text-column NAME makes a document of each row's text";
static const char packed_remedy[] = "unpack it first";
static const char binary_remedy[] = "write its texts as JSON Lines, and give these with --text-field NAME";
static const char tokens_remedy[] = "--format tokens reads such a file";

/* What begins with this, or ends in this; NULL: it is not. */
static const struct known {
  const char *ending, *magic, *what, *remedy;
} known[] = {
    {".jsonl", NULL, "JSON Lines", lines_remedy},
    {".ndjson", NULL, "JSON Lines", lines_remedy},
    {".json", NULL, "JSON", "write its texts as JSON Lines, one object a line, for --text-field NAME"},
    {".csv", NULL, "a table", table_remedy},
    {".tsv", NULL, "a table", table_remedy},
    {".parquet", NULL, "Parquet", binary_remedy},
    {".arrow", NULL, "Arrow", binary_remedy},
    {".feather", NULL, "Arrow", binary_remedy},
    {".npy", "\x93NUMPY", "an array of NumPy", "a job reads arrays of tokens as format npy_tokens"},
    {".npz", NULL, "an archive of NumPy",
     "a job reads it as format npz; -o NAME.npz writes one that is compressed as one that is not"},
    {".safetensors", NULL, "tensors", "give texts"},
    {".gz", NULL, "not what gzip writes, in spite of its name", "name it after what it is"},
    {".zst", NULL, "not what zstd writes, in spite of its name", "name it after what it is"},
    {".xz",
     "\xfd"
     "7zXZ",
     "compressed", packed_remedy},
    {".bz2", "BZh", "compressed", packed_remedy},
    {".zip", "PK\x03\x04", "an archive", packed_remedy},
    {".tar", NULL, "not what tar writes, in spite of its name", "name it after what it is"},
    {".tgz", NULL, "not what tar writes, in spite of its name", "name it after what it is"},
    {".idx", "MMIDIDX", "an index of Megatron-LM", "--format megatron reads it and its .bin"},
    {".idx", "TNTIDX", "an index of Megatron-LM", "--format megatron reads it and its .bin"},
    {".tok", "ACCELTOK", "a token file", tokens_remedy},
    {".pdf", "%PDF-", "PDF", "write its text to a file"},
};

static bool ends_in(const char *path, const char *ending) {
  size_t length = strlen(path), size = strlen(ending);
  return length > size && strcasecmp(path + length - size, ending) == 0;
}

static bool begins_with(const char *bytes, size_t size, const char *magic) {
  return magic != NULL && size >= strlen(magic) && memcmp(bytes, magic, strlen(magic)) == 0;
}

/* Whether the first line is an object of JSON, and nothing else is on it. */
static bool is_lines(const char *bytes, size_t size) {
  enum { MOST = 1 << 20 };
  while (size > 0 && strchr(" \t\r\n", bytes[0]) != NULL && bytes[0] != '\0') bytes++, size--;
  if (size == 0 || bytes[0] != '{') return false;
  const char *end = memchr(bytes, '\n', size < MOST ? size : MOST);
  if (end == NULL && size > MOST) return false;
  json_t *first = json_loadb(bytes, end != NULL ? (size_t)(end - bytes) : size, JSON_ALLOW_NUL, NULL);
  bool found = json_object_size(first) > 0;
  json_decref(first);
  return found;
}

static bool check(const char *path, const char *bytes, size_t size, struct problem *problem) {
  static const struct known lines = {NULL, NULL, "JSON Lines", lines_remedy};
  const struct known *is = NULL;
  if (!documents_check_records(path, bytes, size, problem)) return false;
  for (size_t i = 0; is == NULL && i < sizeof known / sizeof *known; i++)
    if (ends_in(path, known[i].ending) || begins_with(bytes, size, known[i].magic)) is = &known[i];
  if (is == NULL && is_lines(bytes, size)) is = &lines;
  if (is == NULL) return true;
  rt_problem(problem, "%s: this is %s, not a text", path, is->what);
  return rt_help(problem, "%s; --format text makes tokens of the file as it is", is->remedy);
}

bool documents_check_records(const char *path, const char *bytes, size_t size, struct problem *problem) {
  enum foreign kind = rt_foreign_as(bytes, size);
  if (kind == FOREIGN_PARQUET || kind == FOREIGN_ARROW || kind == FOREIGN_ARROW_STREAM)
    return rt_foreign_refuse(kind, path, false, problem);
  return true;
}

/* The name of what a compressed file unpacks to. */
static void unpacked_name(const char *path, char *name, size_t size) {
  snprintf(name, size, "%s", path);
  if (ends_in(name, ".gz") || ends_in(name, ".zst")) *strrchr(name, '.') = '\0';
}

bool documents_check_whole(const char *path, const char *bytes, size_t size, struct problem *problem) {
  char name[4096];
  struct window window;
  if (packed_as(bytes, size) == NOT_PACKED) return shard_is(bytes, size) || check(path, bytes, size, problem);
  unpacked_name(path, name, sizeof name);
  bool good = window_open(&window, path, bytes, size, false, problem) &&
              (shard_is(window.bytes, window.size) || check(name, window.bytes, window.size, problem));
  window_close(&window);
  return good;
}

bool documents_is_shard(const char *bytes, size_t size) {
  struct window window;
  struct problem ignored;
  bool found = window_open(&window, "", bytes, size, false, &ignored) && shard_is(window.bytes, window.size);
  window_close(&window);
  return found;
}
