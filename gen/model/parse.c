/* Parsing: has a model's syntax tree read, and turns what the compiler says into words for who writes models. */
#include <string.h>

#include "gen/model/evaluate.h"
#include "gen/model/foreign.h"
#include "gen/model/headers.h"
#include "gen/model/model.h"

/* ---- What the compiler says ---- */

struct reading {
  struct arena *arena;
  struct diagnostics *diags;
  bool undeclared; /* a message about a function that does not exist was given */
};

/* What a beginner meant by C that the compiler refuses. */
static const char *advice(const char *message) {
  bool tensor = strstr(message, "accel_tensor") != NULL;
  bool operands = strstr(message, "invalid operands") != NULL || strstr(message, "invalid argument type") != NULL;
  if (tensor && (operands || strstr(message, "arithmetic on") != NULL))
    return "tensors have functions, not operators: add(a, b), sub, mul, divide, neg; scale(x, 2.0), shift(x, 2.0)";
  if (tensor && strstr(message, "subscript of pointer") != NULL)
    return "a part of a tensor is slice(x, axis, start, count) or split(x, axis, parts, which)";
  return NULL;
}

static void add_warning(struct diagnostics *diags, struct location where, const char *message) {
  struct diagnostic item = {SEVERITY_WARNING, where, arena_string(diags->arena, message)};
  ARENA_PUSH(diags->arena, *diags, item);
}

/* A function that does not exist: the compiler's message speaks of standards, ours of the name. */
static bool add_undeclared(struct reading *reading, struct location where, const char *message) {
  bool undeclared = strncmp(message, "call to undeclared function '", 29) == 0 ||
                    strncmp(message, "call to undeclared library function '", 37) == 0;
  if (!undeclared) return false;
  const char *name = strchr(message, '\'') + 1;
  name = arena_copy(reading->arena, name, strcspn(name, "'"));
  where.length = (int)strlen(name);
  diag_error(reading->diags, where, "a model has no function '%s'", name);
  foreign_help(reading->arena, name, reading->diags);
  reading->undeclared = true;
  return true;
}

/* What follows from a function that does not exist: C gives it the result int. */
static bool follows_undeclared(const struct reading *reading, const char *message) {
  return reading->undeclared && strncmp(message, "incompatible integer to pointer conversion", 42) == 0;
}

static void add_message(struct reading *reading, const struct message *message) {
  bool warning = message->severity == SEVERITY_WARNING;
  if (warning && message->in_system) return;
  if (follows_undeclared(reading, message->text) || add_undeclared(reading, message->where, message->text)) return;
  if (warning)
    add_warning(reading->diags, message->where, message->text);
  else
    diag_error(reading->diags, message->where, "%s", message->text);
  const char *help = advice(message->text);
  if (help != NULL) diag_help(reading->diags, "%s", help);
  for (int i = 0; i < message->n_notes; i++)
    if (!message->notes[i].in_system) /* as inside assert */
      diag_note(reading->diags, message->notes[i].where, "%s", message->notes[i].text);
}

/* ---- Running ---- */

/* text: NULL to have the file read. */
static struct tree *parse(struct arena *arena, const char *file, const char *text, struct diagnostics *diags) {
  static const char *const flags[] = {"-std=c17",
                                      "-D_DEFAULT_SOURCE",
                                      "-Wall",
                                      "-Wno-unused-function",
                                      "-Wno-missing-braces",
                                      "-Werror=incompatible-pointer-types",
                                      "-Werror=implicit-function-declaration",
                                      "-Werror=int-conversion",
                                      "-Werror=return-type"};
  struct header headers[HEADER_COUNT];
  model_headers(arena, headers);
  struct parse_request request = {.file = file,
                                  .text = text,
                                  .flags = flags,
                                  .n_flags = sizeof flags / sizeof flags[0],
                                  .headers = headers,
                                  .n_headers = HEADER_COUNT,
                                  .digest = true};
  int errors = diags->errors;
  struct tree *tree = tree_parse(arena, &request, diags);
  struct reading reading = {.arena = arena, .diags = diags};
  for (int i = 0; tree != NULL && i < tree->n_messages; i++) add_message(&reading, &tree->messages[i]);
  return diags->errors == errors ? tree : NULL;
}

struct tree *model_parse(struct arena *arena, const char *file, struct diagnostics *diags) {
  return parse(arena, file, NULL, diags);
}

struct tree *model_parse_text(struct arena *arena, const char *file, const char *text, struct diagnostics *diags) {
  return parse(arena, file, text, diags);
}

const char *const *model_includes(const struct tree *program, int *count) {
  *count = program->n_includes;
  return program->includes;
}

const char *model_digest(const struct tree *program) {
  return program->digest;
}

bool model_has(const struct tree *program, const char *entry) {
  return model_function(program, entry) != NULL;
}

bool model_takes(const struct tree *program, const char *entry, const char *input) {
  const struct function *function = model_function(program, entry);
  for (int i = 0; function != NULL && i < function->n_parameters; i++)
    if (strcmp(function->parameters[i]->name, input) == 0) return true;
  return false;
}

bool model_owns(const struct function *function) {
  return function->body != NULL && !function->is_system;
}

const struct function *model_function(const struct tree *program, const char *name) {
  const struct function *function = tree_function(program, name);
  return function != NULL && model_owns(function) ? function : NULL;
}
