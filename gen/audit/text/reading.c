/* One text, one program: bytes that compilers read in different ways, and names that mean what the compiler, its flags
 * or the machine decide. */
#include "gen/audit/text/reading.h"

#include <string.h>

#include "gen/audit/program/device.h"
#include "gen/audit/program/grammar.h"

struct reading {
  struct audit *audit;
  struct claim *claim;
  const struct tree *tree;
  bool is_device; /* the file at hand is the device's half */
  size_t n_bytes;
  int n_names;
};

/* ---- Bytes ---- */

enum place { IN_CODE, IN_LINE_COMMENT, IN_COMMENT, IN_STRING, IN_CHARACTER };

struct bytes {
  struct reading *reading;
  const char *file, *text, *line_start;
  size_t at;
  int line;
  enum place place;
  bool in_define, opens; /* `opens`: nothing but blanks is before this byte on its line */
};

static void refuse_byte(const struct bytes *bytes, const char *what) {
  struct reading *reading = bytes->reading;
  struct location where = {bytes->file, bytes->line, (int)(bytes->text + bytes->at - bytes->line_start) + 1, 1};
  claim_finding(reading->audit, reading->claim, VERDICT_BROKEN, where, "%s", what);
}

/* The bytes of a character of UTF-8 at `at`, and its number; 0: none. */
static int character_at(const unsigned char *at, unsigned *number) {
  int length = at[0] >= 0xF0 ? 4 : at[0] >= 0xE0 ? 3 : 2;
  if (at[0] < 0xC2 || at[0] > 0xF4) return 0;
  *number = at[0] & (0xFFu >> (length + 1));
  for (int i = 1; i < length; i++) {
    if ((at[i] & 0xC0) != 0x80) return 0;
    *number = *number << 6 | (at[i] & 0x3F);
  }
  return length;
}

/* Characters that are not seen, or that change how the text around them is shown. */
static bool is_invisible(unsigned number) {
  return number < 0xA0 || number == 0xAD || (number >= 0x200B && number <= 0x200F) ||
         (number >= 0x2028 && number <= 0x202E) || (number >= 0x2060 && number <= 0x206F) || number == 0xFEFF ||
         (number >= 0xE0000 && number <= 0xE0FFF);
}

static void read_character(struct bytes *bytes) {
  unsigned number = 0;
  int length = character_at((const unsigned char *)bytes->text + bytes->at, &number);
  if (bytes->place == IN_CODE)
    refuse_byte(bytes, "a byte that is no ASCII, outside of strings and comments");
  else if (length == 0)
    refuse_byte(bytes, "a byte that is no UTF-8");
  else if (is_invisible(number))
    refuse_byte(bytes, "a character that is not seen");
  bytes->at += length > 1 ? (size_t)length - 1 : 0;
}

/* A backslash: outside of strings it continues the line of a macro, after a blank. */
static void read_backslash(struct bytes *bytes) {
  const char *at = bytes->text + bytes->at;
  size_t blanks = strspn(at + 1, " \t\r\f\v");
  bool ends = at[1 + blanks] == '\n' || at[1 + blanks] == '\0';
  bool splices = bytes->place == IN_CODE && bytes->in_define && blanks == 0 && bytes->at > 0 && at[-1] == ' ';
  if (ends && !splices)
    refuse_byte(bytes, "a backslash at the end of a line, which continues it");
  else if (!ends && bytes->place == IN_CODE)
    refuse_byte(bytes, "a backslash outside of strings");
  if (splices && at[1] == '\n') {
    bytes->at++;
    bytes->line++;
    bytes->line_start = bytes->text + bytes->at + 1;
  } else if (!ends && (bytes->place == IN_STRING || bytes->place == IN_CHARACTER)) {
    bytes->at++;
  }
}

static bool starts(const struct bytes *bytes, const char *word) {
  return strncmp(bytes->text + bytes->at, word, strlen(word)) == 0;
}

static void check_spelling(const struct bytes *bytes) {
  static const char *const digraphs[] = {"<:", ":>", "<%", "%>", "%:"};
  char byte = bytes->text[bytes->at];
  if (starts(bytes, "?\?") && bytes->text[bytes->at + 2] != '\0' && strchr("=/'()!<>-", bytes->text[bytes->at + 2]))
    refuse_byte(bytes, "a trigraph");
  if ((byte >= 0 && byte < ' ' && byte != '\n' && byte != '\t') || byte == 127)
    refuse_byte(bytes, "a control character");
  for (size_t i = 0; i < sizeof digraphs / sizeof *digraphs && bytes->place == IN_CODE; i++)
    if (starts(bytes, digraphs[i])) refuse_byte(bytes, "a digraph");
}

static void enter(struct bytes *bytes) {
  if (starts(bytes, "//"))
    bytes->place = IN_LINE_COMMENT;
  else if (starts(bytes, "/*"))
    bytes->place = IN_COMMENT;
  else if (bytes->text[bytes->at] == '"')
    bytes->place = IN_STRING;
  else if (bytes->text[bytes->at] == '\'')
    bytes->place = IN_CHARACTER;
  if (bytes->place == IN_COMMENT) bytes->at++;
  if (bytes->opens && starts(bytes, "#")) bytes->in_define = starts(bytes, "#define ");
}

static void leave(struct bytes *bytes) {
  if (bytes->place == IN_COMMENT && starts(bytes, "*/")) {
    bytes->place = IN_CODE;
    bytes->at++;
  } else if ((bytes->place == IN_STRING && starts(bytes, "\"")) ||
             (bytes->place == IN_CHARACTER && starts(bytes, "'"))) {
    bytes->place = IN_CODE;
  }
}

static void end_line(struct bytes *bytes) {
  if (bytes->place != IN_COMMENT) bytes->place = IN_CODE;
  bytes->in_define = false;
  bytes->opens = true;
  bytes->line++;
  bytes->line_start = bytes->text + bytes->at + 1;
}

static void read_byte(struct bytes *bytes) {
  char byte = bytes->text[bytes->at];
  check_spelling(bytes);
  if (byte == '\n') {
    end_line(bytes);
    return;
  }
  if ((unsigned char)byte >= 0x80)
    read_character(bytes);
  else if (byte == '\\')
    read_backslash(bytes);
  else if (bytes->place == IN_CODE)
    enter(bytes);
  else
    leave(bytes);
  if (byte != ' ' && byte != '\t') bytes->opens = false;
}

static void check_bytes(struct reading *reading, const struct written *written) {
  struct bytes bytes = {.reading = reading, .file = written->file, .text = written->text, .line = 1, .opens = true};
  bytes.line_start = bytes.text;
  for (; bytes.text[bytes.at] != '\0'; bytes.at++) read_byte(&bytes);
  reading->n_bytes += bytes.at;
}

/* ---- Names ---- */

static void refuse_name(struct reading *reading, const struct token *token, enum verdict verdict, const char *why) {
  struct location where = token->where;
  where.length = (int)strlen(token->text);
  claim_finding(reading->audit, reading->claim, verdict, where, "'%s' %s", token->text, why);
}

static bool is_name(const struct token *token) {
  char first = token->text[0];
  return token->kind == TOKEN_OTHER &&
         (first == '_' || (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z'));
}

/* A name in the program's text. What a condition asks for has a list of its own. */
static void check_name(struct reading *reading, const struct token *token) {
  bool reserved = grammar_is_reserved(token->text) && !grammar_refuses_word(token->text);
  reading->n_names++;
  if (token->macro == MACRO_COMPILER || (reserved && !grammar_has_reserved(token->text, reading->is_device)))
    refuse_name(reading, token, VERDICT_BROKEN, "means what the compiler makes of it");
  else if (token->macro == MACRO_HEADER && !reserved && !grammar_has_macro(token->text))
    refuse_name(reading, token, VERDICT_CANNOT_TELL, "is a macro of a header, and may differ from machine to machine");
}

static void check_condition(struct reading *reading, const struct token *token) {
  reading->n_names++;
  if (token->macro != MACRO_OWN && !grammar_has_condition(token->text))
    refuse_name(reading, token, VERDICT_BROKEN, "decides by the compiler, its flags or the machine what the text says");
}

/* Whether a directive that names macros begins at token `at`. */
static bool is_condition(const struct written *written, int at) {
  static const char *const words[] = {"if", "ifdef", "ifndef", "elif", "elifdef", "elifndef"};
  if (at + 1 >= written->n_tokens || strcmp(written->tokens[at].text, "#") != 0) return false;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(written->tokens[at + 1].text, words[i]) == 0) return true;
  return false;
}

/* Continued lines are refused outside of macros, so that a condition is one line. */
static void check_names(struct reading *reading, const struct written *written) {
  int condition_line = 0;
  for (int i = 0; i < written->n_tokens; i++) {
    const struct token *token = &written->tokens[i];
    bool opens = i == 0 || written->tokens[i - 1].where.line != token->where.line ||
                 written->tokens[i - 1].kind == TOKEN_COMMENT;
    if (opens && is_condition(written, i)) {
      condition_line = token->where.line;
      i++;
    } else if (is_name(token) && token->where.line == condition_line) {
      check_condition(reading, token);
    } else if (is_name(token)) {
      check_name(reading, token);
    }
  }
}

void reading_check(struct audit *audit, const struct tree *tree) {
  struct claim *claim = audit_claim(audit, "one-reading",
                                    "The text is the same program for every compiler and with every flag: no byte and "
                                    "no name is read in different ways.");
  struct reading reading = {.audit = audit, .claim = claim, .tree = tree};
  for (int i = 0; i < tree->n_written; i++) {
    reading.is_device = device_ending(tree->written[i].file) != NULL;
    check_bytes(&reading, &tree->written[i]);
    check_names(&reading, &tree->written[i]);
  }
  claim_evidence(audit, claim, "%zu bytes, %d names", reading.n_bytes, reading.n_names);
}
