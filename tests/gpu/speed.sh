# shellcheck shell=sh disable=SC2154 # what run.sh and its other parts set
# What run.sh measures: GPT-2 against PyTorch and llm.c, and the algorithms of matmuls. Sourced by it.

# The rate that matmuls reach here, of which MFU is a fraction.
matmul_rate() {
  if [ -s runs/torch ] && there_is_time 20 benchmark matmul-8192; then
    limited 60 "$python" peer.py matmul >runs/matmul 2>runs/peer.log || true
    if [ -s runs/matmul ]; then
      report benchmark matmul-8192 ok "$(cat runs/matmul)"
    else
      report benchmark matmul-8192 SKIPPED "$(tail -1 runs/peer.log)"
    fi
  fi
}

# ---- Figures ----

# The most of the GPU's memory that is in use while the command runs, MiB, into runs/peak. The first look comes before the
# question whether the command still runs, so that a short command has a figure too.
watch_memory() {
  most=0
  while :; do
    used=$(timeout 5 nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits -i 0 2>/dev/null || echo 0)
    if [ "$used" -gt "$most" ] 2>/dev/null; then most=$used && echo "$most" >runs/peak; fi
    [ -f runs/watching ] || break
    sleep 0.5
  done
}
watched() {
  rm -f runs/peak
  touch runs/watching
  watch_memory >/dev/null 2>&1 &
  watcher=$!
  status=0
  "$@" || status=$?
  rm -f runs/watching
  wait "$watcher" 2>/dev/null || true
  return "$status"
}
peak() { echo "$(tail -1 runs/peak 2>/dev/null || echo '?') MiB in use"; }
# tokens/s of a text "N tokens/s"; operations of a token of GPT-2 at T 1024 (6 N + 12 L T C), for MFU.
rate_of() { echo "$1" | sed -n 's/\([0-9]*\) tokens\/s.*/\1/p'; }
# TFLOP/s of bf16 with sums in float32, without sparsity, of this GPU in NVIDIA's data sheets; 0: not listed here.
documented_rate() {
  case ${gpu:-} in
  *GB200*) echo 0 ;;
  *B200*) echo 2250 ;;
  *H100*PCIe*) echo 756 ;;
  *H100*NVL* | *H200*NVL*) echo 835.5 ;;
  *H100* | *H200*) echo 989.4 ;;
  *A100*) echo 312 ;;
  *L40S*) echo 362 ;;
  *) echo 0 ;;
  esac
}
mfu() { # SIZE TOKENS/S
  case $1 in 124m) each=860e6 ;; *) each=2431e6 ;; esac
  awk -v each="$each" -v rate="$2" -v top="$(documented_rate)" 'BEGIN { if (top > 0 && rate > 0) printf ", MFU %.3f of the documented %s TFLOP/s", each * rate / (top * 1e12), top }'
  awk -v each="$each" -v rate="$2" -v top="$(cut -d" " -f1 runs/matmul 2>/dev/null || echo 0)" 'BEGIN { if (top > 0 && rate > 0) printf ", MFU %.3f of the matmul rate", each * rate / (top * 1e12) }'
}
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { if (a > 0 && b > 0) printf ", ours is %.2f times that", a / b }'; }
figures() { # metrics.jsonl: the middle of tokens/s without the first lines, seconds to the first step
  awk '/"tokens_per_s"/ { line = $0; sub(/.*"tokens_per_s": */, "", line); if (NR > 2) rate[n++] = line + 0 }
       /"start_to_first_step_s"/ { line = $0; sub(/.*"start_to_first_step_s": */, "", line); first = line + 0 }
       END { for (i = 0; i < n; i++) for (j = i + 1; j < n; j++) if (rate[j] < rate[i]) { t = rate[i]; rate[i] = rate[j]; rate[j] = t }
             printf "%.0f tokens/s, first step after %.2f s", rate[int(n / 2)], first }' "$1"
}

# ---- PyTorch ----

# SIZE BATCH MODE, of which the first two are what the goals are about.
peers="124m 64 default
124m 64 max-autotune
350m 32 default
124m 4 default
350m 32 max-autotune
350m 4 default"
# Compiles PyTorch's models one after the other while others look at what is correct, so that the code is in Inductor's
# cache when they are measured; runs/compiling is there for as long.
compile_peers() {
  mkdir -p runs/compiled
  echo "$peers" | while read -r size batch mode; do
    [ -f runs/compiling ] || break
    [ -f "jobs/gpt2-$size-b$batch.yaml" ] || continue
    timeout -k 5 "$(within_cap 300)" nice "$python" peer.py "$size" "$batch" "$mode" >runs/compiled/new 2>"runs/compiled/$size-$batch-$mode.log" &
    echo $! >runs/compiling.pid
    if wait $!; then mv runs/compiled/new "runs/compiled/$size-$batch-$mode"; fi
  done
}
end_compiling() {
  rm -f runs/compiling
  if [ -f runs/compiling.pid ]; then kill "$(cat runs/compiling.pid)" 2>/dev/null || true; fi
}
peer() { # SIZE BATCH MODE RATE: PyTorch against a rate of ours
  name=pytorch-$1-b$2-$3
  if [ ! -s runs/torch ]; then
    report benchmark "$name" SKIPPED "no PyTorch"
  elif there_is_time 45 benchmark "$name"; then
    # What has not been compiled yet takes long with max-autotune, and there are others.
    if watched limited 150 "$python" peer.py "$1" "$2" "$3" >runs/peer.text 2>runs/peer.log; then
      text=$(cat runs/peer.text)
      cold=$(sed -n 's/.*\(first step after [0-9.]* s\).*/; compiled beforehand: \1 when nothing was in its cache/p' "runs/compiled/$1-$2-$3" 2>/dev/null || true)
      report benchmark "$name" ok "$text, $(peak)$(mfu "$1" "$(rate_of "$text")")$(ratio "$4" "$(rate_of "$text")")$cold"
    else
      report benchmark "$name" SKIPPED "it did not end in time, or: $(tail -1 runs/peer.log)"
    fi
  fi
}

# ---- llm.c ----

llmc() { # SIZE BATCH RATE: llm.c against a rate of ours
  if [ ! -x "${LLMC:-}/train_gpt2cu" ]; then
    report benchmark "llmc-$1-b$2" SKIPPED "LLMC names no folder with train_gpt2cu"
  elif there_is_time 40 benchmark "llmc-$1-b$2"; then
    case $1 in 124m) depth=d12 ;; *) depth=d24 ;; esac
    data=$LLMC/dev/data/tinyshakespeare/tiny_shakespeare
    log=$PWD/runs/llmc.log
    if (cd "$LLMC" && limited 60 ./train_gpt2cu -i "${data}_train.bin" -j "${data}_val.bin" -e "$depth" -b "$2" -t 1024 \
      -d $(($2 * 1024)) -x 30 -v 0 -s 0 -h 0) >"$log" 2>&1; then
      rate=$(sed -n 's/.*[^0-9]\([0-9][0-9]*\) tok\/s.*/\1/p' runs/llmc.log | sort -n | awk '{ r[NR] = $1 } END { print r[int((NR + 1) / 2)] }')
      report benchmark "llmc-$1-b$2" ok "$rate tokens/s$(mfu "$1" "$rate")$(ratio "$3" "$rate")"
    else
      report benchmark "llmc-$1-b$2" SKIPPED "$(tail -1 runs/llmc.log)"
    fi
  fi
}

# ---- Ours ----

# One of our programs; its rate in runs/NAME.rate. 1: it does not fit, or failed.
ours() { # SIZE NAME
  there_is_time 40 benchmark "$2" || return 1
  if watched train "$2" "$2"; then
    rm -f "runs/$2/model.safetensors" # half a gigabyte and more
    text=$(figures "runs/$2/metrics.jsonl")
    rate_of "$text" >"runs/$2.rate"
    report benchmark "$2" ok "$text; $(peak), arena $(sed -n 's/.*plan \([0-9.]* [MG]iB\).*/\1/p' "runs/$2.log" | head -1)$(mfu "$1" "$(rate_of "$text")")"
    return 0
  fi
  if grep -q 'the plan takes' "runs/$2.log"; then
    report benchmark "$2" SKIPPED "$(complaint "runs/$2.log")"
  else
    report benchmark "$2" FAILED "$(complaint "runs/$2.log")"
  fi
  return 1
}
# Of a size the largest batch that fits, and the others; then the small one, and with the logits whole.
largest() { # SIZE
  for batch in 64 32 16; do
    [ -f "bundles/gpt2-$1-b$batch.built" ] || continue
    if ours "$1" "gpt2-$1-b$batch"; then
      peer "$1" "$batch" default "$(cat "runs/gpt2-$1-b$batch.rate")"
      llmc "$1" "$batch" "$(cat "runs/gpt2-$1-b$batch.rate")"
      echo "$batch" >"runs/fitted-$1"
      return 0
    fi
  done
}
# What may take minutes where it has not been compiled yet.
autotuned() { # SIZE
  [ -f "runs/fitted-$1" ] || return 0
  batch=$(cat "runs/fitted-$1")
  peer "$1" "$batch" max-autotune "$(cat "runs/gpt2-$1-b$batch.rate")"
}
smallest() { # SIZE
  if [ -f "bundles/gpt2-$1-b4.built" ] && ours "$1" "gpt2-$1-b4"; then
    peer "$1" 4 default "$(cat "runs/gpt2-$1-b4.rate")"
  fi
  if [ -f "bundles/gpt2-$1-b32-whole.built" ]; then ours "$1" "gpt2-$1-b32-whole" || true; fi
}
without_graphs() {
  if [ -f bundles/gpt2-124m-b4.built ] && there_is_time 30 benchmark no-graphs; then
    ACCEL_GRAPHS=no train gpt2-124m-b4 no-graphs && good=0 || good=1
    rm -f runs/no-graphs/model.safetensors
    verdict benchmark no-graphs "gpt2-124m-b4 without graphs: $(figures runs/no-graphs/metrics.jsonl 2>/dev/null || complaint runs/no-graphs.log)"
  fi
}

# What the algorithms of each matmul take, for `accel-gen tune JOB --measured`.
tuning() {
  for name in gpt2-124m-b64 gpt2-124m-b32 gpt2-124m-b4; do
    [ -f "runs/$name.rate" ] && there_is_time 30 tuning "$name" || continue
    if ACCEL_MEASURE=$folder/measured-$name.json train "$name" "$name-measured" --steps 1 && [ -s "measured-$name.json" ]; then
      report tuning "$name" ok "$(sed -n 's/.*"seconds": *\([0-9.e+-]*\).*/\1/p; s/^ *"\(.*\)": \[.*/matmul/p' "measured-$name.json" |
        awk '/matmul/ { n++; first = 1; next } first { rule += $1; best[n] = $1; first = 0; next } $1 < best[n] { best[n] = $1 }
             END { for (i in best) fastest += best[i]; printf "%d matmuls once each: %.3f ms by the heuristic, %.3f ms by the fastest", n, 1e3 * rule, 1e3 * fastest }'); measured-$name.json"
    else
      report tuning "$name" FAILED "$(complaint "runs/$name-measured.log")"
    fi
    rm -f "runs/$name-measured/model.safetensors"
    return 0
  done
}
