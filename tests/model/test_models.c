/* Models and what reading them gives, kept as files: the graphs of tests/model/good and examples/models in
 * tests/model/snapshots, the messages of tests/model/bad next to them. Prints a line a file in TAP's form.
 *
 * usage: test_models [--accept]   from the root of the tree; --accept writes what differs, see accept.sh
 *        test_models --read FILE  reads one model and prints its messages; for scripts */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/base/path.h"
#include "gen/base/text.h"
#include "tests/model/reading.h"

static bool accept_changes;
static int failures;

/* ---- Comparing ---- */

static void show_difference(const char *expected, const char *actual) {
  int line = 1;
  while (*expected == *actual && *expected != '\0') {
    line += *expected == '\n';
    expected++;
    actual++;
  }
  printf("# line %d: expected \"%.*s\", not \"%.*s\"\n", line, (int)strcspn(expected, "\n"), expected,
         (int)strcspn(actual, "\n"), actual);
}

static void write_file(const char *path, const char *text) {
  FILE *file = fopen(path, "wb");
  if (file == NULL || fputs(text, file) == EOF || fclose(file) != 0) {
    perror(path);
    exit(1);
  }
}

static void compare(struct arena *arena, const char *name, const char *path, const char *actual) {
  const char *expected = read_file(arena, path);
  bool same = expected != NULL && strcmp(expected, actual) == 0;
  if (!same && accept_changes) {
    write_file(path, actual);
    printf("ok %s # written\n", name);
    return;
  }
  printf("%s %s\n", same ? "ok" : "not ok", name);
  if (same) return;
  failures++;
  show_difference(expected == NULL ? "" : expected, actual);
}

/* Lines of accel/model.h and its parts as "N": a message shall not change with every new function of the header. */
static const char *without_header_lines(struct arena *arena, const char *messages) {
  struct text text = text_in(arena);
  bool excerpt = false;
  while (*messages != '\0') {
    size_t length = strcspn(messages, "\n"), skipped = 0;
    if (strncmp(messages, "accel/", strlen("accel/")) == 0) {
      size_t header = strcspn(messages, ":") + 1;
      text_add(&text, messages, header);
      text_puts(&text, "N");
      skipped = header + strcspn(messages + header, ":");
      excerpt = true;
    } else if (excerpt) {
      text_puts(&text, "    N");
      skipped = strcspn(messages, "|") - 1;
      excerpt = false;
    }
    text_add(&text, messages + skipped, length - skipped);
    text_add(&text, "\n", 1);
    messages += length + (messages[length] == '\n');
  }
  return text_string(&text);
}

/* ---- Files ---- */

struct names {
  const char **items;
  int count, capacity;
};

static int by_name(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The C files of a folder, sorted, without their ending. */
static struct names list_models(struct arena *arena, const char *folder) {
  struct names names = {0};
  DIR *handle = opendir(folder);
  if (handle == NULL) {
    perror(folder);
    exit(1);
  }
  for (struct dirent *entry; (entry = readdir(handle)) != NULL;) {
    const char *name = without_ending(arena, entry->d_name, ".c");
    if (name != NULL) ARENA_PUSH(arena, names, name);
  }
  closedir(handle);
  qsort(names.items, (size_t)names.count, sizeof *names.items, by_name);
  return names;
}

/* ---- The tests ---- */

static void test_bad(const char *name) {
  struct arena *arena = arena_new();
  struct diagnostics diags = diagnostics_in(arena);
  const char *path = arena_printf(arena, "tests/model/bad/%s.c", name);
  struct model_options options = options_of_comments(arena, read_file(arena, path));
  const struct tree *program = model_parse(arena, path, &diags);
  const struct graph *graph = program == NULL ? NULL : read_graph(arena, program, &options, &diags);
  const char *messages = printed(arena, &diags);
  if (graph != NULL || diags.errors == 0) messages = arena_printf(arena, "%sit was read without an error\n", messages);
  compare(arena, arena_printf(arena, "bad/%s", name), arena_printf(arena, "tests/model/bad/%s.expected", name),
          without_header_lines(arena, messages));
  arena_free(arena);
}

static void test_graph(const char *folder, const char *name, const char *config) {
  struct arena *arena = arena_new();
  struct diagnostics diags = diagnostics_in(arena);
  const char *path = arena_printf(arena, "%s/%s.c", folder, name);
  struct model_options options = options_of_comments(arena, read_file(arena, path));
  options_add_config(arena, &options, config);
  const struct tree *program = model_parse(arena, path, &diags);
  const struct graph *graph = program == NULL ? NULL : read_graph(arena, program, &options, &diags);
  const char *text = graph == NULL ? printed(arena, &diags) : graph_text(arena, graph);
  compare(arena, arena_printf(arena, "%s/%s", folder, name),
          arena_printf(arena, "tests/model/snapshots/%s.graph", name), text);
  arena_free(arena);
}

static int read_one(const char *path) {
  struct arena *arena = arena_new();
  struct diagnostics diags = diagnostics_in(arena);
  const struct tree *program = model_parse(arena, path, &diags);
  struct model_options options = {.entry = "model"};
  bool good = program != NULL && read_graph(arena, program, &options, &diags) != NULL;
  fputs(printed(arena, &diags), stdout);
  arena_free(arena);
  return good ? 0 : 1;
}

/* The configs that the examples are read with. */
static const struct {
  const char *name, *config;
} examples[] = {
    {"gpt2", "n_layer=4 n_head=4 n_embd=128 vocab_size=256 block_size=64 dropout=0.1"},
    {"gru_bytes", "width=32 block_size=64"},
    {"mlp_table", "n_classes=3"},
    {"nanogpt", "n_layer=4 n_head=4 n_embd=128 vocab_size=256 block_size=64 bias=false"},
};

int main(int argc, char **argv) {
  if (argc > 2 && strcmp(argv[1], "--read") == 0) return read_one(argv[2]);
  accept_changes = argc > 1 && strcmp(argv[1], "--accept") == 0;
  struct arena *arena = arena_new();
  struct names bad = list_models(arena, "tests/model/bad"), good = list_models(arena, "tests/model/good");
  for (int i = 0; i < bad.count; i++) test_bad(bad.items[i]);
  for (int i = 0; i < good.count; i++) test_graph("tests/model/good", good.items[i], "");
  for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++)
    test_graph("examples/models", examples[i].name, examples[i].config);
  arena_free(arena);
  return failures > 0;
}
