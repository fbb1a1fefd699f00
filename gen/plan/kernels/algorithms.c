#include "gen/plan/kernels/algorithms.h"

#include <string.h>

#include "gen/ir/op.h"
#include "gen/program/choose.h"
#include "gen/program/kernels.h"
#include "gen/program/library.h"
#include "gen/program/optimizers.h"
#include "gen/program/target.h"
#include "gen/tuning/tuning.h"

static const char *subject_of(const struct program *program, const char *what, bool rounds) {
  return arena_printf(program->arena, "%s, by the library%s%s", what,
                      rounds && program->job->precision.tf32 ? " in tf32" : "",
                      program->job->training.deterministic ? ", each element written once" : "");
}

/* The library's own choice, or what was measured. */
static const char *choose_algorithm(struct program *program, const char *subject) {
  const struct tuned *measured =
      program->choices.tuning != NULL ? tuning_find(program->choices.tuning, subject, tuned_threads(program), 0) : NULL;
  int n_variants = 1, count = measured != NULL ? measured->variants.count : 0;
  const char **variants = arena_alloc(program->arena, ((size_t)count + 1) * sizeof *variants);
  variants[0] = library_variant;
  for (int i = 0; i < count; i++)
    if (strcmp(measured->variants.items[i].variant, library_variant) != 0)
      variants[n_variants++] = measured->variants.items[i].variant;
  return choose(program, subject, "algorithm", variants, n_variants);
}

static void add(struct program *program, struct library_gemm gemm) {
  gemm.algorithm = choose_algorithm(program, gemm.subject);
  ARENA_PUSH(program->arena, program->library.gemms, gemm);
}

static double flops_of(const struct op_gemm *gemm) {
  return 2 * (double)gemm->rows * (double)gemm->depth * (double)gemm->columns;
}

static double bytes_of(const struct op_gemm *gemm) {
  return (double)((gemm->rows + gemm->columns) * gemm->depth * dtype_size(gemm->factors) +
                  gemm->rows * gemm->columns * dtype_size(gemm->result));
}

/* A kernel that is one matmul, which has the kernel's name. */
static void add_whole(struct program *program, const struct kernel *kernel) {
  const char *subject = subject_of(program, kernel->subject, kernel->inputs[0].dtype == DTYPE_FLOAT32);
  add(program, (struct library_gemm){.name = kernel->name,
                                     .subject = subject,
                                     .kernel = kernel,
                                     .part = "gemm",
                                     .flops = op_flops(kernel->node),
                                     .bytes = kernel_bytes(kernel)});
}

static void add_parts(struct program *program, const struct kernel *kernel) {
  struct op_gemm parts[MAX_GEMMS];
  int count = kernel->node->kind->library.gemms(kernel->node, parts);
  for (int i = 0; i < count; i++) {
    const char *what = arena_printf(program->arena, "%s of %s", parts[i].name, kernel->subject);
    const char *name = arena_printf(program->arena, "%s_%s", kernel->name, parts[i].name);
    add(program, (struct library_gemm){.name = name,
                                       .subject = subject_of(program, what, parts[i].factors == DTYPE_FLOAT32),
                                       .kernel = kernel,
                                       .part = parts[i].name,
                                       .flops = flops_of(&parts[i]),
                                       .bytes = bytes_of(&parts[i])});
  }
}

static bool is_there(const struct program *program, const char *name) {
  for (int i = 0; i < program->library.gemms.count; i++)
    if (strcmp(program->library.gemms.items[i].name, name) == 0) return true;
  return false;
}

/* Those of the optimizer's step of a matrix, in float32. */
static void add_round(struct program *program, const struct flat_range *matrix) {
  struct op_gemm round[GEMMS_OF_ROUND];
  optimizer_round(matrix, round);
  for (int i = 0; i < GEMMS_OF_ROUND; i++) {
    const char *name = arena_printf(program->arena, "%s_%lldx%lld", round[i].name, (long long)matrix->rows,
                                    (long long)matrix->columns);
    if (is_there(program, name)) continue;
    const char *what = arena_printf(program->arena, "%s of %s", name, job_optimizer(program->job)->name);
    add(program, (struct library_gemm){.name = name,
                                       .subject = subject_of(program, what, false),
                                       .part = name,
                                       .flops = flops_of(&round[i]),
                                       .bytes = bytes_of(&round[i])});
  }
}

void choose_algorithms(struct program *program) {
  if (!program->target->library.has_algorithms) return;
  for (int i = 0; i < program->kernels.count; i++) {
    const struct op_kind *kind = program->kernels.items[i]->node->kind;
    if (kind->library.gemms != NULL) add_parts(program, program->kernels.items[i]);
    if (kind->library.matmul || kind->library.epilogues != 0) add_whole(program, program->kernels.items[i]);
  }
  if (program->kind != PROGRAM_TRAIN || !optimizer_steps_matrices(program->job)) return;
  for (int i = 0; i < program->optimizer.tensors.count; i++) add_round(program, &program->optimizer.tensors.items[i]);
}
