/* accel/hooks.h: what the functions of a job's `hooks.source` are, and what they may call.
 *
 *   hooks: {source: my_hooks.c, on_start: on_start, on_step: on_step, on_save: on_save, on_end: on_end}
 *
 * Each key names a function of that file, of the type
 *
 *   void on_step(struct accel_run *run, const struct accel_progress *progress);
 *
 * The trainer calls it by its name: on_pre_load before a checkpoint is loaded (the weights are not there yet), on_start
 * before the first step, on_step after every step, on_eval after an evaluation, on_pre_save before a checkpoint or the
 * weights are saved and on_save after, on_end after the last step; also on_step_begin before every step, and on_epoch
 * after the step that ends an epoch. on_batch is of another type and called within steps and evaluations, with
 * each micro-batch once it is loaded; so is on_bucket, with gradients that it makes those of all ranks:
 *
 *   void on_batch(struct accel_run *run, struct accel_batch *batch);
 *   void on_bucket(struct accel_run *run, struct accel_bucket *bucket);
 *
 * on_order is of a type of its own, too. It fills the order of an epoch of training (accel/order.h), before the epoch's
 * first sample is loaded, or where a run resumes in the epoch. It must be a pure function of what it gets, as every
 * rank calls it, on any thread, and all must agree:
 *
 *   void on_order(struct accel_order *order);
 *
 * A name begins with "on_", which no function of a trainer does. The file is C or whatever links as C; `accel-gen
 * build` compiles it with the trainer.
 *
 * All other calls come from the main thread, between steps. Time spent in them does not count as training. In a run of
 * several ranks every rank calls each function, at the same steps; what ranks say to each other is in accel/accel.h. Of
 * the functions below some are for all ranks, which then call them in the same order: they say so. docs/hooks.md has an
 * example. */
#ifndef ACCEL_HOOKS_H
#define ACCEL_HOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "batch.h"
#include "bucket.h"
#include "order.h"

/* The run: opaque. */
struct accel_run;

/* The progress of the run. The same object at each call; read it, do not keep it. The step at hand is the newest one;
 * in on_step_begin it is the one that begins. */
struct accel_progress {
  int64_t step, steps;        /* steps done so far, and of the whole run */
  int64_t epoch;              /* of the step at hand, from 0 */
  bool end_of_dataloader;     /* the step at hand takes the last batch of that epoch */
  int64_t remainder;          /* samples of all ranks in an epoch's last round of batches where that is not full; 0: it
                                 is, as with data.drop_last */
  double loss, lr, grad_norm; /* of the newest step; 0 before the first one */
  bool step_was_skipped;      /* it ended without its update, as its numbers were not finite */
  bool has_eval;              /* an evaluation ran after this very step */
  double eval_loss;           /* its loss, where has_eval */
};

/* ---- What a run reports ---- */

/* Adds a number to the next line of metrics.jsonl, which is the one of this step when it gets a line; a number of the
 * same name that waits is replaced. The name must not be one that a line has anyway ("loss"). Of several ranks the main
 * process's counts. */
void accel_log(struct accel_run *run, const char *name, double value);

/* Prints a line to standard output, as printf with a line end, without disturbing the progress line. Of several ranks
 * the main one of each machine prints. */
void accel_print(struct accel_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The metric `name` ("accuracy") of the evaluation of this step; false where there is none. */
bool accel_metric(const struct accel_run *run, const char *name, double *value);

/* ---- What user code reads of a run ---- */

/* Ends the run after the step at hand, as if it were the last one: with its evaluation, its line, and saved weights.
 * Any rank may call it, and all end. A run that is resumed takes the steps that were left. */
void accel_stop(struct accel_run *run);

/* Saves a checkpoint after the step at hand, or after the first one where it is called before that, as checkpoint.every
 * does, also in a job without it. Any rank may call it. In on_save and on_end it is too late. */
void accel_save(struct accel_run *run);

/* Sets this rank's flag, which is for user code's own use. */
void accel_set_trigger(struct accel_run *run);

/* Tells all ranks, which all call it, whether one has set its flag, and takes it back. */
bool accel_check_trigger(struct accel_run *run);

/* Makes `size` bytes at `object` a part of every checkpoint; where the run resumes from one, they are filled from it
 * here. To be called in on_start, for the same objects in the same order in each run, and on all ranks; they must
 * outlive the run. The main process's bytes are what is saved, and what all ranks resume with. */
void accel_register_for_checkpointing(struct accel_run *run, void *object, size_t size);

/* Adds a file to the checkpoint that is about to be saved, to be called in on_pre_save. The bytes are copied here. The
 * name is plain, and none that the checkpoint has anyway ("model.safetensors"). Of several ranks the main process's is
 * saved; accel_gather_object and accel_to_bytes make one of all. */
void accel_save_file(struct accel_run *run, const char *name, const void *bytes, size_t size);

/* Copies the first bytes, `most` at most, of a file of the checkpoint from which the run resumes; returns its size. -1:
 * the run resumes from none, or it has no such file. From on_pre_load on. All ranks call it; the main process reads. */
int64_t accel_load_file(const struct accel_run *run, const char *name, void *bytes, size_t most);

/* The folder of the checkpoint from which the run resumes; NULL: from none. From on_pre_load on. */
const char *accel_resumed_from(const struct accel_run *run);

/* ---- What a run has ---- */

/* The float32 values of the parameter `name` as its checkpoint calls it, row-major, `*count` of them; NULL where there
 * is none, or it is of a layer that comes from a file. They belong to the run, and change with every step. */
const float *accel_weight_of(const struct accel_run *run, const char *name, int64_t *count);

/* The same of its moving average (training.ema); NULL also where the job has none. */
const float *accel_average_of(const struct accel_run *run, const char *name, int64_t *count);

/* Where ranks divide the weights (parallelism.zero_stage: 3) a rank has none of them whole, nor of the averages where
 * they divide states (any zero_stage). Then the two above give NULL, but on the main process between this call, which
 * all ranks make, and the end of the function that makes it. Elsewhere there is nothing to collect. */
void accel_collect_weights(struct accel_run *run);

/* The number of parameters and buffers. */
int accel_weight_count(const struct accel_run *run);

/* The name of parameter `index`: 0, 1, ... up to accel_weight_count - 1. It is static. */
const char *accel_weight_name(const struct accel_run *run, int index);

/* The value of a key of the job, stated or a default, as a static text: accel_key_of(run, "precision.mixed_precision")
 * is "bf16", say. NULL: the program has no such key. */
const char *accel_key_of(const struct accel_run *run, const char *name);

/* The folder that the run writes to. The text lives as long as the run. */
const char *accel_project_dir(const struct accel_run *run);

/* Whether the newest step ended without its update. */
bool accel_step_was_skipped(const struct accel_run *run);

/* ---- Which process this is, as Accelerate's PartialState has it ---- */

/* The index of this process among all of the run, from 0. */
int accel_process_index(const struct accel_run *run);

/* The number of processes of the run. */
int accel_num_processes(const struct accel_run *run);

/* The index of this process among those of its machine, from 0. */
int accel_local_process_index(const struct accel_run *run);

/* Whether this is process 0 of the run. */
bool accel_is_main_process(const struct accel_run *run);

/* Whether this is process 0 of its machine. */
bool accel_is_local_main_process(const struct accel_run *run);

/* Whether this is the last process of the run. */
bool accel_is_last_process(const struct accel_run *run);

#endif
