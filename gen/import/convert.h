/* Convert: a value of another trainer's key as keys of a job. What the key is here says its row of schemas/names.yaml;
 * where the value is not simply the same, the row's `as` names one of these conversions:
 *
 *   betas           one of two decay rates; the other one is the key next to it, or the default
 *   better          whether a larger metric is better: true is max, false is min, of a run that keeps its best weights
 *   dataset         nanoGPT's: a folder with a train.bin and a val.bin
 *   deepspeed_adam  DeepSpeed's optimizer.type: its Adam decays weights as AdamW unless adam_w_mode is false
 *   delay KEY       a number of steps, or of epochs where KEY next to it says epoch
 *   elements        a number of float32 elements, as MiB
 *   epochs          a number of whole epochs, unless max_steps gives the length
 *   every KEY       a number of steps, where KEY next to it says steps, or nothing
 *   file            the path of a file that is imported, too
 *   init            nanoGPT's init_from
 *   inverse         true is none, and false is all
 *   kind            Accelerate's distributed_type
 *   list            a list, or words between commas; all is refused
 *   lora_rank       LLaMA-Factory's, whose alpha is twice the rank where it is not given
 *   dynamic_scale   nothing where DeepSpeed's loss_scale fixes the scale
 *   loss_scale      0 is a dynamic scale, and another number a fixed one
 *   of_disk KEY     a folder, which says nothing where KEY next to it is not nvme
 *   offload         cpu is of a GPU, nvme of a processor
 *   only VALUE      VALUE is the only value that it may have; with 0 also nothing, false and no
 *   optional        what it says can be given, and need not
 *   per_epoch       how often in an epoch
 *   power           N is 2 to the power of N, of a scale that is not fixed
 *   ranks           the number of all processes, of which there are as many on each machine
 *   resume          true is auto
 *   strategy        no, steps or epoch: when something happens, whose number of steps is another key
 *   tracked KEY     a value that says nothing where KEY next to it names no tool
 *   trackers        a tool of tracking.log_with, or a list of them; those that it does not have are refused
 *   trackers TOOL   whether this tool is used
 *   train_batch     the samples of a step, which the other two sizes divide
 *   unless_off      a value that says nothing where it is no, none, false, 0 or negative
 *   unless_one      the same where it is 1
 *   weights         a path of this machine, and no name of a hub
 */
#ifndef ACCEL_IMPORT_CONVERT_H
#define ACCEL_IMPORT_CONVERT_H

#include "gen/import/import.h"

/* A key that is being converted. */
struct conversion {
  struct import *import;
  const struct spec_node *group; /* the keys next to it */
  const struct name *name;       /* what it is here */
  struct import_row *row;        /* with key, value and location */
  const char *folder;            /* of the file that it is in, with its last slash; "" for none */
};

/* Sets state, keys and says of the row, and the keys of import->job. Returns the state. */
enum import_state convert(struct conversion *conversion);

#endif
