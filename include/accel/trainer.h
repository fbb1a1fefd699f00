/* What an emitted program calls: start, data, events, weights, end. One process, one program, one arena.
 *
 * Errors: a function of this header that meets one prints a message (rank, what, where, what to do) to standard error
 * and ends the process with status 1; bad flags end it with status 2. So an emitted program checks nothing itself and
 * has no error path in its loop. Nothing is left half written. */
#ifndef ACCEL_TRAINER_H
#define ACCEL_TRAINER_H

#include "program.h"
#include "squares.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The run: opaque; made once by accel_start. */
struct accel_run;

/* Reads the flags (--help, --version, --data FILE, --project-dir DIR, --steps N, --resume WHAT; nothing that changes
 * the arithmetic), opens and checks the data, reserves the arena, sets the threads. --help and --version print and end
 * with 0. */
struct accel_run *accel_start(const struct accel_program *program, int argc, char **argv);

/* Which of the ranks that train on batches of their own this process is, from 0. */
int64_t accel_rank(const struct accel_run *run);

/* Which of the ranks that differ along this axis alone it is, from 0. */
int64_t accel_rank_along(const struct accel_run *run, enum accel_axis axis);

/* The arena: program->arena_bytes, zeroed, aligned to 2 MiB, huge pages requested. The same pointer at each call. */
void *accel_arena(const struct accel_run *run);

/* Fills what outlives a step: from the checkpoint that the run is to continue, where there is one. Else the states are
 * 0, and the parameters at `weights` are filled from program->start (every name present, shape equal, float32,
 * float16 and bfloat16 converted), else by their initialisers from Philox at (seed, tensor, element), the same for any
 * number of threads. Remembers `weights` for saving. Prints the headline of the run. */
void accel_fill_weights(struct accel_run *run, void *weights);

/* The same for a program whose ranks divide the weights: each gets its part of them. */
void accel_fill_parts(struct accel_run *run);

/* Fills the moving averages of the parameters at `averages`, after accel_fill_weights: a copy of the parameters,
 * unless the run resumes from a checkpoint. */
void accel_fill_averages(struct accel_run *run, void *averages);

/* From now on the parameters at `weights` are the model that the run leaves as model.safetensors: an average of those
 * that it trains, which its checkpoints hold. They belong to the caller and may change between calls of the runtime. */
void accel_publish(struct accel_run *run, void *weights);

/* Steps that are done already: those of the checkpoint that is continued, else 0. */
int64_t accel_first_step(const struct accel_run *run);

/* Steps of this run: program->steps or --steps; those that are done once a signal has requested its end. */
int64_t accel_steps(const struct accel_run *run);

/* `at` itself where an evaluation is due before the first step, which was not reported yet. Otherwise the next step
 * count, above `at` and at most accel_steps, at which something is due: a log line, an evaluation, a
 * save, the end. The first step counts, as the time to it is measured. Where signals are waited for, or on a terminal
 * for its progress line, it is at most a quarter of a second away. */
int64_t accel_next_event(const struct accel_run *run, int64_t at);

/* Whether an evaluation is due once `at` steps are done. */
bool accel_eval_is_due(const struct accel_run *run, int64_t at);

/* The micro-batches of a step: `count` from `first`, counted from the start of the run. */
struct accel_micro_batches {
  int64_t first, count;
};

/* Those of step `at`: as many as the program says, or what is left of the epoch. A pure function of `at`. */
struct accel_micro_batches accel_micro_batches_of(const struct accel_run *run, int64_t at);

/* Which ranks have samples in micro-batch `number` of each, counted through all epochs: how many, at least 1, and 1
 * where this one is among them, else 0. */
struct accel_contributors {
  int64_t ranks;
  float here;
};

/* Those of micro-batch `number` of the ranks, in training. A pure function of it. */
struct accel_contributors accel_contributors_in(const struct accel_run *run, int64_t number);

/* Samples `position` … position + count - 1 of a split, as sequences of the program's length: tokens and the
 * tokens that follow them, [count][sequence_length] each. Positions of training count the samples of this rank's
 * batches, so `position` is the micro-batch's number times batch_size. Which sequence it is: with shuffle, a keyed
 * permutation of all sequences per epoch (a sequence starts at a multiple of the sequence length plus the epoch's
 * offset); without, in file order; program->rest says how an epoch ends. A pure function of (seed, split, position,
 * rank, ranks), no state. No allocation, no system call. What a batch does not have is NULL, here and in all that
 * follow. */
void accel_load_sequences(struct accel_run *run, enum accel_split split, int64_t position, int64_t count,
                          int32_t *tokens, int32_t *targets);

/* The same for masked language modelling: of each sequence's tokens some are hidden by program->masking, and targets
 * are those tokens as they were, ACCEL_NO_TARGET in all other positions. The draw is a pure function of (data_seed,
 * split, position), so that every epoch has its own. */
void accel_load_masked(struct accel_run *run, enum accel_split split, int64_t position, int64_t count, int32_t *tokens,
                       int32_t *targets);

/* The same for sequences in which documents follow each other, or, ACCEL_PADDED, for documents that are cut to
 * the sequence length or filled up to it with tokens of 0 that have no target: of each position also where its document
 * begins in the sequence, 0 where that was before, and how far it is from there. The target of a document's last
 * position is program->no_target. starts and positions are [count][sequence_length]. */
void accel_load_documents(struct accel_run *run, enum accel_split split, int64_t position, int64_t count,
                          int32_t *tokens, int32_t *targets, int32_t *starts, int32_t *positions);

/* The same for rows: one of program->inputs, of its dtype, [count][width]. */
void accel_load_input(struct accel_run *run, enum accel_split split, int64_t position, int64_t count,
                      const struct accel_input *input, void *values);

/* ---- An evaluation ---- */

/* Begins an evaluation, over program->eval_iters batches or over all samples of the split, and gives the number of its
 * batches on this rank. Batch i has the samples from position i * batch_size on of accel_load_sequences and the like.
 * All samples are shared out by whole batches; a batch that they do not fill is filled up with copies of its last
 * sample, and one more batch, of such copies alone, measures what is taken off for them. */
int64_t accel_eval_begin(struct accel_run *run);

/* The same where every forward takes all ranks: as many batches on each, of which some do not count. */
int64_t accel_eval_begin_together(struct accel_run *run);

/* The number of batch i among those of all ranks, which its random numbers are made of. */
int64_t accel_eval_number(const struct accel_run *run, int64_t i);

/* Adds the loss of batch i, a mean over `count`: its samples, or what else the model counts. 0 adds nothing. */
void accel_eval_add(const struct accel_run *run, int64_t i, double loss, double count);

/* Compares the predictions for batch i with their labels, `count` of each in the whole batch, for program->metrics.
 * Both have the types of program->predicted. */
void accel_eval_score(const struct accel_run *run, int64_t i, const void *predictions, const void *labels,
                      int64_t count);

/* The mean loss of all batches, of all ranks after accel_all_reduce_eval (collectives.h). Reports program->metrics. */
double accel_eval_loss(struct accel_run *run);

/* What one step left, for the log. */
struct accel_report {
  double loss, lr, grad_norm;
  int64_t skipped;   /* steps so far that ended without an update */
  double loss_scale; /* of this step; 0: there is none */
  double unscale;    /* per-layer norms: what makes the gradients in memory those of the step */
};

/* Ends the process with status 1 when the loss of step `at`, counted from 0, is not finite. Called before the update,
 * so that nothing of that step gets into the weights. */
void accel_require_finite_loss(struct accel_run *run, int64_t at, double loss);

/* The same of the gradient's norm. */
void accel_require_finite_norm(struct accel_run *run, int64_t at, double norm);

/* Ends the process with status 1 when the gradients of step `at`, counted from 0, overflowed and their scale, as it
 * was, was not `lowered`, because it is the least one. */
void accel_require_lower_scale(struct accel_run *run, int64_t at, bool lowered, double scale);

/* Whether ranks that step alone are to average their weights once `at` steps are done: at the cadence, and before
 * anything is saved. The same on all ranks; true once for an `at`, as what is asked in between may end the run. */
bool accel_mean_is_due(struct accel_run *run, int64_t at);

/* Reports whether the newest step ended without its update. */
void accel_report_skipped(struct accel_run *run, bool skipped);

/* Whether it did, as was reported last. */
bool accel_step_was_skipped(const struct accel_run *run);

/* Reports the result of an evaluation, for the next log line. */
void accel_report_eval(struct accel_run *run, int64_t at, double eval_loss);

/* Early stopping: notes the evaluation of step `at`, which was reported, and makes that step the last one where the
 * program's rule says so. `state` outlives a step; it is zero at first. */
void accel_stop_early(struct accel_run *run, int64_t at, int32_t state[4]);

/* Before the first step: a run has no steps left where the evaluations before its checkpoint, which `state` is of,
 * ended it by the program's rule. All ranks resume with one state, so that they agree. */
void accel_resume_stopping(struct accel_run *run, const int32_t state[4]);

/* After the last step: what the run leaves are the weights of the best evaluation, which `state` is of, instead of
 * the last ones. */
void accel_restore_best(struct accel_run *run, const int32_t state[4]);

struct accel_progress;

/* The progress of the run after `at` steps, for user code (accel/hooks.h). The same pointer at each call, to the run's.
 */
const struct accel_progress *accel_progress(struct accel_run *run, int64_t at, struct accel_report report);

/* The same before the next step, which is then the one at hand. */
const struct accel_progress *accel_progress_before(struct accel_run *run, int64_t at, struct accel_report report);

/* Whether the step before, `at` steps being done, took the last micro-batch of an epoch. */
bool accel_epoch_is_over(const struct accel_run *run, int64_t at);

/* After such a function in a run of several ranks: that one's user code ended the run is known to all. */
void accel_agree(struct accel_run *run);

/* Whether something is saved once `at` steps are done: at the cadence, when the minutes are over or a signal came, at
 * the end. The clock and the signals are checked once for each `at`, so the answer is the same before and after. */
bool accel_save_is_due(struct accel_run *run, int64_t at);

/* Whether accel_fill_weights, which is to be called next, will load a checkpoint. */
bool accel_load_is_due(struct accel_run *run);

/* Reports the norm of each parameter's gradient, which is `scale` times what is at `gradients` where the parameters are
 * at the weights, as grad_norm/NAME on the next line. */
void accel_log_gradients(struct accel_run *run, const void *gradients, double scale);

/* The same from the sums of their squares: of the parameters that have a gradient, in the order of the table. */
void accel_log_gradient_norms(struct accel_run *run, const double *squares, double scale);

/* Reports the gradient noise scale on the next line: noise[1], the trace of the gradient's covariance over samples,
 * over noise[0], the squared norm of the gradient. */
void accel_log_noise(struct accel_run *run, const float noise[2]);

/* Does what is due once `at` steps are done: the log line and metrics.jsonl, the progress line on a terminal, saving
 * model.safetensors. */
void accel_handle_events(struct accel_run *run, int64_t at, struct accel_report report);

/* Ends the process with a message when `status`, which a library's calls of the steps before left, is not 0. */
void accel_check(int status, const char *what);

/* Saves what the run leaves where that has not been done, closes everything, and gives main's status: 128 and the
 * number of the signal that ended the run before its last step, else 0. */
int accel_finish(struct accel_run *run);

/* A standard uniform 32-bit word at (seed, stream, index): word index % 4 of Philox-4x32-10 (Salmon, Moraes, Dror,
 * Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011) with key = seed and counter = (index / 4, stream).
 * An emitted program's streams are below 2^56, the runtime's own are not. */
uint32_t accel_random(uint64_t seed, uint64_t stream, uint64_t index);

/* values[0] ... values[count - 1] become standard normal numbers: a function of (seed, number) and their positions. */
void accel_draw_normals(uint64_t seed, uint64_t number, float *values, size_t count);

/* Adds to sums[ACCEL_SQUARES] (squares.h) the squares of scale * values[], in whole lines of 16 (`count` is a multiple
 * of that), each of which is added up in floating point and cut to 32 bits. */
void accel_add_squares(int64_t *sums, const float *values, size_t count, float scale);

/* The same for those of values[0] ... values[count - 1], which are the elements of a longer array from its element `at`
 * on, that are among its `n` elements from `first` on: all of these numbers are multiples of 16. */
void accel_add_squares_within(int64_t *sums, const float *values, size_t count, size_t at, size_t first, size_t n,
                              float scale);

/* The same for the sizes of scale * values[]. */
void accel_add_sizes(int64_t *sums, const float *values, size_t count, float scale);

/* The same for those within a range, as accel_add_squares_within. */
void accel_add_sizes_within(int64_t *sums, const float *values, size_t count, size_t at, size_t first, size_t n,
                            float scale);

/* What was added up, which is not a number where one of it is not finite. */
double accel_sum_of_integers(const int64_t *sums);

/* The root of that. */
double accel_root_of_squares(const int64_t *sums);

#endif
