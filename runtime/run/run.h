/* The run: everything that accel_start made. */
#ifndef RUNTIME_RUN_RUN_H
#define RUNTIME_RUN_RUN_H

#include "include/accel/trainer.h"
#include "runtime/checkpoint/saver.h"
#include "runtime/data/data.h"
#include "runtime/data/prefetch.h"
#include "runtime/data/share.h"
#include "runtime/process/arena.h"
#include "runtime/report/extras.h"
#include "runtime/report/log.h"
#include "runtime/report/stopwatch.h"
#include "runtime/run/events.h"

#include "include/accel/hooks.h"

struct accel_run {
  const struct accel_program *program;
  struct cadences cadences;
  const char *project_dir;
  const char *bound;     /* what the ranks of this machine are bound to; empty: none is */
  const char *resume;    /* as flags and job say: "auto", "never" or a folder */
  char model_path[4096]; /* where weights are saved */
  struct saver saver;
  bool continues;        /* it resumes from a checkpoint */
  char resumed[4096];    /* that one's folder */
  char changed[700];     /* what of the job is another since: "optimizer.lr: 0.001 -> 0.0005" */
  struct json_t *prints; /* of the data, for checkpoints; on rank 0 */
  int64_t first_step;    /* steps that were done before this process */
  double stalled;        /* seconds that saves since the last line kept steps waiting */
  int signal;            /* that came, and asks the run to end; 0: none did */
  bool interrupted;      /* it ended the run before its last step */
  bool chosen;           /* `resumed` is what the run resumes from */
  double saved_time;     /* of the last save, or of the start */
  int64_t asked_at;      /* the step count for which the clock and the signals were asked; -1: none */
  bool is_timely;        /* and then the clock asked for a save */
  struct arena arena;
  struct data data;
  struct prefetch prefetch;
  struct sharing sharing;
  struct log log;
  struct stopwatch *watch; /* apart, so that asking a const run what is next can start and stop it */
  void *weights;           /* as remembered for saving; NULL: none yet */
  void *published;         /* the model, where that is not the weights; NULL: it is */
  const int32_t *stopping; /* the state of early stopping; NULL: none is known yet */
  bool has_best;           /* the weights in memory are those of the best evaluation, not the last ones */
  bool left;               /* what the run leaves beside its checkpoints is written */
  int64_t mean_at;         /* the step count at which ranks that step alone averaged their weights last; -1: none */
  int64_t saved_at;        /* the step count of the last save; -1: none */
  int64_t eval_at;         /* the step count of the last evaluation; -1: none to tell */
  double eval_loss;
  struct extras extras;
  bool first_step_told;
  bool stopped_early;
  bool trigger;                   /* of user code */
  bool collected;                 /* rank 0 has divided weights whole, as they are now */
  struct accel_progress progress; /* as told to user code last */
  bool skipped;                   /* the newest step ended without its update */
};

/* The position of the first sample of step `at`, beside those of all ranks. */
int64_t rt_position(const struct accel_run *run, int64_t at);

#endif
