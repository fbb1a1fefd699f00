#include "gen/import/convert.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gen/spec/assign.h"
#include "gen/spec/scalar.h"
#include "gen/spec/schema.h"

/* ---- Rows ---- */

static enum import_state end_as(struct conversion *c, enum import_state state, const char *says) {
  c->row->state = state;
  c->row->says = says;
  return state;
}

/* What names.yaml says of the key, as a sentence's end: "is not needed: ...". */
static const char *sentence(const struct conversion *c, const struct name *name) {
  return name_sentence(c->import->arena, c->import->schema, name);
}

/* A value as it is written. */
static struct spec_node *node_of(const struct conversion *c, const char *text) {
  struct spec_node *node = arena_alloc(c->import->arena, sizeof *node);
  *node = (struct spec_node){.kind = SPEC_STRING,
                             .where = c->row->where,
                             .text = arena_string(c->import->arena, text),
                             .length = strlen(text)};
  scalar_resolve(node);
  return node;
}

static struct spec_node *number_of(const struct conversion *c, double value) {
  return node_of(c, spec_number(c->import->arena, value, false));
}

static const char *written(struct arena *arena, const struct spec_node *node) {
  struct text out = text_in(arena);
  spec_write_value(&out, node);
  return text_string(&out);
}

/* Sets a key of the job, unless another key of the files has set it otherwise. */
static enum import_state take(struct conversion *c, const char *key, const struct spec_node *value) {
  struct import *import = c->import;
  const struct spec_node *known = spec_find(import->job, key);
  struct spec_node *copy = arena_alloc(import->arena, sizeof *copy);
  *copy = *value;
  copy->where = c->row->where;
  if (known != NULL && strcmp(written(import->arena, known), written(import->arena, copy)) != 0)
    return end_as(c, IMPORT_REFUSED,
                  arena_printf(import->arena, "%s is %s by %s:%d", key, spec_describe(import->arena, known),
                               known->where.file, known->where.line));
  struct diagnostics unread = diagnostics_in(import->arena);
  struct spec_node *job = document_assign(import->arena, import->schema, import->job, key, copy, &unread);
  if (job == NULL)
    return end_as(c, IMPORT_REFUSED, arena_printf(import->arena, "%s is a single value by another key", key));
  import->job = job;
  const char **keys = arena_alloc(import->arena, ((size_t)c->row->n_keys + 1) * sizeof *keys);
  if (c->row->n_keys > 0) memcpy(keys, c->row->keys, (size_t)c->row->n_keys * sizeof *keys);
  keys[c->row->n_keys++] = key;
  c->row->keys = keys;
  return end_as(c, IMPORT_TAKEN, c->name->says);
}

/* "devices.kind=cuda" */
static enum import_state take_setting(struct conversion *c, const char *setting) {
  const char *equals = strchr(setting, '=');
  return take(c, arena_copy(c->import->arena, setting, (size_t)(equals - setting)), node_of(c, equals + 1));
}

/* ---- Values ---- */

static bool is_word(const struct spec_node *node, const char *word) {
  if (node->text == NULL || node->kind == SPEC_MAP || node->kind == SPEC_LIST) return false;
  const char *a = node->text;
  while (*a != '\0' && tolower((unsigned char)*a) == *word) a++, word++;
  return *a == '\0' && *word == '\0';
}

/* Nothing, false, "no", "none", or a list or group without anything in it. */
static bool is_off(const struct spec_node *node) {
  static const char *const words[] = {"no", "none", "null", "false", ""};
  if (node->kind == SPEC_NULL || ((node->kind == SPEC_MAP || node->kind == SPEC_LIST) && node->count == 0)) return true;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (is_word(node, words[i])) return true;
  return false;
}

static bool is_number(const struct spec_node *node) {
  return node->kind == SPEC_INT || node->kind == SPEC_REAL;
}

/* Whether it is a number; else the row says so. */
static bool needs_number(struct conversion *c) {
  if (is_number(c->row->value)) return true;
  end_as(c, IMPORT_REFUSED,
         arena_printf(c->import->arena, "it must be a number, not %s", spec_describe(c->import->arena, c->row->value)));
  return false;
}

static bool is_choice(const json_t *schema, const char *word) {
  const json_t *choice;
  size_t i;
  json_array_foreach(json_object_get(schema, "enum"), i, choice) {
    if (json_is_string(choice) && strcmp(json_string_value(choice), word) == 0) return true;
  }
  return false;
}

/* What a value sets in addition to its key. */
static void take_also(struct conversion *c, const struct name *name) {
  const char *says = c->row->says;
  for (int i = 0; i < name->also_count && c->row->state == IMPORT_TAKEN; i++) take_setting(c, name->also[i]);
  if (c->row->state == IMPORT_TAKEN) c->row->says = says;
}

/* A word that is none of the key's own, in letters of the key's case or as another trainer's. */
static enum import_state take_word(struct conversion *c, const char *key, const json_t *schema, const char *word) {
  struct arena *arena = c->import->arena;
  const struct name *value = names_value(arena, &c->import->names, key, word);
  const char *normal = names_normal(arena, word);
  if (value == NULL) return take(c, key, is_choice(schema, normal) ? node_of(c, normal) : c->row->value);
  if (value->state == NAME_ABSENT)
    return end_as(c, IMPORT_REFUSED, arena_printf(arena, "'%s' %s", word, sentence(c, value)));
  const char *lead = value->at[0];
  if (strchr(lead, '.') != NULL)
    return end_as(c, IMPORT_REFUSED, arena_printf(arena, "'%s' %s", word, sentence(c, value)));
  take(c, key, node_of(c, lead));
  if (c->row->state == IMPORT_TAKEN) c->row->says = value->says;
  take_also(c, value);
  return c->row->state;
}

static enum import_state take_value(struct conversion *c, const char *key, const json_t *schema) {
  const struct spec_node *value = c->row->value;
  const bool scalar = value->kind != SPEC_MAP && value->kind != SPEC_LIST && value->text != NULL;
  const bool chosen = scalar && schema_keyword(c->import->schema, schema, "enum") != NULL;
  if (chosen && !is_choice(schema, value->text))
    take_word(c, key, schema, value->text);
  else
    take(c, key, value);
  if (chosen && c->row->state == IMPORT_TAKEN && c->row->says == c->name->says) c->row->says = NULL;
  take_also(c, c->name);
  return c->row->state;
}

/* ---- Conversions ---- */

/* What follows the conversion's word: "0" of "only 0". */
static const char *argument_of(const struct conversion *c) {
  const char *blank = strchr(c->name->as, ' ');
  return blank != NULL ? blank + 1 : "";
}

static const struct spec_node *sibling(const struct conversion *c, const char *key) {
  const struct spec_entry *entry = spec_entry((struct spec_node *)c->group, key);
  return entry != NULL && entry->value->kind != SPEC_NULL ? entry->value : NULL;
}

static enum import_state as_betas(struct conversion *c) {
  static const char *const first[] = {"adam_beta1", "beta1"}, *const second[] = {"adam_beta2", "beta2"};
  const struct spec_node *betas[2] = {NULL, NULL};
  if (!needs_number(c)) return c->row->state;
  for (int i = 0; i < 2; i++) {
    if (betas[0] == NULL) betas[0] = sibling(c, first[i]);
    if (betas[1] == NULL) betas[1] = sibling(c, second[i]);
  }
  struct spec_entry *pair = arena_alloc(c->import->arena, 2 * sizeof *pair);
  pair[0] = (struct spec_entry){.value = betas[0] != NULL ? (struct spec_node *)betas[0] : node_of(c, "0.9")};
  pair[1] = (struct spec_entry){.value = betas[1] != NULL ? (struct spec_node *)betas[1] : node_of(c, "0.999")};
  const struct spec_node list = {.kind = SPEC_LIST, .text = "", .entries = pair, .count = 2};
  return take(c, "optimizer.betas", &list);
}

static enum import_state as_deepspeed_adam(struct conversion *c) {
  const struct spec_node *params = sibling(c, "params");
  const struct spec_node *mode = params != NULL ? spec_find(params, "adam_w_mode") : NULL;
  const bool decoupled = mode == NULL || !is_off(mode);
  if (!is_word(c->row->value, "adam") || !decoupled)
    return take_value(c, "optimizer.name", schema_find(c->import->schema, "optimizer.name"));
  take(c, "optimizer.name", node_of(c, "adamw"));
  if (c->row->state == IMPORT_TAKEN)
    c->row->says = "DeepSpeed's Adam decays weights as AdamW unless adam_w_mode is false";
  return c->row->state;
}

static enum import_state as_elements(struct conversion *c) {
  if (!needs_number(c)) return c->row->state;
  const double mib = c->row->value->real * 4 / (1024 * 1024);
  return take(c, c->name->at[0], number_of(c, fmax(1, round(mib))));
}

static enum import_state as_file(struct conversion *c) {
  const char *path = c->row->value->text;
  if (path == NULL || path[0] == '\0') return end_as(c, IMPORT_NEEDLESS, "no file is named");
  if (path[0] != '/') path = arena_printf(c->import->arena, "%s%s", c->folder, path);
  struct diagnostics found = diagnostics_in(c->import->arena);
  if (!import_add(c->import, path, NULL, &found)) return end_as(c, IMPORT_REFUSED, found.items[0].message);
  return end_as(c, IMPORT_NEEDLESS, "its keys are in a list of their own");
}

/* "true" is none of the job's values, and "false" is all. */
static enum import_state as_inverse(struct conversion *c) {
  return take(c, c->name->at[0], node_of(c, is_off(c->row->value) ? "all" : "none"));
}

static bool is_regular(const struct spec_node *value) {
  bool regular = value->kind == SPEC_STRING && strpbrk(value->text, "[(\\|^$") != NULL;
  for (int i = 0; value->kind == SPEC_LIST && i < value->count; i++)
    regular = regular || is_regular(value->entries[i].value);
  return regular;
}

/* "q_proj,v_proj" */
static enum import_state as_list(struct conversion *c) {
  const struct spec_node *value = c->row->value;
  if (is_regular(value))
    return end_as(c, IMPORT_REFUSED, "a regular expression is no name: modules are named, or by patterns with * and ?");
  if (value->kind == SPEC_LIST) return take(c, c->name->at[0], value);
  if (value->kind != SPEC_STRING || is_word(value, "all") || is_word(value, "all-linear"))
    return end_as(c, IMPORT_REFUSED, c->name->says);
  struct {
    struct spec_entry *items;
    int count, capacity;
  } list = {0};
  for (const char *at = value->text; *at != '\0'; at += strspn(at, ", ")) {
    const size_t length = strcspn(at, ", ");
    struct spec_node *word = node_of(c, arena_copy(c->import->arena, at, length));
    ARENA_PUSH(c->import->arena, list, (struct spec_entry){.value = word});
    at += length;
  }
  const struct spec_node node = {.kind = SPEC_LIST, .text = "", .entries = list.items, .count = list.count};
  return take(c, c->name->at[0], &node);
}

/* LLaMA-Factory's, whose alpha is twice the rank where it is not given. */
static enum import_state as_lora_rank(struct conversion *c) {
  if (!needs_number(c)) return c->row->state;
  if (take(c, c->name->at[0], c->row->value) != IMPORT_TAKEN || sibling(c, "lora_alpha") != NULL) return c->row->state;
  return take(c, "model.lora.alpha", number_of(c, 2 * c->row->value->real));
}

/* A path of this machine; a name of a hub is none. */
static enum import_state as_weights(struct conversion *c) {
  const struct spec_node *value = c->row->value;
  const bool is_path = value->kind == SPEC_STRING && (value->text[0] == '/' || value->text[0] == '.');
  return is_path ? take(c, c->name->at[0], value) : end_as(c, IMPORT_REFUSED, c->name->says);
}

static enum import_state as_kind(struct conversion *c) {
  struct arena *arena = c->import->arena;
  const struct name *kind = names_member(arena, &c->import->names, "DistributedType", c->row->value->text);
  if (kind == NULL) return end_as(c, IMPORT_REFUSED, "no such kind of processes is known");
  if (kind->state == NAME_ABSENT) return end_as(c, IMPORT_REFUSED, sentence(c, kind));
  const struct spec_node *cpu = sibling(c, "use_cpu");
  const bool on_cpu = cpu != NULL && !is_off(cpu);
  end_as(c, IMPORT_NEEDLESS, "it follows from the other keys");
  for (int i = 0; i < kind->at_count; i++)
    if (strchr(kind->at[i], '=') != NULL && strncmp(kind->at[i], "devices.kind", 12) == 0)
      return take_setting(c, kind->at[i]);
  if (is_word(c->row->value, "no") || on_cpu) return c->row->state;
  return take(c, "devices.kind", node_of(c, "cuda"));
}

static enum import_state as_loss_scale(struct conversion *c) {
  if (!needs_number(c)) return c->row->state;
  if (c->row->value->real == 0) return end_as(c, IMPORT_NEEDLESS, "the scale is dynamic, as 0 says");
  take(c, "precision.grad_scaler.init_scale", c->row->value);
  return c->row->state == IMPORT_TAKEN ? take(c, "precision.grad_scaler.dynamic", node_of(c, "false")) : c->row->state;
}

static bool scale_is_fixed(const struct conversion *c) {
  const struct spec_node *fixed = sibling(c, "loss_scale");
  return fixed != NULL && is_number(fixed) && fixed->real != 0;
}

static enum import_state as_dynamic_scale(struct conversion *c) {
  if (scale_is_fixed(c)) return end_as(c, IMPORT_NEEDLESS, "loss_scale fixes the scale");
  return take_value(c, c->name->at[0], schema_find(c->import->schema, c->name->at[0]));
}

/* "only 0" */
static enum import_state as_only(struct conversion *c) {
  const char *allowed = argument_of(c);
  const struct spec_node *value = c->row->value;
  const bool zero = strcmp(allowed, "0") == 0 && is_off(value);
  if (zero || is_word(value, allowed) ||
      (is_number(value) && value->real == strtod(allowed, NULL) && isdigit((unsigned char)*allowed)))
    return end_as(c, IMPORT_NEEDLESS, arena_printf(c->import->arena, "%s is the only value", allowed));
  return end_as(c, IMPORT_REFUSED, c->name->says);
}

static enum import_state as_optional(struct conversion *c) {
  const char *says = c->name->says != NULL ? c->name->says : "it can be given";
  return end_as(c, IMPORT_NEEDLESS, arena_printf(c->import->arena, "%s; %s", c->name->at[0], says));
}

static enum import_state as_per_epoch(struct conversion *c) {
  const double times = c->row->value->real;
  if (!needs_number(c)) return c->row->state;
  if (times == 0) return end_as(c, IMPORT_NEEDLESS, "it is off");
  if (times < 1 || times != floor(times)) return end_as(c, IMPORT_REFUSED, "it must be a whole number of times");
  const char *part = times > 1 ? arena_printf(c->import->arena, "1/%.0f epoch", times) : "epoch";
  return take(c, c->name->at[0], node_of(c, part));
}

static enum import_state as_power(struct conversion *c) {
  if (scale_is_fixed(c)) return end_as(c, IMPORT_NEEDLESS, "loss_scale fixes the scale");
  if (!needs_number(c)) return c->row->state;
  return take(c, c->name->at[0], number_of(c, exp2(c->row->value->real)));
}

static enum import_state as_ranks(struct conversion *c) {
  if (!needs_number(c)) return c->row->state;
  const struct spec_node *machines = sibling(c, "num_machines");
  const int64_t nodes = machines != NULL && machines->kind == SPEC_INT && machines->integer > 0 ? machines->integer : 1;
  const int64_t ranks = c->row->value->integer;
  if (ranks % nodes != 0 || ranks < 1)
    return end_as(c, IMPORT_REFUSED,
                  arena_printf(c->import->arena, "%lld machines do not have as many of %lld processes each",
                               (long long)nodes, (long long)ranks));
  take(c, "devices.per_node", number_of(c, (double)(ranks / nodes)));
  if (nodes > 1 && c->row->state == IMPORT_TAKEN) take(c, "devices.nodes", number_of(c, (double)nodes));
  return c->row->state;
}

static enum import_state as_strategy(struct conversion *c) {
  const struct spec_node *value = c->row->value;
  if (is_off(value)) return end_as(c, IMPORT_NEEDLESS, "it is off");
  if (is_word(value, "steps"))
    return end_as(c, IMPORT_NEEDLESS, arena_printf(c->import->arena, "%s says after how many", c->name->at[0]));
  if (is_word(value, "epoch")) return take(c, c->name->at[0], node_of(c, "epoch"));
  return end_as(c, IMPORT_REFUSED, arena_printf(c->import->arena, "%s says after how many steps", c->name->at[0]));
}

/* The samples of a step of all ranks. Without the samples of a micro-batch these follow, for the ranks that are known
 * so far. */
static enum import_state as_train_batch(struct conversion *c) {
  const struct spec_node *batch = sibling(c, "train_micro_batch_size_per_gpu");
  const struct spec_node *steps = sibling(c, "gradient_accumulation_steps");
  const struct spec_node *ranks = spec_find(c->import->job, "devices.per_node");
  if (!needs_number(c)) return c->row->state;
  take(c, c->name->at[0], c->row->value);
  if (c->row->state != IMPORT_TAKEN) return c->row->state;
  if (batch != NULL && is_number(batch))
    return steps != NULL ? c->row->state : take(c, "accumulation.num_steps", node_of(c, "auto"));
  const int64_t parts =
      (steps != NULL && steps->integer > 0 ? steps->integer : 1) * (ranks != NULL ? ranks->integer : 1);
  if (c->row->value->integer % parts != 0) return c->row->state;
  take(c, "data.batch_size", number_of(c, (double)(c->row->value->integer / parts)));
  if (c->row->state == IMPORT_TAKEN) c->row->says = "data.batch_size is of the ranks that the job has";
  return c->row->state;
}

static enum import_state as_unless_off(struct conversion *c) {
  const struct spec_node *value = c->row->value;
  if (is_off(value) || (is_number(value) && value->real <= 0)) return end_as(c, IMPORT_NEEDLESS, "it is off");
  if (c->name->state == NAME_ABSENT) return end_as(c, IMPORT_REFUSED, sentence(c, c->name));
  return take_value(c, c->name->at[0], schema_find(c->import->schema, c->name->at[0]));
}

static enum import_state as_unless_one(struct conversion *c) {
  if (is_number(c->row->value) && c->row->value->real == 1) return end_as(c, IMPORT_NEEDLESS, "1 is the default");
  return take(c, c->name->at[0], c->row->value);
}

/* "every save_strategy": a number of steps, where the key next to it says steps. */
static enum import_state as_every(struct conversion *c) {
  const char *key = argument_of(c);
  const struct spec_node *strategy = sibling(c, key);
  if (strategy == NULL || is_word(strategy, "steps")) return as_unless_off(c);
  return end_as(c, IMPORT_NEEDLESS, arena_printf(c->import->arena, "%s is %s", key, strategy->text));
}

static enum import_state as_epochs(struct conversion *c) {
  const struct spec_node *steps = sibling(c, "max_steps");
  if (!needs_number(c)) return c->row->state;
  if (steps != NULL && is_number(steps) && steps->real > 0)
    return end_as(c, IMPORT_NEEDLESS, "max_steps says the length");
  if (c->row->value->real != floor(c->row->value->real))
    return end_as(c, IMPORT_REFUSED, "a run is whole epochs, or training.steps");
  return take(c, c->name->at[0], number_of(c, c->row->value->real));
}

static enum import_state as_resume(struct conversion *c) {
  if (is_off(c->row->value)) return end_as(c, IMPORT_NEEDLESS, "it is off");
  return take(c, c->name->at[0], is_word(c->row->value, "true") ? node_of(c, "auto") : c->row->value);
}

/* nanoGPT's init_from. */
static enum import_state as_init(struct conversion *c) {
  if (is_word(c->row->value, "scratch")) return end_as(c, IMPORT_NEEDLESS, "weights are drawn from the seed");
  if (is_word(c->row->value, "resume")) return take(c, "checkpoint.resume", node_of(c, "auto"));
  return end_as(c, IMPORT_REFUSED, "nothing is downloaded: give model.weights a safetensors file of the model");
}

/* nanoGPT's dataset: a folder of data/ with a train.bin and a val.bin. */
static enum import_state as_dataset(struct conversion *c) {
  static const char *const parts[] = {"train", "eval"}, *const files[] = {"train", "val"};
  if (c->row->value->kind != SPEC_STRING) return end_as(c, IMPORT_REFUSED, "it must be the name of a folder");
  for (int i = 0; i < 2; i++) {
    struct arena *arena = c->import->arena;
    take(c, arena_printf(arena, "data.%s.path", parts[i]),
         node_of(c, arena_printf(arena, "data/%s/%s.bin", c->row->value->text, files[i])));
    take(c, arena_printf(arena, "data.%s.format", parts[i]), node_of(c, "nanogpt"));
  }
  return c->row->state;
}

static const struct {
  const char *as;
  enum import_state (*convert)(struct conversion *c);
} conversions[] = {
    {"betas", as_betas},
    {"dataset", as_dataset},
    {"deepspeed_adam", as_deepspeed_adam},
    {"elements", as_elements},
    {"epochs", as_epochs},
    {"every", as_every},
    {"file", as_file},
    {"init", as_init},
    {"inverse", as_inverse},
    {"kind", as_kind},
    {"list", as_list},
    {"lora_rank", as_lora_rank},
    {"dynamic_scale", as_dynamic_scale},
    {"loss_scale", as_loss_scale},
    {"only", as_only},
    {"optional", as_optional},
    {"per_epoch", as_per_epoch},
    {"power", as_power},
    {"ranks", as_ranks},
    {"resume", as_resume},
    {"strategy", as_strategy},
    {"train_batch", as_train_batch},
    {"unless_off", as_unless_off},
    {"unless_one", as_unless_one},
    {"weights", as_weights},
};

/* Every word of the table is one: tests/import/test_import.py. */
static int find_conversion(const char *as) {
  const size_t length = strcspn(as, " ");
  int i = (int)(sizeof conversions / sizeof *conversions) - 1;
  while (i >= 0 && (strlen(conversions[i].as) != length || strncmp(conversions[i].as, as, length) != 0)) i--;
  return i;
}

/* ---- Keys ---- */

/* A key that is not here. */
static enum import_state end_unsupported(struct conversion *c) {
  const struct spec_node *value = c->row->value;
  if (is_off(value) || (is_number(value) && value->real == 0)) return end_as(c, IMPORT_NEEDLESS, "it is off");
  return end_as(c, IMPORT_REFUSED, sentence(c, c->name));
}

static bool is_setting(const char *lead) {
  return strchr(lead, '=') != NULL;
}

/* A key that is here, or refused so far, whose value is as it is. */
static enum import_state convert_plainly(struct conversion *c) {
  const struct name *name = c->name;
  const bool off = is_off(c->row->value);
  const json_t *schema = name->at_count == 1 ? schema_find(c->import->schema, name->at[0]) : NULL;
  if (name->at_count > 0 && is_setting(name->at[0])) {
    if (off) return end_as(c, IMPORT_NEEDLESS, "it is off");
    for (int i = 0; i < name->at_count && (i == 0 || c->row->state == IMPORT_TAKEN); i++) take_setting(c, name->at[i]);
    return c->row->state;
  }
  if (schema != NULL && !schema_is_group(c->import->schema, schema)) return take_value(c, name->at[0], schema);
  if (name->at_count == 1 && strncmp(name->at[0], "model.config.", 13) == 0) return take(c, name->at[0], c->row->value);
  if (off) return end_as(c, IMPORT_NEEDLESS, "it is off");
  const bool is_key = name->at_count > 0 && schema_find(c->import->schema, name->at[0]) != NULL;
  return end_as(c, is_key ? IMPORT_REFUSED : IMPORT_NEEDLESS, sentence(c, name));
}

/* What is said of this value of the key, as of a member "key.VALUE" of its class; NULL: nothing. */
static const struct name *name_of_value(const struct conversion *c) {
  const struct spec_node *value = c->row->value;
  if (value->kind != SPEC_STRING || value->text[0] == '\0') return NULL;
  return names_member(c->import->arena, &c->import->names, c->name->of,
                      arena_printf(c->import->arena, "%s.%s", c->name->word, value->text));
}

/* Whether the group says itself that it is off. */
static bool is_in_group_that_is_off(const struct conversion *c) {
  const bool is_group = c->row->value->kind == SPEC_MAP;
  const struct spec_node *enabled = is_group ? spec_find(c->row->value, "enabled") : sibling(c, "enabled");
  return enabled != NULL && enabled != c->row->value && is_off(enabled);
}

enum import_state convert(struct conversion *c) {
  const struct spec_node *value = c->row->value;
  const struct name *special = name_of_value(c);
  if (special != NULL) c->name = special;
  const struct name *name = c->name;
  if (is_in_group_that_is_off(c)) return end_as(c, IMPORT_NEEDLESS, "its group is not enabled");
  if (special != NULL && name->state == NAME_WORKS && (name->at_count == 0 || !is_setting(name->at[0])))
    return end_as(c, IMPORT_NEEDLESS, name->says);
  if (name->state == NAME_NEEDLESS) return end_as(c, IMPORT_NEEDLESS, name->says);
  if (value->kind == SPEC_STRING && is_word(value, "auto"))
    return end_as(c, IMPORT_OPEN,
                  name->at_count > 0 ? arena_printf(c->import->arena, "the script says it; here %s", name->at[0])
                                     : name->says);
  if (value->kind == SPEC_NULL) return end_as(c, IMPORT_NEEDLESS, "nothing is given");
  if (name->as != NULL) return conversions[find_conversion(name->as)].convert(c);
  if (name->state == NAME_ABSENT) return end_unsupported(c);
  return convert_plainly(c);
}
