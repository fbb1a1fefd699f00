#!/bin/sh
# All that is to be seen of CUDA programs on a machine with a GPU, in one call of less than ten minutes, with nvcc and a C
# compiler; no network, MPI, clang, ninja. What a machine lacks (PyTorch, compute-sanitizer, the GPU) is said and left out.
#
# usage: sh run.sh [FOLDER]    a folder that tests/gpu/pack.sh has written (default: the script's own, else build/gpu)
#   report.json and report.txt are written there; status 1 when something is wrong
#   LIMIT    seconds for all of it, 570
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
failed=0
: >report.lines
: >report.txt
export OMP_WAIT_POLICY=passive

# ---- The report ----

# One result: a line for people, an object for programs.
tell() { # PART NAME RESULT DETAIL
  printf '%-12s %-34s %-8s %s\n' "$1" "$2" "$3" "$4" | tee -a report.txt
  # shellcheck disable=SC1003 # a quote and a backslash
  printf '{"part": "%s", "name": "%s", "result": "%s", "detail": "%s"}\n' "$1" "$2" "$3" "$(echo "$4" | tr '"\\' '__' | tr -d '\n')" >>report.lines
  if [ "$3" = FAILED ]; then failed=1; fi
}
left() { echo $((limit - $(date +%s) + began)); }
# Whether there are $1 seconds for the part $2, case $3.
there_is_time() {
  if [ "$(left)" -ge "$1" ]; then return 0; fi
  tell "$2" "$3" SKIPPED "no time is left"
  return 1
}
finish() {
  printf '{"seconds": %s, "results": [\n%s\n]}\n' "$(($(date +%s) - began))" "$(sed '$!s/$/,/' report.lines)" >report.json
  rm -f report.lines
  echo "$(grep -c ' ok ' report.txt || true) ok, $(grep -c ' FAILED ' report.txt || true) failed, $(grep -c ' SKIPPED ' report.txt || true) left out; $folder/report.json"
  exit "$failed"
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

# ---- Building, four programs at a time ----

cat >build-one.sh <<'SCRIPT'
began=$(date +%s) && JOBS=4 sh "bundles/$1/build.sh" "$PWD/bundles/$1/trainer" >"bundles/$1.log" 2>&1 && echo $(($(date +%s) - began)) >"bundles/$1.built"
SCRIPT
rm -f bundles/*.built
ls jobs | sed -n 's/\.yaml$//p' | xargs -P 4 -I '{}' sh build-one.sh '{}' || true
for job in $(ls jobs | sed -n 's/\.yaml$//p'); do
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
  timeout "$(left)" "bundles/$job/trainer" --data "$folder/train.bin" --project-dir "$run" "$@" >"$run.log" 2>&1
}
same() { cmp -s "runs/$1/model.safetensors" "runs/$2/model.safetensors"; }
verdict() { # PART NAME DETAIL: by the status of the command before
  if [ "$?" = 0 ]; then tell "$1" "$2" ok "$3"; else tell "$1" "$2" FAILED "$3"; fi
}

if [ -z "$gpu" ]; then
  for job in $(ls jobs | sed -n 's/\.yaml$//p'); do
    [ -f "bundles/$job.built" ] || continue
    status=0
    train "$job" "$job" --steps 1 || status=$?
    if [ "$status" = 1 ] && grep -q '^rank 0: error: no ' "runs/$job.log"; then
      tell start "$job" ok "$(head -1 "runs/$job.log")"
    else
      tell start "$job" FAILED "status $status: $(head -1 "runs/$job.log")"
    fi
  done
  for part in correctness graphs repeat resume sanitizer benchmark; do tell "$part" all SKIPPED "no GPU"; done
  finish
fi

# ---- Correctness: losses beside the processor's; bits beside other ways to run the same ----

# The largest difference of a run's losses from the reference's, over the reference's size.
difference() {
  awk 'function loss(line) { sub(/.*"loss": */, "", line); return line + 0 }
       function step(line) { sub(/.*"step": */, "", line); return line + 0 }
       FNR == NR { if (/"loss"/) wanted[step($0)] = loss($0); next }
       /"loss"/ && step($0) in wanted { d = loss($0) - wanted[step($0)]; if (d < 0) d = -d; d /= wanted[step($0)]; if (d > most) most = d; n++ }
       END { if (n == 0) print "none"; else printf "%.2e", most }' "references/$1/metrics.jsonl" "runs/$1/metrics.jsonl"
}
for job in float32 tf32 bf16 fp16 grouped image; do
  [ -f "bundles/$job.built" ] || continue
  there_is_time 30 correctness "$job" || continue
  # Rounding grows along a run: the bounds are over 200 steps, those of 16 bits by what float64 says of such sums.
  case $job in float32 | grouped | image) most=2e-3 ;; *) most=3e-2 ;; esac
  if ! train "$job" "$job"; then
    tell correctness "$job" FAILED "$(grep -m1 error "runs/$job.log" || tail -1 "runs/$job.log")"
    continue
  fi
  got=$(difference "$job")
  awk -v got="$got" -v most="$most" 'BEGIN { exit !(got != "none" && got + 0 <= most + 0) }' && true
  verdict correctness "$job" "losses of 200 steps within $got of the processor's (at most $most)"
  if there_is_time 30 graphs "$job"; then
    ACCEL_GRAPHS=no train "$job" "$job-no-graphs" && same "$job" "$job-no-graphs" && true
    verdict graphs "$job" "the weights with and without graphs, bit by bit"
  fi
  if there_is_time 30 repeat "$job"; then
    train "$job" "$job-again" && same "$job" "$job-again" && true
    verdict repeat "$job" "the weights of two runs, bit by bit"
  fi
done
if [ -f bundles/float32.built ] && there_is_time 30 resume float32; then
  mkdir -p runs/float32-cut
  bundles/float32/trainer --data "$folder/train.bin" --project-dir runs/float32-cut >runs/float32-cut.log 2>&1 &
  cut=$!
  sleep 1
  kill -TERM "$cut" 2>/dev/null || true
  wait "$cut" || true
  if [ -d runs/float32-cut/checkpoints ]; then
    timeout "$(left)" bundles/float32/trainer --data "$folder/train.bin" --project-dir runs/float32-cut --resume auto >runs/float32-cut.log 2>&1 && same float32 float32-cut && true
    verdict resume float32 "the weights of a run that was stopped and went on, bit by bit"
  else
    tell resume float32 SKIPPED "the run was over before it was stopped"
  fi
fi

# ---- Sanitizers ----

sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null || true)
for tool in memcheck racecheck; do
  if [ -z "$sanitizer" ]; then
    tell sanitizer "$tool" SKIPPED "no compute-sanitizer"
  elif there_is_time 60 sanitizer "$tool"; then
    rm -rf runs/sanitizer && mkdir -p runs/sanitizer
    ACCEL_GRAPHS=no timeout 120 "$sanitizer" --tool "$tool" --error-exitcode 3 bundles/float32/trainer --data "$folder/train.bin" \
      --project-dir runs/sanitizer --steps 2 >runs/sanitizer.log 2>&1 && true
    verdict sanitizer "$tool" "two steps of float32: $(grep 'ERROR SUMMARY\|RACECHECK SUMMARY' runs/sanitizer.log | tail -1)"
  fi
done

# ---- Benchmark ----

figures() { # metrics.jsonl: the middle of tokens/s without the first lines, seconds to the first step
  awk '/"tokens_per_s"/ { line = $0; sub(/.*"tokens_per_s": */, "", line); if (NR > 2) rate[n++] = line + 0 }
       /"start_to_first_step_s"/ { line = $0; sub(/.*"start_to_first_step_s": */, "", line); first = line + 0 }
       END { for (i = 0; i < n; i++) for (j = i + 1; j < n; j++) if (rate[j] < rate[i]) { t = rate[i]; rate[i] = rate[j]; rate[j] = t }
             printf "%.0f tokens/s, first step after %.2f s", rate[int(n / 2)], first }' "$1"
}
for job in gpt2-124m-b32 gpt2-124m-b16 gpt2-124m-b4 gpt2-350m-b16 gpt2-350m-b4; do
  [ -f "bundles/$job.built" ] || continue
  there_is_time 40 benchmark "$job" || continue
  if train "$job" "$job"; then
    tell benchmark "$job" ok "$(figures "runs/$job/metrics.jsonl"); arena $(sed -n 's/.*plan \([0-9.]* [MG]iB\).*/\1/p' "runs/$job.log" | head -1)"
  else
    tell benchmark "$job" FAILED "$(grep -m1 error "runs/$job.log" || tail -1 "runs/$job.log")"
  fi
  size=$(echo "$job" | cut -d- -f2) batch=${job##*-b}
  for mode in default max-autotune; do
    if [ -z "$torch" ]; then
      tell benchmark "pytorch-$size-b$batch-$mode" SKIPPED "no PyTorch"
    elif there_is_time 60 benchmark "pytorch-$size-b$batch-$mode"; then
      if text=$(timeout "$(left)" "$python" peer.py "$size" "$batch" "$mode" 2>runs/peer.log); then
        tell benchmark "pytorch-$size-b$batch-$mode" ok "$text"
      else
        tell benchmark "pytorch-$size-b$batch-$mode" SKIPPED "$(tail -1 runs/peer.log)"
      fi
    fi
  done
done
if [ -n "$torch" ] && there_is_time 20 benchmark product-8192; then
  tell benchmark product-8192 ok "$("$python" peer.py product 2>/dev/null || echo failed)"
fi
tell benchmark llm.c SKIPPED "its source is not given"
finish
