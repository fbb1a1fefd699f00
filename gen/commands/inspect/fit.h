/* Fit: what a job could train in a memory, for each way to train it. */
#ifndef ACCEL_COMMANDS_INSPECT_FIT_H
#define ACCEL_COMMANDS_INSPECT_FIT_H

#include "gen/commands/cli/options.h"
#include "gen/plan/fit.h"

enum { FIT_MOST_KEYS = 8 };

/* The largest size of one kind, with the keys that set it. */
struct fitted {
  struct fit fit;
  struct job_override *keys;
  int n_keys;
};

/* A way to train the job. */
struct fit_row {
  const char *setting;                     /* "full", "LoRA", "QLoRA", "offload" */
  const char *checkpointing;               /* memory.activation_checkpointing */
  struct job_override keys[FIT_MOST_KEYS]; /* that make it of the job */
  int n_keys;
  const char *refusal; /* why there is no such program; NULL: there is one */
  struct fitted batch, sequence;
};

struct fit_table {
  int64_t memory;     /* bytes that a rank may take */
  const char *origin; /* of that number: "devices.memory" or "machine" */
  const char *reason; /* it in words */
  int64_t batch;      /* of the job, as its file says it: that sequences are fitted with */
  int64_t tokens;     /* that batches are fitted with; 0: the job is over rows */
  struct {
    struct fit_row *items;
    int count, capacity;
  } rows;
};

/* Tables for people; one JSON object, as schemas/plan.schema.json has it. */
const char *fit_text(struct arena *arena, const struct fit_table *table);
const char *fit_json(struct arena *arena, const struct fit_table *table);

/* accel-gen plan --fit JOB. */
int plan_fit(const struct options *options);

#endif
