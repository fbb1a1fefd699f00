#!/bin/sh
# All that is to be seen of CUDA programs on a machine with a GPU, in one call of less than ten minutes, with nvcc and a C
# compiler; no network, MPI, clang, ninja. What a machine lacks (PyTorch, compute-sanitizer, the GPU) is said and left out.
#
# usage: sh run.sh [FOLDER]    a folder that tests/gpu/pack.sh has written (default: the script's own, else build/gpu)
#   report.json and report.txt are written there; status 1 when something is wrong
#   LIMIT    seconds for all of it, 570
#   CAP      seconds for one run of a program, 60
#   LLMC     a folder of llm.c with its train_gpt2cu built, and its starter pack, to be measured too
# The most telling stages come first, as time may end before them all: building, losses beside PyTorch's, GPT-2 124M beside
# PyTorch, memcheck; then bits, other types, tuning, 350M, the other sanitizers. A part that fails, or that does not end,
# says so and leaves the others alone; whatever ends the script, there is a report of what was seen.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-}
if [ -z "$folder" ]; then
  if [ -d "$here/bundles" ]; then folder=$here; else folder=$here/../../build/gpu; fi
fi
folder=$(cd "$folder" && pwd)
cd "$folder"
began=$(date +%s)
limit=${LIMIT:-570}
stage=
: >report.lines
: >report.txt
export OMP_WAIT_POLICY=passive

# ---- The report ----

# One result: a line for people, an object for programs.
tell() { # PART NAME RESULT DETAIL
  printf '%-12s %-34s %-8s %s\n' "$1" "$2" "$3" "$4" | tee -a report.txt
  # shellcheck disable=SC1003 # a quote and a backslash
  printf '{"part": "%s", "name": "%s", "result": "%s", "detail": "%s"}\n' "$1" "$2" "$3" "$(echo "$4" | tr '"\\' '__' | tr -d '\n\r\t')" >>report.lines
}
left() { echo $((limit - $(date +%s) + began)); }
# What is left, at most $1 seconds.
within_cap() {
  now=$(left)
  if [ "$now" -gt "$1" ]; then now=$1; fi
  if [ "$now" -lt 1 ]; then now=1; fi
  echo "$now"
}
# Whether there are $1 seconds for the part $2, case $3.
there_is_time() {
  if [ "$(left)" -ge "$1" ]; then return 0; fi
  tell "$2" "$3" SKIPPED "no time is left"
  return 1
}
finish() {
  trap - EXIT
  printf '{"seconds": %s, "results": [\n%s\n]}\n' "$(($(date +%s) - began))" "$(sed '$!s/$/,/' report.lines)" >report.json
  failed=$(grep -c '"result": "FAILED"' report.lines || true)
  rm -f report.lines
  echo "$(grep -c ' ok ' report.txt || true) ok, $failed failed, $(grep -c ' SKIPPED ' report.txt || true) left out; $folder/report.json"
  [ "$failed" = 0 ] || exit 1
  exit 0
}

# Something that no part has foreseen: the report says so.
broken() {
  status=$?
  [ -z "$stage" ] || kill "$stage" 2>/dev/null || true
  tell machine script FAILED "ended early with status $status"
  finish
}
trap broken EXIT
trap 'exit 143' TERM INT

# A function of what follows, on its own: what it does not foresee ends it alone.
run_stage() { # NAME FUNCTION
  "$2" &
  stage=$!
  wait "$stage" || tell machine "$1" FAILED "the stage ended early"
  stage=
}

# ---- The machine ----

gpu=
if command -v nvidia-smi >/dev/null 2>&1 && nvidia-smi -L >/dev/null 2>&1; then
  gpu=$(nvidia-smi --query-gpu=name,compute_cap,memory.total,driver_version --format=csv,noheader | head -1)
fi
tell machine gpu "$([ -n "$gpu" ] && echo ok || echo SKIPPED)" "${gpu:-no GPU here}"
first=$(find bundles -mindepth 1 -maxdepth 1 | sort | head -1)
[ -n "$first" ] || { tell machine bundles FAILED "none in $folder: sh tests/gpu/pack.sh" && finish; }
nvcc=$(sh "$first/tools/cuda-toolkit.sh" --nvcc 2>/dev/null || true)
if [ -z "$nvcc" ]; then tell machine nvcc SKIPPED "no CUDA toolkit" && finish; fi
tell machine nvcc ok "$("$nvcc" --version | sed -n 's/.*release //p')"
python=${PYTHON:-python3}
torch=$("$python" -c 'import torch; print(torch.__version__ if torch.cuda.is_available() else "")' 2>/dev/null || true)
if [ -n "$torch" ]; then tell machine pytorch ok "$torch"; else tell machine pytorch SKIPPED "no PyTorch that sees a GPU"; fi
if [ -n "$gpu" ]; then
  TARGETS=sm_$(echo "$gpu" | sed 's/^[^,]*, \([0-9]*\)\.\([0-9]*\),.*/\1\2/')
  [ "$TARGETS" != sm_90 ] || TARGETS=sm_90a
  export TARGETS
fi

for refused in *.refused; do
  if [ -f "$refused" ]; then tell build "${refused%.refused}" SKIPPED "$(head -1 "$refused")"; fi
done

# ---- Building, four programs at a time, those of the first stages first ----

cat >build-one.sh <<'SCRIPT'
began=$(date +%s) && JOBS=4 timeout 240 sh "bundles/$1/build.sh" "$PWD/bundles/$1/trainer" >"bundles/$1.log" 2>&1 && echo $(($(date +%s) - began)) >"bundles/$1.built"
SCRIPT
rm -f bundles/*.built
jobs=$(ls jobs | sed -n 's/\.yaml$//p' | awk '{ early = /^(float32|bf16|gpt2-124m-b(64|32|16|4))$/; print !early, $0 }' | sort -s -k1,1 | cut -d' ' -f2)
echo "$jobs" | xargs -P 4 -I '{}' sh build-one.sh '{}' || true
for job in $jobs; do
  if [ -f "bundles/$job.built" ]; then
    tell build "$job" ok "$(cat "bundles/$job.built") s"
  else
    tell build "$job" FAILED "$(tail -1 "bundles/$job.log")"
  fi
done
rm -f build-one.sh

# A trainer in a run of its own; RUN is where it writes.
train() { # JOB RUN FLAG...
  job=$1 run=runs/$2
  shift 2
  rm -rf "$run"
  mkdir -p "$run"
  status=0
  timeout "$(within_cap "${CAP:-60}")" "bundles/$job/trainer" --data "$folder/train.bin" --project-dir "$run" "$@" >"$run.log" 2>&1 || status=$?
  [ "$status" != 124 ] || echo "error: it did not end in time" >>"$run.log"
  return "$status"
}
complaint() { grep -m1 error "$1" 2>/dev/null || tail -1 "$1" 2>/dev/null || echo "it said nothing"; }
same() { cmp -s "runs/$1/model.safetensors" "runs/$2/model.safetensors"; }
verdict() { # PART NAME DETAIL: by $good, 0 where it went well
  if [ "$good" = 0 ]; then tell "$1" "$2" ok "$3"; else tell "$1" "$2" FAILED "$3"; fi
}

if [ -z "$gpu" ]; then
  for job in $jobs; do
    [ -f "bundles/$job.built" ] || continue
    status=0
    train "$job" "$job" --steps 1 || status=$?
    if [ "$status" = 1 ] && grep -q '^rank 0: error: no ' "runs/$job.log"; then
      tell start "$job" ok "$(head -1 "runs/$job.log")"
    else
      tell start "$job" FAILED "status $status: $(head -1 "runs/$job.log")"
    fi
  done
  for part in correctness pytorch graphs repeat resume overflow offload profile rates topology ranks sanitizer tuning benchmark; do tell "$part" all SKIPPED "no GPU"; done
  finish
fi

# ---- Correctness: losses beside the processor's; bits beside other ways to run the same ----

# The largest difference of the losses of run $1 from those in the file $2, over the latter's size.
difference() {
  awk 'function loss(line) { sub(/.*"loss": */, "", line); return line + 0 }
       function step(line) { sub(/.*"step": */, "", line); return line + 0 }
       FNR == NR { if (/"loss"/) wanted[step($0)] = loss($0); next }
       /"loss"/ && step($0) in wanted { d = loss($0) - wanted[step($0)]; if (d < 0) d = -d; d /= wanted[step($0)]; if (d > most) most = d; n++ }
       END { if (n == 0) print "none"; else printf "%.2e", most }' "$2" "runs/$1/metrics.jsonl"
}
within() { awk -v got="$1" -v most="$2" 'BEGIN { exit !(got != "none" && got + 0 <= most + 0) }'; }
curve() { # JOB: losses of 200 steps beside the processor's and PyTorch's
  job=$1
  if [ ! -f "bundles/$job.built" ]; then return 0; fi
  there_is_time 30 correctness "$job" || return 0
  # Rounding grows along a run: the bounds are over 200 steps, those of 16 bits by what float64 says of such sums.
  case $job in float32 | grouped | recompute | adalomo) most=2e-3 ;; *) most=3e-2 ;; esac
  if ! train "$job" "$job"; then
    tell correctness "$job" FAILED "$(complaint "runs/$job.log")"
    return 0
  fi
  got=$(difference "$job" "references/$job/metrics.jsonl")
  within "$got" "$most" && good=0 || good=1
  verdict correctness "$job" "losses of 200 steps within $got of the processor's (at most $most)"
  case $job in grouped | recompute | experts | states8 | adalomo) return 0 ;; esac
  if [ -z "$torch" ] || [ ! -f batches.bin ]; then
    tell pytorch "$job" SKIPPED "no PyTorch, or no samples for it"
  elif there_is_time 45 pytorch "$job"; then
    if timeout "$(within_cap 90)" "$python" peer.py curve "$job" >"runs/$job-torch.jsonl" 2>runs/peer.log; then
      got=$(difference "$job" "runs/$job-torch.jsonl")
      within "$got" "$most" && good=0 || good=1
      verdict pytorch "$job" "losses of 200 steps within $got of PyTorch's on this GPU (at most $most)"
    else
      tell pytorch "$job" SKIPPED "$(tail -1 runs/peer.log)"
    fi
  fi
}
bits() { # JOB: weights with and without graphs, and of two runs
  job=$1
  if [ ! -f "runs/$job/model.safetensors" ]; then return 0; fi
  if there_is_time 30 graphs "$job"; then
    ACCEL_GRAPHS=no train "$job" "$job-no-graphs" && same "$job" "$job-no-graphs" && good=0 || good=1
    verdict graphs "$job" "the weights with and without graphs, bit by bit"
  fi
  if there_is_time 30 repeat "$job"; then
    train "$job" "$job-again" && same "$job" "$job-again" && good=0 || good=1
    verdict repeat "$job" "the weights of two runs, bit by bit"
  fi
}
first_curves() { for name in float32 bf16; do curve "$name"; done; }
other_curves() { for name in fp16 tf32 states8 adalomo grouped recompute experts; do curve "$name"; done; }
all_bits() { for name in float32 bf16 fp16 tf32 states8 adalomo grouped recompute experts; do bits "$name"; done; }
# Whether the part $1 of one job with that name can be done.
is_ready() {
  [ -f "bundles/$1.built" ] && there_is_time 30 "$1" "$1"
}
resume() {
  if is_ready resume; then
    if train resume resume && cp runs/resume/model.safetensors runs/resume.whole &&
      timeout "$(within_cap "${CAP:-60}")" bundles/resume/trainer --data "$folder/train.bin" --project-dir runs/resume \
        --resume runs/resume/checkpoints/checkpoint_1 >runs/resume-on.log 2>&1; then
      cmp -s runs/resume.whole runs/resume/model.safetensors && good=0 || good=1
      verdict resume resume "the weights of a run that went on from step 100, bit by bit"
    else
      tell resume resume FAILED "$(complaint runs/resume.log); $(tail -1 runs/resume-on.log 2>/dev/null || true)"
    fi
  fi
}
overflow() {
  if is_ready overflow; then
    if train overflow overflow; then
      # Each step that was skipped has halved the scale; none was lost, and the losses are numbers.
      awk '/"skipped"/ { line = $0; sub(/.*"skipped": */, "", line); skipped = line + 0 }
           /"loss_scale"/ { line = $0; sub(/.*"loss_scale": */, "", line); scale = line + 0 }
           END { wanted = 1e12 / 2 ^ skipped; d = scale / wanted - 1; printf "%d steps were skipped, the scale is %g", skipped, scale
                 exit !(skipped > 5 && skipped < 40 && d < 1e-6 && d > -1e-6) }' runs/overflow/metrics.jsonl >runs/overflow.text && good=0 || good=1
      verdict overflow scaler "$(cat runs/overflow.text)"
    else
      tell overflow scaler FAILED "$(complaint runs/overflow.log)"
    fi
  fi
}
offload() {
  if is_ready offload; then
    train offload offload && same float32 offload && good=0 || good=1
    verdict offload optimizer "the weights with the optimizer's states on the host, bit by bit those of float32"
  fi
}
profile() {
  if is_ready profile; then
    rm -rf runs/traces
    train profile profile && grep -q '^profile of 3 steps' runs/profile.log && grep -q '"cat": "kernel"' runs/traces/profile_0.json && same float32 profile && good=0 || good=1
    verdict profile cupti "$(grep -c '"cat": "kernel"' runs/traces/profile_0.json 2>/dev/null || echo no) kernels in the trace of 3 steps; $(complaint runs/profile.log)"
  fi
}
# Sums of one order: four micro-batches a step of one GPU, then two of each of two.
topology() {
  if is_ready topology; then
    train topology topology && got=$(difference topology references/float32/metrics.jsonl) && within "$got" 2e-3 && good=0 || good=1
    verdict topology float32 "losses of 200 steps of four micro-batches each within ${got:-?} of one processor's of whole batches; $(complaint runs/topology.log)"
  fi
}
# Trains job $1 on two GPUs.
train_two() {
  mkdir -p "runs/$1"
  RANK=1 WORLD_SIZE=2 timeout "$(within_cap "${CAP:-60}")" "bundles/$1/trainer" --data "$folder/train.bin" --project-dir "runs/$1" >"runs/$1-1.log" 2>&1 &
  second=$!
  RANK=0 WORLD_SIZE=2 timeout "$(within_cap "${CAP:-60}")" "bundles/$1/trainer" --data "$folder/train.bin" --project-dir "runs/$1" >"runs/$1.log" 2>&1 && wait "$second"
}
# Each kernel of a program, and of the libraries, is one of its parts.
rates() {
  if is_ready rates; then
    train rates rates && grep -q 'GFLOP/s' runs/rates.log && same float32 rates &&
      ! sed -n '/^profile of 3 steps/,$p' runs/rates.log | grep -q 'cutlass\|xmma\|gemm' && good=0 || good=1
    verdict rates parts "$(sed -n '/^profile of 3 steps/,$p' runs/rates.log | sed -n 3p); $(complaint runs/rates.log)"
  fi
}
ranks() {
  gpus=$(nvidia-smi -L | wc -l)
  if [ "$gpus" -lt 2 ]; then
    tell ranks zero3 SKIPPED "one GPU"
    return 0
  fi
  if is_ready ranks; then
    train_two ranks && got=$(difference ranks references/float32/metrics.jsonl) && within "$got" 2e-3 && good=0 || good=1
    verdict ranks zero3 "losses of 200 steps of two GPUs within ${got:-?} of one processor's; $(complaint runs/ranks.log)"
  fi
  if is_ready topology-ranks; then
    train_two topology-ranks && same topology topology-ranks && good=0 || good=1
    verdict ranks topology "the weights of two GPUs, bit by bit those of one that has all micro-batches; $(complaint runs/topology-ranks.log)"
  fi
}

# ---- Sanitizers ----

sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null || true)
sanitize() { # TOOL JOB
  if [ -z "$sanitizer" ]; then
    tell sanitizer "$1-$2" SKIPPED "no compute-sanitizer"
  elif [ -f "bundles/$2.built" ] && there_is_time 60 sanitizer "$1-$2"; then
    rm -rf runs/sanitizer && mkdir -p runs/sanitizer
    status=0
    ACCEL_GRAPHS=no timeout "$(within_cap 50)" "$sanitizer" --tool "$1" --error-exitcode 3 "bundles/$2/trainer" --data "$folder/train.bin" \
      --project-dir runs/sanitizer --steps 2 >runs/sanitizer.log 2>&1 || status=$?
    case $status in
    0) tell sanitizer "$1-$2" ok "two steps: $(grep 'ERROR SUMMARY\|RACECHECK SUMMARY' runs/sanitizer.log | tail -1)" ;;
    124) tell sanitizer "$1-$2" SKIPPED "two steps were not over after 50 s" ;;
    *) tell sanitizer "$1-$2" FAILED "$(grep -m1 'ERROR SUMMARY\|RACECHECK SUMMARY\|=========' runs/sanitizer.log || complaint runs/sanitizer.log)" ;;
    esac
  fi
}
first_sanitizer() { sanitize memcheck bf16; }
other_sanitizers() {
  sanitize racecheck bf16
  sanitize memcheck float32
  sanitize synccheck bf16
  sanitize racecheck float32
}

# ---- Benchmark ----

# The rate that products reach here, of which MFU is a share; measured once, before all else that is measured.
product_rate() {
  if [ -n "$torch" ] && there_is_time 20 benchmark product-8192; then
    timeout "$(within_cap 60)" "$python" peer.py product >runs/product 2>runs/peer.log || true
    if [ -s runs/product ]; then
      tell benchmark product-8192 ok "$(cat runs/product)"
    else
      tell benchmark product-8192 SKIPPED "$(tail -1 runs/peer.log)"
    fi
  fi
}
# The most of the GPU's memory that is in use while the command runs, MiB, into runs/peak.
watch_memory() {
  most=0
  while [ -f runs/watching ]; do
    used=$(nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits -i 0 2>/dev/null || echo 0)
    if [ "$used" -gt "$most" ] 2>/dev/null; then most=$used && echo "$most" >runs/peak; fi
    sleep 0.2
  done
}
watched() {
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
mfu() { # SIZE TOKENS/S
  case $1 in 124m) each=860e6 ;; *) each=2431e6 ;; esac
  awk -v each="$each" -v rate="$2" -v top="$(cut -d" " -f1 runs/product 2>/dev/null || echo 0)" 'BEGIN { if (top > 0 && rate > 0) printf ", MFU %.3f of the product rate", each * rate / (top * 1e12) }'
}
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { if (a > 0 && b > 0) printf ", ours is %.2f times that", a / b }'; }
figures() { # metrics.jsonl: the middle of tokens/s without the first lines, seconds to the first step
  awk '/"tokens_per_s"/ { line = $0; sub(/.*"tokens_per_s": */, "", line); if (NR > 2) rate[n++] = line + 0 }
       /"start_to_first_step_s"/ { line = $0; sub(/.*"start_to_first_step_s": */, "", line); first = line + 0 }
       END { for (i = 0; i < n; i++) for (j = i + 1; j < n; j++) if (rate[j] < rate[i]) { t = rate[i]; rate[i] = rate[j]; rate[j] = t }
             printf "%.0f tokens/s, first step after %.2f s", rate[int(n / 2)], first }' "$1"
}
peer() { # SIZE BATCH MODE RATE: PyTorch beside a rate of ours
  name=pytorch-$1-b$2-$3
  if [ -z "$torch" ]; then
    tell benchmark "$name" SKIPPED "no PyTorch"
  elif there_is_time 60 benchmark "$name"; then
    if text=$(timeout "$(within_cap 150)" "$python" peer.py "$1" "$2" "$3" 2>runs/peer.log); then
      tell benchmark "$name" ok "$text$(mfu "$1" "$(rate_of "$text")")$(ratio "$4" "$(rate_of "$text")")"
    else
      tell benchmark "$name" SKIPPED "$(tail -1 runs/peer.log)"
    fi
  fi
}
llmc() { # SIZE BATCH RATE: llm.c beside a rate of ours
  if [ ! -x "${LLMC:-}/train_gpt2cu" ]; then
    tell benchmark "llmc-$1-b$2" SKIPPED "LLMC names no folder with train_gpt2cu"
  elif there_is_time 40 benchmark "llmc-$1-b$2"; then
    case $1 in 124m) depth=d12 ;; *) depth=d24 ;; esac
    data=$LLMC/dev/data/tinyshakespeare/tiny_shakespeare
    if (cd "$LLMC" && timeout "$(within_cap 60)" ./train_gpt2cu -i "${data}_train.bin" -j "${data}_val.bin" -e "$depth" -b "$2" -t 1024 \
      -d $(($2 * 1024)) -x 30 -v 0 -s 0 -h 0) >runs/llmc.log 2>&1; then
      rate=$(sed -n 's/.*[^0-9]\([0-9][0-9]*\) tok\/s.*/\1/p' runs/llmc.log | sort -n | awk '{ r[NR] = $1 } END { print r[int((NR + 1) / 2)] }')
      tell benchmark "llmc-$1-b$2" ok "$rate tokens/s$(mfu "$1" "$rate")$(ratio "$3" "$rate")"
    else
      tell benchmark "llmc-$1-b$2" SKIPPED "$(tail -1 runs/llmc.log)"
    fi
  fi
}
# One of our programs; its rate in runs/NAME.rate. 1: it does not fit, or failed.
ours() { # SIZE NAME
  there_is_time 40 benchmark "$2" || return 1
  rm -f runs/peak
  if watched train "$2" "$2"; then
    text=$(figures "runs/$2/metrics.jsonl")
    rate_of "$text" >"runs/$2.rate"
    tell benchmark "$2" ok "$text; $(peak), arena $(sed -n 's/.*plan \([0-9.]* [MG]iB\).*/\1/p' "runs/$2.log" | head -1)$(mfu "$1" "$(rate_of "$text")")"
    return 0
  fi
  if grep -q 'the plan takes' "runs/$2.log"; then
    tell benchmark "$2" SKIPPED "$(complaint "runs/$2.log")"
  else
    tell benchmark "$2" FAILED "$(complaint "runs/$2.log")"
  fi
  return 1
}
# Of a size the largest batch that fits, and the small one, with the logits whole and in chunks; each beside the others.
benchmark() { # SIZE
  for batch in 64 32 16; do
    [ -f "bundles/gpt2-$1-b$batch.built" ] || continue
    if ours "$1" "gpt2-$1-b$batch"; then
      peer "$1" "$batch" default "$(cat "runs/gpt2-$1-b$batch.rate")"
      llmc "$1" "$batch" "$(cat "runs/gpt2-$1-b$batch.rate")"
      echo "$batch" >"runs/fitted-$1"
      break
    fi
  done
  for name in "gpt2-$1-b4" "gpt2-$1-b32-chunks"; do
    [ -f "bundles/$name.built" ] || continue
    ours "$1" "$name" || continue
    case $name in *-b4) peer "$1" 4 default "$(cat "runs/$name.rate")" ;; esac
  done
}
benchmark_124m() { benchmark 124m; }
benchmark_350m() { benchmark 350m; }
autotuned() {
  for size in 124m 350m; do
    [ -f "runs/fitted-$size" ] || continue
    batch=$(cat "runs/fitted-$size")
    peer "$size" "$batch" max-autotune "$(cat "runs/gpt2-$size-b$batch.rate")"
  done
}
without_graphs() {
  if [ -f bundles/gpt2-124m-b4.built ] && there_is_time 30 benchmark no-graphs; then
    ACCEL_GRAPHS=no train gpt2-124m-b4 no-graphs && good=0 || good=1
    verdict benchmark no-graphs "gpt2-124m-b4 without graphs: $(figures runs/no-graphs/metrics.jsonl 2>/dev/null || complaint runs/no-graphs.log)"
  fi
}

# ---- Tuning: what the algorithms of each product take, for `accel-gen tune JOB --measured` ----

tuning() {
  for name in gpt2-124m-b64 gpt2-124m-b32 gpt2-124m-b4; do
    [ -f "runs/$name.rate" ] && there_is_time 30 tuning "$name" || continue
    if ACCEL_MEASURE=$folder/measured-$name.json train "$name" "$name-measured" --steps 1 && [ -s "measured-$name.json" ]; then
      tell tuning "$name" ok "$(sed -n 's/.*"seconds": *\([0-9.e+-]*\).*/\1/p; s/^ *"\(.*\)": \[.*/product/p' "measured-$name.json" |
        awk '/product/ { n++; first = 1; next } first { rule += $1; best[n] = $1; first = 0; next } $1 < best[n] { best[n] = $1 }
             END { for (i in best) fastest += best[i]; printf "%d products once each: %.3f ms by the heuristic, %.3f ms by the fastest", n, 1e3 * rule, 1e3 * fastest }'); measured-$name.json"
    else
      tell tuning "$name" FAILED "$(complaint "runs/$name-measured.log")"
    fi
    return 0
  done
}

mkdir -p runs
run_stage curves first_curves
run_stage products product_rate
run_stage benchmark benchmark_124m
run_stage sanitizer first_sanitizer
run_stage resume resume
run_stage overflow overflow
run_stage tuning tuning
run_stage curves other_curves
run_stage offload offload
run_stage profile profile
run_stage rates rates
run_stage bits all_bits
run_stage benchmark benchmark_350m
run_stage topology topology
run_stage ranks ranks
run_stage sanitizer other_sanitizers
run_stage benchmark without_graphs
run_stage benchmark autotuned
finish
