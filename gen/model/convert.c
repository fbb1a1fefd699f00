/* Functions and variables: the outline of a model. */
#include "gen/model/convert.h"

#include <string.h>

const char *convert_string(struct converter *converter, CXString string) {
  const char *text = clang_getCString(string);
  const char *copy = arena_string(converter->arena, text == NULL ? "" : text);
  clang_disposeString(string);
  return copy;
}

struct child_list {
  struct converter *converter;
  struct cursors cursors;
};

static enum CXChildVisitResult add_child(CXCursor cursor, CXCursor parent, CXClientData data) {
  struct child_list *list = data;
  (void)parent;
  ARENA_PUSH(list->converter->arena, list->cursors, cursor);
  return CXChildVisit_Continue;
}

struct cursors convert_children(struct converter *converter, CXCursor cursor) {
  struct child_list list = {.converter = converter};
  clang_visitChildren(cursor, add_child, &list);
  return list.cursors;
}

struct syntax *convert_node(struct converter *converter, enum syntax_kind kind, CXCursor cursor, int n_parts) {
  struct syntax *node = arena_alloc(converter->arena, sizeof *node);
  node->kind = kind;
  node->where = convert_range(converter, clang_getCursorExtent(cursor));
  node->type = &ctype_void;
  node->n_parts = n_parts;
  node->parts = arena_alloc(converter->arena, ((size_t)n_parts + 1) * sizeof(struct syntax *));
  return node;
}

struct syntax *convert_unsupported(struct converter *converter, CXCursor cursor, const char *what, const char *help) {
  struct syntax *node = convert_node(converter, SYNTAX_UNSUPPORTED, cursor, 0);
  node->text = what;
  node->help = help;
  return node;
}

struct function *program_function(const struct model *program, const char *name) {
  for (int i = 0; i < program->n_functions; i++)
    if (strcmp(program->functions[i]->name, name) == 0) return program->functions[i];
  return NULL;
}

/* ---- Variables ---- */

struct variable *convert_find(const struct converter *converter, CXCursor declaration) {
  for (int i = converter->variables.count - 1; i >= 0; i--)
    if (clang_equalCursors(converter->variables.items[i].cursor, declaration))
      return converter->variables.items[i].variable;
  return NULL;
}

static struct variable *declare(struct converter *converter, CXCursor cursor) {
  struct variable *variable = arena_alloc(converter->arena, sizeof *variable);
  variable->name = convert_string(converter, clang_getCursorSpelling(cursor));
  variable->type = convert_type(converter, clang_getCursorType(cursor));
  variable->where = convert_location(converter, clang_getCursorLocation(cursor));
  variable->where.length = (int)strlen(variable->name);
  struct declared item = {cursor, variable};
  ARENA_PUSH(converter->arena, converter->variables, item);
  return variable;
}

static void add_lasting(struct converter *converter, struct variable *variable) {
  struct model *program = converter->program;
  program->lasting = arena_grow(converter->arena, program->lasting, program->n_lasting, &program->lasting_capacity,
                                sizeof *program->lasting);
  variable->lasting = true;
  variable->slot = program->n_lasting;
  program->lasting[program->n_lasting++] = variable;
}

/* The sizes of a variable-length array: the expressions below its declaration that are not the initial value. */
static void convert_sizes(struct converter *converter, CXCursor cursor, struct variable *variable) {
  if (clang_getCanonicalType(clang_getCursorType(cursor)).kind != CXType_VariableArray) return;
  struct cursors children = convert_children(converter, cursor);
  variable->sizes = arena_alloc(converter->arena, ((size_t)children.count + 1) * sizeof(struct syntax *));
  for (int i = 0; i < children.count; i++)
    if (convert_is_expression(children.items[i]))
      variable->sizes[variable->n_sizes++] = convert_expression(converter, children.items[i]);
}

struct variable *convert_variable(struct converter *converter, CXCursor cursor) {
  struct variable *variable = convert_find(converter, cursor);
  if (variable != NULL) return variable;
  variable = declare(converter, cursor);
  convert_sizes(converter, cursor, variable);
  CXCursor initial = clang_Cursor_getVarDeclInitializer(cursor);
  if (!clang_Cursor_isNull(initial)) variable->initial = convert_expression(converter, initial);
  bool local = converter->function != NULL && clang_Cursor_getStorageClass(cursor) != CX_SC_Static &&
               clang_Cursor_getStorageClass(cursor) != CX_SC_Extern;
  if (local)
    variable->slot = converter->function->n_slots++;
  else
    add_lasting(converter, variable);
  return variable;
}

/* ---- Functions ---- */

static void declare_function(struct converter *converter, CXCursor cursor) {
  struct model *program = converter->program;
  struct function *function = arena_alloc(converter->arena, sizeof *function);
  function->name = convert_string(converter, clang_getCursorSpelling(cursor));
  function->where = convert_location(converter, clang_getCursorLocation(cursor));
  function->where.length = (int)strlen(function->name);
  function->result = convert_type(converter, clang_getCursorResultType(cursor));
  function->is_region = ctype_has_tensor(function->result) && !clang_Cursor_isFunctionInlined(cursor);
  program->functions = arena_grow(converter->arena, program->functions, program->n_functions,
                                  &program->functions_capacity, sizeof *program->functions);
  program->functions[program->n_functions++] = function;
}

static void convert_function(struct converter *converter, CXCursor cursor, struct function *function) {
  int count = clang_Cursor_getNumArguments(cursor);
  converter->function = function;
  function->parameters = arena_alloc(converter->arena, ((size_t)count + 1) * sizeof *function->parameters);
  for (int i = 0; i < count; i++) {
    struct variable *parameter = declare(converter, clang_Cursor_getArgument(cursor, (unsigned)i));
    parameter->type = convert_decayed(converter, parameter->type);
    parameter->slot = function->n_slots++;
    function->parameters[function->n_parameters++] = parameter;
  }
  struct cursors children = convert_children(converter, cursor);
  for (int i = 0; i < children.count; i++)
    if (clang_getCursorKind(children.items[i]) == CXCursor_CompoundStmt)
      function->body = convert_statement(converter, children.items[i]);
  converter->function = NULL;
}

static bool is_definition(CXCursor cursor) {
  return clang_getCursorKind(cursor) == CXCursor_FunctionDecl && clang_isCursorDefinition(cursor);
}

/* The model's own declarations: those of system headers are of no interest. */
static enum CXChildVisitResult add_own(CXCursor cursor, CXCursor parent, CXClientData data) {
  struct child_list *list = data;
  (void)parent;
  enum CXCursorKind kind = clang_getCursorKind(cursor);
  if (kind != CXCursor_FunctionDecl && kind != CXCursor_VarDecl) return CXChildVisit_Continue;
  if (clang_Location_isInSystemHeader(clang_getCursorLocation(cursor))) return CXChildVisit_Continue;
  ARENA_PUSH(list->converter->arena, list->cursors, cursor);
  return CXChildVisit_Continue;
}

void convert_unit(struct converter *converter, CXTranslationUnit unit) {
  struct child_list own = {.converter = converter};
  clang_visitChildren(clang_getTranslationUnitCursor(unit), add_own, &own);
  for (int i = 0; i < own.cursors.count; i++)
    if (is_definition(own.cursors.items[i])) declare_function(converter, own.cursors.items[i]);
  int function = 0;
  for (int i = 0; i < own.cursors.count; i++) {
    CXCursor cursor = own.cursors.items[i];
    if (clang_getCursorKind(cursor) == CXCursor_VarDecl) convert_variable(converter, cursor);
    if (is_definition(cursor)) convert_function(converter, cursor, converter->program->functions[function++]);
  }
}
