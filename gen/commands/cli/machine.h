/* Machine: what the current machine has that jobs depend on. */
#ifndef ACCEL_COMMANDS_CLI_MACHINE_H
#define ACCEL_COMMANDS_CLI_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "gen/base/arena.h"

struct machine {
  int64_t processors; /* that this process may run on */
  int64_t memory;     /* bytes; 0: not known */
  int64_t available;  /* of it, what a new process may have, also by its control group; 0: not known */
  bool bf16;          /* the processor multiplies bfloat16 by instructions of its own */
  struct {
    int count;
    const char *name; /* of the first, as nvidia-smi writes it: "NVIDIA H100 80GB HBM3" */
    int64_t memory;   /* bytes of the one with the least */
    bool bf16;        /* all of them multiply bfloat16 */
  } gpus;
  double network; /* 10^6 bytes a second of the fastest network interface; 0: not known */
};

/* Reads it: from the system, and of GPUs from nvidia-smi, where PATH has it. Nothing is an error. */
struct machine machine_at_hand(struct arena *arena);

#endif
