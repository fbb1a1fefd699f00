/* The program's functions, one by one: each that has arrays alone is called on numbers of its own. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gen/base/embedded.h"
#include "gen/base/file.h"
#include "gen/base/text.h"
#include "gen/commands/cli/process.h"
#include "gen/commands/verify/verify.h"
#include "gen/verify/keys.h"

/* Numbers of all arrays of a function that is called, and the runs of it that the probe makes. */
enum { MOST_NUMBERS = 4000000, ROUNDS = 4, MOST_CONSTANTS = 40, MOST_DRAWS = 100 };

/* Of the key of random numbers in a run, as share/verify/probe.c has it. */
static const uint64_t probed_key = 0xD1342543DE82EF95u;

static int64_t numbers_of(const struct kernel *kernel) {
  int64_t count = 0;
  for (int i = 0; i < kernel->n_arrays; i++) count += kernel->arrays[i].count;
  return count;
}

/* ---- The probe ---- */

/* A call. Within a step of the program weights stay as they are, and are packed once: `packs`. Here each call has
 * others. */
static void write_call(struct text *text, const struct kernel *kernel, int k, bool packs) {
  text_printf(text, "static void verify_call_%d(void **arrays) {\n%s  %s(", k,
              packs ? "  accel_forget_packed();\n" : "", kernel->name);
  const int count = kernel->n_arrays + (kernel->workspace >= 0) + (kernel->key >= 0);
  for (int i = 0, array = 0; i < count; i++) {
    if (i > 0) text_puts(text, ", ");
    if (i == kernel->workspace)
      text_printf(text, "verify_workspace(%s_convolution.workspace)", kernel->name);
    else if (i == kernel->key)
      text_puts(text, "verify_key");
    else
      text_printf(text, "arrays[%d]", array++);
  }
  text_puts(text, ");\n}\n");
}

static void write_row(struct text *text, const struct kernel *kernel, int k) {
  text_printf(text, "  {verify_call_%d, %d, {", k, kernel->n_arrays);
  for (int i = 0; i < kernel->n_arrays; i++) {
    const struct kernel_array *array = &kernel->arrays[i];
    text_printf(text, "{%lld, %d, %d, %lld, %d, %lld}, ", (long long)array->count, array->whole, array->written,
                (long long)array->below, array->ignored, (long long)array->row);
  }
  text_puts(text, "}},\n");
}

/* The program's text, and a main that calls the function whose number is its argument, or with several the update. */
static bool write_probe(struct verification *verify, const struct tree *tree, const struct kernel *kernels, int count,
                        const struct update_probe *update) {
  struct text text = text_in(verify->arena);
  text_printf(&text, "#define main verify_main_of_program\n#include \"%s\"\n#undef main\n", verify->program);
  text_puts(&text, embedded_source("share/verify/probe.c"));
  const bool packs = tree_function(tree, "accel_forget_packed") != NULL;
  for (int k = 0; k < count; k++) write_call(&text, &kernels[k], k, packs);
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
  for (int r = 0; r < ROUNDS; r++) {
    rounds[r].key = probed_key * (uint64_t)(r + 1);
    for (int i = 0; i < kernel->n_arrays; i++) {
      const size_t size = (size_t)kernel->arrays[i].count * 4;
      rounds[r].before[i] = bytes;
      rounds[r].after[i] = bytes + size;
      bytes += 2 * size;
    }
  }
  return true;
}

/* The numbers that formulas may have: those of the model, and what the gradient of a loss begins with, of a mean over
 * samples, over the parts of ranks that divide them, or over targets. */
static int constants_of(const struct verification *verify, double constants[MOST_CONSTANTS]) {
  const bool by_count = verify->job->accumulation.normalize == NORMALIZE_TOKENS;
  const double share = 1 / (double)verify_micro_batches(verify->job), targets = verify->reading.counted;
  int count = 0;
  constants[count++] = by_count ? 1 : share;
  if (job_sequence_ranks(verify->job) > 1) constants[count++] = share / (double)job_sequence_ranks(verify->job);
  if (by_count && targets > 0) constants[count++] = share / targets;
  for (int i = 0; i < verify->reading.n_constants && count < MOST_CONSTANTS; i++)
    constants[count++] = verify->reading.constants[i];
  return count;
}

/* The draws of the model, each once. */
static int draws_of(const struct verification *verify, struct known_draw draws[MOST_DRAWS]) {
  int count = 0;
  for (int64_t i = 0; i < verify->reading.n_draws; i++) {
    const struct known_draw draw = {(uint32_t)verify->reading.draws[i].site, verify->reading.draws[i].of};
    bool known = count == MOST_DRAWS;
    for (int k = 0; k < count; k++) known = known || (draws[k].site == draw.site && draws[k].of == draw.of);
    if (!known) draws[count++] = draw;
  }
  return count;
}

/* Whether it computes with a number of the rank that it is. */
static bool takes_rank(const struct syntax *at) {
  if (at == NULL) return false;
  if (at->kind == SYNTAX_VARIABLE && strncmp(at->variable->name, "rank_along_", 11) == 0) return true;
  if (at->kind == SYNTAX_DECLARE && takes_rank(at->variable->initial)) return true;
  for (int i = 0; i < at->n_parts; i++)
    if (takes_rank(at->parts[i])) return true;
  return false;
}

/* Why the part of a rank says nothing of a function; NULL: it may. */
static const char *why_by_ranks(const struct verification *verify, const struct function *function) {
  if (verify->job->devices.ranks < 2) return NULL;
  if (takes_rank(function->body)) return "what it computes follows from which rank it is";
  if (job_sequence_ranks(verify->job) > 1 && strstr(function->name, "copy") != NULL)
    return "ranks that divide positions have them in an order of their own";
  return NULL;
}

static bool compare_function(struct verification *verify, const struct verify_source *source,
                             const struct known_numbers *known, const struct kernel *kernel, int k) {
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
    const struct kernel_finding found = {.comparison = COMPARED_DIFFERS,
                                         .formula = "a function of its arguments",
                                         .where = "the same arguments give something else the second time",
                                         .worst = INFINITY};
    verify_note_function(verify, kernel->name, found);
  } else {
    struct kernel_finding found = kernel_compare(verify->scratch, kernel, rounds, ROUNDS, known);
    if (found.formula != NULL) found.formula = arena_string(verify->arena, found.formula);
    if (found.where != NULL) found.where = arena_string(verify->arena, found.where);
    verify_prove(verify, source, kernel, known, &found);
    verify_note_function(verify, kernel->name, found);
  }
  arena_reset(verify->scratch);
  return true;
}

/* A function that is too large to be run may be proved all the same. */
static void prove_unrun(struct verification *verify, const struct verify_source *source,
                        const struct known_numbers *known, const struct kernel *kernel) {
  struct kernel_finding found = {.comparison = COMPARED_UNKNOWN, .formula = "its arrays are too large", .variant = -1};
  verify_prove(verify, source, kernel, known, &found);
  verify_note_function(verify, kernel->name, found);
  arena_reset(verify->scratch);
}

bool verify_functions(struct verification *verify) {
  const struct verify_source source = verify_source(verify);
  const struct tree *tree = source.of.tree;
  struct {
    struct kernel *items;
    int count, capacity;
  } kernels = {0};
  if (tree == NULL) return verify_unknown(verify, "the program's functions cannot be read");
  double constants[MOST_CONSTANTS];
  struct known_draw draws[MOST_DRAWS];
  const struct known_numbers known = {.constants = constants,
                                      .n_constants = constants_of(verify, constants),
                                      .tables = verify->reading.tables,
                                      .convolutions = verify->reading.convolutions,
                                      .draws = draws,
                                      .n_draws = draws_of(verify, draws)};
  for (int i = 0; i < tree->n_functions; i++) {
    const struct function *function = tree->functions[i];
    struct kernel kernel;
    if (!kernel_from(tree, function, &kernel)) {
      verify->n_calling += function->body != NULL && !function->is_system && !function->is_inline;
      continue;
    }
    const char *why = why_by_ranks(verify, function);
    if (why == NULL) why = kernel_bound_wholes(&kernel);
    if (why == NULL && numbers_of(&kernel) > MOST_NUMBERS)
      prove_unrun(verify, &source, &known, &kernel);
    else if (why != NULL)
      note_unknown(verify, kernel.name, why);
    else
      ARENA_PUSH(verify->arena, kernels, kernel);
  }
  verify_prove_step(verify, &source);
  const struct update_probe update = verify_update_probe(verify, tree);
  if (update.why != NULL) note_unknown(verify, "update", update.why);
  if (kernels.count == 0 && update.why != NULL) return true;
  if (!write_probe(verify, tree, kernels.items, kernels.count, &update) || !verify_build_probe(verify)) return false;
  for (int k = 0; k < kernels.count; k++)
    if (!compare_function(verify, &source, &known, &kernels.items[k], k)) return false;
  return update.why != NULL || verify_update(verify, &source, &update);
}
