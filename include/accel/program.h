/* What a program says of itself: the tables that it hands to the runtime when it starts.
 * All of it is constant; texts and tables belong to the program. */
#ifndef ACCEL_PROGRAM_H
#define ACCEL_PROGRAM_H

#include "dtype.h"
#include "processor.h"
#include "repeat.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a parameter is filled when no weights are given. NORMAL: mean a, standard deviation b. UNIFORM: [a, b). SINUSOID:
 * element [r][j] of [rows][columns] is sin(r a^-j) and [r][columns / 2 + j] is cos(r a^-j), j below columns / 2; with b
 * above 0, so are the halves of the columns, of r % b and of r / b instead of r. */
enum accel_init { ACCEL_ZEROS, ACCEL_ONES, ACCEL_NORMAL, ACCEL_UNIFORM, ACCEL_SINUSOID };

/* The axes of the grid of ranks, outermost first; the last one's ranks are neighbours. */
enum accel_axis { ACCEL_DP_REPLICATE, ACCEL_DP_SHARD, ACCEL_CP, ACCEL_SP, ACCEL_PP, ACCEL_TP, ACCEL_EP, ACCEL_AXES };

/* A parameter of the model, or a buffer: values at `offset` bytes from the start of the weights. */
struct accel_tensor {
  const char *name; /* as its published checkpoint names it; of layers, "%d" for the layer's number */
  size_t offset;
  int rank;
  int64_t shape[8];
  enum accel_init init;
  double a, b;
  enum accel_dtype dtype; /* of a parameter ACCEL_FLOAT32 */
};

/* Layers that are alike: the `rows` tensors from row `first` on stand for those of each, and are written for the first
 * layer. Wherever a table names one of these rows, it means that tensor of all layers. Layers of several kinds may
 * alternate: the kinds are entries in a row, of as many layers each. */
struct accel_layers {
  int first, rows;
  int from, count; /* the first layer's number; how many layers there are */
  size_t stride;   /* bytes from one layer's tensor to the next one's */
  bool with_next;  /* whether these layers alternate with those of the next entry */
};

/* A tensor of which each rank along an axis of the mesh has a part. Dimension `dim` of the whole is `blocks` equal
 * blocks in a row, and a rank has its part of each block, in the order of the ranks: the tensor's own row has its
 * shape. Of the last rank's part the last `padding` indices are none of the whole. */
struct accel_tensor_part {
  int tensor; /* its row */
  enum accel_axis axis;
  int dim, blocks, padding;
};

/* A tensor in place of which each rank along an axis of the mesh has another one, of the same shape. Part `number` of
 * its name between dots, counted from the end, is a number: rank r has the tensor whose number is r * count larger, and
 * the tensor's own row is that of rank 0. `together` such tensors in a row, this one among them, are followed by those
 * of rank 1 and so on where one rank has all. */
struct accel_expert_tensor {
  int tensor; /* its row */
  enum accel_axis axis;
  int number, count, together;
};

/* Of a pipeline: elements of the weights, `count` from `first` on, that a stage has. All ranks have space for all. */
struct accel_stage_range {
  int stage;
  size_t first, count;
};

/* Ranks along pp that exchange gradients of a parameter which both use, and are no neighbours in a ring. */
struct accel_stage_pair {
  int lower, higher;
};

/* And bytes of the arena, from the first on, that no stage of the rank of this number along pp uses. */
struct accel_unused_range {
  int rank;
  size_t first, bytes;
};

/* States that are on a disk instead of in the arena (disk.h): those of `count` numbers from `first` on, each with
 * `bytes` bytes of a file in `folder`; their own offsets say nothing. With layers_folder, another file there has the
 * layers of program->reads, which are trained. */
struct accel_disk;
extern const struct accel_disk accel_disk_by_file;
struct accel_disk_states {
  const struct accel_disk *disk; /* NULL: there are none */
  const char *folder;
  int first, count;
  size_t bytes;
  const char *layers_folder; /* NULL: layers are in the arena, or in the file of the weights */
};

/* A layer that comes before each use: its parameters have `bytes` bytes of offsets from `first` on, which are after
 * those of all weights in the device's memory, and come to `at` there. It comes from the host's memory, which has it
 * at these offsets, or from a file: that of the weights (reads.h), or one of the run's own (disk.h). */
struct accel_read {
  size_t first, at, bytes;
};

/* Links what reads them. */
struct accel_layer_reader;
extern const struct accel_layer_reader accel_layers_from_files;

/* The offset of a parameter's gradient, in bytes from the first one; -1: there is none. */
struct accel_gradient {
  int64_t offset, stride; /* from one layer to the next */
};

/* What a parameter, or none, has of a state's array: shape elements from element `first`. */
struct accel_slice {
  int parameter;         /* among the program's tensors; -1: it belongs to none */
  int64_t first, stride; /* from one layer's to the next one's */
  int rank;
  int64_t shape[8];
};

/* An array of the arena that outlives a step, and so belongs to a checkpoint. Without slices it mirrors the weights:
 * each parameter has an element in it for each of its own, in the same positions and of the same type. */
struct accel_state {
  const char *file; /* of the checkpoint, without its ending: "model", "optimizer" */
  const char *name; /* as PyTorch calls it: "exp_avg"; "": the parameters themselves */
  enum accel_dtype dtype;
  size_t offset; /* bytes from the start of the arena */
  int64_t count; /* elements */
  const struct accel_slice *slices;
  int n_slices;
};

/* Elements in a row that the ranks along dp_shard divide: each has `shard_size` of them in the order of the ranks, the
 * last one `last`, in its own arrays from `own` on. */
struct accel_row {
  size_t first, shard_size, last, own;
};

/* Where states are of some rows alone. A row has its states, in codes or not, from `states` on in the arrays of such
 * states. */
struct accel_row_states {
  size_t states;
  bool coded;
};

/* A state has a number for `block` elements of each row with or without codes; 0: it has all rows, as they are in a
 * rank's own. */
struct accel_state_rows {
  bool coded;
  size_t block;
};

/* A part of the arena; 0 bytes: none. */
struct accel_byte_range {
  size_t first, bytes;
};

/* What the ranks along dp_shard divide: of states in a row, arrays that together have `whole` elements. */
struct accel_sharding {
  const struct accel_row *rows;
  int n_rows;
  const size_t *stage_rows; /* where those of each stage of a pipeline begin, and the end; NULL: all ranks divide all */
  int64_t whole;
  int first_state, n_states;                 /* n_states 0: they divide nothing */
  const struct accel_row_states *row_states; /* by row; NULL: each state has all rows */
  const struct accel_state_rows *state_rows; /* then by state */
};

/* A key of the job and its value, for the comparison with the job of a checkpoint. */
struct accel_key {
  const char *name, *value; /* "optimizer.lr", "0.001" */
  bool may_change;          /* from the run that a checkpoint is of to the one that continues it */
};

/* A weight, and its A [rank][in] and B [out][rank], all by their positions among the program's tensors. in_out: the
 * weight is [in][out], else [out][in]. */
struct accel_adapter {
  int weight, a, b;
  bool in_out;
};

/* Low-rank adapters (Hu et al., arXiv:2106.09685): with them a weight is W + scale B A. */
struct accel_adapters {
  const struct accel_adapter *items;
  int count; /* 0: the program has none, and no other number here counts */
  const int *whole;
  int n_whole; /* tensors that are trained as they are, and belong to what the adapters are saved as */
  int64_t rank;
  double alpha, dropout, scale;
  bool use_rslora;
  bool merge; /* the run leaves a model that has them in its weights */
};

/* A weight of codes (accel/quantized_gemm.h), by positions among the program's tensors: its codes, which have the
 * weight's name, its scales, and with double quantization the scales of these and what is added to them; -1: it has
 * none. The codes are those of [out][in]; a file may have the weight itself in floats, [in][out] where in_out. */
struct accel_quantized {
  int codes, absmax, nested_absmax, nested_offset;
  enum accel_codes as;
  bool in_out;
  int64_t group; /* of codes by groups: the elements of a row that share a scale */
  int64_t out, in;
  enum accel_init init; /* how the weight starts when no weights are given */
  double a, b;
};

/* The file to start from, as a caller of accel_fill_weights sees it. */
/* A rule for the names of tensors in a file to start from: what `from` matches is called `to` here. A * is any text, as
 * often in both. */
struct accel_rename {
  const char *from, *to;
  const char *path; /* the file; NULL: that of the program */
};

struct accel_start_file {
  const char *path;   /* safetensors; NULL: every parameter starts fresh */
  const char *prefix; /* before the parameters' names there; NULL: none, or "transformer." */
  const int *fresh;   /* tensors that it need not have, which start fresh then */
  int n_fresh;
  const char *const *ignored; /* names there, with * and ?, of what may be extra */
  int n_ignored;
  const struct accel_rename *renames; /* applied one after the other */
  int n_renames;
  const char *trained; /* which of its weights a run leaves are read to be evaluated: "ema"; NULL: the model */
};

/* How a run is saved and continued. */
struct accel_checkpoints {
  bool automatic_naming;   /* checkpoints/checkpoint_N, counted; else step_N, by the step */
  double minutes;          /* from one to the next, by the clock; 0: the clock does not say */
  int64_t iteration;       /* the first N */
  int64_t total_limit;     /* the newest that remain; 0: all */
  int64_t max_shard_bytes; /* of a file's tensors; 0: no limit */
  enum accel_dtype dtype;  /* of the float32 weights that are left at the end */
  size_t copy_offset;      /* in the arena, of a copy of all states from which is saved; 0: it waits for a save */
  const char *resume;      /* "auto", "never", or a checkpoint's folder */
  const char *folder_of;   /* a folder whose config.json and tokenizer go with the weights at the end; NULL: none do */
  const char *classes;     /* of transformers that the model is one of, "A B"; NULL: it names none */
  const char *config;      /* the config.json that goes with the weights, of the model's config; NULL: folder_of's */
  const char *no_config;   /* why none does, for a model of a class of transformers; NULL: one does, or it has none */
  bool by_rank;            /* each rank writes its part of what ranks divide; else rank 0 writes the whole */
  bool each_node;          /* the first rank of each machine writes all, and its ranks read that; else rank 0 does */
  bool saves_on_signal;    /* SIGTERM, SIGUSR1, SIGHUP and SIGINT save and end the run; else they end it */
  bool outlives_errors;    /* a save that fails is reported, and the run continues */
};

enum accel_format {
  ACCEL_BYTES,
  ACCEL_NANOGPT,
  ACCEL_LLMC,
  ACCEL_CSV,
  ACCEL_TOKENS,
  ACCEL_NPY,
  ACCEL_NPY_TOKENS,
  ACCEL_NPZ
};
enum accel_split { ACCEL_TRAIN, ACCEL_EVAL, ACCEL_SPLITS };

struct accel_source {
  const char *path; /* NULL: none */
  enum accel_format format;
};

/* One of several files of a source, or all that match a pattern. */
struct accel_part {
  const char *path;
  const char *const *arrays; /* of rows: by input, a file that has its numbers; NULL: the file at `path` has them */
  double weight;             /* 0: every sample once an epoch */
};
struct accel_parts {
  const struct accel_part *items;
  int count; /* 0: the source's path is all there is */
};

/* So many epochs, or one of so many parts of an epoch, each after the step that ends it. */
struct accel_epochs {
  int64_t count; /* 0: never */
  int64_t parts; /* 1 where count is more */
};

/* What becomes of the samples at an epoch's end that do not make a batch for every rank. */
struct accel_rest {
  bool kept;          /* they make a round of batches of their own; else the epoch leaves them out */
  bool even;          /* several ranks: the epoch's first samples fill that round */
  bool dispatched;    /* or all ranks get equal parts of it */
  bool uneven_inputs; /* or a rank without samples there takes others, and leaves them out itself */
};

/* How documents are divided into samples: not known; one after the other; each in a sample of its own. */
enum accel_packing { ACCEL_NOT_PACKED, ACCEL_DOCUMENTS, ACCEL_PADDED };

/* Masked language modelling: `probability` of the tokens are targets; of these `random` become any token, `keep` stay,
 * and the others become mask_token. */
struct accel_masking {
  int32_t mask_token;
  double probability, random, keep;
};

/* The target of a position that does not count. */
enum { ACCEL_NO_TARGET = -100 };

/* A part of a step that a profile measures: what it is called, and its floating-point operations and the bytes that it
 * reads and writes at least, in one execution; 0: unknown. */
struct accel_measured {
  const char *name;
  double flops, bytes;
};

/* Which steps a profile measures, and what it reports of them (profile.h). */
struct accel_profile {
  const struct accel_measured *parts;
  int n_parts;                                      /* 0: there is no profile */
  int64_t skip_first, wait, warmup, active, repeat; /* in steps; repeat in cycles, 0: without end */
  bool with_flops;
  const char *trace_folder; /* NULL: no trace is written */
};

/* When evaluations end a run: after `patience` of them in a row that were not better than the best by more than
 * `threshold`. */
struct accel_stopping {
  const char *metric; /* NULL: the loss */
  bool greater;       /* is better */
  int64_t patience;   /* 0: they do not, and are compared for restore_best alone */
  double threshold;
  bool averages;     /* the moving averages are what was evaluated */
  bool restore_best; /* keep the weights of the best one, and end with them */
};

/* A tensor that the model gets of rows: `width` numbers of each. */
struct accel_input {
  const char *name;
  const char *column;     /* of a table, by its header, or an array's name in a .npz; NULL: of a table the columns
                             after those of the input before */
  enum accel_dtype dtype; /* ACCEL_FLOAT32 or ACCEL_INT32 */
  int64_t width;
  int64_t below, none; /* int32: each is within 0 and below `below`, or `none`, where 0 says that there is none; below
                          0: any */
  bool is_target;      /* int32: it is `none` where a position has no sample */
};

/* Numbers of float32 inputs that the model takes as an index: each a whole number within 0 and below `below`, or
 * `none`, where 0 says that there is no such number. `first` counts the numbers of a row, input after input. */
struct accel_index {
  int64_t first, count, below, none;
};

/* A function of the job's own that fills the order of an epoch (accel/hooks.h). */
struct accel_order;
typedef void accel_order_hook(struct accel_order *order);

/* What an evaluation's predictions are, and the labels that they are compared with. */
enum accel_prediction {
  ACCEL_PREDICTS_CLASSES, /* int32 numbers of classes, and int32 labels */
  ACCEL_PREDICTS_SCORES,  /* float32 logits of class 1 against class 0, and int32 labels */
  ACCEL_PREDICTS_LABELS,  /* int32 0 or 1 for each label of a sample, and float32 labels */
  ACCEL_PREDICTS_VALUES,  /* float32 values, and float32 labels */
};

/* A tool for which the run writes files, in its own format. A program is linked with those that it names. */
struct accel_sink;
extern const struct accel_sink accel_sink_csv, accel_sink_tensorboard, accel_sink_wandb, accel_sink_mlflow,
    accel_sink_dvclive, accel_sink_trackio, accel_sink_comet_ml, accel_sink_clearml;

/* For whom the run is tracked, in addition to metrics.jsonl (docs/tracking.md). */
struct accel_tracking {
  const struct accel_sink *sinks[12]; /* NULL after them */
  const char *project;                /* that the run belongs to; NULL: the model's name */
  const char *run_name;               /* NULL: the name of the run's folder */
  const char *tags[16];               /* NULL after them */
  const char *logging_dir;            /* the folder of their files; NULL: the run's */
};

/* What was decided at generation and the runtime must know. All strings are static. */
struct accel_program {
  const char *name;         /* the model's file without its ending: "gpt2" */
  const char *summary;      /* "4 layers, 0.83 M parameters, float32" */
  const char *job_digest;   /* SHA-256 of the job with every default filled in, 64 hexadecimal digits */
  const char *fixed_digest; /* of its keys that may not change (runtime/checkpoint/keys.h); NULL: `keys` are all keys */
  const char *job_file;     /* the name of its file, without a folder; NULL: the command line changed its keys */
  const char *generator;    /* "accel-gen 0.1.0" */
  const char *plan;         /* the plan's figures, several lines, for --version */

  int64_t steps;
  uint64_t seed;
  uint64_t data_seed;        /* of the samples' order */
  int64_t batch_size;        /* samples of a rank's micro-batch */
  int64_t eval_batch_size;   /* samples of a batch of an evaluation; 0: batch_size */
  int64_t micro_batches;     /* of a step */
  int64_t local_steps;       /* that each rank takes alone before weights are averaged; 0: they share gradients */
  int64_t devices;           /* of a process, each of which takes a micro-batch of its own; 0: one */
  int64_t round;             /* batches of all ranks of which an epoch is a multiple; 0: one of each */
  bool sync_with_dataloader; /* a step ends where an epoch does, with fewer micro-batches when no more are left */

  const struct accel_tensor *tensors;
  int n_tensors;
  const struct accel_layers *layers; /* in the order of their rows */
  int n_layers;
  const struct accel_tensor_part *tensor_parts; /* of the tensors that ranks divide */
  int n_tensor_parts;
  const struct accel_expert_tensor *expert_tensors; /* of the tensors that each rank has others of, in their order */
  int n_expert_tensors;
  const struct accel_stage_range *stages; /* of ranks that have some layers each */
  int n_stages;
  const struct accel_stage_pair *stage_pairs; /* each once; of a program for GPUs, which opens a channel for each */
  int n_stage_pairs;
  const struct accel_gradient *gradients; /* of each tensor; NULL: unused */
  const struct accel_state *states;       /* the parameters first; all are 0 at the start but these */
  int n_states;
  struct accel_disk_states disk;
  const struct accel_key *keys; /* the job's that differ from their defaults, in the order of its schema */
  int n_keys;
  const struct accel_key *defaults; /* the others, in a program with hooks or trackers, which may ask for them */
  int n_defaults;
  double matmul_flops;  /* of a rank's matrix products in a step, as they are computed; 0: ranks have different ones */
  size_t weights_bytes; /* the extent of all parameters, from offset 0 */
  size_t arena_bytes;
  size_t device_bytes;  /* of the arena on a GPU, where the host has but what outlives a step; 0: there is none */
  uint32_t processor;   /* ACCEL_PROCESSOR: what the program's instructions need */
  int threads;          /* 0: as many as the machine has cores, shared out among the processes on it */
  int mesh[ACCEL_AXES]; /* ranks along each axis; 0: 1. dp_replicate or dp_shard counts those along cp and sp */
  int timeout;          /* seconds that a rank waits for others */
  bool numa_affinity;   /* ranks of a machine stay on their parts of its processors */
  struct accel_sharding sharding;
  struct accel_byte_range summed; /* of the arena: gradients that ranks add up while the backward continues */

  struct accel_source source[ACCEL_SPLITS];
  struct accel_parts parts[ACCEL_SPLITS];
  double eval_fraction; /* the tail of the training source held out for evaluation when there is no evaluation source */
  int64_t samples;      /* to train on, from which the steps were counted; 0: any number will do */
  int64_t epoch_samples;   /* that an epoch of training takes; 0: as many as there are */
  accel_order_hook *order; /* which ones; NULL: as shuffle says */
  bool shuffle;
  int64_t prefetch; /* micro-batches whose files are read ahead; 0: none */
  struct accel_rest rest;
  int32_t no_target;                /* the target, or label, of a position without one: the loss leaves it out */
  bool counts_targets;              /* losses are a mean over the targets of all batches; one may have none */
  int64_t sequence_length;          /* tokens of a sequence; 0 for tables, but where their labels are written */
  int64_t vocabulary;               /* tokens must be below it; 0: unknown, not checked */
  struct accel_masking masking;     /* for accel_load_masked */
  enum accel_packing packing;       /* for accel_load_documents: files say where documents begin */
  const struct accel_input *inputs; /* of rows; none: the data is tokens */
  int n_inputs;
  const char *source_name, *source_shape; /* of the input that texts are written from, "[1][80][3000]"; NULL: none */
  const struct accel_index *indices;      /* in the order of their numbers */
  int n_indices;

  int64_t log_every, eval_every, save_every; /* in steps; 0: never (saving: at the end only) */
  bool log_first;                            /* a line of the first step, too */
  struct accel_epochs log_epochs, eval_epochs, save_epochs;
  int64_t eval_delay; /* no evaluation but the last one before so many steps, and so many epochs; 0: no delay */
  struct accel_epochs eval_delay_epochs;
  bool eval_on_start;        /* an evaluation before the first step */
  int64_t eval_iters;        /* batches of one evaluation; 0: it sees all samples once */
  const char *metrics[12];   /* in addition to its loss, "accuracy" and so on (docs/job.md); NULL after them */
  int64_t predicted_classes; /* that predictions are among, or labels of a sample; 0: none */
  enum accel_prediction predicted;
  struct accel_checkpoints checkpoint;
  struct accel_tracking tracking;
  struct accel_stopping stopping;
  struct accel_profile profile;
  bool hooks_steps;  /* user code sees every step, so each one is an event */
  bool hooks_epochs; /* and the ends of epochs */
  const char *project_dir;
  struct accel_start_file start;
  struct accel_adapters adapters;
  const struct accel_quantized *quantized;
  int n_quantized;
  const struct accel_read *reads;          /* layers that are not in the device's memory; the last row is none */
  int n_reads;                             /* 0: all are */
  int n_from_host;                         /* of these, the first ones; the others come from files */
  const struct accel_layer_reader *reader; /* accel_layers_from_files; NULL: nothing is read */
};

#endif
