/* The program's functions, one by one: each that has arrays alone is called on numbers of its own. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gen/base/embedded.h"
#include "gen/base/file.h"
#include "gen/base/text.h"
#include "gen/c/parse.h"
#include "gen/commands/cli/process.h"
#include "gen/commands/cli/runtime.h"
#include "gen/commands/verify/verify.h"

/* Numbers of all arrays of a function that is called, and the runs of it that the probe makes. */
enum { MOST_NUMBERS = 4000000, ROUNDS = 4, MOST_CONSTANTS = 40 };

static struct tree *read_program(struct verification *verify) {
  struct diagnostics unread = diagnostics_in(verify->arena);
  struct words flags = words_in(verify->arena);
  words_split(&flags, "-std=c17 -D_OPENMP=201511 -Wno-everything");
  reading_flags(verify->options, &flags);
  const struct parse_request request = {
      .file = verify->program, .flags = (const char *const *)flags.items, .n_flags = flags.count};
  struct tree *tree = tree_parse(verify->arena, &request, &unread);
  return tree != NULL && !tree_has_errors(tree) ? tree : NULL;
}

/* Whether two expressions are written alike. */
static bool are_alike(const struct syntax *a, const struct syntax *b) {
  if (a->kind != b->kind || a->operation != b->operation || a->variable != b->variable || a->integer != b->integer ||
      a->n_parts != b->n_parts || a->kind == SYNTAX_CALL)
    return false;
  for (int i = 0; i < a->n_parts; i++)
    if (a->parts[i] == NULL || b->parts[i] == NULL || !are_alike(a->parts[i], b->parts[i])) return false;
  return true;
}

/* Whether all indices of arrays of `count` elements are written as *index is; NULL: none was seen so far. */
static bool is_aligned(const struct syntax *at, int64_t count, const struct syntax **index) {
  if (at == NULL) return true;
  if (at->kind == SYNTAX_INDEX) {
    const struct syntax *array = at->parts[0];
    while (array->kind == SYNTAX_CAST) array = array->parts[0];
    if (array->kind != SYNTAX_VARIABLE || array->variable->type->kind != TYPE_ARRAY) return false;
    if (array->variable->type->count == count) {
      if (*index == NULL) *index = at->parts[1];
      if (!are_alike(*index, at->parts[1])) return false;
    }
  }
  for (int i = 0; i < at->n_parts; i++)
    if (!is_aligned(at->parts[i], count, index)) return false;
  return true;
}

/* Whether it is room to compute in, whose size the shape of the function's convolution says. */
static bool is_workspace(const struct verification *verify, const struct tree *tree, const struct function *function,
                         const struct variable *parameter) {
  return strcmp(parameter->name, "workspace") == 0 && parameter->type->kind == TYPE_POINTER &&
         tree_variable(tree, arena_printf(verify->arena, "%s_convolution", function->name)) != NULL;
}

/* Whether a function has arrays of float or int32 alone, and writes one. */
static bool kernel_from(const struct verification *verify, const struct tree *tree, const struct function *function,
                        struct kernel *kernel) {
  bool writes = false;
  int64_t results = 0;
  if (function->body == NULL || function->is_system || function->is_inline || function->result->kind != TYPE_VOID ||
      function->n_parameters == 0 || function->n_parameters > MOST_ARRAYS)
    return false;
  *kernel = (struct kernel){.name = function->name, .workspace = -1};
  for (int i = 0; i < function->n_parameters; i++) {
    const struct variable *parameter = function->parameters[i];
    if (kernel->workspace < 0 && is_workspace(verify, tree, function, parameter)) {
      kernel->workspace = i;
      continue;
    }
    const struct type *element = parameter->type->kind == TYPE_ARRAY ? parameter->type->element : NULL;
    if (element == NULL || parameter->type->count <= 0 || element->size != 4) return false;
    if (element->kind != TYPE_REAL && element->kind != TYPE_INTEGER) return false;
    const bool constant = strncmp(parameter->type->name, "const ", 6) == 0 || strncmp(element->name, "const ", 6) == 0;
    kernel->arrays[kernel->n_arrays++] = (struct kernel_array){.name = parameter->name,
                                                               .whole = element->kind == TYPE_INTEGER,
                                                               .written = !constant,
                                                               .count = parameter->type->count};
    writes = writes || !constant;
    if (!constant) results = parameter->type->count;
  }
  const struct syntax *index = NULL;
  kernel->is_aligned = is_aligned(function->body, results, &index);
  return writes;
}

static int64_t numbers_of(const struct kernel *kernel) {
  int64_t count = 0;
  for (int i = 0; i < kernel->n_arrays; i++) count += kernel->arrays[i].count;
  return count;
}

/* ---- The probe ---- */

static void write_call(struct text *text, const struct kernel *kernel, int k) {
  text_printf(text, "static void verify_call_%d(void **arrays) {\n  %s(", k, kernel->name);
  for (int i = 0; i <= kernel->n_arrays; i++) {
    if (i == kernel->workspace)
      text_printf(text, "%sverify_workspace(%s_convolution.workspace)", i > 0 ? ", " : "", kernel->name);
    if (i < kernel->n_arrays) text_printf(text, "%sarrays[%d]", i > 0 || kernel->workspace == 0 ? ", " : "", i);
  }
  text_puts(text, ");\n}\n");
}

static void write_row(struct text *text, const struct kernel *kernel, int k) {
  text_printf(text, "  {verify_call_%d, %d, {", k, kernel->n_arrays);
  for (int i = 0; i < kernel->n_arrays; i++) {
    const struct kernel_array *array = &kernel->arrays[i];
    text_printf(text, "{%lld, %d, %d, %lld, %d}, ", (long long)array->count, array->whole, array->written,
                (long long)array->below, array->ignored);
  }
  text_puts(text, "}},\n");
}

/* The program's text, and a main that calls the function whose number is its argument, or with several the update. */
static bool write_probe(struct verification *verify, const struct tree *tree, const struct kernel *kernels, int count,
                        const struct update_probe *update) {
  struct text text = text_in(verify->arena);
  text_printf(&text, "#define main verify_main_of_program\n#include \"%s\"\n#undef main\n", verify->program);
  text_puts(&text, embedded_source("share/verify/probe.c"));
  for (int k = 0; k < count; k++) write_call(&text, &kernels[k], k);
  if (update->text != NULL) text_puts(&text, embedded_source("share/verify/update.c"));
  if (update->text != NULL) text_puts(&text, update->text);
  text_puts(&text, "static const struct verify_probed verify_all[] = {\n");
  for (int k = 0; k < count; k++) write_row(&text, &kernels[k], k);
  text_puts(&text, "};\nint main(int argc, char **argv) {\n");
  if (update->text != NULL) text_puts(&text, "  if (argc > 2) return verify_run_update(argc, argv);\n");
  if (tree_function(tree, "open_primitives") != NULL && tree_variable(tree, "arena") != NULL)
    text_puts(&text, "  arena = calloc(1, sizeof *arena);\n  open_primitives();\n");
  text_puts(&text, "  return argc == 2 ? verify_probe(&verify_all[atoi(argv[1])], \"probe.bin\") : 2;\n}\n");
  return verify_put(verify, "probed.c", text_string(&text));
}

/* ---- The comparison ---- */

void verify_note_function(struct verification *verify, const char *name, struct kernel_finding found) {
  ARENA_PUSH(verify->arena, verify->functions, ((struct function_finding){name, found}));
}

static void note_unknown(struct verification *verify, const char *name, const char *why) {
  verify_note_function(verify, name, (struct kernel_finding){.comparison = COMPARED_UNKNOWN, .formula = why});
}

/* The runs of a function, as the probe wrote them. False: they are not all there. */
static bool read_rounds(const struct kernel *kernel, const char *bytes, size_t length,
                        struct kernel_round rounds[ROUNDS]) {
  if (bytes == NULL || length != (size_t)numbers_of(kernel) * 4 * 2 * ROUNDS) return false;
  for (int r = 0; r < ROUNDS; r++)
    for (int i = 0; i < kernel->n_arrays; i++) {
      const size_t size = (size_t)kernel->arrays[i].count * 4;
      rounds[r].before[i] = bytes;
      rounds[r].after[i] = bytes + size;
      bytes += 2 * size;
    }
  return true;
}

/* The numbers that formulas may have: those of the model, and what the gradient of a loss begins with, of a mean over
 * samples or over targets. */
static int constants_of(const struct verification *verify, double constants[MOST_CONSTANTS]) {
  const bool by_count = verify->job->accumulation.normalize == NORMALIZE_TOKENS;
  const double share = 1 / (double)verify->job->accumulation.num_steps, targets = verify->reading.counted;
  int count = 0;
  constants[count++] = by_count ? 1 : share;
  if (by_count && targets > 0) constants[count++] = share / targets;
  for (int i = 0; i < verify->reading.n_constants && count < MOST_CONSTANTS; i++)
    constants[count++] = verify->reading.constants[i];
  return count;
}

static bool compare_function(struct verification *verify, const struct kernel *kernel, int k) {
  struct kernel_round rounds[ROUNDS];
  int status = 0;
  size_t length = 0;
  const char *path = arena_printf(verify->arena, "%s/probe.bin", verify->folder);
  if (!verify_isolated(verify, verify->folder, "probe", arena_printf(verify->arena, "%d", k), &status)) return false;
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    note_unknown(verify, kernel->name, arena_printf(verify->arena, "alone it ends by signal %d", signal));
    return true;
  }
  const char *bytes = read_bytes(verify->scratch, path, &length);
  const bool read = read_rounds(kernel, bytes, length, rounds);
  unlink(path);
  if (!read) {
    note_unknown(verify, kernel->name, "alone it does not run to its end");
  } else if (WEXITSTATUS(status) == 4) {
    const struct kernel_finding found = {COMPARED_DIFFERS, "a function of its arguments",
                                         "the same arguments give something else the second time", INFINITY};
    verify_note_function(verify, kernel->name, found);
  } else {
    double constants[MOST_CONSTANTS];
    const struct known_numbers known = {constants, constants_of(verify, constants), verify->reading.tables,
                                        verify->reading.convolutions};
    struct kernel_finding found = kernel_compare(verify->scratch, kernel, rounds, ROUNDS, &known);
    if (found.formula != NULL) found.formula = arena_string(verify->arena, found.formula);
    if (found.where != NULL) found.where = arena_string(verify->arena, found.where);
    verify_note_function(verify, kernel->name, found);
  }
  arena_reset(verify->scratch);
  return true;
}

bool verify_functions(struct verification *verify) {
  const struct tree *tree = read_program(verify);
  struct {
    struct kernel *items;
    int count, capacity;
  } kernels = {0};
  if (tree == NULL) return verify_unknown(verify, "the program's functions cannot be read");
  for (int i = 0; i < tree->n_functions; i++) {
    const struct function *function = tree->functions[i];
    struct kernel kernel;
    if (!kernel_from(verify, tree, function, &kernel)) {
      verify->n_calling += function->body != NULL && !function->is_system && !function->is_inline;
      continue;
    }
    const char *why = numbers_of(&kernel) > MOST_NUMBERS ? "its arrays are too large" : NULL;
    if (why == NULL) why = kernel_bound_wholes(&kernel);
    if (why != NULL)
      note_unknown(verify, kernel.name, why);
    else
      ARENA_PUSH(verify->arena, kernels, kernel);
  }
  const struct update_probe update = verify_update_probe(verify, tree);
  if (update.why != NULL) note_unknown(verify, "update", update.why);
  if (kernels.count == 0 && update.why != NULL) return true;
  if (!write_probe(verify, tree, kernels.items, kernels.count, &update) || !verify_build_probe(verify)) return false;
  for (int k = 0; k < kernels.count; k++)
    if (!compare_function(verify, &kernels.items[k], k)) return false;
  return update.why != NULL || verify_update(verify, &update);
}
