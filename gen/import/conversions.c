#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gen/import/conversion.h"
#include "gen/spec/job.h"
#include "gen/spec/schema.h"

/* What follows the conversion's word: "0" of "only 0". */
static const char *argument_of(const struct conversion *c) {
  const char *blank = strchr(c->name->as, ' ');
  return blank != NULL ? blank + 1 : "";
}

static enum import_state as_betas(struct conversion *c) {
  static const char *const first[] = {"adam_beta1", "beta1"}, *const second[] = {"adam_beta2", "beta2"};
  const struct spec_node *betas[2] = {NULL, NULL};
  if (!needs_number(c)) return c->row->state;
  for (int i = 0; i < 2; i++) {
    if (betas[0] == NULL) betas[0] = sibling_of(c, first[i]);
    if (betas[1] == NULL) betas[1] = sibling_of(c, second[i]);
  }
  struct spec_entry *pair = arena_alloc(c->import->arena, 2 * sizeof *pair);
  pair[0] = (struct spec_entry){.value = betas[0] != NULL ? (struct spec_node *)betas[0] : node_of(c, "0.9")};
  pair[1] = (struct spec_entry){.value = betas[1] != NULL ? (struct spec_node *)betas[1] : node_of(c, "0.999")};
  const struct spec_node list = {.kind = SPEC_LIST, .text = "", .entries = pair, .count = 2};
  return take_key(c, "optimizer.betas", &list);
}

static enum import_state as_deepspeed_adam(struct conversion *c) {
  const struct spec_node *params = sibling_of(c, "params");
  const struct spec_node *mode = params != NULL ? spec_find(params, "adam_w_mode") : NULL;
  const bool decoupled = mode == NULL || !node_is_off(mode);
  if (!node_is_word(c->row->value, "adam") || !decoupled)
    return take_value(c, "optimizer.name", schema_find(c->import->schema, "optimizer.name"));
  take_key(c, "optimizer.name", node_of(c, "adamw"));
  if (c->row->state == IMPORT_TAKEN)
    c->row->says = "DeepSpeed's Adam decays weights as AdamW unless adam_w_mode is false";
  return c->row->state;
}

static enum import_state as_elements(struct conversion *c) {
  if (!needs_number(c)) return c->row->state;
  const double mib = c->row->value->real * 4 / (1024 * 1024);
  return take_key(c, c->name->at[0], number_of(c, fmax(1, round(mib))));
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
  return take_key(c, c->name->at[0], node_of(c, node_is_off(c->row->value) ? "all" : "none"));
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
    return end_as(c, IMPORT_REFUSED,
                  "a regular expression is not a name: modules are named, or by patterns with * and ?");
  if (value->kind == SPEC_LIST) return take_key(c, c->name->at[0], value);
  if (value->kind != SPEC_STRING || node_is_word(value, "all") || node_is_word(value, "all-linear"))
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
  return take_key(c, c->name->at[0], &node);
}

/* LLaMA-Factory's, whose alpha is twice the rank where it is not given. */
static enum import_state as_lora_rank(struct conversion *c) {
  if (!needs_number(c)) return c->row->state;
  if (take_key(c, c->name->at[0], c->row->value) != IMPORT_TAKEN || sibling_of(c, "lora_alpha") != NULL)
    return c->row->state;
  return take_key(c, "model.lora.alpha", number_of(c, 2 * c->row->value->real));
}

/* A path of this machine; a name of a hub is none. */
static enum import_state as_weights(struct conversion *c) {
  const struct spec_node *value = c->row->value;
  const bool is_path = value->kind == SPEC_STRING && (value->text[0] == '/' || value->text[0] == '.');
  return is_path ? take_key(c, c->name->at[0], value) : end_as(c, IMPORT_REFUSED, c->name->says);
}

static enum import_state as_kind(struct conversion *c) {
  struct arena *arena = c->import->arena;
  const struct name *kind = names_member(arena, &c->import->names, "DistributedType", c->row->value->text);
  if (kind == NULL) return end_as(c, IMPORT_REFUSED, "no such kind of processes is known");
  if (kind->state == NAME_ABSENT) return end_as(c, IMPORT_REFUSED, row_sentence(c, kind));
  const struct spec_node *cpu = sibling_of(c, "use_cpu");
  const bool on_cpu = cpu != NULL && !node_is_off(cpu);
  end_as(c, IMPORT_NEEDLESS, "it follows from the other keys");
  for (int i = 0; i < kind->at_count; i++)
    if (strchr(kind->at[i], '=') != NULL && strncmp(kind->at[i], "devices.kind", 12) == 0)
      return take_setting(c, kind->at[i]);
  if (node_is_word(c->row->value, "no") || on_cpu) return c->row->state;
  return take_key(c, "devices.kind", node_of(c, "cuda"));
}

static enum import_state as_loss_scale(struct conversion *c) {
  if (!needs_number(c)) return c->row->state;
  if (c->row->value->real == 0) return end_as(c, IMPORT_NEEDLESS, "0 means a dynamic scale");
  take_key(c, "precision.grad_scaler.init_scale", c->row->value);
  return c->row->state == IMPORT_TAKEN ? take_key(c, "precision.grad_scaler.dynamic", node_of(c, "false"))
                                       : c->row->state;
}

static bool scale_is_fixed(const struct conversion *c) {
  const struct spec_node *fixed = sibling_of(c, "loss_scale");
  return fixed != NULL && node_is_number(fixed) && fixed->real != 0;
}

static enum import_state as_dynamic_scale(struct conversion *c) {
  if (scale_is_fixed(c)) return end_as(c, IMPORT_NEEDLESS, "loss_scale fixes the scale");
  return take_value(c, c->name->at[0], schema_find(c->import->schema, c->name->at[0]));
}

/* "only 0" */
static enum import_state as_only(struct conversion *c) {
  const char *allowed = argument_of(c);
  const struct spec_node *value = c->row->value;
  const bool zero = strcmp(allowed, "0") == 0 && node_is_off(value);
  if (zero || node_is_word(value, allowed) ||
      (node_is_number(value) && value->real == strtod(allowed, NULL) && isdigit((unsigned char)*allowed)))
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
  return take_key(c, c->name->at[0], node_of(c, part));
}

static enum import_state as_power(struct conversion *c) {
  if (scale_is_fixed(c)) return end_as(c, IMPORT_NEEDLESS, "loss_scale fixes the scale");
  if (!needs_number(c)) return c->row->state;
  return take_key(c, c->name->at[0], number_of(c, exp2(c->row->value->real)));
}

static enum import_state as_ranks(struct conversion *c) {
  if (!needs_number(c)) return c->row->state;
  const struct spec_node *machines = sibling_of(c, "num_machines");
  const int64_t nodes = machines != NULL && machines->kind == SPEC_INT && machines->integer > 0 ? machines->integer : 1;
  const int64_t ranks = c->row->value->integer;
  if (ranks % nodes != 0 || ranks < 1)
    return end_as(c, IMPORT_REFUSED,
                  arena_printf(c->import->arena, "%lld machines do not have as many of %lld processes each",
                               (long long)nodes, (long long)ranks));
  take_key(c, "devices.per_node", number_of(c, (double)(ranks / nodes)));
  if (nodes > 1 && c->row->state == IMPORT_TAKEN) take_key(c, "devices.nodes", number_of(c, (double)nodes));
  return c->row->state;
}

static enum import_state as_strategy(struct conversion *c) {
  const struct spec_node *value = c->row->value;
  if (node_is_off(value)) return end_as(c, IMPORT_NEEDLESS, "it is off");
  if (node_is_word(value, "steps"))
    return end_as(c, IMPORT_NEEDLESS, arena_printf(c->import->arena, "%s gives the number of steps", c->name->at[0]));
  if (node_is_word(value, "epoch")) return take_key(c, c->name->at[0], node_of(c, "epoch"));
  return end_as(c, IMPORT_REFUSED, arena_printf(c->import->arena, "%s gives the number of steps", c->name->at[0]));
}

/* As tracking.log_with writes it; NULL: it has no such tool. */
static struct spec_node *tracker_of(const struct conversion *c, const struct spec_node *value) {
  static const char *const others[] = {"jsonl", "swanlab", "aim", "all"};
  for (int i = 0; job_sink_names[i] != NULL; i++)
    if (node_is_word(value, job_sink_names[i])) return node_of(c, job_sink_names[i]);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (node_is_word(value, others[i])) return node_of(c, others[i]);
  return NULL;
}

/* A list of tools, or one; "trackers wandb": whether this one is used. */
static enum import_state as_trackers(struct conversion *c) {
  const char *tool_of_switch = argument_of(c);
  const bool is_switch = *tool_of_switch != '\0' && !node_is_off(c->row->value);
  const struct spec_node *value = is_switch ? node_of(c, tool_of_switch) : c->row->value;
  struct spec_entry single = {.value = (struct spec_node *)value};
  const bool is_list = value->kind == SPEC_LIST;
  const struct spec_entry *entries = is_list ? value->entries : &single;
  struct spec_node list = {.kind = SPEC_LIST, .text = ""};
  if (node_is_off(value)) return end_as(c, IMPORT_NEEDLESS, "no tool is named");
  list.entries = arena_alloc(c->import->arena, (size_t)(is_list ? value->count : 1) * sizeof *list.entries);
  for (int i = 0; i < (is_list ? value->count : 1); i++) {
    struct spec_node *tool = tracker_of(c, entries[i].value);
    if (tool == NULL) return end_as(c, IMPORT_REFUSED, "tracking.log_with has no such tool");
    list.entries[list.count++] = (struct spec_entry){.value = tool};
  }
  return take_key(c, c->name->at[0], &list);
}

/* The samples of a step of all ranks. Without the samples of a micro-batch these follow, for the ranks that are known
 * so far. */
static enum import_state as_train_batch(struct conversion *c) {
  const struct spec_node *batch = sibling_of(c, "train_micro_batch_size_per_gpu");
  const struct spec_node *steps = sibling_of(c, "gradient_accumulation_steps");
  const struct spec_node *ranks = spec_find(c->import->job, "devices.per_node");
  if (!needs_number(c)) return c->row->state;
  take_key(c, c->name->at[0], c->row->value);
  if (c->row->state != IMPORT_TAKEN) return c->row->state;
  if (batch != NULL && node_is_number(batch))
    return steps != NULL ? c->row->state : take_key(c, "accumulation.num_steps", node_of(c, "auto"));
  const int64_t parts =
      (steps != NULL && steps->integer > 0 ? steps->integer : 1) * (ranks != NULL ? ranks->integer : 1);
  if (c->row->value->integer % parts != 0) return c->row->state;
  take_key(c, "data.batch_size", number_of(c, (double)(c->row->value->integer / parts)));
  if (c->row->state == IMPORT_TAKEN) c->row->says = "data.batch_size is of the ranks that the job has";
  return c->row->state;
}

static enum import_state as_unless_off(struct conversion *c) {
  const struct spec_node *value = c->row->value;
  if (node_is_off(value) || (node_is_number(value) && value->real <= 0)) return end_as(c, IMPORT_NEEDLESS, "it is off");
  if (c->name->state == NAME_ABSENT) return end_as(c, IMPORT_REFUSED, row_sentence(c, c->name));
  return take_value(c, c->name->at[0], schema_find(c->import->schema, c->name->at[0]));
}

/* Where states are: in the host's memory for a GPU, on a disk for a processor. */
static enum import_state as_offload(struct conversion *c) {
  const char *kind = node_is_word(c->row->value, "nvme") ? "devices.kind=cpu" : "devices.kind=cuda";
  if (as_unless_off(c) != IMPORT_TAKEN) return c->row->state;
  const char *says = c->row->says;
  if (take_setting(c, kind) == IMPORT_TAKEN) c->row->says = says;
  return c->row->state;
}

/* "of_disk device": a folder, where the key next to it is nvme. */
static enum import_state as_of_disk(struct conversion *c) {
  const char *key = argument_of(c);
  const struct spec_node *device = sibling_of(c, key);
  if (device == NULL || !node_is_word(device, "nvme"))
    return end_as(c, IMPORT_NEEDLESS, arena_printf(c->import->arena, "%s is not nvme", key));
  return as_unless_off(c);
}

/* "tracked report_to": for the tools that the key next to it names. */
static enum import_state as_tracked(struct conversion *c) {
  const char *key = argument_of(c);
  const struct spec_node *tools = sibling_of(c, key);
  if (tools == NULL || node_is_off(tools))
    return end_as(c, IMPORT_NEEDLESS, arena_printf(c->import->arena, "%s names no tool", key));
  return as_unless_off(c);
}

static enum import_state as_unless_one(struct conversion *c) {
  if (node_is_number(c->row->value) && c->row->value->real == 1) return end_as(c, IMPORT_NEEDLESS, "1 is the default");
  return take_key(c, c->name->at[0], c->row->value);
}

/* "every save_strategy": a number of steps, where the key next to it says steps. */
static enum import_state as_every(struct conversion *c) {
  const char *key = argument_of(c);
  const struct spec_node *strategy = sibling_of(c, key);
  if (strategy == NULL || node_is_word(strategy, "steps")) return as_unless_off(c);
  return end_as(c, IMPORT_NEEDLESS, arena_printf(c->import->arena, "%s is %s", key, strategy->text));
}

/* "delay eval_strategy": steps or, where the key next to it says epoch, epochs. */
static enum import_state as_delay(struct conversion *c) {
  const struct spec_node *value = c->row->value, *strategy = sibling_of(c, argument_of(c));
  if (node_is_off(value) || (node_is_number(value) && value->real <= 0)) return end_as(c, IMPORT_NEEDLESS, "it is off");
  if (strategy == NULL || node_is_word(strategy, "no")) return end_as(c, IMPORT_NEEDLESS, "nothing is evaluated");
  if (!needs_number(c)) return c->row->state;
  if (value->real != floor(value->real)) return end_as(c, IMPORT_REFUSED, "a delay is whole steps or epochs");
  const char *unit = node_is_word(strategy, "epoch") ? " epochs" : "";
  return take_key(c, c->name->at[0], node_of(c, arena_printf(c->import->arena, "%.0f%s", value->real, unit)));
}

/* "better": whether a larger metric is, for a run that keeps its best weights. */
static enum import_state as_better(struct conversion *c) {
  const struct spec_node *keeps = sibling_of(c, "load_best_model_at_end");
  if (keeps == NULL || node_is_off(keeps)) return end_as(c, IMPORT_NEEDLESS, "load_best_model_at_end is off");
  return take_key(c, c->name->at[0], node_of(c, node_is_word(c->row->value, "true") ? "max" : "min"));
}

static enum import_state as_epochs(struct conversion *c) {
  const struct spec_node *steps = sibling_of(c, "max_steps");
  if (!needs_number(c)) return c->row->state;
  if (steps != NULL && node_is_number(steps) && steps->real > 0)
    return end_as(c, IMPORT_NEEDLESS, "max_steps gives the length");
  if (c->row->value->real != floor(c->row->value->real))
    return end_as(c, IMPORT_REFUSED, "a run is whole epochs, or training.steps");
  return take_key(c, c->name->at[0], number_of(c, c->row->value->real));
}

static enum import_state as_resume(struct conversion *c) {
  if (node_is_off(c->row->value)) return end_as(c, IMPORT_NEEDLESS, "it is off");
  return take_key(c, c->name->at[0], node_is_word(c->row->value, "true") ? node_of(c, "auto") : c->row->value);
}

/* nanoGPT's init_from. */
static enum import_state as_init(struct conversion *c) {
  if (node_is_word(c->row->value, "scratch")) return end_as(c, IMPORT_NEEDLESS, "weights are drawn from the seed");
  if (node_is_word(c->row->value, "resume")) return take_key(c, "checkpoint.resume", node_of(c, "auto"));
  return end_as(c, IMPORT_REFUSED, "nothing is downloaded: give model.weights a safetensors file of the model");
}

/* nanoGPT's dataset: a folder of data/ with a train.bin and a val.bin. */
static enum import_state as_dataset(struct conversion *c) {
  static const char *const parts[] = {"train", "eval"}, *const files[] = {"train", "val"};
  if (c->row->value->kind != SPEC_STRING) return end_as(c, IMPORT_REFUSED, "it must be the name of a folder");
  for (int i = 0; i < 2; i++) {
    struct arena *arena = c->import->arena;
    take_key(c, arena_printf(arena, "data.%s.path", parts[i]),
             node_of(c, arena_printf(arena, "data/%s/%s.bin", c->row->value->text, files[i])));
    take_key(c, arena_printf(arena, "data.%s.format", parts[i]), node_of(c, "nanogpt"));
  }
  return c->row->state;
}

static const struct {
  const char *as;
  conversion_function *convert;
} conversions[] = {
    {"betas", as_betas},
    {"dataset", as_dataset},
    {"deepspeed_adam", as_deepspeed_adam},
    {"better", as_better},
    {"delay", as_delay},
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
    {"of_disk", as_of_disk},
    {"offload", as_offload},
    {"only", as_only},
    {"optional", as_optional},
    {"per_epoch", as_per_epoch},
    {"power", as_power},
    {"ranks", as_ranks},
    {"resume", as_resume},
    {"strategy", as_strategy},
    {"tracked", as_tracked},
    {"trackers", as_trackers},
    {"train_batch", as_train_batch},
    {"unless_off", as_unless_off},
    {"unless_one", as_unless_one},
    {"weights", as_weights},
};

/* Every word of the table is one: tests/import/test_import.py. */
conversion_function *conversion_named(const char *as) {
  const size_t length = strcspn(as, " ");
  int i = (int)(sizeof conversions / sizeof *conversions) - 1;
  while (i >= 0 && (strlen(conversions[i].as) != length || strncmp(conversions[i].as, as, length) != 0)) i--;
  return conversions[i].convert;
}
