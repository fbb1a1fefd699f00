#include "gen/commands/start/logits.h"

#include <stdio.h>
#include <string.h>

#include "gen/base/file.h"
#include "gen/base/text.h"
#include "gen/commands/cli/commands.h"
#include "gen/commands/cli/process.h"
#include "runtime/base/terminal.h"

/* Numbers that look random, the same everywhere (the minimal standard generator of Park and Miller). */
static void draw_prompt(int *prompt, int vocabulary) {
  int64_t state = 20240517;
  for (int i = 0; i < LOGITS_PROMPT; i++) {
    state = state * 48271 % 2147483647;
    prompt[i] = (int)(state % vocabulary);
  }
}

/* As the text generator reads a prompt: token numbers, or, of bytes, the bytes themselves. */
static bool write_prompt(const struct logits *logits, const char *path) {
  FILE *file = fopen(path, "wb");
  if (file == NULL) return false;
  for (int i = 0; i < LOGITS_PROMPT; i++)
    if (logits->count == 256)
      fputc(logits->prompt[i], file);
    else
      fprintf(file, "%d ", logits->prompt[i]);
  return fclose(file) == 0;
}

static bool write_text(const char *path, const char *text) {
  FILE *file = fopen(path, "wb");
  if (file == NULL) return false;
  const size_t length = strlen(text), written = fwrite(text, 1, length, file);
  return fclose(file) == 0 && written == length;
}

static bool build(const struct options *options, const char *job, const char *program) {
  struct options inner = *options;
  inner.argument = job;
  inner.output = program;
  inner.program = "generate";
  inner.n_overrides = 0;
  inner.json = false;
  return command_build(&inner) == STATUS_OK;
}

static bool run(struct arena *arena, const char *program, const char *weights, const char *prompt, const char *output) {
  struct words command = words_in(arena);
  const char *const words[] = {program, "--weights",     weights, "--prompt-file", prompt, "--tokens",
                               "1",     "--temperature", "0",     "--logits",      output};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) words_add(&command, words[i]);
  return process_read(&command) != NULL;
}

static bool compute_in(const struct options *options, const char *folder, const char *job, const char *weights,
                       struct logits *logits) {
  struct arena *arena = options->arena;
  const char *file = arena_printf(arena, "%s/job.yaml", folder), *program = arena_printf(arena, "%s/generator", folder);
  const char *prompt = arena_printf(arena, "%s/prompt", folder), *output = arena_printf(arena, "%s/logits", folder);
  size_t size;
  if (!write_text(file, job) || !write_prompt(logits, prompt)) {
    perror(folder);
    return false;
  }
  if (!build(options, file, program) || !run(arena, program, weights, prompt, output)) return false;
  logits->values = (const float *)(const void *)read_bytes(arena, output, &size);
  if (logits->values != NULL && size == (size_t)logits->count * sizeof(float)) return true;
  rt_print(stderr, "accel-gen model: the program wrote no logits of %d tokens\n", logits->count);
  return false;
}

bool logits_compute(const struct options *options, const char *job, const char *weights, int vocabulary,
                    struct logits *logits) {
  const char *folder = make_folder(options->arena);
  *logits = (struct logits){.count = vocabulary};
  if (folder == NULL) return false;
  draw_prompt(logits->prompt, vocabulary);
  const bool computed = compute_in(options, folder, job, weights, logits);
  remove_folder(folder);
  return computed;
}

/* The largest one below what `before` has, in order; -1: there is none. */
static int next_largest(const struct logits *logits, int before) {
  int best = -1;
  for (int i = 0; i < logits->count; i++) {
    const bool is_after = before < 0 || logits->values[i] < logits->values[before] ||
                          (logits->values[i] == logits->values[before] && i > before);
    if (is_after && (best < 0 || logits->values[i] > logits->values[best])) best = i;
  }
  return best;
}

const char *logits_text(struct arena *arena, const struct logits *logits) {
  enum { SHOWN = 5 };
  struct text out = text_in(arena);
  text_puts(&out, "\nlogits of the token after");
  for (int i = 0; i < LOGITS_PROMPT; i++) text_printf(&out, " %d", logits->prompt[i]);
  text_puts(&out, "\n");
  for (int i = 0, token = -1; i < SHOWN && (token = next_largest(logits, token)) >= 0; i++)
    text_printf(&out, "%10d  %.6f\n", token, (double)logits->values[token]);
  return text_string(&out);
}

json_t *logits_json(const struct logits *logits) {
  json_t *prompt = json_array(), *values = json_array();
  for (int i = 0; i < LOGITS_PROMPT; i++) json_array_append_new(prompt, json_integer(logits->prompt[i]));
  for (int i = 0; i < logits->count; i++) json_array_append_new(values, json_real((double)logits->values[i]));
  return json_pack("{s:o, s:o}", "prompt", prompt, "values", values);
}
