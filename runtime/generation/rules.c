#include "runtime/generation/rules.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Keys that change nothing where tokens are chosen one by one: what is for people or for other programs, and lengths
 * and samplings, which flags set. */
static const char *const without_effect[] = {"_from_model_config",
                                             "alignment_heads",
                                             "bos_token_id",
                                             "early_stopping",
                                             "is_multilingual",
                                             "length_penalty",
                                             "max_length",
                                             "max_new_tokens",
                                             "median_filter_width",
                                             "max_initial_timestamp_index",
                                             "no_timestamps_token_id",
                                             "output_attentions",
                                             "output_hidden_states",
                                             "output_logits",
                                             "output_scores",
                                             "pad_token_id",
                                             "prev_sot_token_id",
                                             "return_dict_in_generate",
                                             "task_to_id",
                                             "temperature",
                                             "top_k",
                                             "top_p",
                                             "transformers_version",
                                             "use_cache",
                                             "remove_invalid_values"};

/* Keys of which one value changes nothing, the others are refused. */
static const struct {
  const char *name;
  double value;
} neutral[] = {{"do_sample", 0},
               {"diversity_penalty", 0},
               {"encoder_no_repeat_ngram_size", 0},
               {"encoder_repetition_penalty", 1},
               {"epsilon_cutoff", 0},
               {"eta_cutoff", 0},
               {"guidance_scale", 1},
               {"min_length", 0},
               {"min_new_tokens", 0},
               {"no_repeat_ngram_size", 0},
               {"num_beam_groups", 1},
               {"num_beams", 1},
               {"num_return_sequences", 1},
               {"renormalize_logits", 0},
               {"repetition_penalty", 1},
               {"return_timestamps", 0},
               {"token_healing", 0},
               {"typical_p", 1}};

static bool refuse(struct problem *problem, const char *path, const char *key, const char *what, const char *cure) {
  rt_problem(problem, "%s: '%s' %s", path, key, what);
  return rt_help(problem, "%s", cure);
}

static bool read_token(int32_t *token, const json_t *value, int64_t vocabulary) {
  const json_int_t number = json_is_integer(value) ? json_integer_value(value) : -1;
  *token = number >= 0 && number <= INT32_MAX && number < vocabulary ? (int32_t)number : -1;
  return *token >= 0;
}

/* A token, or a list of them. */
static bool read_tokens(struct token_list *tokens, const char *path, const char *key, const json_t *value,
                        int64_t vocabulary, struct problem *problem) {
  const bool is_list = json_is_array(value);
  const size_t count = is_list ? json_array_size(value) : 1;
  *tokens = (struct token_list){.items = malloc((count + 1) * sizeof *tokens->items)};
  if (tokens->items == NULL) return rt_problem(problem, "no memory for %s", path);
  for (size_t i = 0; i < count; i++)
    if (!read_token(&tokens->items[tokens->count++], is_list ? json_array_get(value, i) : value, vocabulary))
      return refuse(problem, path, key, "must have tokens of the vocabulary",
                    "write their numbers, or leave the key out");
  return true;
}

static bool is_without_effect(const char *key) {
  for (size_t i = 0; i < sizeof without_effect / sizeof *without_effect; i++)
    if (strcmp(key, without_effect[i]) == 0) return true;
  return false;
}

static bool is_neutral(const char *key, const json_t *value) {
  const double number = json_is_true(value) ? 1 : json_is_number(value) ? json_number_value(value) : 0;
  const bool is_known = json_is_boolean(value) || json_is_number(value);
  for (size_t i = 0; i < sizeof neutral / sizeof *neutral; i++)
    if (strcmp(key, neutral[i].name) == 0) return is_known && !(number < neutral[i].value || number > neutral[i].value);
  return false;
}

/* Of transformers they are parts of Whisper's prompt, or it finds them by running the model. */
static bool names_prompt(const char *key, const json_t *value) {
  static const char *const keys[] = {"forced_decoder_ids", "lang_to_id", "language", "task"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    if (strcmp(key, keys[i]) == 0) return !json_is_array(value) || json_array_size(value) > 0;
  return false;
}

static bool read_key(struct generation_rules *rules, const char *path, const char *key, const json_t *value,
                     int64_t vocabulary, struct problem *problem) {
  const struct {
    const char *key;
    struct token_list *tokens;
  } lists[] = {{"eos_token_id", &rules->ends},
               {"suppress_tokens", &rules->suppressed},
               {"begin_suppress_tokens", &rules->suppressed_at_first}};
  if (json_is_null(value) || is_without_effect(key) || is_neutral(key, value)) return true;
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
    if (strcmp(key, lists[i].key) == 0) return read_tokens(lists[i].tokens, path, key, value, vocabulary, problem);
  if (strcmp(key, "decoder_start_token_id") == 0)
    return read_token(&rules->start, value, vocabulary) ||
           refuse(problem, path, key, "must be a token of the vocabulary", "write its number");
  if (names_prompt(key, value) || strcmp(key, "forced_decoder_ids") == 0) {
    rules->prompts |= names_prompt(key, value);
    return true;
  }
  return refuse(problem, path, key, "asks for what this program does not do",
                "it chooses one token at a time; take the key out to have it do so here");
}

bool rt_rules_read(struct generation_rules *rules, const char *path, const char *text, size_t size, int64_t vocabulary,
                   struct problem *problem) {
  json_error_t error;
  json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
  const char *key;
  json_t *value;
  bool good = json_is_object(root);
  *rules = (struct generation_rules){.start = -1};
  if (root == NULL)
    rt_problem(problem, "%s:%d:%d: this is not JSON: %s", path, error.line, error.column, error.text);
  else if (!good)
    rt_problem(problem, "%s: this is no object of JSON", path);
  if (!good) rt_help(problem, "write the file again, or remove it");
  json_object_foreach(root, key, value) {
    if (good) good = read_key(rules, path, key, value, vocabulary, problem);
  }
  json_decref(root);
  return good;
}

void rt_rules_free(struct generation_rules *rules) {
  free(rules->ends.items);
  free(rules->suppressed.items);
  free(rules->suppressed_at_first.items);
}

static void suppress(const struct token_list *tokens, float *logits) {
  for (int64_t i = 0; i < tokens->count; i++) logits[tokens->items[i]] = -INFINITY;
}

void rt_rules_suppress(const struct generation_rules *rules, bool first, float *logits) {
  suppress(&rules->suppressed, logits);
  if (first) suppress(&rules->suppressed_at_first, logits);
}

static bool has(const struct token_list *tokens, int32_t token) {
  for (int64_t i = 0; i < tokens->count; i++)
    if (tokens->items[i] == token) return true;
  return false;
}

bool rt_rules_forbid(const struct generation_rules *rules, bool first, int32_t token) {
  return has(&rules->suppressed, token) || (first && has(&rules->suppressed_at_first, token));
}

bool rt_rules_end(const struct generation_rules *rules, int32_t token) {
  return has(&rules->ends, token);
}
