/* Compare: what differs between two jobs with their programs: in the job, in the plan, in the step path's code. */
#ifndef ACCEL_PROVENANCE_COMPARE_H
#define ACCEL_PROVENANCE_COMPARE_H

#include <stdbool.h>

#include "gen/base/difference.h"
#include "gen/base/text.h"

/* Names with values, in order. */
struct pair {
  const char *name, *value;
};
struct pairs {
  struct pair *items;
  int count, capacity;
};

/* A function of the step path: its lines in the program's text, from 0, the last one included. */
struct step_function {
  const char *name;
  int first, last;
};

/* One of the two inputs of a comparison. What is not known of it is empty: `keys` where this version does not have the
 * defaults that a program leaves out. */
struct diff_input {
  const char *name;      /* as the user named it */
  const char *program;   /* the program's file; NULL where it is in no file */
  struct pairs keys;     /* of the resolved job */
  struct pairs stated;   /* those of them that differ from the defaults of `generator` */
  const char *generator; /* "accel-gen 0.1.0" */
  const char *model;     /* a digest of the tokens of the model's C */
  struct pairs figures;  /* of the plan: "arena_bytes.weights", "3216384" */
  struct pairs summary;  /* the same for people: "memory", "39.9 MiB: ..." */
  struct lines lines;    /* of the program */
  struct step_function *step_functions;
  int n_step_functions, step_functions_capacity;
};

/* A value of one name on both sides; NULL where a side has none. */
struct change {
  const char *name, *a, *b;
};
struct changes {
  struct change *items;
  int count, capacity;
};

/* A function of the step path that differs. One that is on one side alone is compared with one of the other that is
 * called the same but for numbers. Lines are numbers from 0, by side. */
struct function_change {
  const struct step_function *a, *b; /* NULL: only the other side has it */
  int *removed, *added;
  int n_removed, n_added;
};

/* How the digest of a model is named, here and in a program's table of keys. */
#define MODEL_NAME "the model's C"

struct comparison {
  const struct diff_input *a, *b;
  struct changes job, plan;
  struct function_change *functions;
  int n_functions, functions_capacity;
  int elsewhere_a, elsewhere_b; /* lines outside of the step path that the other side does not have */
};

void add_pair(struct arena *arena, struct pairs *pairs, const char *name, const char *value);

/* The figures of a plan from its JSON text, one for each number, text or item of a list in it, with dotted names. */
struct pairs figures_of(struct arena *arena, const char *json);

/* The lines of a plan's text for people: a word, blanks, and the rest. */
struct pairs summary_of(struct arena *arena, const char *text);

struct comparison compare(struct arena *arena, const struct diff_input *a, const struct diff_input *b);

/* Whether nothing differs. */
bool comparison_is_empty(const struct comparison *comparison);

/* A line of an input's program, from 0. */
const char *input_line(struct arena *arena, const struct diff_input *input, int line);

/* The numbers of both sides; false where one is none. */
bool change_numbers(const struct change *change, double numbers[2]);

/* "+12.3 %" from one number to the other; "" where there are none, or the first is 0. */
const char *change_ratio(struct arena *arena, const struct change *change);

/* For people, and as JSON. all: with the code of functions that only one side has. */
void comparison_text(const struct comparison *comparison, bool all, struct text *out);
void comparison_json(const struct comparison *comparison, struct text *out);

#endif
