/* A run as its folder has it: the metrics, the job, the machine. */
#ifndef ACCEL_COMMANDS_REPORT_RUN_H
#define ACCEL_COMMANDS_REPORT_RUN_H

#include <jansson.h>

#include "gen/commands/cli/inputs.h"
#include "gen/report/metrics.h"
#include "gen/spec/keys.h"

struct report_run {
  const char *argument; /* as the command line has it */
  const char *name;     /* in the page, other than those of all other runs */
  const char *folder;   /* of the project */
  struct metrics metrics;
  json_t *record; /* run.json; NULL: there is none */
  const char *
      job_file; /* in the folder, that the keys are from: "run.json", "checkpoints/checkpoint_3/job.json"; NULL: none */
  const char *digest;    /* of the resolved job; NULL: unknown */
  const char *generator; /* "accel-gen 0.2.0"; NULL: unknown */
  struct job_key *keys;  /* of the job */
  int n_keys;
  bool has_defaults;  /* the keys are all; else those that were stated */
  json_t *audit;      /* audit.json, of accel-gen audit --format json; NULL: there is none */
  const char *trace;  /* the path of profile_0.json; NULL: there is none */
  const char *events; /* of a file of events, which may have texts; NULL: there is none */
  struct {
    const char **items;
    int count, capacity;
  } notes; /* sentences about what is not as it should be */
};

/* Reads a project folder, or its metrics.jsonl. What is read is added to `inputs`. NULL; else the run has no metrics,
 * and the text says why. */
const char *report_run_read(struct arena *arena, const char *argument, struct report_run *run, struct inputs *inputs);

/* Gives back what is not in the arena. */
void report_run_free(struct report_run *run);

/* A text that is another one when a file of the run, as an argument names it, was written to, has come or is gone. */
const char *report_run_state(struct arena *arena, const char *argument);

/* The path of a run's trace, and of its file of events; NULL: there is none. */
const char *report_trace(struct arena *arena, const struct report_run *run);
const char *report_events(struct arena *arena, const struct report_run *run);

/* Adds a sentence about what is not as it should be. */
void report_note(struct arena *arena, struct report_run *run, const char *text);

/* A number of run.json, or of an object in it; `otherwise` where there is none. */
double report_number(const json_t *object, const char *key, double otherwise);

#endif
