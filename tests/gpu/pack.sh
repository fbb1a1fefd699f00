#!/bin/sh
# Writes what tests/gpu/run.sh runs into a folder that can be copied to a machine with a GPU: bundles of jobs, their data, what
# the trainers for processors give for the same jobs, and the scripts.
# usage: sh tests/gpu/pack.sh FOLDER [JOB...]     JOB: of the list below; all by default
set -eu
cd "$(dirname "$0")/../.."
tree=$PWD
folder=$1
shift
mkdir -p "$folder/jobs" "$folder/references"
folder=$(cd "$folder" && pwd)
gen=$tree/build/accel-gen
wanted=" ${*:-float32 tf32 bf16 steady fp16 grouped recompute experts experts16 images images16 states8 adalomo resume evaluate generate overflow offload profile rates topology ranks topology-ranks tensors residual plan heads keys ring shards stages stage-shards gpt2-124m-b4 gpt2-124m-b64 gpt2-124m-b32 gpt2-124m-b16 gpt2-124m-b32-whole gpt2-350m-b4 gpt2-350m-b32 gpt2-350m-b16} "

# Tokens below 256 as 16-bit numbers; a text of the tree is data enough.
if [ ! -f "$folder/train.bin" ]; then
  head -c 4000000 build/gen/embedded.c | LC_ALL=C tr '\n' ' ' | LC_ALL=C sed 's/./&\x00/g' | head -c 8000000 >"$folder/train.bin"
fi

write() { # NAME MODEL CONFIG DATA REST
  printf 'model:\n  source: %s/examples/models/%s.c\n  config: {%s}\ndata: {%s}\n%b\n' "$tree" "$2" "$3" "$4" "$5" \
    >"$folder/jobs/$1.yaml"
}
small="n_layer: 2, n_head: 4, n_embd: 64, vocab_size: 256, block_size: 64, bias: true"
tokens="train: {path: $folder/train.bin, format: nanogpt}, batch_size: 8"
# At a larger rate rounding grows along the 200 steps until curves of equal arithmetic part.
steps="training: {steps: 200, seed: 7}\ntracking: {every: 1}\noptimizer: {name: adamw, lr: 3e-4, clip_grad_norm: 1.0}"
write float32 nanogpt "$small" "$tokens" "$steps"
write tf32 nanogpt "$small" "$tokens" "$steps"
write bf16 nanogpt "$small" "$tokens" "$steps\nprecision: {mixed_precision: bf16}"
write steady nanogpt "$small" "$tokens" "training: {steps: 200, seed: 7, deterministic: true}\ntracking: {every: 1}\noptimizer: {name: adamw, lr: 3e-4, clip_grad_norm: 1.0}\nprecision: {mixed_precision: bf16}"
write fp16 nanogpt "$small" "$tokens" "$steps\nprecision: {mixed_precision: fp16}"
logged="training: {steps: 200, seed: 7}\ntracking: {every: 1"
write states8 nanogpt "$small" "$tokens" "$logged, grad_norms: per_layer}\noptimizer: {name: adamw, lr: 3e-4, clip_grad_norm: 1.0, state_dtype: 8bit}"
write adalomo nanogpt "$small" "$tokens" "$logged}\noptimizer: {name: adalomo, lr: 3e-4, clip_grad_norm: 1.0}" # its backward runs twice
write resume nanogpt "$small" "$tokens" "$steps\ncheckpoint: {every: 50}"
# Gradients of 16 bits are beyond their range until the scale has come down.
write overflow nanogpt "$small" "$tokens" "$steps\nprecision: {mixed_precision: fp16, grad_scaler: {init_scale: 1.0e+12}}"
# What measures and what writes, with the weights of float32.
write evaluate nanogpt "$small" "$tokens" "training: {steps: 200, eval_interval: 10, eval_iters: 100, metrics: [accuracy]}"
write generate nanogpt "$small" "$tokens" "training: {steps: 200}"
write offload nanogpt "$small" "$tokens" "$steps\nparallelism: {offload: {optimizer: cpu}}"
write profile nanogpt "$small" "$tokens" "$steps\nprofile: {schedule: {skip_first: 20, active: 3}, output_trace_dir: runs/traces, nvtx: true}"
write rates nanogpt "$small" "$tokens" "$steps\nprofile: {schedule: {skip_first: 20, active: 3}, with_flops: true}"
write ranks nanogpt "$small" "train: {path: $folder/train.bin, format: nanogpt}, batch_size: 4" \
  "$steps\ndevices: {per_node: 2}\nparallelism: {zero_stage: 3}"
# Two ranks that divide a model and take the batches of one.
two="$steps\ndevices: {per_node: 2}\nparallelism:"
write tensors nanogpt "$small" "$tokens" "$two {tp: 2}"
write residual nanogpt "$small" "$tokens" "$two {tp: 2, megatron: {sequence_parallelism: true}}"
split="[{match: '*.c_attn', style: rowwise_split_input}, {match: '*.mlp.c_fc', style: colwise_gather_output}, {match: '*.mlp.c_proj', style: rowwise_split_input}]"
write plan nanogpt "$small" "$tokens" "$two {tp: 2, tp_plan: $split}"
write heads nanogpt "$small" "$tokens" "$two {sp: 2}"
write keys nanogpt "$small" "$tokens" "$two {cp: 2}"
write ring nanogpt "$small" "$tokens" "$two {cp: 2, cp_comm: ring}"
# Four, of which two at a time take half of them.
write shards nanogpt "$small" "train: {path: $folder/train.bin, format: nanogpt}, batch_size: 4" \
  "$steps\ndevices: {per_node: 4}\nparallelism: {tp: 2, zero_stage: 3}"
# Stages of a pipeline, which map memory of their own; with four, two each divide a stage's states.
whole="accumulation: {num_steps: 4, sync_with_dataloader: false}"
write stages nanogpt "$small" "train: {path: $folder/train.bin, format: nanogpt}, batch_size: 2" "$two {pp: 2}\n$whole"
write stage-shards nanogpt "$small" "train: {path: $folder/train.bin, format: nanogpt}, batch_size: 1" \
  "$steps\ndevices: {per_node: 4}\nparallelism: {pp: 2, zero_stage: 3}\n$whole"
write grouped llama "num_hidden_layers: 2, num_attention_heads: 4, num_key_value_heads: 2, head_dim: 16, hidden_size: 64, intermediate_size: 128, vocab_size: 256" \
  "$tokens, sequence_length: 64" "$steps\naccumulation: {num_steps: 2}"
# Choices of a router that are close together make curves differ.
experts="num_hidden_layers: 2, num_attention_heads: 4, num_key_value_heads: 2, head_dim: 16, hidden_size: 64, moe_intermediate_size: 96, num_experts: 8, num_experts_per_tok: 2, capacity_factor: 1.25, vocab_size: 256"
write experts qwen_moe "$experts" "$tokens, sequence_length: 64" "$steps"
write experts16 qwen_moe "$experts" "$tokens, sequence_length: 64" "$steps\nprecision: {mixed_precision: bf16}"
# Small images that repeat with their class; convolutions are cuDNN's.
awk 'BEGIN { for (i = 0; i < 640; i++) { for (j = 0; j < 64; j++) printf "%.4f,", ((i % 10 + 1) * j % 17) / 17 + (i * 7 + j * 3) % 11 / 50; print i % 10 } }' >"$folder/images.csv"
unet="sample_size: 8, in_channels: 1, blocks: 2, block_out_channels.0: 32, block_out_channels.1: 64, attend.0: false, attend.1: true, layers_per_block: 1, norm_num_groups: 8, num_class_embeds: 10"
write images unet "$unet" "train: {path: $folder/images.csv, format: csv}, features: 64, batch_size: 16" "$steps"
write images16 unet "$unet" "train: {path: $folder/images.csv, format: csv}, features: 64, batch_size: 16" "$steps\nprecision: {mixed_precision: bf16}"
write topology nanogpt "$small" "train: {path: $folder/train.bin, format: nanogpt}, batch_size: 2" \
  "$steps\naccumulation: {num_steps: 4}\nparallelism: {reproducible: topology}"
write topology-ranks nanogpt "$small" "train: {path: $folder/train.bin, format: nanogpt}, batch_size: 2" \
  "$steps\naccumulation: {num_steps: 2}\ndevices: {per_node: 2}\nparallelism: {reproducible: topology, zero_stage: 3}"
write recompute nanogpt "$small" "$tokens, shuffle: false" "$steps\nmemory: {activation_checkpointing: all}"
for size in "124m 12 12 768" "350m 24 16 1024"; do
  # shellcheck disable=SC2086 # four words
  set -- $size
  for batch in 4 16 32 64; do
    # A step of the small one takes milliseconds.
    if [ "$batch" = 4 ]; then run="{steps: 200, seed: 7}\ntracking: {every: 20}"; else run="{steps: 30, seed: 7}\ntracking: {every: 5}"; fi
    write "gpt2-$1-b$batch" gpt2 "n_layer: $2, n_head: $3, n_embd: $4, vocab_size: 50257, block_size: 1024" \
      "train: {path: $folder/train.bin, format: nanogpt}, batch_size: $batch, sequence_length: 1024" \
      "training: $run\noptimizer: {name: adamw, lr: 3e-4, clip_grad_norm: 1.0}\nprecision: {mixed_precision: bf16}"
  done
done

# All logits at once, where the others have a chunk at a time.
{ cat "$folder/jobs/gpt2-124m-b32.yaml" && echo "memory: {cross_entropy_chunk: 0}"; } >"$folder/jobs/gpt2-124m-b32-whole.yaml"

# Weights that all small models of one shape begin with, and their batches for PyTorch.
if ! python=${PYTHON:-$(sh tests/environment.sh)} || ! "$python" tests/gpu/samples.py "$folder"; then
  echo "no samples for PyTorch: its curves will be left out"
fi
if [ -f "$folder/start.safetensors" ]; then cp "$folder/start.safetensors" "$folder/references"; fi

for path in "$folder"/jobs/*.yaml; do
  name=$(basename "$path" .yaml)
  case $wanted in *" $name "*) ;; *) rm "$path" && continue ;; esac
  extra='' program=train
  case $name in evaluate | generate) program=$name ;; esac
  [ "$name" != tf32 ] || extra="--set precision.tf32=true"
  start=
  case $name in gpt2-* | grouped | recompute | experts | experts16 | images | images16) ;; *) [ ! -f "$folder/start.safetensors" ] || start="--set model.weights=start.safetensors" ;; esac
  # shellcheck disable=SC2086
  if ! "$gen" build "$path" --program $program --set devices.kind=cuda $extra $start --bundle "$folder/bundles/$name" 2>"$folder/$name.refused"; then
    echo "$name: not generated: $(head -1 "$folder/$name.refused")"
    rm -rf "$folder/bundles/$name" && rm "$path"
    continue
  fi
  rm "$folder/$name.refused"
  case $name in gpt2-* | steady | resume | evaluate | generate | overflow | offload | profile | rates | topology | ranks | topology-ranks | tensors | residual | plan | heads | keys | ring | shards | stages | stage-shards) continue ;; esac
  # shellcheck disable=SC2086
  "$gen" build "$path" $start -o "$folder/references/trainer"
  (cd "$folder/references" && OMP_WAIT_POLICY=passive ./trainer --steps "${REFERENCE_STEPS:-200}" --project-dir "$name" >/dev/null)
  rm "$folder/references/trainer"
done
# What the processor's programs say with the weights that float32 has left there.
for program in evaluate generate; do
  if [ ! -f "$folder/jobs/$program.yaml" ] || [ ! -f "$folder/references/float32/model.safetensors" ]; then continue; fi
  flags="--format json --data $folder/train.bin"
  [ "$program" = evaluate ] || flags="--temperature 0 --tokens 150 --prompt The"
  "$gen" build "$folder/jobs/$program.yaml" --program $program -o "$folder/references/program"
  # shellcheck disable=SC2086
  (cd "$folder/references" && OMP_WAIT_POLICY=passive ./program --weights float32/model.safetensors $flags >"$program.said")
  rm "$folder/references/program"
done
cp tests/gpu/run.sh tests/gpu/report.sh tests/gpu/correct.sh tests/gpu/speed.sh tests/gpu/peer.py tests/program/torch_gpt.py "$folder"
echo "packed $folder: $(du -sh "$folder" | cut -f1)"
