#include "gen/provenance/program_words.h"

#include <string.h>

/* ---- The table of keys ---- */

static const char *skip_blank(const char *at) {
  return at + strspn(at, " \t\r\n");
}

/* The byte that follows a backslash, in the forms in which programs are written: octal, n, or itself. */
static char unescape(const char **at) {
  int code = 0, digits = 0;
  for (; digits < 3 && **at >= '0' && **at <= '7'; digits++) code = 8 * code + (*(*at)++ - '0');
  if (digits > 0) return (char)code;
  char c = *(*at)++;
  return c == 'n' ? '\n' : c;
}

/* A string in one literal or several; NULL where there is none. *at is after it then. */
static const char *read_literal(struct arena *arena, const char **at) {
  const char *next = skip_blank(*at);
  if (*next != '"') return NULL;
  struct text text = text_in(arena);
  for (; *next == '"'; next = skip_blank(next + 1)) {
    next++;
    while (*next != '"' && *next != '\0') {
      char c = *next++;
      if (c == '\\' && *next != '\0') c = unescape(&next);
      text_add(&text, &c, 1);
    }
    if (*next == '\0') return NULL;
  }
  *at = next;
  return text_string(&text);
}

/* The literal after a member's name; NULL where there is none. */
static const char *read_member(struct arena *arena, const char *text, const char *member) {
  const char *at = strstr(text, member);
  if (at == NULL) return NULL;
  at += strlen(member);
  return read_literal(arena, &at);
}

struct program_job job_in_program(struct arena *arena, const char *text) {
  struct program_job job = {0};
  const char *at = strstr(text, "struct accel_key keys[] = {");
  if (at == NULL) return job;
  job.digest = read_member(arena, at, "\n    .job_digest = ");
  job.generator = read_member(arena, at, "\n    .generator = ");
  at = strchr(at, '{') + 1;
  while (*(at = skip_blank(at)) == '{') {
    at++;
    const char *name = read_literal(arena, &at);
    if (name == NULL || *at != ',') break;
    at++;
    const char *value = read_literal(arena, &at), *end = strchr(at, '}');
    if (value == NULL || end == NULL) break;
    if (strcmp(name, MODEL_NAME) == 0)
      job.model = value;
    else
      add_pair(arena, &job.keys, name, value);
    at = skip_blank(end + 1);
    at += *at == ',';
  }
  return job;
}

/* ---- The first comment ---- */

/* The lines between the job's and the empty one, each after " * ". */
struct pairs summary_in_program(struct arena *arena, const char *text) {
  const char *end = strstr(text, "*/"), *job = strstr(text, "\n * job ");
  struct text plan = text_in(arena);
  if (end == NULL || job == NULL || job > end) return (struct pairs){0};
  for (const char *line = strchr(job + 1, '\n'); line != NULL && line < end; line = strchr(line + 1, '\n')) {
    if (strncmp(line, "\n * ", 4) != 0) break;
    text_add(&plan, line + 4, strcspn(line + 4, "\n") + 1);
  }
  return summary_of(arena, text_string(&plan));
}
