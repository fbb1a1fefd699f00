/* The claim about an object's line table: each instruction is of a line of the text, or of a header that it includes,
 * in a function that may be there. */
#include <string.h>
#include <sys/stat.h>

#include "gen/audit/machine/machine.h"
#include "gen/base/path.h"

struct lines_check {
  struct audit *audit;
  const struct machine *machine;
  struct claim *claim;
  const char **good; /* names of files, as the line table has them, that are of the program */
  int n_good, good_capacity;
  int64_t n_lines, n_merged; /* instructions of lines; of several lines */
};

/* Whether two paths are one file; where there is none, whether they end alike: an object may be of another folder. */
static bool is_same_file(const struct lines_check *check, const char *found, const char *known) {
  struct stat own, other;
  const char *path =
      found[0] == '/' ? found : arena_printf(check->audit->arena, "%s/%s", check->machine->folder, found);
  if (strcmp(name_in_folder(found), name_in_folder(known)) != 0) return false;
  if (stat(path, &own) != 0 || stat(known, &other) != 0) return true;
  return own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

/* Whether a file of the line table is the text, or a header that it includes. */
static bool is_of_program(struct lines_check *check, const char *file) {
  const struct tree *tree = check->audit->tree;
  for (int i = 0; i < check->n_good; i++)
    if (check->good[i] == file || strcmp(check->good[i], file) == 0) return true;
  bool good = strcmp(name_in_folder(file), name_in_folder(tree->file)) == 0;
  for (int i = 0; !good && i < tree->n_includes; i++) good = is_same_file(check, file, tree->includes[i]);
  if (!good) return false;
  check->good = arena_grow(check->audit->arena, check->good, check->n_good, &check->good_capacity, sizeof *check->good);
  check->good[check->n_good++] = file;
  return true;
}

static bool is_in_text(const struct audit *audit, const char *file) {
  return strcmp(name_in_folder(file), name_in_folder(audit->tree->file)) == 0;
}

static void report(struct lines_check *check, const struct machine_line *line, const char *what) {
  const struct location where = {.file = check->audit->tree->file};
  claim_finding(check->audit, check->claim, VERDICT_BROKEN, where, "%d instructions at %llu of %s %s", line->count,
                (unsigned long long)line->offset, check->machine->functions[line->function].name, what);
}

/* The function of the text that has a line; NULL: none. */
static const struct function *function_at(const struct tree *tree, int line) {
  for (int i = 0; i < tree->n_functions; i++) {
    const struct function *function = tree->functions[i];
    if (function->body != NULL && function->where.file != NULL && strcmp(function->where.file, tree->file) == 0 &&
        line >= function->where.line && line <= function->body->last_line)
      return function;
  }
  return NULL;
}

struct reach_search {
  const struct function *wanted;
  bool found;
};

static void search(struct reach_search *search, const struct function *from);

static bool visit_call(struct syntax *node, void *data) {
  struct reach_search *inner = data;
  if (node->function != NULL && !inner->found) search(inner, node->function);
  return !inner->found;
}

static void search(struct reach_search *found, const struct function *from) {
  if (from == found->wanted) found->found = true;
  if (found->found || from->role->mark != 0) return;
  from->role->mark = 1;
  syntax_visit(from->body, visit_call, found);
}

/* Whether a function's calls reach another one, which a compiler may have put into it. */
static bool reaches(const struct tree *tree, const struct function *from, const struct function *wanted) {
  struct reach_search found = {.wanted = wanted};
  for (int i = 0; i < tree->n_functions; i++) tree->functions[i]->role->mark = 0;
  search(&found, from);
  return found.found;
}

/* Whether two functions have the same text, but for the names of what they declare. */
static bool is_same_syntax(const struct syntax *a, const struct syntax *b) {
  if (a == NULL || b == NULL) return a == b;
  if (a->kind != b->kind || a->n_parts != b->n_parts || a->operation != b->operation || a->member != b->member ||
      a->integer != b->integer || memcmp(&a->real, &b->real, sizeof a->real) != 0 || a->function != b->function)
    return false;
  const struct variable *x = a->variable, *y = b->variable;
  if ((x == NULL) != (y == NULL)) return false;
  if (x != NULL && (x->is_static != y->is_static || (x->is_static ? x != y : x->slot != y->slot))) return false;
  if (a->kind == SYNTAX_DECLARE && (x->type->size != y->type->size || !is_same_syntax(x->initial, y->initial)))
    return false;
  for (int i = 0; i < a->n_parts; i++)
    if (!is_same_syntax(a->parts[i], b->parts[i])) return false;
  return true;
}

/* Whether a function has the same text as one that was just found to be reached: gcc keeps one of them for both. */
static bool has_reached_twin(const struct tree *tree, const struct function *function) {
  for (int i = 0; i < tree->n_functions; i++) {
    const struct function *other = tree->functions[i];
    if (other->role->mark != 0 && other->body != NULL && is_same_syntax(other->body, function->body)) return true;
  }
  return false;
}

/* A pragma stands before its loop, a directive of the preprocessor between functions: lines of the text, in none. */
static void check_place(struct lines_check *check, const struct machine_line *line) {
  const struct tree *tree = check->audit->tree;
  const char *name = check->machine->functions[line->function].name;
  const struct function *source = machine_source(check->audit, name);
  if (line->where.line > tree->n_lines) {
    report(check, line, arena_printf(check->audit->arena, "are of line %d, after the text's end", line->where.line));
    return;
  }
  const struct function *own = function_at(tree, line->where.line);
  if (own == NULL)
    report(check, line, arena_printf(check->audit->arena, "are of line %d, which is in no function", line->where.line));
  else if (source != NULL && own != source && !reaches(tree, source, own) && !has_reached_twin(tree, own))
    report(check, line,
           arena_printf(check->audit->arena, "are of line %d of '%s', which '%s' does not call", line->where.line,
                        own->name, source->name));
}

/* A location is judged once in each function. */
static bool is_repeated(const struct lines_check *check, int at) {
  const struct machine_line *lines = check->machine->lines;
  for (int i = at - 1; i >= 0 && i > at - 200 && lines[i].function == lines[at].function; i--)
    if (lines[i].where.line == lines[at].where.line && lines[i].where.file == lines[at].where.file) return true;
  return false;
}

static void check_line(struct lines_check *check, int at) {
  const struct machine_line *line = &check->machine->lines[at];
  struct arena *arena = check->audit->arena;
  if (line->where.file == NULL) {
    report(check, line, "have no line");
    return;
  }
  *(line->where.line == 0 ? &check->n_merged : &check->n_lines) += line->count;
  if (line->where.line == 0 || is_repeated(check, at)) return;
  if (!is_of_program(check, line->where.file))
    report(check, line, arena_printf(arena, "are of %s, which the program does not include", line->where.file));
  else if (is_in_text(check->audit, line->where.file))
    check_place(check, line);
}

/* A function of nothing but merged lines hides where it is from. */
static void check_merged(struct lines_check *check) {
  const struct machine *machine = check->machine;
  for (int i = 0, end; i < machine->n_lines; i = end) {
    bool has_line = false;
    for (end = i; end < machine->n_lines && machine->lines[end].function == machine->lines[i].function; end++)
      has_line = has_line || machine->lines[end].where.line > 0;
    if (!has_line && machine->lines[i].where.file != NULL)
      report(check, &machine->lines[i], "have no line of the text");
  }
}

void machine_check_lines(const struct machine_check *machine) {
  struct lines_check check = {.audit = machine->audit, .machine = machine->machine};
  check.claim = audit_claim(machine->audit, "machine-lines",
                            "Every instruction is of a line of the program's text, or of a header that it includes, in "
                            "a function that the source has there or calls.");
  if (!machine->machine->has_lines)
    claim_finding(check.audit, check.claim, VERDICT_CANNOT_TELL, (struct location){.file = check.audit->tree->file},
                  "the object has no line table: compile it with -g");
  for (int i = 0; machine->machine->has_lines && i < machine->machine->n_lines; i++) check_line(&check, i);
  if (machine->machine->has_lines) check_merged(&check);
  claim_evidence(check.audit, check.claim, "%lld instructions of lines, %lld that the compiler made of several",
                 (long long)check.n_lines, (long long)check.n_merged);
}
