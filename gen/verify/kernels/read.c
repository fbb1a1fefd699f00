/* Which functions of a program are kernels: those over arrays of float or int32, and the key of random numbers. */
#include <stdio.h>
#include <string.h>

#include "gen/c/tree.h"
#include "gen/verify/kernels/kernels.h"

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
static bool is_workspace(const struct tree *tree, const struct function *function, const struct variable *parameter) {
  char name[256];
  snprintf(name, sizeof name, "%s_convolution", function->name);
  return strcmp(parameter->name, "workspace") == 0 && parameter->type->kind == TYPE_POINTER &&
         tree_variable(tree, name) != NULL;
}

/* Whether it is a key that random numbers are drawn under. */
static bool is_key(const struct variable *parameter) {
  const struct type *type = parameter->type;
  return strcmp(parameter->name, "stream") == 0 && type->kind == TYPE_INTEGER && type->size == 8 && !type->is_signed;
}

bool kernel_from(const struct tree *tree, const struct function *function, struct kernel *kernel) {
  bool writes = false;
  int64_t results = 0;
  if (function->body == NULL || function->is_system || function->is_inline || function->result->kind != TYPE_VOID ||
      function->n_parameters == 0 || function->n_parameters > MOST_ARRAYS)
    return false;
  *kernel = (struct kernel){.name = function->name, .workspace = -1, .key = -1};
  for (int i = 0; i < function->n_parameters; i++) {
    const struct variable *parameter = function->parameters[i];
    if (kernel->workspace < 0 && is_workspace(tree, function, parameter)) {
      kernel->workspace = i;
      continue;
    }
    if (kernel->key < 0 && is_key(parameter)) {
      kernel->key = i;
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
