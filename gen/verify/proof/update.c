#include "gen/verify/proof/update.h"

#include <stdlib.h>
#include <string.h>

#include "gen/verify/proof/lift.h"
#include "gen/verify/proof/optimizers.h"
#include "gen/verify/rules/rules.h"

enum { FLOAT = 4, MOST_UPDATED = 2 + MOST_MOMENTS };

/* The parameters: where each begins in the weights, and the numbers that its optimizer has; the last one ends them. */
struct placed_parameters {
  struct placed_parameter {
    int64_t first;
    const struct optimizer_numbers *of;
  } *items;
  int count, capacity;
};

/* What the formula is over. Parameters of the function are memories 1 (the step), 2 (its rate) and 3 (the factor). */
struct updating {
  struct terms *terms;
  struct lift *lift;
  const struct job *job;
  struct placed_parameters parameters;
  const struct term *factor;                           /* that the gradient is multiplied by; NULL: none */
  struct placed_array gradients, arrays[MOST_UPDATED]; /* the weights, the states, and averages of the weights */
  int n_arrays, array, averages;                       /* averages: the number of their array; 0: there are none */
};

/* ---- The comparison ---- */

static const struct term *element_of(const struct updating *u, int64_t first, const struct term *offset) {
  return term_read(u->terms, lift_arena(u->lift), term_add(u->terms, offset, term_number(u->terms, (double)first)));
}

/* The numbers of the parameters that bytes of the weights are in, where those have all the same ones; NULL: they do
 * not.
 */
static const struct optimizer_numbers *numbers_at(const struct updating *u, const struct term *offset) {
  const struct optimizer_numbers *of = &u->job->optimizer.numbers;
  double low, high;
  term_range(offset, &low, &high);
  if (u->job->optimizer.n_groups == 0) return of;
  of = NULL;
  for (int i = 0; i < u->parameters.count; i++) {
    const struct placed_parameter *parameter = &u->parameters.items[i];
    const double next =
        i + 1 < u->parameters.count ? (double)parameter[1].first : (double)(u->arrays[0].first + u->arrays[0].size);
    if (high < (double)parameter->first || low >= next) continue;
    if (of != NULL && memcmp(of, parameter->of, sizeof *of) != 0) return NULL;
    of = parameter->of;
  }
  return of;
}

/* The term that the formula has for an element of the array at hand. */
static const struct term *wanted_at(const struct updating *u, const struct term *offset) {
  struct terms *terms = u->terms;
  const struct term *zero = term_number(terms, 0);
  struct update_terms step = {.terms = terms, .job = u->job, .factor = u->factor};
  struct element_terms e = {.weight = element_of(u, u->arrays[0].first, offset)};
  step.of = numbers_at(u, offset);
  step.at = term_read(terms, 1, zero);
  step.rate = term_read(terms, 2, zero);
  step.momenta = step.newest = term_symbol(terms);
  if (step.of == NULL) {
    terms_fail(terms, "parameters of several groups are updated alike");
    return zero;
  }
  for (int i = 0; i < update_moments(u->job); i++) e.moments[i] = element_of(u, u->arrays[1 + i].first, offset);
  update_element(&step, &e, element_of(u, u->gradients.first, offset));
  if (u->array == 0) return e.weight;
  if (u->array != u->averages) return e.moments[u->array - 1];
  const struct term *before = element_of(u, u->arrays[u->array].first, offset);
  const struct term *part = smoothing_term(terms, u->job, step.at);
  return term_add(terms, before, term_multiply(terms, part, term_subtract(terms, e.weight, before)));
}

static bool compare(void *data, const struct term *byte) {
  const struct updating *u = data;
  const struct term *found = lift_content(u->lift, lift_arena(u->lift), byte);
  const struct term *first = term_number(u->terms, (double)u->arrays[u->array].first);
  const struct term *wanted = wanted_at(u, term_subtract(u->terms, byte, first));
  if (terms_failure(u->terms) == NULL && found != wanted)
    terms_fail(u->terms, "its term has another form than the formula's");
  return terms_failure(u->terms) == NULL;
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

static bool find_arrays(const struct tree *tree, struct updating *u) {
  static const char *const names[] = {"all_weights", "moment_1", "moment_2", "moment_3", "all_averages"};
  const int moments = update_moments(u->job);
  if (!proof_arena_array(tree, "all_gradients", &u->gradients)) return false;
  if (u->job->training.ema.decay != 0) u->averages = 1 + moments;
  u->n_arrays = 1 + moments + (u->averages > 0);
  for (int i = 0; i < u->n_arrays; i++) {
    const char *name = names[i == u->averages && i > 0 ? MOST_UPDATED - 1 : i];
    if (!proof_arena_array(tree, name, &u->arrays[i]) || u->arrays[i].size != u->gradients.size) return false;
  }
  return true;
}

/* ---- Its parameters ---- */

static const struct syntax *row_of(const struct syntax *table, int i, int parts) {
  const struct syntax *row = i < table->n_parts ? table->parts[i] : NULL;
  return row != NULL && row->kind == SYNTAX_LIST && row->n_parts >= parts ? row : NULL;
}

static bool whole_of(const struct syntax *row, int part, int64_t *x) {
  const struct syntax *node = syntax_bare(row->parts[part]);
  *x = node->integer;
  return node->kind == SYNTAX_INTEGER;
}

static void add_parameter(struct arena *arena, struct updating *u, const char *name, int64_t first) {
  const struct optimizer_numbers *of = &u->job->optimizer.numbers;
  for (int i = u->job->optimizer.n_groups - 1; i >= 0; i--)
    if (rule_matches(u->job->optimizer.groups[i].match, name)) of = &u->job->optimizer.groups[i].numbers;
  ARENA_PUSH(arena, u->parameters, ((struct placed_parameter){first, of}));
}

/* The row of tensors' layers that a row of tensors begins; NULL: it is of no layers. */
static const struct syntax *layers_at(const struct tree *tree, int row) {
  const struct variable *layers = tree_variable(tree, "layers_of_tensors");
  int64_t first;
  for (int i = 0; layers != NULL && layers->initial != NULL && i < layers->initial->n_parts; i++) {
    const struct syntax *found = row_of(layers->initial, i, 6);
    if (found != NULL && whole_of(found, 0, &first) && first == row) return found;
  }
  return NULL;
}

/* The parameters of rows that layers repeat, of which each has the numbers of a first one, a count, a number of the
 * first layer, a number of layers, and the bytes from one to the next. */
static bool add_layers(struct arena *arena, struct updating *u, const struct syntax *table,
                       const struct syntax *layers) {
  int64_t numbers[5], alternates, offset;
  for (int k = 0; k < 5; k++)
    if (!whole_of(layers, k, &numbers[k])) return false;
  if (!whole_of(layers, 5, &alternates) || alternates != 0) return false;
  for (int64_t layer = 0; layer < numbers[3]; layer++)
    for (int64_t k = 0; k < numbers[1]; k++) {
      const struct syntax *row = row_of(table, (int)(numbers[0] + k), 2);
      const char *text = row != NULL ? row->parts[0]->text : NULL;
      const char *place = text != NULL ? strstr(text, "%d") : NULL;
      if (place == NULL || !whole_of(row, 1, &offset)) return false;
      const char *name = arena_printf(arena, "%.*s%lld%.*s", (int)(place - text - 1), text + 1,
                                      (long long)(numbers[2] + layer), (int)strlen(place + 2) - 1, place + 2);
      add_parameter(arena, u, name, offset + layer * numbers[4]);
    }
  return true;
}

static int compare_places(const void *a, const void *b) {
  const struct placed_parameter *x = a, *y = b;
  return (x->first > y->first) - (x->first < y->first);
}

/* By the program's table of tensors: name and place first in each row. */
static bool find_parameters(struct arena *arena, const struct tree *tree, struct updating *u) {
  const struct variable *tensors = tree_variable(tree, "tensors");
  const struct syntax *table = tensors != NULL ? tensors->initial : NULL;
  int64_t offset, rows;
  if (table == NULL || table->kind != SYNTAX_LIST) return false;
  for (int i = 0; i < table->n_parts; i++) {
    const struct syntax *row = row_of(table, i, 2), *layers = layers_at(tree, i);
    if (layers != NULL) {
      if (!add_layers(arena, u, table, layers) || !whole_of(layers, 1, &rows) || rows < 1) return false;
      i += (int)rows - 1;
      continue;
    }
    const char *text = row != NULL ? syntax_bare(row->parts[0])->text : NULL;
    if (text == NULL || text[0] != '"' || !whole_of(row, 1, &offset)) return false;
    add_parameter(arena, u, arena_printf(arena, "%.*s", (int)strlen(text) - 2, text + 1), offset);
  }
  if (u->parameters.count > 0)
    qsort(u->parameters.items, (size_t)u->parameters.count, sizeof *u->parameters.items, compare_places);
  return u->parameters.count > 0;
}

const char *proof_of_update(struct arena *arena, const struct proof_source *source, const struct job *job) {
  const struct function *function = tree_function(source->tree, "update");
  struct updating u = {.terms = terms_in(arena), .job = job};
  if (update_moments(job) < 0) return "there is no term of its optimizer";
  if (function == NULL || function->body == NULL || function->n_parameters < 2 || function->n_parameters > 3)
    return "there is no function update(at, lr)";
  if (!find_arrays(source->tree, &u)) return "weights, gradients and states are not laid out alike";
  if (job->optimizer.n_groups > 0 && !find_parameters(arena, source->tree, &u))
    return "its table of parameters is not followed";
  if (function->n_parameters == 3) u.factor = term_read(u.terms, 3, term_number(u.terms, 0));
  u.lift = lift_function(arena, u.terms, source->tree, source->directives, function);
  if (terms_failure(u.terms) != NULL) return terms_failure(u.terms);
  const int64_t size = tree_variable(source->tree, "arena")->type->element->size;
  if (!lift_is_within(u.lift, lift_arena(u.lift), size, is_updated, &u)) return "it writes more than the formula";
  for (u.array = 0; u.array < u.n_arrays && terms_failure(u.terms) == NULL; u.array++)
    lift_places(u.lift, lift_arena(u.lift), u.arrays[u.array].first, u.arrays[u.array].size, compare, &u);
  return terms_failure(u.terms);
}
