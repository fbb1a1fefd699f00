#include "gen/audit/text/declarations.h"

#include <string.h>

#include "gen/audit/program/externals.h"
#include "gen/audit/program/grammar.h"

/* ---- Kinds ---- */

static void check_kind(struct audit *audit, struct claim *claim, const struct declaration *declaration) {
  const char *what = NULL;
  if (declaration->kind == DECLARATION_OTHER)
    what = "a declaration of no kind that is known";
  else if (declaration->is_of_code)
    what = "code computes the size of a type";
  else if (declaration->is_local && declaration->kind == DECLARATION_FUNCTION)
    what = "a function is declared inside another one";
  if (what != NULL) claim_finding(audit, claim, VERDICT_BROKEN, declaration->where, "%s", what);
}

/* A pointer to an array whose size code computes: the code stands in the type, which is not followed. */
static bool points_to_code(const struct type *type) {
  bool below = false;
  for (; type != NULL && (type->kind == TYPE_POINTER || type->kind == TYPE_ARRAY); type = type->element) {
    if (below && type->kind == TYPE_ARRAY && type->count < 0) return true;
    below = below || type->kind == TYPE_POINTER;
  }
  return false;
}

struct types {
  struct audit *audit;
  struct claim *claim;
};

static bool visit_type(struct syntax *node, void *data) {
  const struct types *types = data;
  bool cast = node->kind == SYNTAX_CAST || node->kind == SYNTAX_COMPOUND_LITERAL;
  bool declares = node->kind == SYNTAX_DECLARE && node->variable != NULL;
  if ((cast && points_to_code(node->type)) || (declares && points_to_code(node->variable->type)))
    claim_finding(types->audit, types->claim, VERDICT_BROKEN, node->where, "code computes the size of a type");
  return true;
}

/* ---- Names ---- */

/* A name that a library or the compiler's own runtime has. */
static bool is_owned(const char *name) {
  static const char *const starts[] = {"accel_", "omp_", "GOMP_", "kmp_",  "MPI_",
                                       "nccl",   "cuda", "hip",   "dnnl_", "cblas_"};
  if (external_is_listed(name) || grammar_is_reserved(name)) return true;
  for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
    if (strncmp(name, starts[i], strlen(starts[i])) == 0) return true;
  return false;
}

/* What others call: main, and of a program for GPUs the addition of shards, which the runtime declares. */
static bool is_for_others(const struct audit *audit, const char *name) {
  return strcmp(name, "main") == 0 || (audit->device != NULL && strcmp(name, "accel_add_shards") == 0);
}

static void check_name(struct audit *audit, struct claim *claim, const struct declaration *declaration) {
  bool function = declaration->kind == DECLARATION_FUNCTION, variable = declaration->kind == DECLARATION_VARIABLE;
  const char *name = declaration->name;
  if (!function && !variable) return;
  if (function && is_for_others(audit, name)) return;
  if ((function || declaration->is_external) && is_owned(name))
    claim_finding(audit, claim, VERDICT_BROKEN, declaration->where, "the name '%s' is a library's", name);
  else if (declaration->is_external && variable)
    claim_finding(audit, claim, VERDICT_BROKEN, declaration->where, "the linker sees the variable '%s'", name);
  else if (declaration->is_external && declaration->is_definition)
    claim_finding(audit, claim, VERDICT_BROKEN, declaration->where, "the linker sees the function '%s'", name);
  else if (declaration->is_external) {
    claim_fact(audit, claim, declaration->where, "'%s' is defined elsewhere", name);
    audit->n_elsewhere++;
  }
}

void declarations_check(struct audit *audit, struct claim *hidden, const struct tree *tree) {
  struct types types = {audit, hidden};
  for (int i = 0; i < tree->n_declarations; i++) check_kind(audit, hidden, &tree->declarations[i]);
  for (int i = 0; i < tree->n_functions; i++) syntax_visit(tree->functions[i]->body, visit_type, &types);
  struct claim *claim = audit_claim(
      audit, "main-alone",
      "The linker sees no name of the program but main and what the runtime calls, and none that it declares "
      "belongs to a library.");
  for (int i = 0; i < tree->n_declarations; i++) check_name(audit, claim, &tree->declarations[i]);
  claim_evidence(audit, claim, "%d declarations", tree->n_declarations);
}
