#include "runtime/process/flags.h"

#include "include/accel/accel.h"
#include "runtime/base/terminal.h"
#include "runtime/process/processor.h"
#include "runtime/process/world.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int least_of(int a, int b, int c) {
  int least = a < b ? a : b;
  return least < c ? least : c;
}

/* Levenshtein's distance of words of fewer than 32 characters, by rows of its table. */
static int distance(const char *a, const char *b) {
  int row[33], width = (int)strlen(b);
  for (int k = 0; k <= width; k++) row[k] = k;
  for (int i = 0; a[i] != '\0'; i++) {
    int diagonal = row[0];
    row[0] = i + 1;
    for (int k = 0; k < width; k++) {
      int above = row[k + 1];
      row[k + 1] = least_of(above + 1, row[k] + 1, diagonal + (a[i] != b[k]));
      diagonal = above;
    }
  }
  return row[width];
}

static const char *nearest(const struct flag *flags, int count, const char *name) {
  const char *best = NULL;
  int best_distance = 4; /* further away it was not a slip */
  if (strlen(name) >= 32) return NULL;
  for (int i = -2; i < count; i++) {
    const char *candidate = i == -2 ? "--help" : i == -1 ? "--version" : flags[i].name;
    int far = distance(name, candidate);
    if (far < best_distance) best = candidate, best_distance = far;
  }
  return best;
}

static bool unknown(const struct flag *flags, int count, const char *name, struct problem *problem) {
  const char *meant = name[0] == '-' ? nearest(flags, count, name) : NULL;
  rt_problem(problem, "unknown %s '%.200s'%s%s%s", name[0] == '-' ? "flag" : "argument", name,
             meant != NULL ? "; did you mean '" : "", meant != NULL ? meant : "", meant != NULL ? "'?" : "");
  return rt_help(problem, "--help lists the flags");
}

static bool bad_value(const struct flag *flag, const char *value, struct problem *problem) {
  char wanted[64];
  if (flag->kind == FLAG_COUNT)
    snprintf(wanted, sizeof wanted, "a whole number, %" PRId64 " or more", flag->least);
  else if (flag->kind == FLAG_SEED)
    snprintf(wanted, sizeof wanted, "a whole number");
  else if (flag->kind == FLAG_SHARE)
    snprintf(wanted, sizeof wanted, "a number from 0 to 1");
  else
    snprintf(wanted, sizeof wanted, "a number, 0 or more");
  rt_problem(problem, "%s must be %s, not '%.100s'", flag->name, wanted, value);
  return rt_help(problem, "--help lists the flags");
}

static bool parse_value(const struct flag *flag, const char *value, struct problem *problem) {
  char *end = NULL;
  errno = 0;
  bool digit = value[0] >= '0' && value[0] <= '9', good = true;
  if (flag->kind == FLAG_TEXT) {
    *flag->target.text = value;
  } else if (flag->kind == FLAG_COUNT) {
    *flag->target.count = strtoll(value, &end, 10);
    good = digit && *flag->target.count >= flag->least;
  } else if (flag->kind == FLAG_SEED) {
    *flag->target.seed = strtoull(value, &end, 10);
    good = digit;
  } else {
    *flag->target.real = strtod(value, &end);
    good = (digit || value[0] == '.') && isfinite(*flag->target.real);
    good = good && (flag->kind == FLAG_REAL || *flag->target.real <= 1);
  }
  return (good && errno == 0 && (end == NULL || *end == '\0')) || bad_value(flag, value, problem);
}

static const struct flag *find(const struct flag *flags, int count, const char *argument, size_t length) {
  for (int i = 0; i < count; i++)
    if (strlen(flags[i].name) == length && memcmp(flags[i].name, argument, length) == 0) return &flags[i];
  return NULL;
}

bool rt_flags_parse(const struct flag *flags, int count, int argc, char **argv, struct problem *problem) {
  for (int i = 1; i < argc; i++) {
    size_t length = strcspn(argv[i], "=");
    const struct flag *flag = find(flags, count, argv[i], length);
    if (flag == NULL) return unknown(flags, count, argv[i], problem);
    const bool with_value = argv[i][length] == '=';
    if (flag->kind == FLAG_SWITCH) {
      *flag->target.given = true;
      if (!with_value) continue;
      rt_problem(problem, "%s takes no value", flag->name);
      return rt_help(problem, "--help lists the flags");
    }
    const char *value = with_value ? argv[i] + length + 1 : ++i < argc ? argv[i] : NULL;
    if (value == NULL) {
      rt_problem(problem, "%s needs a value: %s %s", flag->name, flag->name, flag->value);
      return rt_help(problem, "--help lists the flags");
    }
    if (!parse_value(flag, value, problem)) return false;
  }
  return true;
}

/* Whether `name`, a flag without a value, is among the arguments. */
static bool is_asked(int argc, char **argv, const char *name) {
  for (int i = 1; i < argc; i++)
    if (strcmp(argv[i], name) == 0) return true;
  return false;
}

static void print_flag(int width, const char *name, const char *value, const char *help) {
  const int rest = width - (int)strlen(name) - 1;
  rt_print(stdout, "  %s %-*s  %s\n", name, rest, value, help);
}

static void print_help(const struct accel_program *program, const struct flag *flags, int count, const char *command) {
  rt_print(stdout, "%s: %s\n\nUsage: %s [flags]\n\n", program->name, program->summary, command);
  int width = (int)strlen("--version");
  for (int i = 0; i < count; i++) {
    int own = (int)(strlen(flags[i].name) + 1 + strlen(flags[i].value));
    if (own > width) width = own;
  }
  for (int i = 0; i < count; i++) print_flag(width, flags[i].name, flags[i].value, flags[i].help);
  print_flag(width, "--version", "", "print the job, the generator and the plan of this program");
  print_flag(width, "--help", "", "print this");
}

static void print_version(const struct accel_program *program) {
  rt_print(stdout, "%s job %s\n%s, runtime %s\n", program->name, program->job_digest, program->generator,
           ACCEL_VERSION);
  rt_print_text(stdout, program->plan);
  if (rt_mesh_ranks(program) > 1) /* `accel-gen launch PROGRAM` reads this line */
    rt_print(stdout, "ranks     %lld by %s, timeout %d s, a signal %s\n", (long long)rt_mesh_ranks(program),
             rt_world_engine(), program->timeout, program->checkpoint.saves_on_signal ? "saves" : "ends the run");
}

void rt_flags_read(const struct accel_program *program, const struct flag *flags, int count, int argc, char **argv) {
  struct problem problem;
  bool help = is_asked(argc, argv, "--help");
  bool version = !help && is_asked(argc, argv, "--version");
  if (help && rt_is_main()) print_help(program, flags, count, argv[0]);
  if (version && rt_is_main()) print_version(program);
  if (help || version) {
    rt_world_leave();
    exit(fflush(stdout) == 0 ? 0 : 1);
  }
  if (!rt_flags_parse(flags, count, argc, argv, &problem)) rt_fail_together(&problem, 2);
  if (!rt_processor_has(program->processor, &problem)) rt_fail_together(&problem, 1);
}
