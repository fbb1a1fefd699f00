#include "gen/model/hooks.h"

#include <clang-c/Index.h>
#include <stdio.h>
#include <string.h>

#include "gen/base/embedded.h"

#define HOOK_TYPE "void (struct accel_run *, const struct accel_progress *)"

struct search {
  struct arena *arena;
  const struct job *job;
  struct diagnostics *diags;
  CXCursor found[HOOKS]; /* what declares the function; its definition where the file has one */
  bool defined[HOOKS];
};

static const char *text_of(struct arena *arena, CXString string) {
  const char *text = clang_getCString(string);
  const char *copy = arena_string(arena, text != NULL ? text : "");
  clang_disposeString(string);
  return copy;
}

static enum CXChildVisitResult visit(CXCursor cursor, CXCursor parent, CXClientData data) {
  struct search *search = data;
  (void)parent;
  if (clang_getCursorKind(cursor) != CXCursor_FunctionDecl) return CXChildVisit_Continue;
  const char *name = text_of(search->arena, clang_getCursorSpelling(cursor));
  for (int i = 0; i < HOOKS; i++) {
    const char *wanted = search->job->hooks.names[i];
    if (wanted == NULL || strcmp(name, wanted) != 0 || search->defined[i]) continue;
    search->found[i] = cursor;
    search->defined[i] = clang_isCursorDefinition(cursor) != 0;
  }
  return CXChildVisit_Continue;
}

static struct location place_of(const struct search *search, CXCursor cursor) {
  CXFile file;
  unsigned line = 0, column = 0;
  clang_getFileLocation(clang_getCursorLocation(cursor), &file, &line, &column, NULL);
  const char *name = text_of(search->arena, clang_getFileName(file));
  return (struct location){.file = name, .line = (int)line, .column = (int)column};
}

static void check_function(const struct search *search, int hook) {
  const char *name = search->job->hooks.names[hook], *key = job_hook_keys[hook];
  struct location asked = job_where(search->job, arena_printf(search->arena, "hooks.%s", key));
  if (!search->defined[hook]) {
    diag_error(search->diags, asked, "%s defines no function '%s'", search->job->hooks.source, name);
    diag_help(search->diags, "write 'void %s(struct accel_run *run, const struct accel_progress *progress) { ... }'",
              name);
    return;
  }
  CXCursor cursor = search->found[hook];
  CXType type = clang_getCanonicalType(clang_getCursorType(cursor));
  const char *spelled = text_of(search->arena, clang_getTypeSpelling(type));
  if (strcmp(spelled, HOOK_TYPE) != 0)
    diag_error(search->diags, place_of(search, cursor), "'%s' is of type '%s', a hook of type '%s'", name, spelled,
               HOOK_TYPE);
  else if (clang_getCursorLinkage(cursor) != CXLinkage_External)
    diag_error(search->diags, place_of(search, cursor), "'%s' is static, so the trainer cannot call it", name);
  else
    return;
  diag_note(search->diags, asked, "'hooks.%s' names it here", key);
}

/* What the file includes beside our header may be missing here; the compiler will find it. */
static CXTranslationUnit parse(CXIndex index, const char *file) {
  static const char *const arguments[] = {"-xc", "-std=c17", "-I", "/accel-gen/include"};
  struct CXUnsavedFile header = {"/accel-gen/include/accel/hooks.h", accel_hooks_header, strlen(accel_hooks_header)};
  CXTranslationUnit unit = NULL;
  if (clang_parseTranslationUnit2(index, file, arguments, 4, &header, 1, CXTranslationUnit_KeepGoing, &unit) != 0)
    return NULL;
  return unit;
}

static bool is_readable(const char *file) {
  FILE *stream = fopen(file, "rb");
  if (stream == NULL) return false;
  bool good = getc(stream) != EOF || !ferror(stream);
  fclose(stream);
  return good;
}

bool hooks_check(struct arena *arena, const struct job *job, struct diagnostics *diags) {
  struct search search = {.arena = arena, .job = job, .diags = diags};
  struct location where = job_where(job, "hooks.source");
  int before = diags->errors, named = 0;
  if (job->hooks.source == NULL) return true;
  for (int i = 0; i < HOOKS; i++) named += job->hooks.names[i] != NULL;
  if (named == 0)
    diag_error(
        diags, where,
        "'hooks' names no function to call: on_pre_load, on_start, on_step, on_eval, on_pre_save, on_save, on_end");
  if (!is_readable(job->hooks.source)) diag_error(diags, where, "cannot read the hooks %s", job->hooks.source);
  if (diags->errors > before) return false;
  CXIndex index = clang_createIndex(0, 0);
  CXTranslationUnit unit = parse(index, job->hooks.source);
  if (unit == NULL) {
    diag_error(diags, where, "the C parser gave up on %s", job->hooks.source);
  } else {
    clang_visitChildren(clang_getTranslationUnitCursor(unit), visit, &search);
    for (int i = 0; i < HOOKS; i++)
      if (job->hooks.names[i] != NULL) check_function(&search, i);
    clang_disposeTranslationUnit(unit);
  }
  clang_disposeIndex(index);
  return diags->errors == before;
}
