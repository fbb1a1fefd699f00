#include "gen/emit/stablehlo/rule.h"

#include <string.h>

#include "gen/c/parse.h"
#include "gen/emit/stablehlo/writing.h"

struct names {
  const char **items;
  int count, capacity;
};

struct rule {
  struct arena *arena;
  struct diagnostics *diags;
  const struct function *clip;
  const struct function *update[HLO_RULES];
  struct syntax *element; /* the loop over elements */
  struct names numbers[HLO_RULES];
};

/* ---- Reading ---- */

static bool is_array(const struct variable *variable) {
  return variable->type->kind == TYPE_POINTER && variable->type->element->kind == TYPE_REAL;
}

static bool is_factor(const char *name) {
  return strcmp(name, "factor") == 0;
}

static void note(struct rule *rule, struct names *names, const char *name) {
  for (int i = 0; i < names->count; i++)
    if (strcmp(names->items[i], name) == 0) return;
  ARENA_PUSH(rule->arena, *names, name);
}

static bool find_element(struct syntax *node, void *data) {
  struct rule *rule = data;
  if (node->kind == SYNTAX_FOR && rule->element == NULL) rule->element = node;
  return true;
}

/* Whether the block declares it: several variables of one declaration are a block, too. */
static bool declares(const struct syntax *block, const struct variable *variable) {
  for (int i = 0; i < block->n_parts; i++) {
    const struct syntax *part = block->parts[i];
    if (part->kind == SYNTAX_DECLARE && part->variable == variable) return true;
    if (part->kind == SYNTAX_BLOCK && declares(part, variable)) return true;
  }
  return false;
}

/* Collects the numbers that the loop over elements uses: what it does not declare. */
static bool note_of_element(struct syntax *node, void *data) {
  struct rule *rule = data;
  if (node->kind == SYNTAX_DECLARE) {
    if (node->variable->initial != NULL) syntax_visit(node->variable->initial, note_of_element, rule);
    return false;
  }
  if (node->kind == SYNTAX_INDEX) return false;
  if (node->kind != SYNTAX_VARIABLE) return true;
  const struct variable *variable = node->variable;
  if (!is_array(variable) && !is_factor(variable->name) && !declares(rule->element->parts[3], variable))
    note(rule, &rule->numbers[HLO_ELEMENTS], variable->name);
  return true;
}

static bool is_extent(const char *name) {
  static const char *const extents[] = {"count", "matrices", "rows", "columns"};
  for (size_t i = 0; i < sizeof extents / sizeof *extents; i++)
    if (strcmp(extents[i], name) == 0) return true;
  return false;
}

static bool is_of_row(const struct syntax *node) {
  const struct syntax *row = node->kind == SYNTAX_MEMBER ? node->parts[0] : NULL;
  while (row != NULL && (row->kind == SYNTAX_UNARY || row->kind == SYNTAX_CAST)) row = row->parts[0];
  return row != NULL && row->kind == SYNTAX_VARIABLE && strcmp(row->variable->name, "tensor") == 0 &&
         node->type->kind == TYPE_REAL;
}

/* The same of functions over a parameter: what is declared elsewhere, and members of its row. */
static bool note_of_tensor(struct syntax *node, void *data) {
  struct rule *rule = data;
  struct names *numbers = &rule->numbers[HLO_TENSORS];
  if (node->kind == SYNTAX_DECLARE && node->variable->initial != NULL)
    syntax_visit(node->variable->initial, note_of_tensor, rule);
  if (node->kind == SYNTAX_CALL && node->function != NULL && node->function->body != NULL)
    syntax_visit(node->function->body, note_of_tensor, rule);
  if (node->kind == SYNTAX_CALL && node->function != NULL && strcmp(node->function->name, "weight_decay") == 0) {
    note(rule, numbers, node->function->name);
    return false;
  }
  if (is_of_row(node) && !is_extent(node->text)) note(rule, numbers, node->text);
  if (node->kind == SYNTAX_VARIABLE && node->variable->is_external && node->variable->type->kind != TYPE_POINTER &&
      !is_factor(node->variable->name))
    note(rule, numbers, node->variable->name);
  return true;
}

/* ---- What the module asks ---- */

static struct writing begin(const struct rule *rule, struct stablehlo *hlo, int which, const struct hlo_update *of) {
  const struct names *numbers = &rule->numbers[which];
  struct writing writing = {.hlo = hlo, .arena = rule->arena, .diags = rule->diags};
  if (of == NULL) return writing;
  writing.factor = of->factor;
  writing.number_names = numbers->items;
  writing.numbers = of->numbers;
  writing.n_numbers = numbers->count;
  return writing;
}

static void update_elements(void *context, struct stablehlo *hlo, struct hlo_update *of) {
  const struct rule *rule = context;
  struct writing writing = begin(rule, hlo, HLO_ELEMENTS, of);
  writing_set_array(&writing, "gradients", of->gradient);
  for (int i = 0; i < of->n_arrays; i++) writing_set_array(&writing, of->names[i], of->arrays[i]);
  writing_statement(&writing, rule->element);
  if (writing.failed) return;
  for (int i = 0; i < of->n_arrays; i++) of->arrays[i] = writing_array(&writing, of->names[i])->tensor;
}

/* An array of a parameter by matrices, rows and columns, where it has them; else in one row. */
static struct hlo view(struct stablehlo *hlo, const struct hlo_weight *weight, struct hlo x) {
  const int rank = x.shape.rank;
  if (weight->rows == 0) return hlo_reshape(hlo, x, shape_of(3, (int64_t)1, (int64_t)1, shape_count(x.shape)));
  return hlo_reshape(hlo, x, shape_of(3, weight->matrices, x.shape.dim[rank - 2], x.shape.dim[rank - 1]));
}

static void update_tensor(void *context, struct stablehlo *hlo, struct hlo_update *of) {
  const struct rule *rule = context;
  struct writing writing = begin(rule, hlo, HLO_TENSORS, of);
  writing.weight = of->weight;
  writing_set_array(&writing, "gradients", view(hlo, of->weight, of->gradient));
  for (int i = 0; i < of->n_arrays; i++)
    writing_set_array(&writing, of->names[i], view(hlo, of->weight, of->arrays[i]));
  writing_statement(&writing, rule->update[HLO_TENSORS]->body);
  if (writing.failed) return;
  for (int i = 0; i < of->n_arrays; i++)
    of->arrays[i] = hlo_reshape(hlo, writing_array(&writing, of->names[i])->tensor, of->arrays[i].shape);
}

static struct hlo factor(void *context, struct stablehlo *hlo, struct hlo norm) {
  const struct rule *rule = context;
  struct writing writing = begin(rule, hlo, HLO_ELEMENTS, NULL);
  writing_set(&writing, rule->clip->parameters[0], norm);
  return writing_operand(&writing, rule->clip->body->parts[0]->parts[0]);
}

static const struct tree *parse(struct arena *arena, const char *text, struct diagnostics *diags) {
  static const char *const flags[] = {"-std=c17"};
  const struct parse_request request = {.file = "rule.c", .text = text, .flags = flags, .n_flags = 1};
  const struct tree *tree = tree_parse(arena, &request, diags);
  if (tree == NULL || !tree_has_errors(tree)) return tree;
  for (int i = 0; i < tree->n_messages; i++) diag_error(diags, tree->messages[i].where, "%s", tree->messages[i].text);
  return NULL;
}

static struct hlo_rule rule_of(struct rule *rule, int which) {
  static const char *const names[] = {"update", "update_tensor"}, *const inputs[] = {"numbers", "tensor_numbers"};
  return (struct hlo_rule){.name = names[which],
                           .input = inputs[which],
                           .numbers = rule->numbers[which].items,
                           .n_numbers = rule->numbers[which].count,
                           .rows = 1,
                           .context = rule,
                           .update = which == HLO_ELEMENTS ? update_elements : update_tensor};
}

bool rule_read(struct arena *arena, const char *text, struct hlo_step *step, struct diagnostics *diags) {
  const struct tree *tree = parse(arena, text, diags);
  struct rule *rule = arena_alloc(arena, sizeof *rule);
  if (tree == NULL) return false;
  *rule = (struct rule){.arena = arena, .diags = diags, .clip = tree_function(tree, "clip_factor")};
  rule->update[HLO_ELEMENTS] = tree_function(tree, "update");
  rule->update[HLO_TENSORS] = tree_function(tree, "update_tensor");
  if (rule->update[HLO_ELEMENTS] != NULL) {
    syntax_visit(rule->update[HLO_ELEMENTS]->body, find_element, rule);
    syntax_visit(rule->element->parts[3], note_of_element, rule);
  }
  if (rule->update[HLO_TENSORS] != NULL) syntax_visit(rule->update[HLO_TENSORS]->body, note_of_tensor, rule);
  for (int i = 0; i < HLO_RULES; i++) step->rules[i] = rule_of(rule, i);
  step->scales = rule->clip != NULL;
  step->context = rule;
  step->factor = factor;
  return true;
}
