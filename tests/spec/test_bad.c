/* Bad jobs and their messages: every tests/spec/bad/NAME.yaml against NAME.expected, and docs/job.md against the
 * schema.
 *
 *   test_bad                  the test
 *   test_bad --accept         shows what differs and takes it for what is expected: review it with git diff
 *   test_bad --check JOB...   a line a job, "0" or "2" as the command would exit, for other tests */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/base/text.h"
#include "gen/spec/job.h"

static const char folder[] = "tests/spec/bad";

/* The whole file with a NUL after it; "" when it is not there. */
static const char *read_file(struct arena *arena, const char *path) {
  FILE *stream = fopen(path, "rb");
  char *bytes = arena_alloc(arena, 1 << 20);
  if (stream == NULL) return "";
  bytes[fread(bytes, 1, (1 << 20) - 1, stream)] = 0;
  fclose(stream);
  return bytes;
}

/* What the command prints for a job. */
static const char *messages(struct arena *arena, const char *path) {
  struct diagnostics diags = diagnostics_in(arena);
  char *bytes = NULL;
  size_t length = 0;
  job_read(arena, path, NULL, 0, &diags);
  FILE *stream = open_memstream(&bytes, &length);
  diag_print(&diags, stream, false);
  fclose(stream);
  const char *text = arena_copy(arena, bytes, length);
  free(bytes);
  return text;
}

/* How files that a job extends are merged. */
static const char extends[] =
    "\n```yaml\n"
    "# cluster.yaml\n"
    "devices: {kind: cuda, nodes: 2, per_node: 8}\n"
    "precision: {mixed_precision: bf16}\n"
    "checkpoint: {every: 1000, total_limit: 3}\n"
    "\n"
    "# job.yaml\n"
    "extends: cluster.yaml        # or [cluster.yaml, gpt2.yaml]\n"
    "devices: {nodes: 4}          # kind and per_node stay\n"
    "checkpoint: {total_limit: null}  # back to its default\n"
    "```\n\n"
    "1. The files of `extends` are merged in their order, each over what it extends itself; then the job; then "
    "`--set`.\n"
    "2. A group is merged key by key. Any other value, a list too, replaces the one before.\n"
    "3. `null` removes the key that a file before has, or the whole group; so does `--set KEY=null`. Where there is "
    "none, it\n"
    "   is an error as ever.\n"
    "4. `model.source`, `hooks.source` and `devices.tuning` are relative to the file that writes them.\n\n"
    "At most 16 files extend each other in a row, and 64 are read in all. The manifest lists them with their digests, "
    "and\n"
    "`accel-gen check --resolved job.yaml` names the file and line of each value. What a program and a checkpoint "
    "record\n"
    "is the merged job.\n";

/* docs/job.md: what `accel-gen help` says, in one page. */
static const char *page(struct arena *arena) {
  static const char *const groups[] = {"extends",  "model",   "data",        "precision", "accumulation",
                                       "memory",   "devices", "parallelism", "optimizer", "schedule",
                                       "training", "hooks",   "checkpoint",  "tracking",  "profile"};
  struct text out = text_in(arena);
  text_printf(
      &out,
      "# The job file\n\n"
      "<!-- Written from schemas/job.schema.json by build/tests/spec/test_bad --accept; edit the schema. -->\n\n"
      "Every key of a job, with its type, range, default and meaning. A job is a YAML 1.2 file: groups of keys.\n"
      "`accel-gen check --resolved JOB` prints a job with every default filled in and the source of each value, and\n"
      "`accel-gen help KEY` prints the entry of one key. An editor completes and checks a job whose first line names "
      "the schema:\n"
      "`# yaml-language-server: $schema=PATH/job.schema.json`. [combinations.md](combinations.md) lists the keys that\n"
      "cannot be combined.\n\n```\n%s```\n",
      job_help(arena, ""));
  for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
    text_printf(&out, "\n## %s\n\n```\n%s```\n", groups[i], job_help(arena, groups[i]));
    if (i == 0) text_puts(&out, extends);
  }
  text_puts(&out,
            "\n## Names in other trainers\n\n"
            "`accel-gen help NAME` explains what other trainers call something: a name, with or without its class, "
            "an option,\na value. `accel-gen help elsewhere` lists them, and `accel-gen help CLASS` the members of "
            "a class.\n[from-accelerate.md](from-accelerate.md) is the guide, [names.yaml](../schemas/names.yaml) the "
            "table.\n");
  return text_string(&out);
}

static bool accept_text(const char *path, const char *text) {
  FILE *stream = fopen(path, "wb");
  if (stream == NULL) return perror(path), false;
  fputs(text, stream);
  return fclose(stream) == 0;
}

/* One snapshot: a TAP line; with `accept`, a difference is written down. */
static bool compare(struct arena *arena, const char *name, const char *path, const char *actual, bool accept) {
  const char *expected = read_file(arena, path);
  if (actual[0] != '\0' && strcmp(expected, actual) == 0) {
    printf("ok %s\n", name);
    return true;
  }
  printf("%s %s\n--- expected\n%s--- actual\n%s", accept ? "accepted" : "not ok", name, expected, actual);
  return accept && accept_text(path, actual);
}

static int by_name(const void *left, const void *right) {
  return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* The names of the bad jobs without their ending, sorted. */
static int list_jobs(struct arena *arena, const char **names, int most) {
  DIR *entries = opendir(folder);
  int count = 0;
  for (struct dirent *entry; entries != NULL && count < most && (entry = readdir(entries)) != NULL;) {
    const char *dot = strrchr(entry->d_name, '.');
    if (dot != NULL && strcmp(dot, ".yaml") == 0)
      names[count++] = arena_copy(arena, entry->d_name, (size_t)(dot - entry->d_name));
  }
  if (entries != NULL) closedir(entries);
  qsort(names, (size_t)count, sizeof *names, by_name);
  return count;
}

static int test_all(bool accept) {
  enum { MOST = 1000 };
  static const char *names[MOST];
  struct arena *arena = arena_new();
  int count = list_jobs(arena, names, MOST), failed = count == 0;
  for (int i = 0; i < count; i++) {
    struct arena *one = arena_new();
    const char *job = arena_printf(one, "%s/%s.yaml", folder, names[i]);
    const char *path = arena_printf(one, "%s/%s.expected", folder, names[i]);
    failed += !compare(one, names[i], path, messages(one, job), accept);
    arena_free(one);
  }
  failed += !compare(arena, "docs/job.md", "docs/job.md", page(arena), accept);
  arena_free(arena);
  return failed > 0;
}

static int check_jobs(int count, char **paths) {
  for (int i = 0; i < count; i++) {
    struct arena *arena = arena_new();
    struct diagnostics diags = diagnostics_in(arena);
    printf("%d\n", job_read(arena, paths[i], NULL, 0, &diags) == NULL ? 2 : 0);
    arena_free(arena);
  }
  return 0;
}

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "--check") == 0) return check_jobs(argc - 2, argv + 2);
  return test_all(argc > 1 && strcmp(argv[1], "--accept") == 0);
}
