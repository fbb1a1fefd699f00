#include "gen/audit/module_lines.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "gen/base/file.h"
#include "gen/base/path.h"
#include "gen/base/sha256.h"
#include "gen/base/text.h"

/* ---- Reading ---- */

static const struct syntax *bare(const struct syntax *node) {
  while (node != NULL && node->kind == SYNTAX_CAST) node = node->parts[0];
  return node;
}

/* Adds what a string literal stands for, as it is spelled; false: it has an escape that modules have no use for. */
static bool add_literal(struct text *text, const char *spelled) {
  const size_t length = strlen(spelled);
  if (length < 2 || spelled[0] != '"' || spelled[length - 1] != '"') return false;
  for (const char *at = spelled + 1; at < spelled + length - 1; at++) {
    char letter = *at;
    if (letter == '"') return false;
    if (letter == '\\') {
      letter = *++at;
      if (letter == 'n')
        letter = '\n';
      else if (letter != '"' && letter != '\\')
        return false;
    }
    text_add(text, &letter, 1);
  }
  return true;
}

static void read_pieces(struct module *module, const struct variable *pieces) {
  struct text text = text_in(module->audit->arena), line = text_in(module->audit->arena);
  const struct syntax *list = pieces != NULL ? bare(pieces->initial) : NULL;
  struct location where = {0};
  module->known = list != NULL && list->kind == SYNTAX_LIST && pieces->is_constant;
  for (int i = 0; module->known && i < list->n_parts; i++) {
    const struct syntax *piece = bare(list->parts[i]);
    const size_t before = line.length;
    module->known = piece->kind == SYNTAX_STRING && add_literal(&line, piece->text);
    if (before == 0) where = piece->where;
    if (!module->known || line.length == 0 || line.bytes[line.length - 1] != '\n') continue;
    text_add(&text, line.bytes, line.length);
    line.length--;
    const struct module_line whole = {arena_copy(module->audit->arena, line.bytes, line.length), where,
                                      module->lines.count + 1};
    ARENA_PUSH(module->audit->arena, module->lines, whole);
    line.length = 0;
  }
  module->known = module->known && line.length == 0;
  module->text = text_string(&text);
}

static bool describes(const struct variable *variable) {
  return variable->type->kind == TYPE_RECORD && strcmp(variable->type->tag, "accel_xla_module") == 0;
}

/* The variable that a member of the description names; NULL: none. */
static const struct variable *named(const struct module *module, const char *member) {
  const struct syntax *list = module->variable->initial != NULL ? bare(module->variable->initial) : NULL;
  const int at = type_member(module->variable->type, member);
  if (list == NULL || list->kind != SYNTAX_LIST || at < 0 || at >= list->n_parts) return NULL;
  const struct syntax *value = bare(list->parts[at]);
  return value != NULL && value->kind == SYNTAX_VARIABLE ? value->variable : NULL;
}

/* The number of devices that the description has. */
static int64_t devices_of(const struct module *module) {
  const struct syntax *list = module->variable->initial != NULL ? bare(module->variable->initial) : NULL;
  const int at = type_member(module->variable->type, "devices");
  if (list == NULL || list->kind != SYNTAX_LIST || at < 0 || at >= list->n_parts) return 0;
  const struct syntax *value = bare(list->parts[at]);
  return value != NULL && value->kind == SYNTAX_INTEGER ? value->integer : 0;
}

static struct module read_module(struct audit *audit, const struct variable *variable) {
  struct module module = {.audit = audit, .variable = variable};
  module.steps = named(&module, "outputs") == NULL;
  module.devices = devices_of(&module);
  read_pieces(&module, named(&module, "pieces"));
  return module;
}

void module_refuse(const struct module *module, struct claim *claim, const struct module_line *line, const char *what,
                   const char *name, size_t length) {
  claim_finding(module->audit, claim, VERDICT_BROKEN, line->where, "line %d of '%s': %s '%.*s'", line->number,
                module->variable->name, what, (int)length, name);
}

/* ---- Operations ---- */

/* Those of StableHLO that compute of their operands alone. */
static const char pure[] =
    " abs add and atan2 bitcast_convert broadcast_in_dim cbrt ceil clamp compare complex concatenate constant convert "
    "convolution cosine count_leading_zeros divide dot_general dynamic_slice dynamic_update_slice exponential "
    "exponential_minus_one floor gather iota is_finite log log_plus_one logistic maximum minimum multiply negate not "
    "or "
    "pad popcnt power real reduce reduce_window remainder reshape return reverse round_nearest_afz "
    "round_nearest_even rsqrt scatter select select_and_scatter shift_left shift_right_arithmetic "
    "shift_right_logical sign sine slice sort sqrt subtract tan tanh transpose while xor ";

bool module_lists(const char *list, const char *name, size_t length) {
  for (const char *at = list; (at = strstr(at, " ")) != NULL && at[1] != '\0'; at++)
    if (strncmp(at + 1, name, length) == 0 && at[1 + length] == ' ') return true;
  return false;
}

size_t module_word_length(const char *text) {
  size_t length = 0;
  while (isalnum((unsigned char)text[length]) || text[length] == '_') length++;
  return length;
}

size_t module_code_length(const char *text) {
  const char *comment = strstr(text, "  // ");
  return comment != NULL ? (size_t)(comment - text) : strlen(text);
}

/* Every name of the dialect in a line; returns how many. */
static int check_names(const struct module *module, struct claim *claim, const struct module_line *line) {
  static const char dialect[] = "stablehlo.";
  const char *end = line->text + module_code_length(line->text);
  int count = 0;
  for (const char *at = line->text; (at = strstr(at, dialect)) != NULL && at < end; at++) {
    const char *name = at + sizeof dialect - 1;
    const size_t length = module_word_length(name);
    if (!module_lists(pure, name, length) && !(module->devices > 1 && module_exchanges(name, length)))
      module_refuse(module, claim, line, "an operation that is not one of those that compute alone,", at,
                    sizeof dialect - 1 + length);
    count++;
  }
  return count;
}

/* What an operation begins with, after its results. */
static bool is_operation(const char *text) {
  return text_begins(text, "stablehlo.") || text_begins(text, "\"stablehlo.") || text_begins(text, "chlo.erf ") ||
         text_begins(text, "call @") || text_begins(text, "func.call @");
}

/* Lines that are no operation with results. */
static bool is_frame(const char *text) {
  static const char *const forms[] = {"module @",
                                      "func.func private @",
                                      "func.func public @",
                                      "tensor<",
                                      "return",
                                      "stablehlo.return",
                                      "cond {",
                                      "} do {",
                                      "^bb0(",
                                      "})",
                                      "})  ",
                                      ")",
                                      "}",
                                      "#"};
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
    if (text_begins(text, forms[i])) return true;
  return *text == '\0';
}

/* Each line is of a form that is known, so that no dialect but these has a word in the module. */
static void check_form(const struct module *module, struct claim *claim, const struct module_line *line) {
  const char *text = line->text + strspn(line->text, " ");
  if (*text == '%') {
    const char *after = text + strcspn(text, " ");
    if (after > text && after[-1] == ':') return; /* an argument of a function, with its type */
    if (text_begins(after, " = ")) after += 3;
    if (is_operation(after)) return;
    module_refuse(module, claim, line, "an operation of another dialect,", after, strcspn(after, " "));
  } else if (!is_frame(text)) {
    module_refuse(module, claim, line, "another form,", text, strcspn(text, " "));
  }
}

static void claim_operations(const struct module *modules, int count) {
  struct audit *audit = modules->audit;
  struct claim *claim = audit_claim(
      audit, "module-computes-alone",
      "The modules have operations that compute of their operands alone, and collectives where several devices run "
      "them: no custom call, no callback to the host, nothing that is fed in or out, sent or received.");
  int lines = 0, operations = 0;
  for (int m = 0; m < count; m++) {
    for (int i = 0; i < modules[m].lines.count; i++) {
      check_form(&modules[m], claim, &modules[m].lines.items[i]);
      operations += check_names(&modules[m], claim, &modules[m].lines.items[i]);
    }
    lines += modules[m].lines.count;
  }
  claim_evidence(audit, claim,
                 "%d lines, %d operations; kernels, their order, memory of temporary values and the order of additions "
                 "are XLA's, which no audit sees",
                 lines, operations);
}

/* ---- Shapes ---- */

static int check_shapes(const struct module *module, struct claim *claim, const struct module_line *line) {
  int count = 0;
  for (const char *at = line->text; (at = strstr(at, "tensor<")) != NULL; at += 7, count++) {
    const size_t length = strcspn(at, ">");
    if (memchr(at, '?', length) != NULL || at[length] == '\0' || memchr(at, '*', length) != NULL)
      module_refuse(module, claim, line, "a type of no constant shape,", at, length + 1);
  }
  return count;
}

static void claim_shapes(const struct module *modules, int count) {
  struct claim *claim = audit_claim(modules->audit, "module-static-shapes",
                                    "Every tensor of the modules has a shape of constant numbers.");
  int types = 0;
  for (int m = 0; m < count; m++)
    for (int i = 0; i < modules[m].lines.count; i++)
      types += check_shapes(&modules[m], claim, &modules[m].lines.items[i]);
  claim_evidence(modules->audit, claim, "%d types", types);
}

/* ---- Donated arguments ---- */

/* A tensor of main: its type, "tensor<4x2xf32>"; the result that takes an argument's memory, or -1. */
struct operand {
  const struct module_line *line;
  const char *type;
  size_t length;
  long alias;
};
struct operands {
  struct operand *items;
  int count, capacity;
};

static void read_operand(const struct module *module, const struct module_line *line, struct operands *operands) {
  static const char aliases[] = "{tf.aliasing_output = ";
  const char *type = strstr(line->text, "tensor<"), *alias = strstr(line->text, aliases);
  if (type == NULL) return;
  const struct operand operand = {line, type, strcspn(type, ">") + 1,
                                  alias != NULL ? strtol(alias + sizeof aliases - 1, NULL, 10) : -1};
  ARENA_PUSH(module->audit->arena, *operands, operand);
}

/* The arguments and results of main, a line each. */
static void read_main(const struct module *module, struct operands *arguments, struct operands *results) {
  struct operands *now = NULL;
  for (int i = 0; i < module->lines.count; i++) {
    const struct module_line *line = &module->lines.items[i];
    if (strstr(line->text, "func.func public @main(") != NULL) {
      now = arguments;
      continue;
    }
    if (now != NULL) read_operand(module, line, now);
    if (now == arguments && strstr(line->text, ") -> (") != NULL)
      now = results;
    else if (now == results && text_begins(line->text, "    ) {"))
      return;
  }
}

/* The extent of a table of the module: of its inputs, which it takes each time, or of its outputs, which are no new
 * values of what it takes; -1: there is none. */
static int64_t rows_of(const struct module *module, const char *member) {
  const struct variable *table = named(module, member);
  return table != NULL && table->type->kind == TYPE_ARRAY ? table->type->count : -1;
}

/* The position of an argument among the caches of a module, which it gives after its outputs; -1: it is none. */
static long kept_at(const struct module *module, int argument) {
  const struct variable *table = named(module, "kept");
  const struct syntax *list = table != NULL && table->initial != NULL ? bare(table->initial) : NULL;
  for (int i = 0; list != NULL && list->kind == SYNTAX_LIST && i < list->n_parts; i++) {
    const struct syntax *row = bare(list->parts[i]);
    if (row->kind == SYNTAX_INTEGER && row->integer == argument) return i;
  }
  return -1;
}

/* Arguments and results of main: of a step, the result of each state takes its memory; of a program that writes text,
 * that of each cache; of an evaluation, none does. */
static void check_donated(const struct module *module, struct claim *claim, const struct operands *arguments,
                          const struct operands *results) {
  enum { MEASURES = 2 }; /* results of a step before the states: the loss, the gradient's norm */
  const int64_t fresh = rows_of(module, "inputs"), states = arguments->count - fresh;
  const long outputs = (long)rows_of(module, "outputs"), cached = (long)rows_of(module, "kept");
  const int64_t given = module->steps ? states + MEASURES : outputs + (cached > 0 ? cached : 0);
  if (fresh < 0 || states <= 0 || results->count != given)
    claim_finding(module->audit, claim, VERDICT_BROKEN, module->variable->where,
                  "main takes %d arrays, of which %lld come each time, and gives %d", arguments->count,
                  (long long)fresh, results->count);
  for (int i = 0; i < arguments->count; i++) {
    const struct operand *argument = &arguments->items[i];
    const long kept = module->steps ? -1 : kept_at(module, i);
    const long expected = module->steps && i < states ? i + MEASURES : kept >= 0 ? outputs + kept : -1;
    const struct operand *result = expected >= 0 && expected < results->count ? &results->items[expected] : NULL;
    if (argument->alias != expected)
      module_refuse(module, claim, argument->line,
                    "the memory of an argument is not that of its result:", argument->type, argument->length);
    else if (result != NULL &&
             (result->length != argument->length || strncmp(result->type, argument->type, result->length) != 0))
      module_refuse(module, claim, argument->line, "its result is of another type than", argument->type,
                    argument->length);
  }
}

static void claim_donated(const struct module *modules, int count) {
  struct audit *audit = modules->audit;
  struct claim *claim = audit_claim(audit, "module-donates",
                                    "A step takes each state's array as a donated argument, and what writes text each "
                                    "cache: the result of the same type takes its memory. Nothing else is donated.");
  int n_arguments = 0, n_results = 0;
  for (int m = 0; m < count; m++) {
    struct operands arguments = {0}, results = {0};
    read_main(&modules[m], &arguments, &results);
    check_donated(&modules[m], claim, &arguments, &results);
    n_arguments += arguments.count;
    n_results += results.count;
  }
  claim_evidence(audit, claim, "%d arguments, %d results", n_arguments, n_results);
}

/* ---- The files next to the program ---- */

/* What the name of a module's file ends with: an evaluation is next to a step, and of two without a step the second one
 * is that of one position. */
static const char *ending_of(const struct module *modules, int count, int m) {
  for (int i = 0; i < count; i++)
    if (modules[i].steps && !modules[m].steps) return ".evaluation.mlir";
  return m > 0 && !modules[0].steps ? ".step.mlir" : ".mlir";
}

/* Whether a file next to the program has the module, or there is none; counts it in *files. */
static void check_file(const struct module *module, struct claim *claim, const char *path, int *files) {
  size_t length;
  const char *text = read_bytes(module->audit->arena, path, &length);
  if (text == NULL) return;
  ++*files;
  if (length != strlen(module->text) || memcmp(text, module->text, length) != 0)
    claim_finding(module->audit, claim, VERDICT_BROKEN, (struct location){.file = path}, "another module than '%s'",
                  module->variable->name);
}

/* Whether the manifest, where there is one, has the module's digest under this name; counts it in *digests. */
static void check_digest(const struct module *module, struct claim *claim, const char *name,
                         const struct audit_options *options, int *digests) {
  char hex[65];
  sha256_of(module->text, strlen(module->text), hex);
  for (int i = 0; i < options->n_modules; i++) {
    if (strcmp(options->modules[i].name, name) != 0) continue;
    ++*digests;
    if (strcmp(options->modules[i].sha256, hex) == 0) return;
    claim_finding(module->audit, claim, VERDICT_BROKEN, options->modules[i].where,
                  "the SHA-256 of '%s' is another one than that of '%s'", name, module->variable->name);
    return;
  }
  if (options->modules != NULL)
    claim_finding(module->audit, claim, VERDICT_BROKEN, module->variable->where, "the manifest has no module '%s'",
                  name);
}

static void claim_files(const struct module *modules, int count, const struct audit_options *options) {
  struct arena *arena = modules->audit->arena;
  const char *stem = without_ending(arena, modules->audit->tree->file, ".c");
  struct claim *claim = audit_claim(modules->audit, "module-files",
                                    "Files of modules next to the program have the program's own modules, and its "
                                    "manifest has their digests.");
  int files = 0, digests = 0;
  for (int m = 0; stem != NULL && m < count; m++) {
    const char *path = arena_printf(arena, "%s%s", stem, ending_of(modules, count, m));
    check_file(&modules[m], claim, path, &files);
    check_digest(&modules[m], claim, name_in_folder(path), options, &digests);
  }
  claim_evidence(modules->audit, claim, "%d of %d modules have one, %d a digest", files, count, digests);
}

void module_check(struct audit *audit, const struct tree *tree, const struct audit_options *options) {
  struct module *modules = arena_alloc(audit->arena, ((size_t)tree->n_statics + 1) * sizeof *modules);
  const struct module *unknown = NULL;
  int count = 0;
  for (int i = 0; i < tree->n_statics; i++)
    if (describes(tree->statics[i])) modules[count++] = read_module(audit, tree->statics[i]);
  for (int m = 0; m < count; m++)
    if (!modules[m].known) unknown = &modules[m];
  if (unknown != NULL) {
    struct claim *claim = audit_claim(audit, "module-known", "Modules are lists of constant strings.");
    claim_finding(audit, claim, VERDICT_BROKEN, unknown->variable->where, "its text is not known");
  } else if (count > 0) {
    claim_operations(modules, count);
    claim_shapes(modules, count);
    claim_donated(modules, count);
    module_claim_collectives(modules, count);
    claim_files(modules, count, options);
  }
}
