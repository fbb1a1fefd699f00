/* What an emitted program of kind "generate" calls: text from a trained model. Errors as in trainer.h. */
#ifndef ACCEL_GENERATOR_H
#define ACCEL_GENERATOR_H

#include "trainer.h"

struct accel_generation;

/* Reads the flags (--help, --version, --weights FILE, --prompt TEXT, --prompt-file FILE, --tokens N, --stop TEXT,
 * --temperature T, --top-k K, --top-p P, --repetition-penalty R, --logits FILE, --seed N; of a program with a source
 * --input FILE), reserves the arena. Texts from a source end at sequence_length, and follow the generation_config.json
 * next to the weights. The prompt's bytes are the first tokens (vocabulary 256); other vocabularies take --prompt as
 * token numbers, separated by spaces. */
struct accel_generation *accel_generation_start(const struct accel_program *program, int argc, char **argv);

/* The arena: program->arena_bytes, zeroed, aligned to 2 MiB. It belongs to the run. The same pointer at each call. */
void *accel_generation_arena(struct accel_generation *run);

/* Which of the ranks that differ along this axis alone this process is. */
int64_t accel_generation_rank_along(const struct accel_generation *run, enum accel_axis axis);

/* Reads the parameters from --weights (default: model.safetensors in the project folder), a rank its parts, then prints
 * the prompt. */
void accel_generation_weights(struct accel_generation *run, void *weights);

/* Fills `to` [count] with what the texts are written from (program->source_name), which is read from --input FILE, a
 * .npy file. */
void accel_generation_source(const struct accel_generation *run, float *to, int64_t count);

/* Fills `tokens` [sequence_length] with the last tokens so far, the rest 0, and returns the position of the newest one;
 * -1 when the requested number of tokens is out. */
int64_t accel_generation_window(struct accel_generation *run, int32_t *tokens);

/* The next positions of the text to run the model over, of a window of `length` positions: fills tokens [most] and
 * at[0], the position of the first one, counted from where the window begins, and returns how many of them there are;
 * the others are 0. 1: over that position alone. 0 when the requested number of tokens is out. When the window is full,
 * it starts again with the newer half of it. */
int64_t accel_generation_positions(struct accel_generation *run, int64_t length, int64_t most, int32_t *tokens,
                                   int32_t *at);

/* Gets the logits [vocabulary] after the last of these positions. Where that is the newest token, the next one is
 * picked, printed and appended. */
void accel_generation_logits(struct accel_generation *run, const float *logits, int64_t vocabulary);

/* Picks the next token from `logits` [vocabulary] (temperature, top-k, Philox), prints it, and appends it. Of several
 * ranks, which have the same logits, rank 0 does so for all. */
void accel_generation_next(struct accel_generation *run, const float *logits, int64_t vocabulary);

/* Ends the text with a line end; main's status. */
int accel_generation_finish(struct accel_generation *run);

#endif
