#include "gen/model/published_file.h"

#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The paths of a config.json are short. What lists nest deep, or repeats a long key, would need far more memory than
 * its own bytes. */
enum { MOST_PATH_BYTES = 16 << 20 };

/* The path of a part; NULL: there are too many bytes of paths already. */
static const char *path_of_part(struct arena *arena, struct published_values *values, const char *path,
                                const char *part) {
  if (values->path_bytes > MOST_PATH_BYTES) return NULL;
  values->path_bytes += strlen(path) + strlen(part) + 2;
  return arena_printf(arena, "%s%s%s", path, path[0] == '\0' ? "" : ".", part);
}

static void add_values(struct arena *arena, struct published_values *values, const char *path, const json_t *value) {
  const char *key;
  size_t i;
  json_t *part;
  if (path == NULL) return;
  if (json_is_object(value)) {
    json_object_foreach((json_t *)value, key, part)
        add_values(arena, values, path_of_part(arena, values, path, key), part);
  } else if (json_is_array(value)) {
    json_array_foreach(value, i, part) {
      char number[24];
      snprintf(number, sizeof number, "%zu", i);
      add_values(arena, values, path_of_part(arena, values, path, number), part);
    }
  } else {
    struct published_value leaf = {.path = path, .value = value};
    ARENA_PUSH(arena, *values, leaf);
  }
  if (path[0] == '\0' || !(json_is_object(value) || json_is_array(value))) return;
  const size_t count = json_is_object(value) ? json_object_size(value) : json_array_size(value);
  struct published_value size = {path_of_part(arena, values, path, "#"), json_integer((json_int_t)count), true, true};
  if (size.path == NULL) size.path = "#"; /* which is not read any more */
  ARENA_PUSH(arena, *values, size);
}

static json_t *load(const char *path, struct diagnostics *diags) {
  enum { MOST_BYTES = 16 << 20 };
  struct location where = {.file = path};
  struct stat about;
  json_error_t error;
  if (stat(path, &about) != 0) {
    if (errno != ENOENT && errno != ENOTDIR) diag_error(diags, where, "cannot be read: %s", strerror(errno));
    return NULL;
  }
  if (!S_ISREG(about.st_mode) || about.st_size > MOST_BYTES) {
    diag_error(diags, where, "no file of at most %d MB, as a config.json is", MOST_BYTES >> 20);
    return NULL;
  }
  json_t *json = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
  if (json == NULL) {
    where.line = error.line > 0 ? error.line : 0;
    where.column = where.line > 0 && error.column > 0 ? error.column : 0;
    diag_error(diags, where, "%s", error.text);
  } else if (!json_is_object(json)) {
    diag_error(diags, where, "a config.json is an object");
    json_decref(json);
    return NULL;
  }
  return json;
}

bool published_read(struct arena *arena, const char *path, struct published_values *values, struct diagnostics *diags) {
  *values = (struct published_values){.json = load(path, diags)};
  if (values->json == NULL) return false;
  add_values(arena, values, "", values->json);
  if (values->path_bytes <= MOST_PATH_BYTES) return true;
  diag_error(diags, (struct location){.file = path},
             "its keys and the lists around its values are too long or too deep");
  diag_help(diags, "\"a.b.0\" of all its values is at most %d MB together", MOST_PATH_BYTES >> 20);
  published_free(values);
  return false;
}

bool published_parse(struct arena *arena, const char *json, struct published_values *values) {
  *values = (struct published_values){.json = json_loads(json, JSON_REJECT_DUPLICATES, NULL)};
  if (values->json != NULL) add_values(arena, values, "", values->json);
  return values->json != NULL && values->path_bytes <= MOST_PATH_BYTES;
}

void published_free(struct published_values *values) {
  for (int i = 0; i < values->count; i++)
    if (values->items[i].own) json_decref((json_t *)values->items[i].value);
  json_decref(values->json);
  *values = (struct published_values){0};
}

bool published_is_aside(const char *path) {
  static const char *const patterns[] = {
      "architectures*", "_class_name", "_diffusers_version", "model_type", "_name_or_path", "transformers_version",
      "torch_dtype", "dtype", "*_token_id", "*_token_id.*", "use_cache", "id2label*", "label2id*", "problem_type",
      "output_*", "return_dict*", "task_specific*", "*dropout*", "*_pdrop", "*_drop", "initializer_*", "init_std",
      "*_layerdrop", "*aux_loss_coef", "auto_map*", "_attn_impl*", "finetuning_task", "is_encoder_decoder",
      "gradient_checkpointing", "chunk_size_feed_forward", "_commit_hash", "tokenizer_class", "pretraining_tp",
      "torchscript", "use_bfloat16",
      /* how text was generated, before generation_config.json */
      "do_sample", "early_stopping", "*_penalty", "max_length", "min_length", "num_beam*", "num_return_sequences",
      "temperature", "top_k", "top_p", "typical_p", "*suppress_tokens*", "forced_decoder_ids*"};
  static const char stored[] = "quantization_config."; /* how weights are stored: their tensors say it themselves */
  if (strncmp(path, stored, sizeof stored - 1) == 0) return true;
  const char *part = strstr(path, "_config."); /* of a tower: text_config.model_type */
  if (part != NULL) path = part + strlen("_config.");
  for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
    if (fnmatch(patterns[i], path, 0) == 0) return true;
  return false;
}

bool published_is_nothing(const json_t *value) {
  return json_is_null(value) || json_is_false(value) || (json_is_number(value) && json_number_value(value) == 0) ||
         (json_is_string(value) && json_string_length(value) == 0);
}

const char *published_text(struct arena *arena, const json_t *value) {
  char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
  const char *copy = arena_string(arena, text != NULL ? text : "?");
  free(text);
  return copy;
}

static bool read_factor(const char *word, published_number *number_of, const void *context, double *number) {
  char *end;
  *number = strtod(word, &end);
  return (end != word && *end == '\0') || number_of(context, word, number);
}

json_t *published_word(struct arena *arena, const char *word, published_number *number_of, const void *context) {
  double product = 1, factor;
  char before = '*';
  if (strcmp(word, "null") == 0) return json_null();
  if (strcmp(word, "true") == 0 || strcmp(word, "false") == 0) return json_boolean(word[0] == 't');
  for (const char *at = word; before != '\0';) {
    size_t length = strcspn(at, "*/");
    if (!read_factor(arena_copy(arena, at, length), number_of, context, &factor)) return json_string(word);
    product = before == '*' ? product * factor : product / factor;
    before = at[length];
    at += length + 1;
  }
  return product == trunc(product) && fabs(product) < 1e15 ? json_integer((json_int_t)product) : json_real(product);
}
