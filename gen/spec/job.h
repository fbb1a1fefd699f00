/* Job: what a job file says, typed, checked against schemas/job.schema.json, with every default filled in.
 *
 * Later stages read this structure and nothing of YAML. A member is named as its key; a location for a
 * message about it comes from job_where. */
#ifndef ACCEL_SPEC_JOB_H
#define ACCEL_SPEC_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "gen/base/arena.h"
#include "gen/base/diag.h"
#include "gen/spec/choices.h"

/* A value of model.config: a number, a boolean or a string for the field of the same name in the model's config. */
enum config_kind { CONFIG_INT, CONFIG_REAL, CONFIG_BOOL, CONFIG_STRING };
struct config_value {
  const char *name;
  enum config_kind kind;
  int64_t integer; /* also the boolean, 0 or 1 */
  double real;     /* also set for CONFIG_INT */
  const char *string;
  struct location where;      /* of the value */
  struct location name_where; /* of the key */
};

/* Files of a source, by a path or a pattern as written in the job, relative to the working directory of the trainer. */
struct data_part {
  const char *path;
  const char **arrays; /* of rows: by input, a file that has its numbers; NULL: the file at `path` has them */
  double weight;       /* 0: every sample once an epoch */
};

/* A tensor of rows, as a parameter of the model. */
struct data_input {
  const char *name, *column; /* column: of a table, by its header; NULL: by its position */
  bool is_integer;           /* int32; else float32 */
  int rank;
  int64_t dims[5]; /* of one sample */
  int64_t width;   /* their product */
  int64_t below;   /* int32: numbers are within 0 and below it; 0: what the model asks for */
  struct location where;
};

/* So many epochs, or one of so many parts of an epoch. */
struct epochs {
  int64_t count; /* 0: not given */
  int64_t parts; /* 1 where count is more */
};

struct data_source {
  const struct data_part *parts;
  int n_parts; /* 0: the source is absent */
  enum data_format format;
};

/* A name, or a pattern of names, and where the job has it. */
struct named {
  const char *name;
  struct location where;
};

/* The numbers of an optimizer that a group of parameters may have of its own. */
struct optimizer_numbers {
  double lr_scale; /* the rate over that of the schedule */
  double weight_decay, beta1, beta2, eps, momentum;
};

/* A group of parameters: those of no group before it whose names match. */
struct param_group {
  const char *match;
  struct location where; /* of the match */
  struct optimizer_numbers numbers;
  struct optimizer_numbers adamw_numbers; /* muon: of those that adamw steps */
  bool adamw;                             /* muon: all of them are */
};

/* How ranks along tp lay the parameters of a name; one of no rule before it. */
struct tensor_rule {
  const char *match, *word; /* the style as the job writes it */
  enum tensor_style style;
  bool replicated; /* COLUMNS: ranks gather the result; ROWS: the input is whole */
  struct location where;
};

enum { CHUNK_AUTO = -1, CHUNK_DEVICE = -2 };
enum { MOST_GPUS = 64 };

/* A pattern of memory.device_map: where what it matches is. */
struct place_rule {
  const char *match, *place; /* "gpu", "cpu", "disk", or the number of a GPU */
  struct location where;
};

/* How tensors of a file to start from are called here. */
struct weights_rule {
  struct named from, to; /* with * for any text */
  struct named path;     /* of the file; its name NULL: model.weights */
};

struct job {
  const char *file;     /* as the user named it */
  const char *digest;   /* SHA-256 of the resolved job, 64 hexadecimal digits */
  const char **extends; /* the files that it extends, and those that these do: as they are opened */
  int n_extends;

  struct {
    const char *source; /* resolved against the job file's folder */
    struct config_value *config;
    int n_config;
    struct named *freeze; /* parameters that are not trained */
    int n_freeze;
    const char *weights;          /* a safetensors file to start from; NULL: fresh weights */
    const char *weights_prefix;   /* before the names of the parameters there */
    struct named *fresh, *ignore; /* parameters that the file need not have; tensors there that may be extra */
    int n_fresh, n_ignore;
    struct weights_rule *weights_map;
    int n_weights_map;
    struct {
      int rank; /* 0: no adapters */
      double alpha, dropout;
      bool use_rslora, merge;
      struct named *targets, *modules_to_save; /* modules, by the ends of their paths or by patterns */
      int n_targets, n_modules_to_save;
    } lora;
    struct {
      bool on; /* weights have codes: load_in_4bit, load_in_8bit, or quant_type */
      bool load_in_4bit, load_in_8bit;
      double threshold; /* of load_in_8bit: from which size on an input is an outlier; 0: none is */
      enum quant_type type;
      enum quant_activations activations; /* of evaluations and texts */
      const char *quant_type;             /* NULL: type is one of bitsandbytes */
      int64_t group;                      /* elements that share a scale, of types by groups; 0: those of a row */
      enum mixed_precision compute;       /* the type of products with codes; PRECISION_NO: float32 */
      bool double_quant;                  /* scales are codes of 8 bits */
      struct named *skip, *keep;          /* skip_modules, NULL: none are given; keep_in_fp32_modules */
      int n_skip, n_keep;
    } quantize;
  } model;

  struct {
    struct data_source train, eval; /* no eval: the tail of train, eval_fraction of it */
    double eval_fraction;
    int batch_size;            /* samples of one micro-batch; 0: the plan finds it */
    int eval_batch_size;       /* samples of one batch of an evaluation; 0: as many */
    int sequence_length;       /* tokens of a window; 0: the config's block_size */
    struct data_input *inputs; /* of rows: data.inputs, else features and labels */
    int n_inputs;
    bool names_inputs;     /* by data.inputs */
    int64_t epoch_samples; /* that hooks.on_order fills; 0: as many as there are */
    bool shuffle;
    enum data_packing packing;
    bool keep_last; /* drop_last is false */
    bool even_batches, dispatch_batches;
    bool uneven_inputs;                /* join_uneven_inputs, with several ranks */
    bool divide_by_initial_world_size; /* and gradients are divided by their number in a round that not all of them have
                                          samples in */
    bool split_batches;                /* batch_size, a rank's here, is that of all in the job */
    int prefetch;                      /* micro-batches */
    int64_t samples;                   /* to train on; 0: nobody has counted them */
    uint64_t data_seed;                /* of the samples' order */
    struct {
      bool on; /* masked language modelling */
      int mask_token;
      double probability, random, keep;
    } masking;
  } data;

  struct {
    enum mixed_precision mixed;
    bool tf32;                  /* matmuls of float32 in 10 bits of mantissa */
    bool autocast;              /* operations of autocast's lists run in that type; false with PRECISION_NO */
    enum mixed_precision param; /* PRECISION_NO: the model reads its parameters in float32 */
    struct named *keep_in_fp32; /* names of parameters, with * and ? */
    int n_keep_in_fp32;
    struct {
      bool enabled;
      double init_scale, growth_factor, backoff_factor, min_loss_scale;
      int64_t growth_interval; /* steps */
      int64_t hysteresis;      /* overflows */
      bool dynamic;            /* false: the scale stays as it is */
      bool consecutive_hysteresis;
    } grad_scaler;
    struct {
      bool on;      /* mixed_precision: fp8; `mixed` is the type of all else then */
      bool emulate; /* products on GPUs are of what was rounded, in the type of all else */
      enum fp8_backend backend;
      enum fp8_opt_level opt_level;
      enum fp8_recipe recipe;
      enum fp8_mx_scale mx_scale;
      enum fp8_override override;
      bool skip_first_and_last; /* of linear layers */
      bool in_evaluation;       /* backend: te: products of an evaluation are in 8 bits, too */
      struct named *skip;       /* modules */
      int n_skip;
      enum fp8_format format;
      enum amax_compute_algo amax_compute_algo;
      int amax_history_len; /* numbers */
      int margin;           /* powers of two below the largest number */
    } fp8;
  } precision;

  struct {
    int num_steps;            /* micro-batches of one optimizer step; 0: the plan finds it */
    int64_t train_batch_size; /* samples of one optimizer step; 0: not given */
    bool sync_with_dataloader;
    enum normalize normalize; /* what a step's gradient is the mean over */
  } accumulation;

  struct {
    enum checkpointing activation_checkpointing;
    int checkpoint_every, checkpoint_layers;
    int64_t cross_entropy_chunk; /* rows; 0: all in one chunk; CHUNK_AUTO: the plan finds the number; CHUNK_DEVICE: it
                                    does where that is the device's way */
    struct named *functions;     /* checkpoint_functions */
    int n_functions;
    bool maps; /* device_map is given */
    enum device_map_way device_map;
    struct place_rule *places; /* or its patterns; a parameter has the first that matches */
    int n_places;
    struct named *no_split; /* functions; NULL: those of layers */
    int n_no_split;
    int64_t reserve; /* bytes of each memory */
  } memory;

  struct {
    enum device_kind kind;
    enum device_kernels attention, convolution;
    enum processor_arch arch;
    int threads;    /* 0: as many as the machine has */
    int64_t memory; /* bytes that a program may take; 0: any number */
    struct {
      int64_t gpus[MOST_GPUS], cpu; /* bytes; cpu -1: it is not given */
      int n_gpus;
      const char *disk; /* a folder; NULL: it may not be used */
    } limits;           /* of each memory, where memory is a group of them */
    int64_t nodes;
    int64_t ranks;   /* nodes times per_node */
    int64_t timeout; /* seconds that a rank waits for others */
    bool numa_affinity;
    const char *tuning;   /* a table's file, resolved against the job file's folder; "machine"; NULL: none */
    const char *hardware; /* the name of a known product; NULL: none */
    double peak_flops, efficiency, memory_bandwidth; /* 0 where they are not given */
    struct {
      double latency, bandwidth; /* microseconds, 10^6 bytes a second; 0 where it is not given */
    } link, network;             /* within a machine, of a rank; between machines, of a machine */
  } devices;

  struct {
    /* Ranks along each. Those along cp and sp are neighbours along dp_replicate, or dp_shard where ranks divide states,
     * which counts them too: they have the same weights, whose gradients add up. The product of all others is
     * devices.ranks. */
    int64_t axes[AXES];
    enum mixed_precision wire; /* the type in which gradients are sent; PRECISION_NO: float32 */
    int64_t bucket_bytes;      /* of gradients in a bucket */
    bool sync_each_batch;      /* gradients are averaged after each micro-batch */
    int zero_stage;        /* what is divided along dp_shard: 1 states, 2 gradients too, 3 weights too; 0: nothing */
    struct named *wrapped; /* transformer_cls_names_to_wrap; none: all functions that are called in a loop */
    int n_wrapped;
    int64_t least_params;  /* of a layer of which ranks hold a part alone */
    struct named *ignored; /* ignored_modules: parameters whose layers are whole on every rank */
    int n_ignored;
    enum cp_comm cp_comm;
    enum reproducible reproducible;
    enum pp_schedule pp_schedule;
    int64_t split_rank;   /* pipeline_model_parallel_split_rank; 0: by the numbers of layers */
    int64_t chunk_layers; /* num_layers_per_virtual_pipeline_stage; 0: a rank has one stage */
    struct {
      bool on, batched; /* with several ranks: matrices are sent as factors; all gradients of a bucket as one */
      int64_t rank, start, seed;
      double least_rate, epsilon;
      bool feedback, warm;
    } power_sgd;
    bool by_hook;                     /* hooks.on_bucket makes gradients the means of all ranks */
    struct tensor_rule *tensor_rules; /* tp_plan: how ranks along tp lay parameters; a parameter has the first that
                                         matches it */
    int n_tensor_rules;
    bool splits_sequence; /* over the ranks along tp, between the matmuls that they divide */
    bool sync_batch_norm; /* statistics of a batch are those of all ranks' batches */
    struct {
      enum offload optimizer, param; /* where the optimizer's states are, and a rank's part of the weights */
      const char *optimizer_nvme_path, *param_nvme_path; /* with OFFLOAD_NVME */
    } offload;
    int64_t local_steps; /* local_sgd_steps, with several ranks; 0: gradients are averaged in each step */
    bool automatic;      /* the axes are for the plan to find; the job is as if none were given */
  } parallelism;

  struct {
    enum optimizer_name name;
    double lr;
    struct optimizer_numbers numbers; /* of parameters in no group: lr_scale is 1 */
    double dampening, alpha, rho, momentum_decay;
    bool nesterov, centered;
    double r, weight_lr_power;                       /* schedule_free_adamw */
    double beta2_decay, least_scale, clip_threshold; /* adafactor */
    int64_t ns_steps;                                /* muon, as all below */
    double ns_coefficients[3];
    enum adjust_lr adjust_lr_fn;
    struct optimizer_numbers adamw;         /* of what it does not step itself: lr_scale is adamw.lr over lr */
    double clip_grad_norm, clip_grad_value; /* 0: no clipping */
    enum norm_type norm_type;
    enum state_dtype state_dtype;
    struct param_group *groups;
    int n_groups;
  } optimizer;

  struct {
    enum schedule_name name;
    int64_t warmup_steps, decay_steps;     /* decay_steps 0: training.steps */
    int64_t warmup_samples, decay_samples; /* instead of them; 0 where they were not given */
    double warmup_fraction;                /* 0 where it was not given */
    double min_lr;
    int64_t cycles;                                 /* cosine_with_restarts */
    double power;                                   /* polynomial */
    int64_t timescale;                              /* inverse_sqrt; 0: chosen by the warm-up */
    double gamma;                                   /* exponential, step */
    int64_t step_size;                              /* step */
    enum anneal_form anneal;                        /* one_cycle */
    double pct_start, div_factor, final_div_factor; /* one_cycle */
    enum decay_type decay_type;                     /* wsd */
    double decay_fraction;                          /* wsd */
    int64_t stable_steps;                           /* wsd; -1: by decay_fraction */
    bool step_with_optimizer;                       /* and with the ranks */
    enum growth wd_incr_style;
    double start_weight_decay; /* of the first step, where it grows */
  } schedule;

  struct {
    int64_t steps;           /* 0: samples or epochs says it, until gen/commands has counted */
    int64_t samples, epochs; /* 0: not given */
    uint64_t seed;           /* of the one process that a trainer is, whose index device_specific_seed would add */
    bool deterministic;      /* for any number of threads */
    int64_t eval_interval;   /* 0: the steps do not say */
    struct epochs eval_epochs;
    int64_t eval_delay; /* no evaluation before so many steps, or epochs */
    struct epochs eval_delay_epochs;
    bool eval_on_start;
    enum on_nonfinite on_nonfinite;
    int64_t eval_iters; /* batches of one evaluation; 0: all samples, each once */
    bool metrics[METRICS];
    struct {
      int64_t patience; /* 0: evaluations do not end the run, but restore_best may keep the best weights */
      double threshold;
      int metric;   /* enum metric; -1: the loss */
      bool greater; /* is better */
      bool restore_best;
    } early_stopping;
    struct {
      double decay; /* 0: there is no average */
      int64_t every;
      double inv_gamma, power; /* power 0: no warm-up */
      bool evaluate;
    } ema;
  } training;

  struct {
    const char *project_dir;
    int64_t every;  /* steps; 0: the steps do not say */
    double minutes; /* 0: the clock does not say; none of all three: the weights at the end only */
    struct epochs epochs;
    bool automatic_checkpoint_naming;
    int64_t iteration, total_limit; /* total_limit 0: all are kept */
    int64_t max_shard_bytes;
    enum mixed_precision dtype; /* of the weights at the end; PRECISION_NO: float32 */
    bool background;
    bool each_node; /* of several: each saves, and resumes from its own */
    bool by_rank;   /* state_dict_type: each rank writes its part of what ranks divide */
    const char *resume;
    const char *folder_of; /* whose config.json and tokenizer the run's folder gets; NULL: weights alone */
    bool saves_on_signal, outlives_errors;
  } checkpoint;

  struct {
    int64_t every; /* a log line every so many steps; 0: the steps do not say */
    struct epochs epochs;
    bool first_step; /* has a line, too */
    bool layer_norms;
    bool noise_scale;
    double noise_decay;
    bool sinks[SINKS];              /* log_with */
    const char *project, *run_name; /* NULL: the program's own */
    const char *tags[16];           /* NULL after them */
    const char *logging_dir;        /* NULL: the run's folder */
  } tracking;

  struct {
    bool on;
    struct {
      int64_t skip_first, wait, warmup, active, repeat; /* in steps; repeat in cycles, 0: without end */
    } schedule;
    bool with_flops;
    bool nvtx;                    /* ranges of a timeline, named by the model's functions */
    const char *output_trace_dir; /* NULL: no trace */
  } profile;

  struct {
    const char *source;       /* of user code, resolved against the job file's folder; NULL: there is none */
    const char *names[HOOKS]; /* its functions; NULL where the job names none */
  } hooks;

  const struct spec_node *tree; /* the resolved document that it was read from: gen/spec's own; NULL: there is none */
  struct json_t *schema;        /* that it was read by, where that outlives it; NULL: it is read again when requested */
};

/* An override of the command line: --set key=value. */
struct job_override {
  const char *key;   /* "optimizer.lr" */
  const char *value; /* YAML text of the value */
};

/* Reads, validates and resolves a job. NULL with errors in `diags` (all of them, not only the first) when it is bad.
 * The job and its strings live in `arena`. */
struct job *job_read(struct arena *arena, const char *file, const struct job_override *overrides, int n_overrides,
                     struct diagnostics *diags);

/* The same of a job's text, which is named `file` in messages. `text` is referenced, with a NUL after its `length`
 * bytes. */
struct job *job_parse(struct arena *arena, const char *file, const char *text, size_t length,
                      const struct job_override *overrides, int n_overrides, struct diagnostics *diags);

/* The same by a schema that was read before, and outlives the job. */
struct job *job_parse_by(struct arena *arena, struct json_t *schema, const char *file, const char *text, size_t length,
                         const struct job_override *overrides, int n_overrides, struct diagnostics *diags);

struct spec_node;

/* The same of a document that is no file's text. */
struct job *job_of_document(struct arena *arena, struct json_t *schema, const char *file,
                            const struct spec_node *document, struct diagnostics *diags);

/* The metrics' names, ended by NULL: as the job and the log write them. */
extern const char *const job_metric_names[];

/* The tools of tracking.log_with, by enum sink, ended by NULL: as the job and the runtime write them. metrics.jsonl is
 * none of them, as every run writes it. */
extern const char *const job_sink_names[];

/* The keys of the group hooks that name functions, by enum hook. */
extern const char *const job_hook_keys[HOOKS];

/* Whether a metric compares predictions with labels. */
bool job_wants_predictions(const struct job *job);

/* Whether the samples are rows of features, not windows of tokens. */
bool job_has_rows(const struct job *job);

/* Whether a run is evaluated while it trains, and whether it saves checkpoints before its end. */
bool job_evaluates(const struct job *job);
bool job_saves(const struct job *job);

/* The samples of a batch of an evaluation; and whether those of a trainer have another number than its micro-batches,
 * so that the model is read a second time, for them. */
int64_t job_eval_batch(const struct job *job);
bool job_evaluates_other_batches(const struct job *job);

/* The job with the batch of its evaluations as its batch: of the model as they read it. */
struct job job_of_evaluation(const struct job *job);

/* The axes' names, by enum axis: as the job writes them. */
extern const char *const job_axis_names[AXES];

/* The batches that ranks take at a time in training, also of a job that job_leave_ranks has changed. */
int64_t job_training_ranks(const struct job *job);

/* Leaves of a job's ranks those of a program that does not train, which are those along tp and pp. */
void job_leave_ranks(struct job *job);

/* Ranks whose gradients are of samples, or of positions, of their own. */
int64_t job_data_ranks(const struct job *job);

/* Ranks that have positions of the same samples. */
int64_t job_sequence_ranks(const struct job *job);

/* Batches that ranks take at a time: one for each rank, or for each group that has positions of the same samples. */
int64_t job_batch_ranks(const struct job *job);

/* By how much the numbers of neighbours along an axis differ (rt_stride_along). */
int64_t job_axis_stride(const struct job *job, enum axis axis);

/* Whether gradients add up in an order that does not depend on how a step's micro-batches are divided into ranks and
 * accumulation: then each micro-batch's are its own until they are added. */
bool job_has_tree(const struct job *job);

/* Whether the backward adds to the gradients of the micro-batches before. */
bool job_accumulates(const struct job *job);

/* Whether evaluations are compared: to end the run, or to keep the best weights. */
bool job_compares_evaluations(const struct job *job);

/* Whether what ranks exchange of gradients comes as their mean: factors, or what hooks.on_bucket makes of a bucket. */
bool job_exchanges_means(const struct job *job);

/* Whether ranks exchange gradients of layers in 8 bits after the backward (backend: msamp). */
bool job_sends_fp8(const struct job *job);

/* Ranks whose gradients add up as they are: 1 where each steps alone, or where they are averaged in another way. */
int64_t job_adding_ranks(const struct job *job);

/* Batches of which an epoch is a multiple: one for each rank, with a tree those of a whole step. */
int64_t job_round(const struct job *job);

/* The word of a key that has one of several, such as "schedule.name": as the job file writes what its member holds. */
const char *job_word(const struct job *job, const char *key);

/* Where a key such as "data.batch_size" is in the job file; the nearest enclosing group where it was not written
 * (a default), the command line for an override. */
struct location job_where(const struct job *job, const char *key);

/* The resolved job as YAML text, every default filled in, in the schema's order: `accel-gen check --resolved`. */
const char *job_resolved(struct arena *arena, const struct job *job);

/* The same with a comment on each value: the file and line that it is from, "--set" for one of these overrides,
 * "default", or "found by the plan" where the job left it open. */
const char *job_sourced(struct arena *arena, const struct job *job, const struct job_override *overrides,
                        int n_overrides);

/* The digest of the resolved job, not of the file: comments, order and spelling make no other one. */
const char *job_digest(struct arena *arena, const struct job *job);

/* The help of a key or group ("optimizer", "optimizer.lr") from the schema: type, range, default, sentence; NULL when
 * there is no such key. A key's name without its group ("lr") gives the help of all keys of that name. With "" the list
 * of groups. Names of other trainers and values of keys are known too (schemas/names.yaml); "elsewhere" lists names. */
const char *job_help(struct arena *arena, const char *key);

/* What job_help knows of the schema: every key and group by its path and, within a group, by its name alone. */
struct job_names {
  const char **items;
  int count, capacity;
};
struct job_names job_help_topics(struct arena *arena);

/* The names of other trainers that job_help knows. */
struct job_names job_help_names(struct arena *arena);

/* What the schema says of a key in a sentence; NULL for one that it does not name. */
const char *job_sentence(struct arena *arena, const char *key);

#endif
