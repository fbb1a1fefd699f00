#include "gen/commands/data/chat.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gen/base/arena.h"
#include "gen/base/path.h"
#include "gen/base/text.h"
#include "gen/commands/data/chat_folder.h"
#include "gen/commands/render/template_values.h"

struct chat {
  struct arena *arena;  /* of the folder */
  struct arena *record; /* of the current record */
  struct arena *part;   /* of texts of a part of its messages */
  struct arena *compiled;
  struct jinja_env *env; /* in `compiled`: the folder's templates; NULL: not yet */
  int rendered;          /* records, since then */
  const char *folder;
  struct chat_folder found;
  const char *wanted; /* the template's name; NULL: as records ask for */
  enum train_on train_on;
  struct tm now;
};

struct chat *chat_new(const char *folder, const char *template, enum train_on train_on, struct problem *problem) {
  struct arena *arena = arena_new();
  struct chat *chat = arena_alloc(arena, sizeof *chat);
  bool is_file = template != NULL && has_ending(template, ".jinja");
  const time_t now = time(NULL);
  *chat = (struct chat){.arena = arena,
                        .record = arena_new(),
                        .part = arena_new(),
                        .compiled = arena_new(),
                        .folder = folder,
                        .train_on = train_on};
  localtime_r(&now, &chat->now);
  if (template != NULL && !is_file) chat->wanted = template;
  if (!chat_folder_read(arena, folder, is_file ? template : NULL, &chat->found, problem)) {
    chat_free(chat);
    return NULL;
  }
  if (chat->wanted == NULL || chat_folder_template(&chat->found, chat->wanted) != NULL) return chat;
  rt_problem(problem, "%s: no chat template is called '%s'", folder, chat->wanted);
  chat_free(chat);
  rt_help(problem, "name one of the folder's templates, or a file that ends in .jinja");
  return NULL;
}

const char *chat_identity(struct chat *chat) {
  struct text out = text_in(chat->arena);
  text_printf(&out, "%d %s", (int)chat->train_on, chat->wanted != NULL ? chat->wanted : "");
  for (int i = 0; i < chat->found.templates.count; i++)
    text_printf(&out, "\n%s %s", chat->found.templates.items[i].name, chat->found.templates.items[i].text);
  for (int i = 0; i < chat->found.tokens.count; i++)
    text_printf(&out, "\n%s %s", chat->found.tokens.items[i].name, chat->found.tokens.items[i].text);
  return text_string(&out);
}

void chat_free(struct chat *chat) {
  if (chat == NULL) return;
  arena_free(chat->record);
  arena_free(chat->part);
  arena_free(chat->compiled);
  arena_free(chat->arena);
}

/* ---- One conversation ---- */

/* Messages of a record on their way through the template. */
struct conversation {
  struct chat *chat;
  const json_t *record;
  const char *template;        /* its name */
  struct jinja_value messages; /* all of them */
  struct jinja_output whole;   /* the text of all */
};

static const char *load(void *context, const char *name) {
  return chat_folder_template(context, name);
}

/* A rendering leaves names and messages of errors in the environment: after so many records it is made again. */
enum { RECORDS_OF_ENVIRONMENT = 1000 };

static void compile_once(struct chat *chat) {
  if (chat->env != NULL && chat->rendered++ < RECORDS_OF_ENVIRONMENT) return;
  const struct jinja_options options = {.chat = true,
                                        .now = &chat->now,
                                        .trim_blocks = true,
                                        .lstrip_blocks = true,
                                        .load = load,
                                        .load_context = &chat->found,
                                        .outputs = chat->part};
  arena_reset(chat->compiled);
  chat->rendered = 1;
  chat->env = jinja_env_new(chat->compiled, &options);
}

/* The names that templates see, as apply_chat_template gives them; the first `count` messages. */
static struct jinja_value values_of(const struct conversation *of, int count, bool prompts) {
  struct arena *arena = of->chat->record;
  struct jinja_value values = jinja_map(arena), messages = jinja_list(arena);
  const char *name;
  json_t *value;
  for (int i = 0; i < of->chat->found.tokens.count; i++) {
    const struct chat_template *token = &of->chat->found.tokens.items[i];
    jinja_set(arena, values, token->name, jinja_string(arena, token->text));
  }
  json_object_foreach(json_object_get(of->record, "chat_template_kwargs"), name, value)
      jinja_set(arena, values, name, values_of_json(arena, value));
  for (int i = 0; i < count; i++) jinja_push(arena, messages, jinja_at(of->messages, i));
  static const char *const lists[] = {"tools", "documents"};
  for (int i = 0; i < 2; i++) {
    json_t *list = json_object_get(of->record, lists[i]);
    jinja_set(arena, values, lists[i], list != NULL ? values_of_json(arena, list) : jinja_none());
  }
  jinja_set(arena, values, "messages", messages);
  jinja_set(arena, values, "add_generation_prompt", jinja_bool(prompts));
  return values;
}

/* Renders the first `count` messages; `prompts`: and what comes before an answer. */
static bool render(const struct conversation *of, int count, bool prompts, struct jinja_output *output,
                   struct problem *problem) {
  struct jinja_error error;
  if (jinja_render(of->chat->env, of->template, values_of(of, count, prompts), false, output, &error)) return true;
  rt_problem(problem, "the chat template, line %d, column %d: %s", error.chain[0].line, error.chain[0].column,
             error.message);
  return rt_help(problem, "correct the record, or give another template with --chat-template");
}

/* Whether a template has blocks `generation`, as transformers looks for them. */
static bool has_generation(const char *template) {
  for (const char *at = template; (at = strstr(at, "{%")) != NULL;) {
    at += 2 + (at[2] == '-' || at[2] == '+');
    at += strspn(at, " \t\n\r");
    if (strncmp(at, "generation", 10) != 0) continue;
    at += 10 + strspn(at + 10, " \t\n\r");
    if (strncmp(at, "%}", 2) == 0 || strncmp(at, "-%}", 3) == 0) return true;
  }
  return false;
}

static bool begins(const struct jinja_output *whole, const struct jinja_output *part) {
  return part->length <= whole->length && memcmp(whole->text, part->text, part->length) == 0;
}

/* What rendering adds to the messages before `first` and the prompt, up to the message before `end`. The texts of parts
 * are forgotten at once: those of a long conversation are as many as its answers, and as long. */
static bool range_of(const struct conversation *of, int first, int end, struct text_range *range,
                     struct problem *problem) {
  struct jinja_output before, with = of->whole;
  arena_reset(of->chat->part);
  if (!render(of, first, true, &before, problem) ||
      (end < jinja_count(of->messages) && !render(of, end, false, &with, problem)))
    return false;
  *range = (struct text_range){before.length, with.length};
  if (begins(&of->whole, &before) && begins(&of->whole, &with) && before.length <= with.length) return true;
  rt_problem(problem,
             "message %d: the template renders %s differently when the rest of the messages follows, so the text of "
             "this one is not known",
             first + 1, begins(&of->whole, &before) ? "it" : "what is before it");
  return rt_help(problem, "give a template that marks the text with {%% generation %%} (--chat-template), or use "
                          "--train-on last or --train-on all");
}

static bool is_assistant(struct jinja_value message) {
  return strcmp(jinja_text(jinja_get(message, "role")), "assistant") == 0;
}

/* The ranges of the assistant's messages, by what rendering adds. */
static bool ranges_by_turns(const struct conversation *of, struct made_text *made, struct problem *problem) {
  int count = jinja_count(of->messages);
  struct text_range *ranges = arena_alloc(of->chat->record, (size_t)count * sizeof *ranges);
  made->ranges = ranges;
  for (int i = count - 1; i >= 0; i--) {
    if (!is_assistant(jinja_at(of->messages, i))) continue;
    if (!range_of(of, i, i + 1, &ranges[made->n_ranges++], problem)) return false;
    if (of->chat->train_on == TRAIN_ON_LAST) break;
  }
  for (size_t i = 0; i < made->n_ranges / 2; i++) { /* they were found from the last one on */
    struct text_range swapped = ranges[i];
    ranges[i] = ranges[made->n_ranges - 1 - i];
    ranges[made->n_ranges - 1 - i] = swapped;
  }
  return true;
}

/* The ranges that the template names. */
static bool ranges_by_blocks(const struct conversation *of, struct made_text *made, struct problem *problem) {
  const struct jinja_output *whole = &of->whole;
  if (whole->generated_inside) {
    rt_problem(problem, "a block 'generation' of the chat template is within a macro, a call or a set block, so where "
                        "its text comes to be is not known");
    return rt_help(problem, "move the block out of it, or use --train-on all");
  }
  int count = whole->generated_count, first = of->chat->train_on == TRAIN_ON_LAST && count > 0 ? count - 1 : 0;
  struct text_range *ranges = arena_alloc(of->chat->record, (size_t)(count + 1) * sizeof *ranges);
  for (int i = first; i < count; i++)
    ranges[made->n_ranges++] = (struct text_range){whole->generated[i].from, whole->generated[i].to};
  made->ranges = ranges;
  return true;
}

/* ---- Messages ---- */

/* Older names of the reasoning are filled in, as transformers does. */
static struct jinja_value message_of(struct arena *arena, json_t *message) {
  static const char *const names[] = {"reasoning_content", "thinking", "reasoning"};
  json_t *reasoning = NULL;
  for (int i = 0; i < 3 && (reasoning == NULL || json_is_null(reasoning)); i++)
    reasoning = json_object_get(message, names[i]);
  if (reasoning == NULL || json_is_null(reasoning)) return values_of_json(arena, message);
  struct jinja_value filled = jinja_map(arena);
  const char *key;
  json_t *value;
  jinja_set(arena, filled, "thinking", values_of_json(arena, reasoning));
  json_object_foreach(message, key, value) jinja_set(arena, filled, key, values_of_json(arena, value));
  jinja_set(arena, filled, "reasoning_content", values_of_json(arena, reasoning));
  return filled;
}

/* The role of a turn of ShareGPT, by whom it is from; NULL: it is none of those known. */
static const char *role_of(const char *from) {
  static const char *const roles[][2] = {
      {"human", "user"},        {"user", "user"},       {"gpt", "assistant"},    {"assistant", "assistant"},
      {"chatgpt", "assistant"}, {"model", "assistant"}, {"bard", "assistant"},   {"bing", "assistant"},
      {"system", "system"},     {"tool", "tool"},       {"observation", "tool"}, {"function_response", "tool"}};
  for (size_t i = 0; from != NULL && i < sizeof roles / sizeof *roles; i++)
    if (strcmp(roles[i][0], from) == 0) return roles[i][1];
  return NULL;
}

static void push_turn(struct conversation *of, const char *role, const json_t *text) {
  struct arena *arena = of->chat->record;
  struct jinja_value message = jinja_map(arena);
  jinja_set(arena, message, "role", jinja_string(arena, role));
  jinja_set(arena, message, "content", values_of_json(arena, (json_t *)text));
  jinja_push(arena, of->messages, message);
}

/* Adds the turns of a record of ShareGPT, which may have the system's text in a field of its own. */
static bool add_turns(struct conversation *of, const json_t *list, struct problem *problem) {
  static const char form[] = "a turn of 'conversations' is {\"from\": \"human\" or \"gpt\", \"value\": ...}";
  const json_t *system = json_object_get(of->record, "system"), *turn;
  size_t i;
  if (json_is_string(system) && json_string_length(system) > 0) push_turn(of, "system", system);
  json_array_foreach(list, i, turn) {
    const json_t *from = json_object_get(turn, "from"), *value = json_object_get(turn, "value");
    const char *role = role_of(json_string_value(from));
    if (role != NULL && json_is_string(value)) {
      push_turn(of, role, value);
      continue;
    }
    if (json_is_string(from) && role == NULL)
      rt_problem(problem, "message %zu of 'conversations' is from '%.100s', which no role is known for", i + 1,
                 json_string_value(from));
    else
      rt_problem(problem, "message %zu of 'conversations' has no '%s' that is a text", i + 1,
                 json_is_string(from) ? "value" : "from");
    return rt_help(problem, role_of(json_string_value(from)) == NULL && json_is_string(from)
                                ? "write it as 'messages', with a role that the chat template has"
                                : form);
  }
  return true;
}

/* Adds the messages of a list. */
static bool add_messages(struct conversation *of, const json_t *list, const char *field, struct problem *problem) {
  json_t *message;
  size_t i;
  if (!json_is_array(list) || json_array_size(list) == 0) {
    rt_problem(problem, "'%s' is %s", field, json_is_array(list) ? "empty" : "not a list of messages");
    return rt_help(problem, "a message is {\"role\": ..., \"content\": ...}");
  }
  json_array_foreach(list, i, message) {
    const char *lacks = !json_is_string(json_object_get(message, "role")) ? "role" : NULL;
    if (lacks == NULL && json_object_get(message, "content") == NULL && json_object_get(message, "tool_calls") == NULL)
      lacks = "content";
    if (lacks != NULL) {
      rt_problem(problem, "message %zu of '%s' has no '%s'", i + 1, field, lacks);
      return rt_help(problem, "a message is {\"role\": ..., \"content\": ...}");
    }
    jinja_push(of->chat->record, of->messages, message_of(of->chat->record, message));
  }
  return true;
}

static bool check_list(const json_t *record, const char *name, struct problem *problem) {
  const json_t *list = json_object_get(record, name), *item;
  size_t i;
  bool good = list == NULL || json_is_null(list) || json_is_array(list);
  json_array_foreach(list, i, item) good &= json_is_object(item);
  return good || rt_problem(problem, "'%s' is not a list of objects", name);
}

/* The name of the template, as transformers chooses: "tool_use" for a record with tools, where there is one. */
static const char *template_for(const struct chat *chat, const json_t *record, struct problem *problem) {
  const bool tools = json_is_array(json_object_get(record, "tools"));
  if (chat->wanted != NULL) return chat->wanted;
  if (tools && chat_folder_template(&chat->found, "tool_use") != NULL) return "tool_use";
  if (chat_folder_template(&chat->found, "default") != NULL) return "default";
  rt_problem(problem, "%s has no chat template for the messages", chat->folder);
  rt_help(problem, "the folder of a chat model has chat_template.jinja, or chat_template in tokenizer_config.json; "
                   "--chat-template FILE gives one");
  return NULL;
}

/* Renders messages. All after the first `prompted` are trained on; 0: those of the assistant are. */
static bool make_messages(struct conversation *of, int prompted, struct made_text *made, struct problem *problem) {
  struct chat *chat = of->chat;
  of->template = template_for(chat, of->record, problem);
  if (of->template == NULL || !check_list(of->record, "tools", problem) ||
      !check_list(of->record, "documents", problem))
    return false;
  compile_once(chat);
  if (!render(of, jinja_count(of->messages), false, &of->whole, problem)) return false;
  of->whole.text = made->text = arena_copy(chat->record, of->whole.text, of->whole.length);
  made->length = of->whole.length;
  if (chat->train_on == TRAIN_ON_ALL) return true;
  if (prompted > 0) {
    struct text_range *range = arena_alloc(chat->record, sizeof *range);
    made->ranges = range;
    made->n_ranges = 1;
    return range_of(of, prompted, jinja_count(of->messages), range, problem);
  }
  return has_generation(chat_folder_template(&chat->found, of->template)) ? ranges_by_blocks(of, made, problem)
                                                                          : ranges_by_turns(of, made, problem);
}

/* ---- A record ---- */

/* Two texts, of which the second is trained on. */
static bool make_completion(const struct chat *chat, const json_t *prompt, const json_t *completion,
                            struct made_text *made) {
  size_t before = json_string_length(prompt), after = json_string_length(completion);
  char *text = arena_alloc(chat->record, before + after + 1);
  struct text_range *range = arena_alloc(chat->record, sizeof *range);
  memcpy(text, json_string_value(prompt), before);
  memcpy(text + before, json_string_value(completion), after);
  *range = (struct text_range){before, before + after};
  *made = (struct made_text){text, before + after, range, chat->train_on == TRAIN_ON_ALL ? 0 : 1, NULL};
  return true;
}

/* Turns of ShareGPT, or messages under its name. */
static bool add_conversations(struct conversation *of, const json_t *list, struct problem *problem) {
  const bool turns = json_object_get(json_array_get(list, 0), "from") != NULL;
  return turns ? add_turns(of, list, problem) : add_messages(of, list, "conversations", problem);
}

static bool refuse_record(const json_t *record, struct problem *problem) {
  char keys[200];
  rt_problem(problem, "the record has neither 'messages' nor 'conversations' nor 'prompt' and 'completion'");
  return rt_help(problem, "its fields are: %s", documents_keys(record, keys, sizeof keys));
}

bool chat_make(void *context, struct json_t *record, struct made_text *made, struct problem *problem) {
  struct chat *chat = context;
  const json_t *messages = json_object_get(record, "messages"), *prompt = json_object_get(record, "prompt"),
               *completion = json_object_get(record, "completion");
  arena_reset(chat->record);
  if (messages == NULL && json_is_string(prompt) && json_is_string(completion))
    return make_completion(chat, prompt, completion, made);
  struct conversation of = {.chat = chat, .record = record, .messages = jinja_list(chat->record)};
  if (messages != NULL) return add_messages(&of, messages, "messages", problem) && make_messages(&of, 0, made, problem);
  const json_t *turns = json_object_get(record, "conversations");
  if (turns != NULL) return add_conversations(&of, turns, problem) && make_messages(&of, 0, made, problem);
  if (prompt == NULL || completion == NULL) return refuse_record(record, problem);
  if (!add_messages(&of, prompt, "prompt", problem)) return false;
  int prompted = jinja_count(of.messages);
  return add_messages(&of, completion, "completion", problem) && make_messages(&of, prompted, made, problem);
}
