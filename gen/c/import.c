/* Functions and variables: the outline of a source. */
#include "gen/c/import.h"

#include <string.h>

struct child_list {
  struct importer *importer;
  struct cursors cursors;
};

static enum CXChildVisitResult add_child(CXCursor cursor, CXCursor parent, CXClientData data) {
  struct child_list *list = data;
  (void)parent;
  ARENA_PUSH(list->importer->arena, list->cursors, cursor);
  return CXChildVisit_Continue;
}

struct cursors import_children(struct importer *importer, CXCursor cursor) {
  struct child_list list = {.importer = importer};
  clang_visitChildren(cursor, add_child, &list);
  return list.cursors;
}

static bool is_expression(CXCursor cursor) {
  return clang_isExpression(clang_getCursorKind(cursor)) != 0;
}

struct syntax *import_node(struct importer *importer, enum syntax_kind kind, CXCursor cursor, int n_parts) {
  struct syntax *node = arena_alloc(importer->arena, sizeof *node);
  node->kind = kind;
  CXSourceRange extent = clang_getCursorExtent(cursor);
  node->where = import_range(importer, extent);
  node->last_line = import_location(importer, clang_getRangeEnd(extent)).line;
  node->type = &type_void;
  node->n_parts = n_parts;
  node->parts = arena_alloc(importer->arena, ((size_t)n_parts + 1) * sizeof(struct syntax *));
  return node;
}

struct syntax *import_unknown(struct importer *importer, CXCursor cursor, enum unknown_kind unknown) {
  struct cursors children = import_children(importer, cursor);
  struct syntax *node = import_node(importer, SYNTAX_UNKNOWN, cursor, children.count);
  node->n_parts = 0;
  node->unknown = unknown;
  for (int i = 0; i < children.count; i++) {
    enum CXCursorKind kind = clang_getCursorKind(children.items[i]);
    if (clang_isExpression(kind) || clang_isStatement(kind))
      node->parts[node->n_parts++] = import_statement(importer, children.items[i]);
  }
  return node;
}

struct syntax *import_deep(struct importer *importer, CXCursor cursor, enum unknown_kind unknown) {
  struct syntax *node = import_node(importer, SYNTAX_UNKNOWN, cursor, 0);
  node->unknown = unknown;
  if (importer->tree->deep.line == 0) importer->tree->deep = node->where;
  return node;
}

/* ---- What was seen ---- */

static unsigned bucket(CXCursor cursor) {
  return clang_hashCursor(cursor) % DECLARED_BUCKETS;
}

void *import_known(struct importer *importer, CXCursor declaration) {
  unsigned at = bucket(declaration);
  for (int i = 0; i < importer->declared[at].count; i++)
    if (clang_equalCursors(importer->declared[at].items[i].cursor, declaration))
      return importer->declared[at].items[i].made;
  return NULL;
}

void import_remember(struct importer *importer, CXCursor declaration, void *made) {
  struct declared item = {declaration, made};
  ARENA_PUSH(importer->arena, importer->declared[bucket(declaration)], item);
}

/* ---- Variables ---- */

/* One variable for all declarations of a name at file level. */
static struct variable *find_static(struct importer *importer, CXCursor cursor, const char *name) {
  bool at_file_level = clang_getCursorKind(clang_getCursorSemanticParent(cursor)) == CXCursor_TranslationUnit;
  return at_file_level ? tree_variable(importer->tree, name) : NULL;
}

static void assign_slot(struct importer *importer, struct variable *variable, CXCursor cursor) {
  enum CX_StorageClass storage = clang_Cursor_getStorageClass(cursor);
  struct tree *tree = importer->tree;
  bool at_file_level = clang_getCursorKind(clang_getCursorSemanticParent(cursor)) == CXCursor_TranslationUnit;
  variable->is_external = storage == CX_SC_Extern;
  variable->is_static = at_file_level || storage == CX_SC_Static || storage == CX_SC_Extern;
  variable->function = at_file_level ? NULL : importer->function;
  if (!variable->is_static) {
    variable->slot = importer->function->n_slots++;
    return;
  }
  variable->slot = tree->n_statics;
  tree->statics =
      arena_grow(importer->arena, tree->statics, tree->n_statics, &tree->statics_capacity, sizeof *tree->statics);
  tree->statics[tree->n_statics++] = variable;
}

/* Arrays of constants are constant. */
static bool is_const(CXType type) {
  while (clang_isConstQualifiedType(type) == 0) {
    CXType element = clang_getArrayElementType(type);
    if (element.kind == CXType_Invalid) return clang_isConstQualifiedType(clang_getCanonicalType(type)) != 0;
    type = element;
  }
  return true;
}

static struct variable *new_variable(struct importer *importer, CXCursor cursor, const char *name) {
  struct variable *variable = arena_alloc(importer->arena, sizeof *variable);
  variable->name = name;
  variable->is_parameter = clang_getCursorKind(cursor) == CXCursor_ParmDecl;
  variable->where = import_location(importer, clang_getCursorLocation(cursor));
  variable->where.length = (int)strlen(name);
  variable->type = import_type(importer, clang_getCursorType(cursor));
  variable->is_constant = is_const(clang_getCursorType(cursor));
  variable->is_system = clang_Location_isInSystemHeader(clang_getCursorLocation(cursor)) != 0;
  return variable;
}

/* The sizes of a variable-length array: the expressions below its declaration, which has no initial value. */
static void import_sizes(struct importer *importer, CXCursor cursor, struct variable *variable) {
  if (clang_getCanonicalType(clang_getCursorType(cursor)).kind != CXType_VariableArray) return;
  struct cursors children = import_children(importer, cursor);
  variable->sizes = arena_alloc(importer->arena, ((size_t)children.count + 1) * sizeof(struct syntax *));
  for (int i = 0; i < children.count; i++)
    if (is_expression(children.items[i]))
      variable->sizes[variable->n_sizes++] = import_expression(importer, children.items[i]);
}

/* A record of C++ that is declared without a value: its constructor does nothing. */
static bool sets_nothing(struct importer *importer, CXCursor initial) {
  CXCursor callee = clang_getCursorReferenced(initial);
  return clang_getCursorKind(callee) == CXCursor_Constructor && import_children(importer, initial).count == 0;
}

struct variable *import_variable(struct importer *importer, CXCursor cursor) {
  struct variable *variable = import_known(importer, cursor);
  if (variable != NULL) return variable;
  const char *name = import_string(importer, clang_getCursorSpelling(cursor));
  variable = clang_getCursorKind(cursor) == CXCursor_VarDecl ? find_static(importer, cursor, name) : NULL;
  bool is_new = variable == NULL;
  if (is_new) variable = new_variable(importer, cursor, name);
  import_remember(importer, cursor, variable);
  if (variable->is_parameter) {
    variable->slot = importer->function->n_slots++;
    return variable;
  }
  if (is_new) assign_slot(importer, variable, cursor);
  import_sizes(importer, cursor, variable);
  CXCursor initial = clang_Cursor_getVarDeclInitializer(cursor);
  if (clang_Cursor_isNull(initial) || (importer->is_device && sets_nothing(importer, initial))) return variable;
  variable->initial = import_expression(importer, initial);
  return variable;
}

/* ---- Functions ---- */

/* Whether C++ leaves a name as it is. */
static bool has_plain_name(CXCursor cursor, const char *name) {
  CXString mangled = clang_Cursor_getMangling(cursor);
  const char *text = clang_getCString(mangled);
  bool plain = text != NULL && strcmp(text, name) == 0;
  clang_disposeString(mangled);
  return plain;
}

static struct function *declare(struct importer *importer, CXCursor cursor, const char *name) {
  struct tree *tree = importer->tree;
  struct function *function = arena_alloc(importer->arena, sizeof *function);
  CXSourceLocation location = clang_getCursorLocation(cursor);
  function->name = name;
  function->where = import_location(importer, location);
  function->where.length = (int)strlen(name);
  function->header = function->where.file;
  function->is_system = clang_Location_isInSystemHeader(location) != 0;
  function->is_static = clang_getCursorLinkage(cursor) != CXLinkage_External;
  function->is_plain = !importer->is_device || has_plain_name(cursor, name);
  if (importer->outline)
    function->type_name =
        import_string(importer, clang_getTypeSpelling(clang_getCanonicalType(clang_getCursorType(cursor))));
  tree->functions = arena_grow(importer->arena, tree->functions, tree->n_functions, &tree->functions_capacity,
                               sizeof *tree->functions);
  tree->functions[tree->n_functions++] = function;
  return function;
}

static void import_parameters(struct importer *importer, CXCursor cursor, struct function *function) {
  int count = clang_Cursor_getNumArguments(cursor);
  if (count <= 0) return;
  function->parameters = arena_alloc(importer->arena, (size_t)count * sizeof(struct variable *));
  for (int i = 0; i < count; i++)
    function->parameters[function->n_parameters++] =
        import_variable(importer, clang_Cursor_getArgument(cursor, (unsigned)i));
}

static void import_body(struct importer *importer, CXCursor cursor, struct function *function) {
  struct cursors children = import_children(importer, cursor);
  for (int i = 0; i < children.count; i++)
    if (clang_getCursorKind(children.items[i]) == CXCursor_CompoundStmt)
      function->body = import_statement(importer, children.items[i]);
}

/* The definition's location, parameters and body, or what the declaration has of them. */
static void import_inside(struct importer *importer, CXCursor cursor, struct function *function) {
  struct function *outer = importer->function;
  importer->function = function;
  CXCursor definition = clang_getCursorDefinition(cursor);
  function->is_defined = clang_Cursor_isNull(definition) == 0;
  if (function->is_defined) {
    cursor = definition;
    function->where = import_location(importer, clang_getCursorLocation(definition));
    function->where.length = (int)strlen(function->name);
  }
  function->is_inline = clang_Cursor_isFunctionInlined(cursor) != 0;
  import_parameters(importer, cursor, function);
  if (function->is_defined && !importer->outline) import_body(importer, definition, function);
  importer->function = outer;
}

struct function *import_function(struct importer *importer, CXCursor cursor) {
  CXCursor canonical = clang_getCanonicalCursor(cursor);
  struct function *function = import_known(importer, canonical);
  if (function != NULL) return function;
  function = declare(importer, canonical, import_string(importer, clang_getCursorSpelling(cursor)));
  import_remember(importer, canonical, function);
  function->result = import_type(importer, clang_getCursorResultType(cursor));
  import_inside(importer, cursor, function);
  return function;
}

/* ---- The source ---- */

/* A declaration that gives a function another name for the linker. */
static void note_label(struct importer *importer, CXCursor cursor) {
  struct cursors children = import_children(importer, cursor);
  for (int i = 0; i < children.count; i++) {
    if (clang_getCursorKind(children.items[i]) != CXCursor_AsmLabelAttr) continue;
    struct function *function = import_function(importer, cursor);
    function->has_label = true;
    function->where = import_location(importer, clang_getCursorLocation(cursor));
  }
}

static enum CXChildVisitResult import_top(CXCursor cursor, CXCursor parent, CXClientData data) {
  struct importer *importer = data;
  (void)parent;
  if (clang_Location_isInSystemHeader(clang_getCursorLocation(cursor))) return CXChildVisit_Continue;
  enum CXCursorKind kind = clang_getCursorKind(cursor);
  if (kind == CXCursor_Namespace || kind == CXCursor_LinkageSpec) return CXChildVisit_Recurse;
  import_declared(importer, cursor, false);
  if (kind == CXCursor_FunctionDecl) note_label(importer, cursor);
  bool wanted = importer->outline || clang_isCursorDefinition(cursor);
  if (kind == CXCursor_FunctionDecl && wanted) import_function(importer, cursor);
  if (kind == CXCursor_VarDecl) import_variable(importer, cursor);
  return CXChildVisit_Continue;
}

void import_unit(struct importer *importer) {
  clang_visitChildren(clang_getTranslationUnitCursor(importer->unit), import_top, importer);
}
