#include "gen/verify/proof/step.h"

#include "gen/verify/proof/optimizers.h"
#include "gen/verify/proof/schedule.h"

/* A function of a step as it is proved: the term of its formula, by its first parameter, which is memory 1. */
struct stepping_function {
  struct terms *terms;
  const struct tree *tree;
  const struct job *job;
  int gradients; /* the memory that they are in */
};

static const struct term *parameter_of(const struct stepping_function *f) {
  return term_read(f->terms, 1, term_number(f->terms, 0));
}

static const struct term *rate(const struct stepping_function *f) {
  return rate_term(f->terms, f->job, parameter_of(f));
}

static const struct term *clipping(const struct stepping_function *f) {
  return clipping_term(f->terms, f->job, parameter_of(f));
}

static const struct term *smoothing(const struct stepping_function *f) {
  return smoothing_term(f->terms, f->job, parameter_of(f));
}

/* Whether a rank may have a part of the gradient alone. */
static bool has_part(const struct job *job) {
  const int64_t *axes = job->parallelism.axes;
  return axes[AXIS_DP_SHARD] > 1 || axes[AXIS_TP] > 1 || axes[AXIS_PP] > 1 || axes[AXIS_EP] > 1;
}

/* The root of the sum of squares of the whole gradient, times what it is multiplied by. */
static const struct term *norm(const struct stepping_function *f) {
  enum { FLOAT = 4 };
  struct placed_array all;
  struct terms *terms = f->terms;
  if (f->job->optimizer.norm_type != NORM_2 || has_part(f->job) || !proof_arena_array(f->tree, "all_gradients", &all)) {
    terms_fail(terms, "there is no term of its norm");
    return term_number(terms, 0);
  }
  const struct term *i = term_variable(terms, all.size / FLOAT);
  const struct term *byte = term_add(terms, term_scale(terms, i, FLOAT), term_number(terms, (double)all.first));
  const struct term *element = term_read(terms, f->gradients, byte);
  if (tree_function(f->tree, "gradient_norm")->n_parameters > 0)
    element = term_multiply(terms, element, parameter_of(f));
  return term_power(terms, term_sum(terms, term_multiply(terms, element, element), term_atom(i)), 0.5);
}

static const struct term *(*const formulas[])(const struct stepping_function *f) = {rate, norm, clipping, smoothing};

const struct step_function step_functions[] = {
    {"learning_rate", "the rate of each step, as the schedule says"},
    {"gradient_norm", "the root of the sum of the gradient's squares"},
    {"clip_factor", "min(clip_grad_norm / (norm + 1e-6), 1)"},
    {"smoothing_factor", "what goes into the averages of the weights after each step"},
    {NULL, NULL},
};

const char *proof_of_step_function(struct arena *arena, const struct proof_source *source, const struct job *job,
                                   int number) {
  const struct function *function = tree_function(source->tree, step_functions[number].name);
  struct stepping_function f = {.terms = terms_in(arena), .tree = source->tree, .job = job};
  if (function == NULL || function->body == NULL || function->n_parameters > 1)
    return "there is no such function of one number";
  struct lift *lift = lift_function(arena, f.terms, source->tree, source->directives, function);
  f.gradients = lift_arena(lift);
  if (terms_failure(f.terms) != NULL) return terms_failure(f.terms);
  if (lift_writes(lift)) return "it writes what is not its own";
  const struct term *wanted = formulas[number](&f), *found = lift_result(lift);
  if (terms_failure(f.terms) == NULL && found != wanted) return "its term has another form than the formula's";
  return terms_failure(f.terms);
}
