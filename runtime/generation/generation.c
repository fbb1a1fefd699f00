/* Text from a trained model: the functions of generator.h. */
#include "include/accel/generator.h"

#include "runtime/files/files.h"
#include "runtime/files/mapping.h"
#include "runtime/generation/prompt.h"
#include "runtime/generation/sampler.h"
#include "runtime/generation/source.h"
#include "runtime/process/arena.h"
#include "runtime/process/fail.h"
#include "runtime/process/flags.h"
#include "runtime/process/world.h"
#include "runtime/weights/trained.h"
#include "runtime/weights/weights.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct accel_generation {
  const struct accel_program *program;
  struct arena arena;
  const char *weights_path; /* NULL: the project folder's model.safetensors */
  struct sampler sampler;
  struct token_list stop;        /* the text ends after these; empty: it does not */
  struct generation_rules rules; /* of texts from a source */
  float *source;                 /* what they are written from; NULL: the program has none */
  int64_t n_source, prompted;    /* its elements; tokens of the prompt */
  int32_t *tokens;               /* the prompt and what was made of it */
  int64_t count, capacity;
  int64_t first, done; /* where the window begins, and how many of its positions the model has run over */
  const char *logits_path;
  FILE *logits;   /* of --logits; NULL: not requested */
  float *scratch; /* logits, and as many floats for the sampler */
};

static bool is_bytes(const struct accel_program *program) {
  return program->vocabulary == 256;
}

static noreturn void fail(const char *what, const char *help, int status) {
  struct problem problem;
  rt_problem(&problem, "%s", what);
  rt_help(&problem, "%s", help);
  rt_fail(&problem, status);
}

/* Of what all ranks find. */
static noreturn void fail_together(const char *what, const char *help, int status) {
  struct problem problem;
  rt_problem(&problem, "%s", what);
  rt_help(&problem, "%s", help);
  rt_fail_together(&problem, status);
}

/* Readable whatever a young model says: bytes as they are, but no control characters for the terminal to obey. */
static void print_token(const struct accel_generation *run, int32_t token) {
  if (!rt_is_main()) return;
  if (!is_bytes(run->program)) {
    printf("%" PRId32 " ", token);
    return;
  }
  bool control = (token < ' ' && token != '\n' && token != '\t') || token == 127;
  putchar(control ? '?' : token);
}

static void add_token(struct accel_generation *run, int32_t token) {
  run->tokens[run->count++] = token;
  print_token(run, token);
}

static noreturn void fail_logits(const struct accel_generation *run) {
  struct problem problem;
  rt_problem(&problem, "%s: cannot be written: %s", run->logits_path, strerror(errno));
  rt_help(&problem, "check the folder, its rights and the free space");
  rt_fail(&problem, 1);
}

/* What the flags say that only the start needs. */
struct generation_options {
  const char *prompt, *file, *stop, *input;
  int64_t tokens;
};

/* Rank 0 reads a file, which others may not see, and standard input, which they do not have. */
static bool read_prompt(struct token_list *prompt, const struct generation_options *options, int64_t vocabulary,
                        struct problem *problem) {
  if (options->file == NULL)
    return rt_prompt_tokens(prompt, "--prompt", options->prompt, strlen(options->prompt), vocabulary, problem);
  bool good = !rt_is_main() || rt_prompt_file(prompt, options->file, vocabulary, problem);
  rt_world_require(good, problem, 2);
  rt_world_broadcast(&prompt->count, sizeof prompt->count);
  size_t size = (size_t)prompt->count * sizeof *prompt->items;
  if (!rt_is_main()) prompt->items = malloc(size + 1);
  good = prompt->items != NULL || rt_problem(problem, "no memory for the prompt");
  rt_world_require(good, problem, 1);
  rt_world_broadcast(prompt->items, size);
  return true;
}

/* Reads what the text is written from, and what is known of such texts. */
static void read_source(struct accel_generation *run, const struct generation_options *options) {
  struct problem problem;
  const struct accel_program *program = run->program;
  const char *weights = run->weights_path != NULL ? run->weights_path : program->project_dir;
  if (program->source_name == NULL && options->input == NULL) return;
  if (program->source_name == NULL) fail("--input: this program writes from a prompt alone", "leave the flag out", 2);
  if (options->input == NULL)
    fail("--input is missing", "name the .npy file with the input that the text is written from", 2);
  if (!rt_source_read(program, options->input, &run->source, &run->n_source, &problem) ||
      !rt_source_rules(&run->rules, program, weights, &problem))
    rt_fail(&problem, 1);
}

/* What the text begins with where no flag says so: of a source the token that its folder names. */
static const char *default_prompt(const struct accel_generation *run, char text[16]) {
  const struct generation_rules *rules = &run->rules;
  if (run->source == NULL) return is_bytes(run->program) ? "\n" : "0";
  if (rules->start < 0 || rules->prompts || is_bytes(run->program))
    fail("--prompt is missing", "give decoder_start_token_id, and the tokens of language and task that follow on it",
         2);
  snprintf(text, 16, "%" PRId32, rules->start);
  return text;
}

/* A text from a source has a last position. */
static void end_source(struct accel_generation *run, int64_t tokens) {
  const int64_t length = run->program->sequence_length;
  struct problem problem;
  if (run->source == NULL) return;
  if (run->prompted >= length || (tokens >= 0 && run->capacity > length)) {
    rt_problem(&problem, "the prompt and --tokens are more than the %" PRId64 " tokens of a text", length);
    rt_help(&problem, "ask for fewer, or make the program with a longer shape of 'labels'");
    rt_fail(&problem, 2);
  }
  run->capacity = length < run->capacity ? length : run->capacity;
}

static void add_prompt(struct accel_generation *run, struct generation_options *options) {
  enum { USUAL = 500 };
  struct problem problem;
  struct token_list prompt = {0};
  int64_t vocabulary = run->program->vocabulary, tokens = options->tokens >= 0 ? options->tokens : USUAL;
  char first[16];
  if (options->prompt == NULL && options->file == NULL) options->prompt = default_prompt(run, first);
  bool good = read_prompt(&prompt, options, vocabulary, &problem);
  if (good && options->stop != NULL)
    good = rt_prompt_tokens(&run->stop, "--stop", options->stop, strlen(options->stop), vocabulary, &problem);
  if (!good) rt_fail_together(&problem, 2);
  if (prompt.count == 0) fail_together("the prompt is empty", "the model needs a token to start from", 2);
  if (tokens > (INT64_C(1) << 40)) fail_together("--tokens is too large", "ask for fewer", 2);
  run->capacity = prompt.count + tokens;
  run->tokens = malloc((size_t)run->capacity * sizeof *run->tokens);
  if (run->tokens == NULL) fail("no memory for the text", "ask for fewer --tokens", 1);
  memcpy(run->tokens, prompt.items, (size_t)prompt.count * sizeof *run->tokens);
  run->count = run->prompted = prompt.count;
  free(prompt.items);
  end_source(run, options->tokens);
}

/* Sets what the flags say, in `run` and `options`. */
static void read_flags(struct accel_generation *run, struct generation_options *options, int argc, char **argv) {
  const struct flag flags[] = {
      {"--weights",
       "FILE",
       "a safetensors file (default: the project folder's)",
       FLAG_TEXT,
       0,
       {.text = &run->weights_path}},
      {"--input",
       "FILE",
       "a .npy file with the input that the text is written from",
       FLAG_TEXT,
       0,
       {.text = &options->input}},
      {"--prompt", "TEXT", "what the text begins with", FLAG_TEXT, 0, {.text = &options->prompt}},
      {"--prompt-file", "FILE", "the same from a file; -: from standard input", FLAG_TEXT, 0, {.text = &options->file}},
      {"--tokens", "N", "how many tokens to add (default: 500)", FLAG_COUNT, 0, {.count = &options->tokens}},
      {"--stop",
       "TEXT",
       "end after this: a text, or consecutive token numbers",
       FLAG_TEXT,
       0,
       {.text = &options->stop}},
      {"--temperature",
       "T",
       "below 1: likelier text, above 1: more varied text, 0: the likeliest token (default: 1)",
       FLAG_REAL,
       0,
       {.real = &run->sampler.temperature}},
      {"--top-k",
       "K",
       "choose among the K likeliest tokens; 0: among all (default: 0)",
       FLAG_COUNT,
       0,
       {.count = &run->sampler.top_k}},
      {"--top-p",
       "P",
       "choose among the likeliest whose probabilities add up to P (default: 1)",
       FLAG_SHARE,
       0,
       {.real = &run->sampler.top_p}},
      {"--repetition-penalty",
       "R",
       "above 1: fewer repetitions of the text so far (default: 1)",
       FLAG_REAL,
       0,
       {.real = &run->sampler.penalty}},
      {"--logits",
       "FILE",
       "write the logits of each token there, a row of float32 each",
       FLAG_TEXT,
       0,
       {.text = &run->logits_path}},
      {"--seed",
       "N",
       "the seed of the random choices (default: the job's)",
       FLAG_SEED,
       0,
       {.seed = &run->sampler.seed}},
  };
  rt_flags_read(run->program, flags, sizeof flags / sizeof *flags, argc, argv);
}

/* --logits FILE is not to be what is read. */
static void refuse_input(const struct accel_generation *run, const struct generation_options *options) {
  const char *output = run->logits_path, *start = run->program->start.path;
  if (output == NULL) return;
  const char *weights = run->weights_path != NULL ? run->weights_path : run->program->project_dir;
  const struct accel_start_file *file = &run->program->start;
  if (!rt_is_of_weights(file, output, weights) && !rt_is_of_weights(file, output, start) &&
      (options->file == NULL || !rt_is_same_file(output, options->file)) &&
      (options->input == NULL || !rt_is_same_file(output, options->input)))
    return;
  struct problem problem;
  rt_problem(&problem, "--logits %s: this file is read", output);
  rt_help(&problem, "name another file");
  rt_fail(&problem, 1);
}

struct accel_generation *accel_generation_start(const struct accel_program *program, int argc, char **argv) {
  struct problem problem;
  struct accel_generation *run = calloc(1, sizeof *run);
  if (run == NULL) fail("no memory to start", "", 1);
  program = rt_trained_join(program);
  run->program = program;
  run->sampler = (struct sampler){.temperature = 1, .seed = program->seed};
  struct generation_options options = {.tokens = -1};
  read_flags(run, &options, argc, argv);
  read_source(run, &options);
  rt_trained_divide(program);
  rt_guard_mappings();
  if (!rt_arena_open(&run->arena, program->arena_bytes, &problem)) rt_fail(&problem, 1);
  add_prompt(run, &options);
  if (rt_is_main()) refuse_input(run, &options);
  if (rt_is_main() && run->logits_path != NULL && (run->logits = fopen(run->logits_path, "wb")) == NULL)
    fail_logits(run);
  return run;
}

void *accel_generation_arena(struct accel_generation *run) {
  return run->arena.base;
}

int64_t accel_generation_rank_along(const struct accel_generation *run, enum accel_axis axis) {
  return rt_rank_along(run->program, axis);
}

void accel_generation_weights(struct accel_generation *run, void *weights) {
  rt_trained_read(run->program, run->weights_path, weights);
  for (int64_t i = 0; i < run->count; i++) print_token(run, run->tokens[i]); /* the prompt, now that it continues */
}

void accel_generation_source(const struct accel_generation *run, float *to, int64_t count) {
  memcpy(to, run->source, (size_t)(count < run->n_source ? count : run->n_source) * sizeof *to);
}

int64_t accel_generation_window(struct accel_generation *run, int32_t *tokens) {
  int64_t length = run->program->sequence_length;
  if (run->count == run->capacity) return -1;
  int64_t filled = run->count < length ? run->count : length;
  memcpy(tokens, run->tokens + run->count - filled, (size_t)filled * sizeof *tokens);
  memset(tokens + filled, 0, (size_t)(length - filled) * sizeof *tokens);
  return filled - 1;
}

/* A window that is full starts again with its newer half; a prompt that is longer than one with its end. */
static void move_window(struct accel_generation *run, int64_t length) {
  if (run->count - run->first <= length) return;
  int64_t length_after = run->done == 0 ? length : length > 1 ? length / 2 : 1;
  run->first = run->count - length_after;
  run->done = 0;
}

int64_t accel_generation_positions(struct accel_generation *run, int64_t length, int64_t most, int32_t *tokens,
                                   int32_t *at) {
  if (run->count == run->capacity) return 0;
  move_window(run, length);
  int64_t position = run->done, left = run->count - run->first - position, count = left < most ? left : most;
  if (position > length - most) count = 1;
  memcpy(tokens, run->tokens + run->first + position, (size_t)count * sizeof *tokens);
  memset(tokens + count, 0, (size_t)(most - count) * sizeof *tokens);
  at[0] = position < INT32_MAX ? (int32_t)position : INT32_MAX;
  run->done += count;
  return count;
}

void accel_generation_logits(struct accel_generation *run, const float *logits, int64_t vocabulary) {
  if (run->first + run->done == run->count) accel_generation_next(run, logits, vocabulary);
}

static bool has_stopped(const struct accel_generation *run) {
  const struct token_list *stop = &run->stop;
  if (rt_rules_end(&run->rules, run->tokens[run->count - 1])) return true;
  if (stop->count == 0 || run->count < stop->count) return false;
  return memcmp(run->tokens + run->count - stop->count, stop->items, (size_t)stop->count * sizeof *stop->items) == 0;
}

/* The next token; -1 where a logit is not a number. */
static int64_t choose(struct accel_generation *run, const float *logits, int64_t vocabulary) {
  if (run->scratch == NULL) run->scratch = malloc(2 * (size_t)vocabulary * sizeof *run->scratch);
  if (run->scratch == NULL) fail("no memory for the choice of a token", "free memory and try again", 1);
  if (run->logits != NULL && fwrite(logits, sizeof *logits, (size_t)vocabulary, run->logits) != (size_t)vocabulary)
    fail_logits(run);
  float *penalized = run->scratch;
  memcpy(penalized, logits, (size_t)vocabulary * sizeof *penalized);
  rt_penalize(&run->sampler, run->tokens, run->count, logits, penalized);
  rt_rules_suppress(&run->rules, run->count == run->prompted, penalized);
  int64_t token = rt_sample(&run->sampler, penalized, vocabulary, (uint64_t)run->count, run->scratch + vocabulary);
  if (token >= 0 && rt_rules_forbid(&run->rules, run->count == run->prompted, (int32_t)token))
    fail("generation_config.json suppresses every token", "leave tokens out of its suppress_tokens", 1);
  return token;
}

/* Rank 0 chooses for all: on different processors the same logits may be rounded differently. */
void accel_generation_next(struct accel_generation *run, const float *logits, int64_t vocabulary) {
  int64_t token = rt_is_main() ? choose(run, logits, vocabulary) : 0;
  rt_world_broadcast(&token, sizeof token);
  if (token < 0) {
    if (rt_is_main()) putchar('\n');
    fail_together("the model's logits are not numbers", "the weights are damaged, or the training diverged", 1);
  }
  add_token(run, (int32_t)token);
  if (has_stopped(run)) run->capacity = run->count;
  if (rt_is_main()) fflush(stdout);
}

int accel_generation_finish(struct accel_generation *run) {
  if (rt_is_main()) putchar('\n');
  if (run->logits != NULL && fclose(run->logits) != 0) fail_logits(run);
  rt_arena_close(&run->arena);
  rt_trained_leave(run->program);
  free(run->tokens);
  free(run->stop.items);
  free(run->source);
  rt_rules_free(&run->rules);
  free(run->scratch);
  free(run);
  return fflush(stdout) == 0 ? 0 : 1;
}
