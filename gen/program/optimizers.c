#include "gen/program/optimizers.h"

#include <string.h>

#include "gen/program/storage.h"

static const struct optimizer optimizers[] = {
    [OPTIMIZER_SGD] = {.name = "sgd", .coupled = true},
    [OPTIMIZER_ADAM] = {"adam", {"exp_avg", "exp_avg_sq"}, .coupled = true, .counts_steps = true},
    [OPTIMIZER_ADAMW] = {"adamw", {"exp_avg", "exp_avg_sq"}, .counts_steps = true},
    [OPTIMIZER_ADAMAX] = {"adamax", {"exp_avg", "exp_inf"}, .coupled = true, .counts_steps = true},
    [OPTIMIZER_NADAM] = {"nadam", {"exp_avg", "exp_avg_sq"}, .coupled = true, .counts_steps = true},
    [OPTIMIZER_RADAM] = {"radam", {"exp_avg", "exp_avg_sq"}, .coupled = true, .counts_steps = true},
    [OPTIMIZER_ADAGRAD] = {"adagrad", {"sum"}, .coupled = true},
    [OPTIMIZER_ADADELTA] = {"adadelta", {"square_avg", "acc_delta"}, .coupled = true},
    [OPTIMIZER_RMSPROP] = {"rmsprop", {"square_avg"}, .coupled = true},
    [OPTIMIZER_LION] = {.name = "lion", .states = {"exp_avg"}},
    [OPTIMIZER_LAMB] = {"lamb", {"exp_avg", "exp_avg_sq"}, BY_TENSOR, .counts_steps = true},
    [OPTIMIZER_ADAFACTOR] = {.name = "adafactor",
                             .reach = BY_TENSOR,
                             .factors = {"row_var", "col_var", "variance"},
                             .counts_steps = true},
    [OPTIMIZER_SCHEDULE_FREE_ADAMW] = {"schedule_free_adamw",
                                       {"z", "exp_avg_sq"},
                                       .averages = true,
                                       .counts_steps = true},
    [OPTIMIZER_LOMO] = {.name = "lomo", .reach = BY_TENSOR, .in_backward = true},
    [OPTIMIZER_ADALOMO] = {.name = "adalomo",
                           .reach = BY_TENSOR,
                           .factors = {"exp_avg_sq_row", "exp_avg_sq_col", "exp_avg_sq"},
                           .in_backward = true,
                           .counts_steps = true},
    [OPTIMIZER_MUON] = {.name = "muon", .reach = BY_MATRIX, .counts_steps = true},
};

const struct optimizer *job_optimizer(const struct job *job) {
  return &optimizers[job->optimizer.name];
}

/* Whether any parameter has a momentum. */
static bool has_momentum(const struct job *job) {
  for (int g = 0; g < job->optimizer.n_groups; g++)
    if (job->optimizer.groups[g].numbers.momentum != 0) return true;
  return job->optimizer.numbers.momentum != 0;
}

/* The schema allows it only for those that have a momentum, or can be centered. */
int optimizer_state_names(const struct job *job, const char *names[MAX_OPTIMIZER_STATES]) {
  const struct optimizer *optimizer = job_optimizer(job);
  int count = 0;
  while (count < MAX_OPTIMIZER_STATES && optimizer->states[count] != NULL) {
    names[count] = optimizer->states[count];
    count++;
  }
  if (job->optimizer.centered) names[count++] = "grad_avg";
  if (has_momentum(job) && optimizer->reach == BY_ELEMENT) names[count++] = "momentum_buffer";
  return count;
}

int optimizer_states(const struct job *job) {
  const char *names[MAX_OPTIMIZER_STATES];
  return optimizer_state_names(job, names);
}

enum state_dtype optimizer_state_dtype(const struct job *job) {
  return optimizer_states(job) > 0 ? job->optimizer.state_dtype : STATE_FLOAT32;
}

bool optimizer_state_is_size(const char *name) {
  static const char *const sizes[] = {"exp_avg_sq", "exp_inf", "sum", "square_avg", "acc_delta"};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    if (strcmp(sizes[i], name) == 0) return true;
  return false;
}

bool optimizer_is_by_tensor(const struct job *job) {
  return job_optimizer(job)->reach != BY_ELEMENT;
}

bool optimizer_steps_matrices(const struct job *job) {
  return job_optimizer(job)->reach == BY_MATRIX;
}

bool optimizer_packs_moments(const struct job *job) {
  return optimizer_steps_matrices(job) || optimizer_state_dtype(job) == STATE_8BIT;
}

bool optimizer_counts_steps(const struct job *job) {
  bool dampens = has_momentum(job) && job->optimizer.dampening != 0; /* from the second step on */
  return job_optimizer(job)->counts_steps || dampens;
}

struct optimizer_gemms optimizer_gemms(const struct program *program) {
  struct optimizer_gemms gemms = {0};
  for (int i = 0; i < program->optimizer.tensors.count && optimizer_steps_matrices(program->job); i++) {
    const struct flat_range *range = &program->optimizer.tensors.items[i];
    int64_t least = range->rows < range->columns ? range->rows : range->columns;
    if (range->rows * range->columns > gemms.matrix) gemms.matrix = range->rows * range->columns;
    if (least * least > gemms.square) gemms.square = least * least;
  }
  return gemms;
}

/* s = x x' from the side on which that is smaller, p = s s, and p x or x p. */
void optimizer_round(const struct flat_range *matrix, struct op_gemm gemms[GEMMS_OF_ROUND]) {
  const int64_t rows = matrix->rows, columns = matrix->columns;
  const int64_t least = rows < columns ? rows : columns, most = rows < columns ? columns : rows;
  const enum dtype type = DTYPE_FLOAT32;
  gemms[0] = (struct op_gemm){"square", least, most, least, type, type};
  gemms[1] = (struct op_gemm){"power", least, least, least, type, type};
  gemms[2] = (struct op_gemm){"product", rows, least, columns, type, type};
}

int64_t optimizer_scratch(const struct program *program) {
  struct optimizer_gemms gemms = optimizer_gemms(program);
  int64_t size = dtype_size(DTYPE_FLOAT32);
  return 2 * (arena_aligned(gemms.matrix * size) + arena_aligned(gemms.square * size));
}

bool same_numbers(const struct optimizer_numbers *a, const struct optimizer_numbers *b) {
  return a->lr_scale == b->lr_scale && a->weight_decay == b->weight_decay && a->beta1 == b->beta1 &&
         a->beta2 == b->beta2 && a->eps == b->eps && a->momentum == b->momentum;
}
