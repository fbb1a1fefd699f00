#include "gen/verify/proof/proof.h"

#include <string.h>

#include "gen/verify/kernels/chain.h"

enum { FLOAT = 4 };

bool proof_is(const struct proof *p, int array, const char *name) {
  return strcmp(p->kernel->arrays[array].name, name) == 0;
}

const struct term *proof_element(struct proof *p, const char *name, const struct term *i) {
  const int array = kernel_array_of(p->kernel, name);
  if (array < 0) {
    terms_fail(p->terms, "an array of the formula is not there");
    return i;
  }
  return term_read(p->terms, p->memories[array], term_scale(p->terms, i, FLOAT));
}

int64_t proof_count(const struct proof *p, const char *name) {
  const int array = kernel_array_of(p->kernel, name);
  return array < 0 ? 0 : p->kernel->arrays[array].count;
}

static const struct term *divided(struct proof *p, const struct term *e, int64_t by, bool row) {
  const struct term *quotient, *rest;
  if (by > 0 && term_divided(p->terms, e, (double)by, &quotient, &rest)) return row ? quotient : rest;
  terms_fail(p->terms, "its loops go otherwise over rows than the formula does");
  return e;
}

const struct term *proof_row(struct proof *p, const struct term *e, int64_t by) {
  return divided(p, e, by, true);
}

const struct term *proof_column(struct proof *p, const struct term *e, int64_t by) {
  return divided(p, e, by, false);
}

const struct term *proof_index(struct proof *p, const struct term *row, int64_t width, const struct term *column) {
  return term_add(p->terms, term_scale(p->terms, row, (double)width), column);
}

/* ---- Arrays of the arena ---- */

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

bool proof_arena_array(const struct tree *tree, const char *name, struct placed_array *found) {
  const struct variable *arena = tree_variable(tree, "arena");
  const struct type *record = arena != NULL && arena->type->kind == TYPE_POINTER ? arena->type->element : NULL;
  return record != NULL && find_array(record, name, 0, found) == 1;
}

/* ---- The comparison ---- */

struct comparing {
  struct proof proof;
  struct lift *lift;
  proof_formula *formula;
  int array;
};

static bool compare(void *data, const struct term *byte) {
  struct comparing *c = data;
  struct proof *p = &c->proof;
  const struct term *e = term_scale(p->terms, byte, 1.0 / FLOAT);
  const struct term *found = lift_content(c->lift, p->memories[c->array], byte);
  const struct term *wanted = terms_failure(p->terms) == NULL ? c->formula(p, c->array, e) : NULL;
  if (terms_failure(p->terms) == NULL && found != wanted)
    terms_fail(p->terms, "its term has another form than the formula's");
  return terms_failure(p->terms) == NULL;
}

/* The formula of a name, and how many variants it has. */
static proof_formula *formula_of(const struct comparing *c, int *variants) {
  static const struct proof_named_formula *const lists[] = {proof_formulas, proof_norm_formulas, proof_loss_formulas};
  char stem[128];
  int64_t dims[8];
  kernel_stem(c->proof.kernel->name, stem, dims);
  for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
    for (const struct proof_named_formula *at = lists[k]; at->stem != NULL; at++) {
      if (strcmp(at->stem, stem) != 0) continue;
      *variants = at->variants > 0 ? at->variants : c->proof.known->n_constants;
      return at->formula;
    }
  *variants = kernel_chain_guesses(c->proof.kernel, c->proof.known);
  return *variants > 0 ? proof_chain : NULL;
}

/* The memories of the arrays: the function's parameters, of which one may be room to compute in. */
static void find_memories(struct proof *p) {
  int next = 0;
  for (int i = 0; next < p->kernel->n_arrays; i++)
    if (i != p->kernel->workspace && i != p->kernel->key) p->memories[next++] = i + 1;
}

/* Compares all arrays with one variant of the formula. */
static const char *try_variant(struct comparing *c) {
  const struct kernel *kernel = c->proof.kernel;
  for (c->array = 0; c->array < kernel->n_arrays && terms_failure(c->proof.terms) == NULL; c->array++)
    if (kernel->arrays[c->array].written)
      lift_places(c->lift, c->proof.memories[c->array], 0, kernel->arrays[c->array].count * FLOAT, compare, c);
  return terms_failure(c->proof.terms);
}

const char *proof_of_kernel(struct arena *arena, const struct proof_source *source, const struct function *function,
                            const struct kernel *kernel, struct kernel_finding *found,
                            const struct known_numbers *known) {
  char stem[128];
  int variants;
  struct terms *terms = terms_in(arena);
  struct comparing c = {.proof = {.terms = terms, .kernel = kernel, .known = known}};
  c.proof.n_dims = kernel_stem(kernel->name, stem, c.proof.dims);
  c.proof.variant = found->variant;
  c.proof.chain = found->chain;
  c.formula = formula_of(&c, &variants);
  if (c.formula == NULL || (c.formula == proof_chain && found->variant >= 0 && found->chain == NULL))
    return "there is no term of its formula";
  find_memories(&c.proof);
  c.lift = lift_function(arena, terms, source->tree, source->directives, function);
  if (found->variant >= 0 || terms_failure(terms) != NULL) return try_variant(&c);
  const char *why = "its name has no formula";
  for (int variant = 0; variant < variants && why != NULL; variant++) {
    struct chain chain;
    c.proof.variant = variant;
    c.proof.chain = &chain;
    if (c.formula == proof_chain && !kernel_chain_guess(kernel, known, variant, &chain)) continue;
    why = try_variant(&c);
    terms_forget_failure(terms);
    if (why == NULL) found->variant = variant;
  }
  return why;
}
