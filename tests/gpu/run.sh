#!/bin/sh
# All that is to be seen of CUDA programs on a machine with a GPU, in one call of less than ten minutes, with nvcc and a C
# compiler; no network, MPI, clang, ninja. What a machine lacks (PyTorch, compute-sanitizer, the GPU) is said and left out.
#
# usage: sh run.sh [FOLDER]    a folder that tests/gpu/pack.sh has written (default: the script's own, else build/gpu)
#   report.tar.gz, the one file to send back, is written there: report.txt for people, report.json for programs, and logs;
#   status 1 when something is wrong
#   LIMIT    seconds for all of it, 570
#   CAP      seconds for one run of a program, 60
#   LLMC     a folder of llm.c with its train_gpt2cu built, and its starter pack, to be measured too
# What is correct comes first, as far as speed needs it; then GPT-2 against PyTorch; then all that is left. While the first
# is looked at, the other programs are built, and PyTorch compiles its models, which takes minutes with max-autotune: nothing
# is measured before both have ended or half of the time is over. A part that fails, or that does not end, says so and leaves
# the others alone; whatever ends the script, there is a report of what was seen.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-}
if [ -z "$folder" ]; then
  if [ -d "$here/bundles" ]; then folder=$here; else folder=$here/../../build/gpu; fi
fi
folder=$(cd "$folder" && pwd)
cd "$folder"
export OMP_WAIT_POLICY=passive
python=${PYTHON:-python3}
. "$here/report.sh"
. "$here/correct.sh"
. "$here/speed.sh"
rm -rf runs
mkdir runs
# What hangs where no limit reaches it does not take the report with it.
(while [ "$(left)" -gt -15 ]; do sleep 1; done && kill $$) >/dev/null 2>&1 &
background=$!

# ---- The machine ----

gpu='' gpus=0
if command -v nvidia-smi >/dev/null 2>&1 && gpus=$(timeout 20 nvidia-smi -L | grep -c '^GPU'); then
  gpu=$(timeout 20 nvidia-smi --query-gpu=name,compute_cap,memory.total,driver_version --format=csv,noheader | head -1)
fi
report machine gpu "$([ -n "$gpu" ] && echo ok || echo SKIPPED)" "${gpu:-no GPU here}"
if [ -n "$gpu" ]; then
  report machine gpus ok "$gpus"
  timeout 20 nvidia-smi topo -m >runs/topology.txt 2>&1 || true
fi
first=$(find bundles -mindepth 1 -maxdepth 1 -type d | sort | head -1)
[ -n "$first" ] || { report machine bundles FAILED "none in $folder: sh tests/gpu/pack.sh" && finish; }
nvcc=$(sh "$first/tools/cuda-toolkit.sh" --nvcc 2>/dev/null || true)
if [ -z "$nvcc" ]; then report machine nvcc SKIPPED "no CUDA toolkit" && finish; fi
report machine nvcc ok "$("$nvcc" --version | sed -n 's/.*release //p')"
if [ -n "$gpu" ]; then
  TARGETS=sm_$(echo "$gpu" | sed 's/^[^,]*, \([0-9]*\)\.\([0-9]*\),.*/\1\2/')
  [ "$TARGETS" != sm_90 ] || TARGETS=sm_90a
  export TARGETS
fi
for refused in *.refused; do
  if [ -f "$refused" ]; then report build "${refused%.refused}" SKIPPED "$(head -1 "$refused")"; fi
done

# PyTorch, whose first import reads gigabytes; after it, its compiler.
find_torch() {
  if [ -n "$gpu" ] && limited 120 "$python" -c 'import torch; print(torch.__version__ if torch.cuda.is_available() else "")' >runs/torch.new 2>/dev/null; then
    grep . runs/torch.new >runs/torch || true
  fi
  touch runs/looked
  if [ -s runs/torch ]; then compile_peers; fi
  rm -f runs/compiling
}
touch runs/compiling
find_torch >/dev/null 2>&1 &
background="$background $!"

# ---- Building ----

cat >build-one.sh <<'SCRIPT'
began=$(date +%s) && JOBS=2 timeout -k 5 240 sh "bundles/$1/build.sh" "$PWD/bundles/$1/trainer" >"bundles/$1.log" 2>&1 && echo $(($(date +%s) - began)) >"bundles/$1.built"
SCRIPT
rm -f bundles/*.built
jobs=$(find jobs -name '*.yaml' | sed 's/.*\///; s/\.yaml$//' | sort)
early=$(echo "$jobs" | grep -x 'float32\|bf16\|steady\|resume\|overflow' || true)
later=$(echo "$jobs" | grep -vx 'float32\|bf16\|steady\|resume\|overflow' | awk '{ print !/^gpt2-124m/, $0 }' | sort -s -k1,1 | cut -d' ' -f2)
if [ -n "$gpu" ] && [ "$gpus" -lt 2 ]; then later=$(echo "$later" | grep -vx 'ranks\|topology-ranks\|residual\|heads\|keys\|stages\|stage-shards' || true); fi
build() { # JOBS, as many at a time as there are processors
  echo "$1" | xargs -r -P "$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)" -I '{}' sh build-one.sh '{}' || true
}
tell_built() {
  for job in $1; do
    if [ -f "bundles/$job.built" ]; then
      report build "$job" ok "$(cat "bundles/$job.built") s"
    else
      report build "$job" FAILED "$(tail -1 "bundles/$job.log" 2>/dev/null || echo 'it was not started')"
    fi
  done
}
build "$early"
tell_built "$early"
build "$later" >/dev/null 2>&1 &
builder=$!
background="$background $builder"
wait_for_builder() {
  wait "$builder" || true
  tell_built "$later"
  rm -f build-one.sh
}

if [ -z "$gpu" ]; then
  wait_for_builder
  for job in $early $later; do
    [ -f "bundles/$job.built" ] || continue
    status=0
    case $job in
    evaluate) forward evaluate --data "$folder/train.bin" || status=$? ;;
    generate) forward generate || status=$? ;;
    *) train "$job" "$job" --steps 1 || status=$? ;;
    esac
    if [ "$status" = 1 ] && grep -q '^error: no ' "runs/$job.log"; then
      report start "$job" ok "$(head -1 "runs/$job.log")"
    else
      report start "$job" FAILED "status $status: $(head -1 "runs/$job.log")"
    fi
  done
  for part in correctness pytorch graphs repeat resume evaluate generate overflow offload profile rates topology ranks sanitizer tuning benchmark; do report "$part" all SKIPPED "no GPU"; done
  finish
fi

# ---- Correctness, as far as speed needs it ----

while [ ! -f runs/looked ] && [ "$(left)" -gt 60 ]; do sleep 0.5; done
if [ -s runs/torch ]; then report machine pytorch ok "$(cat runs/torch)"; else report machine pytorch SKIPPED "no PyTorch that sees a GPU"; fi
for job in float32 bf16; do run_stage "curve $job" curve "$job"; done
run_stage sanitizer sanitize memcheck bf16
run_stage resume resume
run_stage overflow overflow
run_stage "bits float32" bits float32
run_stage "bits steady" steady
wait_for_builder
write_report

# ---- What else there is to be correct, one part after the other, for as long as $1 is true ----

left_over="evaluate generate curve:fp16 curve:tf32 offload profile rates curve:states8 curve:adalomo curve:grouped curve:recompute curve:experts curve:experts16 curve:images curve:images16 topology ranks"
for job in tf32 states8 adalomo grouped recompute experts; do left_over="$left_over bits:$job"; done
left_over="$left_over racecheck:bf16 memcheck:float32 synccheck:bf16 racecheck:float32 racecheck:experts16 memcheck:experts16 "
continue_checks() {
  for part in $left_over; do
    "$1" || return 0
    left_over=${left_over#* }
    case $part in
    *check:*) run_stage "$part" sanitize "${part%:*}" "${part#*:}" ;;
    *:*) run_stage "$part" "${part%:*}" "${part#*:}" ;;
    *) run_stage "$part" "$part" ;;
    esac
  done
}
while_compiling() { [ -f runs/compiling ] && [ "$(left)" -gt $((limit / 2)) ]; }
to_the_end() { true; }
continue_checks while_compiling

# ---- Speed: nothing else runs ----

end_compiling
sleep 1
run_stage "matmul rate" matmul_rate
run_stage "benchmark 124m" largest 124m
run_stage "benchmark 124m" autotuned 124m
run_stage "benchmark 124m" smallest 124m
run_stage tuning tuning
run_stage "benchmark 350m" largest 350m
run_stage "benchmark 350m" smallest 350m
run_stage "benchmark 350m" autotuned 350m
continue_checks to_the_end
run_stage "benchmark no-graphs" without_graphs
finish
