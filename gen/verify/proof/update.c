#include "gen/verify/proof/update.h"

#include <math.h>
#include <string.h>

#include "gen/verify/proof/lift.h"

enum { FLOAT = 4, MOST_UPDATED = 3 };

/* An array of the arena: its first byte; -1: there is none. */
struct placed_array {
  int64_t first, size;
};

/* What the formula is over. Parameters of the function are memories 1 (the step), 2 (its rate) and 3 (the factor). */
struct updating {
  struct terms *terms;
  struct lift *lift;
  const struct job *job;
  bool scaled;
  struct placed_array gradients, arrays[MOST_UPDATED]; /* the weights, and the states in the order of the formula */
  int n_arrays, array;
};

/* An element as the formula has it: terms. */
struct element_terms {
  const struct term *weight, *states[MOST_UPDATED - 1];
};

/* ---- The formulas ---- */

static const struct term *linear(struct terms *terms, double a, const struct term *x, double b, const struct term *y) {
  return term_add(terms, term_scale(terms, x, a), term_scale(terms, y, b));
}

static const struct term *rate_of(const struct updating *u) {
  return term_read(u->terms, 2, term_number(u->terms, 0));
}

/* 1 - beta^t, where t is the step counted from 1. */
static const struct term *correction(const struct updating *u, double beta) {
  struct terms *terms = u->terms;
  const struct term *one = term_number(terms, 1);
  const struct term *t = term_add(terms, term_read(terms, 1, term_number(terms, 0)), one);
  return term_subtract(terms, one, term_exp(terms, term_scale(terms, t, log(beta))));
}

/* torch.optim.SGD. Its first step has no buffer, and takes the gradient as it is: without dampening that is the same as
 * a buffer of 0. */
static void sgd(const struct updating *u, struct element_terms *e, const struct term *g) {
  const double momentum = u->job->optimizer.numbers.momentum;
  struct terms *terms = u->terms;
  g = linear(terms, 1, g, u->job->optimizer.numbers.weight_decay, e->weight);
  if (momentum != 0) {
    e->states[0] = linear(terms, momentum, e->states[0], 1, g);
    g = u->job->optimizer.nesterov ? linear(terms, 1, g, momentum, e->states[0]) : e->states[0];
  }
  e->weight = term_subtract(terms, e->weight, term_multiply(terms, rate_of(u), g));
}

/* torch.optim.Adam. Its sqrt(v / c) is sqrt(v) / sqrt(c) here, which is the same since both are positive. */
static void step_by_moments(const struct updating *u, struct element_terms *e, const struct term *g) {
  const struct optimizer_numbers *of = &u->job->optimizer.numbers;
  struct terms *terms = u->terms;
  e->states[0] = linear(terms, of->beta1, e->states[0], 1 - of->beta1, g);
  e->states[1] = linear(terms, of->beta2, e->states[1], 1 - of->beta2, term_multiply(terms, g, g));
  const struct term *first = term_divide(terms, e->states[0], correction(u, of->beta1));
  const struct term *root =
      term_divide(terms, term_power(terms, e->states[1], 0.5), term_power(terms, correction(u, of->beta2), 0.5));
  const struct term *by = term_divide(terms, first, term_add(terms, root, term_number(terms, of->eps)));
  e->weight = term_subtract(terms, e->weight, term_multiply(terms, rate_of(u), by));
}

static void adam(const struct updating *u, struct element_terms *e, const struct term *g) {
  step_by_moments(u, e, linear(u->terms, 1, g, u->job->optimizer.numbers.weight_decay, e->weight));
}

/* torch.optim.AdamW */
static void adamw(const struct updating *u, struct element_terms *e, const struct term *g) {
  const struct term *decay = term_scale(u->terms, rate_of(u), u->job->optimizer.numbers.weight_decay);
  e->weight = term_subtract(u->terms, e->weight, term_multiply(u->terms, decay, e->weight));
  step_by_moments(u, e, g);
}

/* ---- The comparison ---- */

static const struct term *element_of(const struct updating *u, int64_t first, const struct term *offset) {
  return term_read(u->terms, lift_arena(u->lift), term_add(u->terms, offset, term_number(u->terms, (double)first)));
}

static bool compare(void *data, const struct term *byte) {
  const struct updating *u = data;
  struct terms *terms = u->terms;
  const struct term *found = lift_content(u->lift, lift_arena(u->lift), byte);
  const struct term *offset = term_subtract(terms, byte, term_number(terms, (double)u->arrays[u->array].first));
  const struct term *g = element_of(u, u->gradients.first, offset);
  struct element_terms e = {.weight = element_of(u, u->arrays[0].first, offset)};
  for (int i = 1; i < u->n_arrays; i++) e.states[i - 1] = element_of(u, u->arrays[i].first, offset);
  if (u->scaled) g = term_multiply(terms, g, term_read(terms, 3, term_number(terms, 0)));
  const enum optimizer_name name = u->job->optimizer.name;
  (name == OPTIMIZER_SGD ? sgd : name == OPTIMIZER_ADAM ? adam : adamw)(u, &e, g);
  const struct term *wanted = u->array == 0 ? e.weight : e.states[u->array - 1];
  if (terms_failure(terms) == NULL && found != wanted)
    terms_fail(terms, "its term has another form than the formula's");
  return terms_failure(terms) == NULL;
}

/* Whether bytes are in one of the arrays that the formula writes. */
static bool is_updated(void *data, double low, double high) {
  const struct updating *u = data;
  for (int i = 0; i < u->n_arrays; i++) {
    const struct placed_array *array = &u->arrays[i];
    if (low >= (double)array->first && high <= (double)(array->first + array->size - FLOAT)) return true;
  }
  return false;
}

/* ---- Its arrays ---- */

/* The array of floats of that name in a record or in unnamed ones in it, and how often it has that name. */
static int find_array(const struct type *record, const char *name, int64_t at, struct placed_array *found) {
  int count = 0;
  for (int i = 0; i < record->n_members; i++) {
    const struct member *member = &record->members[i];
    const struct type *type = member->type;
    if (member->name[0] == '\0' && type->kind == TYPE_RECORD)
      count += find_array(type, name, at + member->offset, found);
    if (strcmp(member->name, name) != 0) continue;
    if (type->kind != TYPE_ARRAY || type->element->kind != TYPE_REAL || type->element->size != FLOAT) continue;
    *found = (struct placed_array){at + member->offset, type->size};
    count++;
  }
  return count;
}

static bool find_arrays(const struct tree *tree, struct updating *u) {
  static const char *const names[MOST_UPDATED] = {"all_weights", "moment_1", "moment_2"};
  const struct variable *arena = tree_variable(tree, "arena");
  const struct type *record = arena != NULL && arena->type->kind == TYPE_POINTER ? arena->type->element : NULL;
  if (record == NULL || find_array(record, "all_gradients", 0, &u->gradients) != 1) return false;
  for (int i = 0; i < u->n_arrays; i++) {
    if (find_array(record, names[i], 0, &u->arrays[i]) != 1 || u->arrays[i].size != u->gradients.size) return false;
  }
  return true;
}

/* What of a job the formulas do not have. */
static const char *not_followed(const struct job *job) {
  const enum optimizer_name name = job->optimizer.name;
  if (name != OPTIMIZER_SGD && name != OPTIMIZER_ADAM && name != OPTIMIZER_ADAMW)
    return "there is no term of its optimizer";
  if (job->optimizer.dampening != 0) return "the first step has another formula";
  if (job->optimizer.n_groups > 0) return "groups of parameters have numbers of their own";
  if (job->optimizer.clip_grad_value != 0) return "each element of the gradient is clipped";
  return NULL;
}

const char *proof_of_update(struct arena *arena, const struct proof_source *source, const struct job *job) {
  const struct function *function = tree_function(source->tree, "update");
  struct updating u = {.terms = terms_in(arena), .job = job, .n_arrays = 3};
  const char *why = not_followed(job);
  if (why != NULL) return why;
  if (job->optimizer.name == OPTIMIZER_SGD) u.n_arrays = job->optimizer.numbers.momentum != 0 ? 2 : 1;
  if (function == NULL || function->body == NULL || function->n_parameters < 2 || function->n_parameters > 3)
    return "there is no function update(at, lr)";
  if (!find_arrays(source->tree, &u)) return "weights, gradients and states are not laid out alike";
  u.scaled = function->n_parameters == 3;
  u.lift = lift_function(arena, u.terms, source->tree, source->directives, function);
  if (terms_failure(u.terms) != NULL) return terms_failure(u.terms);
  const int64_t size = tree_variable(source->tree, "arena")->type->element->size;
  if (!lift_is_within(u.lift, lift_arena(u.lift), size, is_updated, &u)) return "it writes more than the formula";
  for (u.array = 0; u.array < u.n_arrays && terms_failure(u.terms) == NULL; u.array++)
    lift_places(u.lift, lift_arena(u.lift), u.arrays[u.array].first, u.arrays[u.array].size, compare, &u);
  return terms_failure(u.terms);
}
