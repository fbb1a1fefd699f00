/* Verify: a trainer is built and run for a few steps, and each of them compared with the second reading of its job.
 * Private to gen/commands/verify. */
#ifndef ACCEL_COMMANDS_VERIFY_VERIFY_H
#define ACCEL_COMMANDS_VERIFY_VERIFY_H

#include "gen/commands/cli/options.h"
#include "gen/verify/kernels/kernels.h"
#include "gen/verify/measure.h"
#include "gen/verify/proof/proof.h"
#include "gen/verify/ranges.h"

/* What is said of one part of the arithmetic. */
struct finding {
  const char *subject; /* "weights" */
  int64_t numbers;     /* that were compared */
  int64_t different;   /* of them further off than the bound */
  double worst;        /* the largest distance from what the bound allows, in bounds; of equal ones 0 */
  const char *where;   /* of that number, and what it was and is; NULL: there is none */
  bool exact;          /* all were equal, bit for bit */
};

/* What is said of a function of the program. */
struct function_finding {
  const char *name;
  struct kernel_finding found;
};

enum subject {
  SUBJECT_SAMPLES,
  SUBJECT_PARAMETERS,
  SUBJECT_LOSS,
  SUBJECT_RATE,
  SUBJECT_NORM,
  SUBJECT_SCALE,
  SUBJECT_STATES,
  SUBJECT_WEIGHTS,
  SUBJECT_AVERAGES,
  SUBJECT_BUFFERS,
  SUBJECT_LEFT,
  SUBJECT_UPDATE, /* by itself */
  SUBJECTS
};

/* A stage of a run, as the program was recorded in it. */
struct recorded_step {
  int64_t at;
  struct micro_batch *batches;
  int n_batches, batches_capacity;
  int64_t first_expected, expected; /* micro-batches, as the runtime says; expected -1: it was not asked */
  double loss, rate, norm, scale;
  bool skipped, reported;
};

struct recording {
  struct recorded_step *items;
  int count, capacity;
};

struct verification {
  const struct options *options;
  struct arena *arena;
  struct arena *scratch; /* of a parameter's arrays, until the next one's */
  const struct job *job;
  const char *folder; /* of all that is written */
  const char *program;
  struct reading reading;
  struct measuring measuring;
  bool *frozen;
  bool isolated; /* the trainer had no network */
  struct finding findings[SUBJECTS];
  const char *unknown;         /* why nothing can be told; NULL: something can */
  double one;                  /* see measured.one; negative: it was not asked */
  int64_t tokens_seen, tokens; /* of the vocabulary; tokens 0: the data are no tokens */
  bool *seen;
  int64_t steps[16]; /* the first step of each run */
  int n_steps;
  struct {
    struct function_finding *items;
    int count, capacity;
  } functions;
  int n_calling; /* functions that are not over arrays alone */
};

/* Says why nothing can be told, and gives false. */
bool verify_unknown(struct verification *verify, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- The reading ---- */

/* Compiles the model over the second reading and finds its parameters. */
bool verify_read_model(struct verification *verify, const struct tree *model);

/* ---- The trainer ---- */

/* Compiles the program with the record. */
bool verify_build(struct verification *verify);

/* Writes a file of the folder. */
bool verify_put(struct verification *verify, const char *name, const char *text);

/* Runs a program of the folder with arguments, words divided by blanks, in `folder`, without network where the system
 * allows that; *status is waitpid's. */
bool verify_isolated(struct verification *verify, const char *folder, const char *name, const char *arguments,
                     int *status);

/* Makes a folder of that name for a run from step `first` for so many steps, whose start is what the reading's
 * parameters are. NULL: it cannot. */
const char *verify_prepare(struct verification *verify, const char *name, int64_t first, int64_t steps);

/* Runs it from step `first` for so many steps, in a folder of its own: *folder. Its start is what the reading's
 * parameters are. */
bool verify_run(struct verification *verify, int64_t first, int64_t steps, const char **folder);

/* The micro-batches of a step, of all ranks. */
int64_t verify_micro_batches(const struct job *job);

/* Reads what the run has recorded, of all ranks: the micro-batches of a step in the order of their numbers. */
bool verify_record(struct verification *verify, const char *folder, struct recording *recording);

/* The tensor of a file of a run, as doubles: `count` numbers, in the scratch. NULL: there is none. */
double *verify_tensor(struct verification *verify, const char *file, const char *name, int64_t count);

/* ---- Its functions ---- */

/* Compiles the file probed.c of the folder as the program `probe`. */
bool verify_build_probe(struct verification *verify);

/* How the program's update is called. */
struct update_probe {
  const char *text; /* of the probe: verify_run_update(argc, argv) */
  bool scaled;      /* it takes a factor of the gradient */
  const char *why;  /* it cannot be called; NULL: it can */
};

struct update_probe verify_update_probe(struct verification *verify, const struct tree *tree);

/* Adds what was found of a function. */
void verify_note_function(struct verification *verify, const char *name, struct kernel_finding found);

/* The program's text, as functions are found in it and lifted to terms. */
struct verify_source {
  struct proof_source of; /* tree NULL: it cannot be read */
  const char *why;        /* nothing of it can be proved; NULL: it can */
};
struct verify_source verify_source(struct verification *verify);

/* Of a function whose runs agree with a formula: that all its elements are the formula's terms, which makes it equal.
 */
void verify_prove(struct verification *verify, const struct verify_source *source, const struct kernel *kernel,
                  const struct known_numbers *known, struct kernel_finding *found);

/* Notes the functions of a step's numbers, such as its rate, that are proved to be their formulas; they are not called
 * by themselves. */
void verify_prove_step(struct verification *verify, const struct verify_source *source);

/* Runs the update by the probe, and compares what it makes of numbers of its own with the optimizer's formula; where
 * they agree, its terms with that formula's, which makes it equal. */
bool verify_update(struct verification *verify, const struct verify_source *source, const struct update_probe *probe);

/* Calls each of the program's functions over arrays alone, and compares what it gives with formulas. */
bool verify_functions(struct verification *verify);

/* ---- The comparison ---- */

/* Compares the steps of a run, each from the checkpoint before it. */
bool verify_compare(struct verification *verify, const char *folder, const struct recording *recording);

/* Compares the weights and states after step `at` with those before it, by gradients that the checkpoint before has,
 * and that the step takes `factor` times. False: one of them is not there. */
bool verify_compare_update(struct verification *verify, const char *folder, int64_t at, double factor);

/* Notes a number that should be within [low, high]; where is "step 0, h.0.ln_1.weight[3]". */
void verify_number(struct verification *verify, enum subject subject, double low, double high, double expected,
                   double found, const char *format, ...) __attribute__((format(printf, 7, 8)));

/* Writes what was found; the exit status. */
int verify_report(const struct verification *verify);

#endif
