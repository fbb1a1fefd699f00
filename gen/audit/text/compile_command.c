#include "gen/audit/text/compile_command.h"

#include <string.h>
#include <sys/stat.h>

#include "gen/audit/program/grammar.h"
#include "gen/base/path.h"

/* What is known to change the program, by its first letters, and how. */
static const struct {
  const char *start, *how;
} changes[] = {
    {"-D", "defines a macro"},
    {"-U", "removes a macro"},
    {"-I", "has headers read from a folder that the audit has not read; -I gives it to the audit, too"},
    {"-isystem", "has headers read from a folder of its own"},
    {"-iquote", "has headers read from a folder of its own"},
    {"-idirafter", "has headers read from a folder of its own"},
    {"-isysroot", "has other headers read"},
    {"--sysroot", "has other headers read"},
    {"-nostdinc", "has other headers read"},
    {"-include", "reads another text before the program's"},
    {"-imacros", "reads another text before the program's"},
    {"-std=", "reads the program as another language than C17"},
    {"-ansi", "reads the program as another language than C17"},
    {"-x", "reads files as another language"},
    {"-trigraphs", "reads another text"},
    {"-Ofast", "changes what floating-point arithmetic means"},
    {"-ffast-math", "changes what floating-point arithmetic means"},
    {"-funsafe-math", "changes what floating-point arithmetic means"},
    {"-ffinite-math", "changes what floating-point arithmetic means"},
    {"-freciprocal-math", "changes what floating-point arithmetic means"},
    {"-fassociative-math", "changes what floating-point arithmetic means"},
    {"-fno-signed-zeros", "changes what floating-point arithmetic means"},
    {"-fplugin", "runs other code in the compiler"},
    {"-specs", "changes the compiler"},
    {"--specs", "changes the compiler"},
    {"-B", "changes the compiler"},
    {"-wrapper", "runs another program in the compiler's place"},
    {"-Wl,", "gives flags to the linker"},
    {"-Wa,", "gives flags to the assembler"},
    {"-Wp,", "gives flags to the preprocessor"},
    {"-X", "gives flags to another program"},
    {"-T", "changes what the linker makes"},
    {"-L", "has libraries read from a folder of its own"},
    {"-l", "links a library that is not the runtime's"},
    {"-nostartfiles", "changes what the linker makes"},
    {"-nostdlib", "changes what the linker makes"},
    {"@", "reads flags from a file"},
};

const char *compile_command_change(const char *word) {
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
    if (strncmp(word, changes[i].start, strlen(changes[i].start)) == 0) return changes[i].how;
  return NULL;
}

/* ---- Words of a shell ---- */

struct reader {
  struct audit *audit;
  const struct audit_options *options;
  struct claim *claim;
  const char *text, *at;
  struct location where; /* of the text's first byte */
  int n_programs, n_words;
  bool is_over;
};

/* Of a byte of a text that begins at `where`. */
static struct location moved_to(struct location where, const char *text, const char *at) {
  for (const char *c = text; c < at; c++) {
    where.column++;
    if (*c != '\n') continue;
    where.line++;
    where.column = 1;
  }
  return where;
}

static struct location location_of(const struct reader *reader, const char *at) {
  return moved_to(reader->where, reader->text, at);
}

static void refuse(struct reader *reader, enum verdict verdict, const char *at, const char *word, const char *how) {
  claim_finding(reader->audit, reader->claim, verdict, location_of(reader, at), "'%s' %s", word, how);
}

/* Past blanks, and past the star that begins a line of a comment. */
static void skip_blanks(struct reader *reader) {
  bool opens = false;
  for (; *reader->at != '\0'; reader->at++) {
    if (*reader->at == '\n')
      opens = true;
    else if (*reader->at == '*' && opens)
      opens = false;
    else if (*reader->at != ' ' && *reader->at != '\t')
      return;
  }
}

/* The next word without its quotes; NULL at the end, and where the shell does more than to take a word: that is a
 * finding. */
static const char *next_word(struct reader *reader) {
  struct text word = text_in(reader->audit->arena);
  char quote = '\0';
  skip_blanks(reader);
  const char *begin = reader->at;
  for (; *reader->at != '\0'; reader->at++) {
    const char byte = *reader->at;
    if (quote == '\0' && strchr(" \t\n", byte) != NULL) break;
    if (byte == quote || (quote == '\0' && (byte == '\'' || byte == '"'))) {
      quote = quote == '\0' ? byte : '\0';
      continue;
    }
    if (quote != '\'' && strchr(quote == '"' ? "$`\\!" : "$`\\!;|&<>()*?[]{}~#", byte) != NULL) {
      reader->is_over = true;
      refuse(reader, VERDICT_CANNOT_TELL, reader->at, arena_copy(reader->audit->arena, reader->at, 1),
             "is for the shell, which does more than to start a compiler");
      return NULL;
    }
    text_printf(&word, "%c", byte);
  }
  if (quote != '\0') refuse(reader, VERDICT_CANNOT_TELL, begin, "a quote", "has no end");
  reader->is_over = quote != '\0';
  return reader->at > begin && !reader->is_over ? text_string(&word) : NULL;
}

static bool skip_text(struct reader *reader, const char *text) {
  skip_blanks(reader);
  if (strncmp(reader->at, text, strlen(text)) != 0) return false;
  reader->at += strlen(text);
  return true;
}

/* ---- What a compiler gets ---- */

/* "$(pkg-config --cflags --libs PACKAGE...)", from `begin` on, after its "$(pkg-config". */
static void read_packages(struct reader *reader, const char *begin) {
  while (!skip_text(reader, ")")) {
    const char *at = reader->at, *word = arena_copy(reader->audit->arena, at, strcspn(at, " \t\n)"));
    reader->at += strlen(word);
    reader->is_over = *word == '\0';
    if (reader->is_over) {
      refuse(reader, VERDICT_CANNOT_TELL, begin, "$(pkg-config", "has no end");
      return;
    }
    if (strcmp(word, "--cflags") != 0 && strcmp(word, "--libs") != 0 && !grammar_has_package(word))
      refuse(reader, VERDICT_CANNOT_TELL, at, word, "is no package of the runtime");
  }
}

/* Whether the audit has read headers from there. */
static bool is_read(const struct reader *reader, const char *folder) {
  const struct audit_options *options = reader->options;
  struct stat one, other;
  if (stat(folder, &one) != 0) return false;
  for (int i = 0; i < options->n_flags; i++) {
    const char *flag = options->flags[i];
    if (strncmp(flag, "-I", 2) != 0) continue;
    const char *name = flag[2] != '\0' ? flag + 2 : i + 1 < options->n_flags ? options->flags[i + 1] : "";
    if (stat(name, &other) == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino) return true;
  }
  return false;
}

static void read_flag(struct reader *reader, const char *begin, const char *word) {
  static const char operands[] =
      "DUBTLlix"; /* flags of these first letters may have their operand in a word of its own */
  if (grammar_has_flag(word)) return;
  if (strncmp(word, "-o", 2) == 0) {
    if (word[2] == '\0' && next_word(reader) == NULL) refuse(reader, VERDICT_CANNOT_TELL, begin, word, "names no file");
    return;
  }
  const char *folder = strcmp(word, "-I") == 0 ? next_word(reader) : strncmp(word, "-I", 2) == 0 ? word + 2 : NULL;
  if (folder != NULL && is_read(reader, folder)) return;
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
    if (strncmp(word, changes[i].start, strlen(changes[i].start)) == 0) {
      refuse(reader, VERDICT_BROKEN, begin, word, changes[i].how);
      if (strcmp(word, changes[i].start) == 0 && strchr(operands, word[1]) != NULL && folder == NULL) next_word(reader);
      return;
    }
  refuse(reader, VERDICT_CANNOT_TELL, begin, word, "is a flag that the audit does not know");
}

/* The program, the other half of one for GPUs or its object, or another file. */
static void read_file(struct reader *reader, const char *begin, const char *word) {
  static const char *const halves[] = {".cu", ".hip", ".cu.o", ".hip.o"};
  if (reader->n_programs == 0 && has_ending(word, ".c")) {
    reader->n_programs++;
    const char *name = name_in_folder(word), *own = name_in_folder(reader->audit->tree->file);
    if (reader->where.file != reader->audit->tree->file && strcmp(name, own) != 0)
      refuse(reader, VERDICT_BROKEN, begin, word, arena_printf(reader->audit->arena, "is compiled, and not %s", own));
    return;
  }
  for (size_t i = 0; i < sizeof halves / sizeof *halves && reader->audit->device != NULL; i++)
    if (has_ending(word, halves[i])) return;
  claim_fact(reader->audit, reader->claim, location_of(reader, begin), "'%s' is compiled or linked with it", word);
  if (reader->audit->n_elsewhere == 0)
    refuse(reader, VERDICT_CANNOT_TELL, begin, word,
           "is compiled or linked with the program, which calls nothing of it");
}

static void read_compiler(struct reader *reader) {
  const char *begin = (skip_blanks(reader), reader->at), *word = next_word(reader);
  if (word == NULL) return;
  const char *name = strncmp(word, "/usr/bin/", 9) == 0 ? word + 9 : word;
  if (!grammar_has_compiler(name))
    refuse(reader, VERDICT_CANNOT_TELL, begin, word, "is a compiler that the audit does not know");
}

static void read_command(struct reader *reader) {
  if (strcmp(reader->text, "accel-gen build.") == 0) return;
  read_compiler(reader);
  while (!reader->is_over && (skip_blanks(reader), *reader->at != '\0')) {
    const char *begin = reader->at;
    reader->n_words++;
    if (skip_text(reader, "$(pkg-config ")) {
      read_packages(reader, begin);
    } else if (skip_text(reader, "&& ")) {
      read_compiler(reader);
    } else {
      const char *word = next_word(reader);
      if (word == NULL) break;
      if (word[0] == '-' || word[0] == '@')
        read_flag(reader, begin, word);
      else
        read_file(reader, begin, word);
    }
  }
  if (reader->n_programs == 0 && !reader->is_over)
    refuse(reader, VERDICT_CANNOT_TELL, reader->text, reader->text, "compiles no program in C");
}

/* ---- Where commands are ---- */

const char *compile_command_stated(const struct audit *audit, struct location *where) {
  const char *text = audit->tree->written[0].text, *end = strstr(text, "*/");
  const char *build = strncmp(text, "/*", 2) == 0 ? strstr(text, "Build: ") : NULL;
  if (end == NULL || build == NULL || build > end) return NULL;
  const char *begin = build + strlen("Build: ");
  *where = moved_to((struct location){.file = audit->tree->file, .line = 1, .column = 1}, text, begin);
  while (end > begin && end[-1] == ' ') end--;
  return arena_copy(audit->arena, begin, (size_t)(end - begin));
}

void compile_command_check(struct audit *audit, const struct audit_options *options) {
  struct reader reader = {.audit = audit, .options = options};
  const char *stated = compile_command_stated(audit, &reader.where);
  const int count = options->n_commands + (stated != NULL);
  if (count == 0) return;
  reader.claim = audit_claim(audit, "plain-command",
                             "The command that compiles the program gives the compiler its text, and no flag, header, "
                             "macro or library that changes what it means.");
  for (int i = stated != NULL ? -1 : 0; i < options->n_commands; i++) {
    if (i >= 0) reader.where = options->commands[i].where;
    reader.text = reader.at = i < 0 ? stated : options->commands[i].text;
    reader.n_programs = 0;
    reader.is_over = false;
    read_command(&reader);
  }
  claim_evidence(audit, reader.claim, "%d command%s, %d words", count, count == 1 ? "" : "s", reader.n_words);
}
