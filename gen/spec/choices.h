/* The choices of a job: what a key takes one of, and what members of a job are indexed by. */
#ifndef ACCEL_SPEC_CHOICES_H
#define ACCEL_SPEC_CHOICES_H

enum data_format { DATA_BYTES, DATA_NANOGPT, DATA_LLMC, DATA_CSV, DATA_TOKENS, DATA_NPY, DATA_NPY_TOKENS, DATA_NPZ };
enum data_packing { PACKING_NONE, PACKING_DOCUMENTS, PACKING_PAD };
/* INT8: load_in_8bit. The others are words of quant_type, from INT8_GROUPS on in its order. */
enum quant_type {
  QUANT_NF4,
  QUANT_FP4,
  QUANT_INT8,
  QUANT_INT8_GROUPS,
  QUANT_INT4_GROUPS,
  QUANT_Q8_0,
  QUANT_Q4_0,
  QUANT_Q4_K
};
enum quant_activations { QUANT_ACTIVATIONS_FLOAT, QUANT_ACTIVATIONS_Q8_0 };
enum optimizer_name {
  OPTIMIZER_SGD,
  OPTIMIZER_ADAM,
  OPTIMIZER_ADAMW,
  OPTIMIZER_ADAMAX,
  OPTIMIZER_NADAM,
  OPTIMIZER_RADAM,
  OPTIMIZER_ADAGRAD,
  OPTIMIZER_ADADELTA,
  OPTIMIZER_RMSPROP,
  OPTIMIZER_LION,
  OPTIMIZER_LAMB,
  OPTIMIZER_ADAFACTOR,
  OPTIMIZER_MUON,
  OPTIMIZER_SCHEDULE_FREE_ADAMW,
  OPTIMIZER_LOMO,
  OPTIMIZER_ADALOMO
};
enum tensor_style { TENSOR_COLUMNS, TENSOR_ROWS, TENSOR_WHOLE, TENSOR_POSITIONS };
enum adjust_lr { ADJUST_ORIGINAL, ADJUST_MATCH_RMS_ADAMW, ADJUST_SPECTRAL_UNCLAMPED };
enum state_dtype { STATE_FLOAT32, STATE_BF16, STATE_BF16_STOCHASTIC, STATE_8BIT };
enum norm_type { NORM_2, NORM_1, NORM_INF };
enum schedule_name {
  SCHEDULE_CONSTANT,
  SCHEDULE_LINEAR,
  SCHEDULE_COSINE,
  SCHEDULE_COSINE_WITH_RESTARTS,
  SCHEDULE_POLYNOMIAL,
  SCHEDULE_INVERSE_SQRT,
  SCHEDULE_EXPONENTIAL,
  SCHEDULE_STEP,
  SCHEDULE_ONE_CYCLE,
  SCHEDULE_WSD
};
enum anneal_form { ANNEAL_COSINE, ANNEAL_LINEAR };
enum decay_type { DECAY_LINEAR, DECAY_COSINE, DECAY_SQRT };
enum metric {
  METRIC_ACCURACY,
  METRIC_PERPLEXITY,
  METRIC_F1_MACRO,
  METRIC_F1_BINARY,
  METRIC_F1_MICRO,
  METRIC_MATTHEWS,
  METRIC_EXACT_MATCH,
  METRIC_TOKEN_F1,
  METRIC_AUC,
  METRIC_MARGIN,
  METRIC_PEARSON,
  METRIC_SPEARMAN,
  METRICS
};
enum sink {
  SINK_CSV,
  SINK_TENSORBOARD,
  SINK_WANDB,
  SINK_MLFLOW,
  SINK_DVCLIVE,
  SINK_TRACKIO,
  SINK_COMET_ML,
  SINK_CLEARML,
  SINKS
};
enum growth { GROWTH_CONSTANT, GROWTH_LINEAR, GROWTH_COSINE };
enum hook {
  HOOK_START,
  HOOK_STEP,
  HOOK_EVAL,
  HOOK_SAVE,
  HOOK_END,
  HOOK_PRE_SAVE,
  HOOK_PRE_LOAD,
  HOOK_STEP_BEGIN,
  HOOK_EPOCH,
  HOOKS_OF_PROGRESS, /* those before it get the progress of the run, and the others what they work on */
  HOOK_BATCH = HOOKS_OF_PROGRESS,
  HOOK_BUCKET,
  HOOK_ORDER,
  HOOKS
};
enum offload { OFFLOAD_NONE, OFFLOAD_CPU, OFFLOAD_NVME };
enum device_map_way { DEVICE_MAP_AUTO, DEVICE_MAP_BALANCED, DEVICE_MAP_BALANCED_LOW_0, DEVICE_MAP_SEQUENTIAL };
/* Those from XLA on are driven by plugins of PJRT. */
enum device_kind {
  DEVICE_CPU,
  DEVICE_CUDA,
  DEVICE_HIP,
  DEVICE_XLA,
  DEVICE_TPU,
  DEVICE_NEURON,
  DEVICE_ROCM,
  DEVICE_XPU
};
enum device_kernels { KERNELS_LIBRARY, KERNELS_OWN };
/* Those of gen/program/processor.h. */
enum processor_arch { ARCH_NATIVE, ARCH_AVX2, ARCH_AVX512, ARCH_AVX512_BF16, ARCH_AMX, ARCH_NEON, ARCH_SVE };
/* The axes of the grid of ranks, outermost first; the last one's ranks are neighbours. */
enum axis { AXIS_DP_REPLICATE, AXIS_DP_SHARD, AXIS_CP, AXIS_SP, AXIS_PP, AXIS_TP, AXIS_EP, AXES };
enum pp_schedule { SCHEDULE_1F1B, SCHEDULE_GPIPE, SCHEDULE_INTERLEAVED, SCHEDULE_ZERO_BUBBLE };
enum normalize { NORMALIZE_BATCHES, NORMALIZE_TOKENS };
enum on_nonfinite { NONFINITE_STOP, NONFINITE_SKIP };
enum checkpointing {
  CHECKPOINTING_NONE,
  CHECKPOINTING_ALL,
  CHECKPOINTING_EVERY,
  CHECKPOINTING_LAYERS,
  CHECKPOINTING_FUNCTIONS,
  CHECKPOINTING_AUTO /* one of the others, found by the plan */
};
/* How ranks along cp get the keys and values of others. */
enum cp_comm { CP_COMM_ALLGATHER, CP_COMM_RING };

enum reproducible { REPRODUCIBLE_OFF, REPRODUCIBLE_RUN, REPRODUCIBLE_TOPOLOGY };
enum mixed_precision { PRECISION_NO, PRECISION_BF16, PRECISION_FP16, PRECISION_FP8 };

/* Whose recipe training in 8 bits follows: torchao's or Transformer Engine's. */
enum fp8_backend { FP8_AO, FP8_TE, FP8_MSAMP };

enum fp8_opt_level { FP8_O1, FP8_O2 };
/* Over which numbers a scale of torchao's is. */
enum fp8_recipe { FP8_TENSORWISE, FP8_ROWWISE, FP8_ROWWISE_WITH_GW_HP, FP8_MXFP8 };
/* How a block's scale is rounded. */
enum fp8_mx_scale { MX_SCALE_FLOOR, MX_SCALE_RCEIL };
/* Which product of a layer is without 8 bits. */
enum fp8_override { OVERRIDE_NONE, OVERRIDE_WGRAD };
/* The format of gradients: E4M3, as of all else, or E5M2. */
enum fp8_format { FP8_HYBRID, FP8_E4M3 };
/* What of a history a scale is for. */
enum amax_compute_algo { AMAX_MOST_RECENT, AMAX_MAX };

#endif
