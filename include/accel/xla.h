/* What a program for XLA calls, in addition to accel/trainer.h: the module that is a step, compiled and run by a plugin
 * of PJRT (docs/xla.md). What outlives a step is on the device; the arena has the host's copy of it.
 *
 * Errors end the process as those of accel/trainer.h do. */
#ifndef ACCEL_XLA_H
#define ACCEL_XLA_H

#include "trainer.h"

/* An array that the module takes each time it runs: `offset` bytes from the start of the arena, dense and row-major.
 * That of the next device comes `stride` bytes after it; 0: all devices have the same. */
struct accel_xla_input {
  size_t offset, stride;
  enum accel_dtype dtype;
  int rank;
  int64_t shape[8];
};

/* An array of the arena that a module fills, and the one of the next device `stride` bytes after it. */
struct accel_xla_output {
  size_t offset, bytes, stride;
};

/* A module: its text in pieces, one after the other; what it takes after the states; what it gives to the host. Several
 * devices run it together, each with arrays of its own: its operations say what they exchange. */
struct accel_xla_module {
  const char *const *pieces;
  size_t n_pieces;
  const struct accel_xla_input *inputs;
  int n_inputs;
  const struct accel_xla_output *outputs;
  int n_outputs;
  const char *plugin; /* the devices.kind whose plugin runs it */
  int devices;        /* 1 or more */
  const int *kept;    /* which of the tensors that it takes it gives new values of, donated, after its outputs */
  int n_kept;
  int whole; /* so many of the program's states are whole on each device; of others, it has a part of each tensor */
};

/* Loads the plugin, and compiles the module of a step or reads it as it was compiled before. The module takes the
 * arrays of those of the program's states that mirror the weights, each of all tensors in their order, donated, or a
 * device's part of it: of as many elements on each device, flat, the last one filled up with zeros. Then come
 * its inputs. It gives the loss and the norm of the gradient, two float32, and the arrays. */
void accel_xla_open(struct accel_run *run, const struct accel_xla_module *module);

/* The same of the module of an evaluation, after accel_xla_open. It takes the arrays of one state of weights, whose
 * file is `file`: "model", or their averages, "ema"; then its inputs. */
void accel_xla_open_evaluation(struct accel_run *run, const struct accel_xla_module *module, const char *file);

/* Evaluates the batch in the arena, and fills the outputs there. */
void accel_xla_evaluate(struct accel_run *run);

/* Copies what outlives a step from the arena to the device. */
void accel_xla_send_states(struct accel_run *run);

/* Waits for all steps, and copies it back. */
void accel_xla_fetch_states(struct accel_run *run);

/* Begins step `at`, whose rate is `lr`, over the inputs in the arena, which are copied: they may change at once. Waits
 * for steps that are many steps before it, no longer. */
void accel_xla_step(struct accel_run *run, int64_t at, double lr);

/* Waits for all steps, and gives what the newest one left. Ends the process where the loss or the gradient's norm of
 * one of them is not finite. `report`: what the steps before left. */
struct accel_report accel_xla_report(struct accel_run *run, struct accel_report report);

/* Closes the device. */
void accel_xla_close(void);

/* Of a program that runs a model forward alone: loads the plugin, compiles its module, and copies the weights to the
 * device. The module takes all tensors in their order, then its inputs, and gives its outputs. `weights`: where
 * offsets of tensors are counted from; `arena`: where those of inputs and outputs are. */
void accel_xla_open_forward(const struct accel_program *program, void *arena, const void *weights,
                            const struct accel_xla_module *module);

/* After that: compiles another module over the same tensors. */
void accel_xla_open_second(const struct accel_xla_module *module);

/* Runs the first module over the inputs in the arena, and fills the outputs there. What it keeps, the next run takes.
 */
void accel_xla_forward(void);

/* Runs the second one, as accel_xla_forward. */
void accel_xla_forward_second(void);

/* Closes the device. */
void accel_xla_close_forward(void);

#endif
