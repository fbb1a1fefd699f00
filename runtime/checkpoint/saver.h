/* The checkpoints of a run: where they stand, how they are numbered, who writes them. */
#ifndef RUNTIME_CHECKPOINT_SAVER_H
#define RUNTIME_CHECKPOINT_SAVER_H

#include "include/accel/trainer.h"
#include "runtime/base/problem.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/sharded_states.h"

#include <pthread.h>
#include <stdatomic.h>

struct saver {
  const struct accel_program *program;
  char folder[4096];  /* that holds them: PROJECT/checkpoints, or the project's own */
  const char *prefix; /* "checkpoint_" or "step_" */
  int64_t next;       /* the number of the next one, where they are numbered */
  int metrics;        /* a file that must be durable before a checkpoint is */
  char **own;         /* the program's states in the arena */
  char **arrays;      /* the same, but for what ranks divide: there its whole, on rank 0 and while it is needed */
  char **copies;      /* and where they are copied to; NULL: saves are not in the background */

  struct saved_object *objects; /* of user code */
  int n_objects;
  struct saved_file *files; /* of user code, for the next save */
  int n_files;

  char path[4096];        /* of the newest save */
  struct checkpoint what; /* in it; its files are the saver's */
  pthread_t thread;
  bool busy;        /* the thread is to be joined */
  atomic_bool done; /* it has ended */
  bool failed;
  struct problem problem;
};

/* Makes these states whole on rank 0, for what it saves next; all ranks call it, between saves. */
bool rt_saver_collect(struct saver *saver, enum state_set states, struct problem *problem);

/* Looks at the project's folder; nothing is written yet. */
bool rt_saver_open(struct saver *saver, const struct accel_program *program, const char *project_dir, char *arena,
                   struct problem *problem);

/* The newest checkpoint that is whole, of a number of `most` at most: in `path`, and its number; empty and -1: there is
 * none. Ones that are not whole are warned of; when all are so, and `most` is INT64_MAX, it is an error. */
bool rt_saver_newest(const struct saver *saver, int64_t most, int64_t *number, char path[4096],
                     struct problem *problem);

/* Whether the folder holds any checkpoint. */
bool rt_saver_has_any(const struct saver *saver, bool *any, struct problem *problem);

/* Whether this rank writes anything of checkpoints. */
bool rt_saver_writes(const struct saver *saver);

/* Saves; in the background, it returns when the copy is made. Waits for the save before, whose error it gives. Then the
 * oldest are removed that total_limit does not keep. Where ranks write their parts all call it, and rank 0 alone gives
 * errors. */
bool rt_saver_save(struct saver *saver, const struct checkpoint *what, bool in_background, struct problem *problem);

/* Touches the memory that copies go to, concurrently with the steps, so that the first save's copy need not wait for
 * the system to find it. Nothing where saves are not in the background. */
void rt_saver_prepare(struct saver *saver);

/* Adds a file to the next checkpoint; the bytes are copied. The name must be a plain one. */
bool rt_saver_add_file(struct saver *saver, const char *name, const void *bytes, size_t size, struct problem *problem);

/* Whether a save in the background has ended with an error that rt_saver_wait will give. */
bool rt_saver_has_failed(const struct saver *saver);

/* Waits for the save in the background. */
bool rt_saver_wait(struct saver *saver, struct problem *problem);

void rt_saver_close(struct saver *saver);

#endif
