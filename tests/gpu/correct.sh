# shellcheck shell=sh disable=SC2154 # what run.sh and its other parts set
# What run.sh looks at before speed: losses against the processor's and PyTorch's, bits against other ways to run the same,
# sanitizers. Sourced by it.

# A trainer in a run of its own, which is where it writes.
train() { # JOB RUN FLAG...
  job=$1 run=runs/$2
  shift 2
  rm -rf "$run"
  mkdir -p "$run"
  status=0 data=$folder/train.bin
  case $job in images*) data=$folder/images.csv ;; esac
  limited "${CAP:-60}" "bundles/$job/trainer" --data "$data" --project-dir "$run" "$@" >"$run.log" 2>&1 || status=$?
  case $status in 124 | 137) echo "error: it did not end in time" >>"$run.log" ;; esac
  return "$status"
}
complaint() { grep -m1 error "$1" 2>/dev/null || tail -1 "$1" 2>/dev/null || echo "it said nothing"; }
same() { cmp -s "runs/$1/model.safetensors" "runs/$2/model.safetensors"; }
# Whether the part $1 of one job with that name can be done.
is_ready() {
  [ -f "bundles/$1.built" ] && there_is_time 30 "$1" "$1"
}

# ---- Losses ----

# The largest difference of the losses of run $1 from those in the file $2, over the latter's size, and of how many steps.
difference() {
  awk 'function loss(line) { sub(/.*"loss": */, "", line); return line + 0 }
       function step(line) { sub(/.*"step": */, "", line); return line + 0 }
       FNR == NR { if (/"loss"/) wanted[step($0)] = loss($0); next }
       /"loss"/ && step($0) in wanted { d = loss($0) - wanted[step($0)]; if (d < 0) d = -d; d /= wanted[step($0)]; if (d > most) most = d; n++ }
       END { if (n == 0) print "none 0"; else printf "%.2e %d", most, n }' "$2" "runs/$1/metrics.jsonl"
}
# As the results of difference, $1 and $2, are reported: the part, the name, the result, the limit, and what it is compared with.
compared() { # PART NAME "DIFFERENCE STEPS" MOST WHAT
  good=0
  awk -v got="${3% *}" -v most="$4" 'BEGIN { exit !(got != "none" && got + 0 <= most + 0) }' || good=1
  verdict "$1" "$2" "losses of ${3#* } steps within ${3% *} of $5 (at most $4)"
}
# Rounding grows along a run: the bounds are over 200 steps, those of 16 bits by what float64 says of such sums.
bound_of() { case $1 in float32 | grouped | recompute | images | adalomo) echo 2e-3 ;; *) echo 3e-2 ;; esac; }
curve() { # JOB
  job=$1
  if [ ! -f "bundles/$job.built" ]; then return 0; fi
  there_is_time 30 correctness "$job" || return 0
  most=$(bound_of "$job")
  if ! train "$job" "$job"; then
    report correctness "$job" FAILED "$(complaint "runs/$job.log")"
    return 0
  fi
  compared correctness "$job" "$(difference "$job" "references/$job/metrics.jsonl")" "$most" "the processor's"
  case $job in grouped | recompute | experts | experts16 | images | images16 | states8 | adalomo) return 0 ;; esac
  if [ ! -s runs/torch ] || [ ! -f batches.bin ]; then
    report pytorch "$job" SKIPPED "no PyTorch, or no samples for it"
  elif there_is_time 45 pytorch "$job"; then
    if limited 90 "$python" peer.py curve "$job" >"runs/$job-torch.jsonl" 2>runs/peer.log; then
      compared pytorch "$job" "$(difference "$job" "runs/$job-torch.jsonl")" "$most" "PyTorch's on this GPU"
    else
      report pytorch "$job" SKIPPED "$(tail -1 runs/peer.log)"
    fi
  fi
}

# ---- Bits ----

# JOB: weights with and without graphs, and of two runs.
bits() {
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
# In 16 bits the queries' gradient is added up in parts by whoever comes first, unless the job is deterministic.
steady() {
  is_ready steady || return 0
  if train steady steady; then
    bits steady
  else
    report repeat steady FAILED "$(complaint runs/steady.log)"
  fi
}
resume() {
  is_ready resume || return 0
  if train resume resume && cp runs/resume/model.safetensors runs/resume.whole &&
    limited "${CAP:-60}" bundles/resume/trainer --data "$folder/train.bin" --project-dir runs/resume \
      --resume runs/resume/checkpoints/checkpoint_1 >runs/resume-on.log 2>&1; then
    cmp -s runs/resume.whole runs/resume/model.safetensors && good=0 || good=1
    verdict resume resume "the weights of a run that went on from step 100, bit by bit"
  else
    report resume resume FAILED "$(complaint runs/resume.log); $(tail -1 runs/resume-on.log 2>/dev/null || true)"
  fi
}
# Each step that was skipped has halved the scale; none was lost, and the losses are numbers.
overflow() {
  is_ready overflow || return 0
  if train overflow overflow; then
    awk '/"skipped"/ { line = $0; sub(/.*"skipped": */, "", line); skipped = line + 0 }
         /"loss_scale"/ { line = $0; sub(/.*"loss_scale": */, "", line); scale = line + 0 }
         END { wanted = 1e12 / 2 ^ skipped; d = scale / wanted - 1; printf "%d steps were skipped, the scale is %g", skipped, scale
               exit !(skipped > 5 && skipped < 40 && d < 1e-6 && d > -1e-6) }' runs/overflow/metrics.jsonl >runs/overflow.text && good=0 || good=1
    verdict overflow scaler "$(cat runs/overflow.text)"
  else
    report overflow scaler FAILED "$(complaint runs/overflow.log)"
  fi
}
offload() {
  is_ready offload || return 0
  train offload offload && same float32 offload && good=0 || good=1
  verdict offload optimizer "the weights with the optimizer's states on the host, bit by bit those of float32"
}
profile() {
  is_ready profile || return 0
  rm -rf runs/traces
  train profile profile && grep -q '^profile of 3 steps' runs/profile.log && grep -q '"cat": "kernel"' runs/traces/profile_0.json && same float32 profile && good=0 || good=1
  verdict profile cupti "$(grep -c '"cat": "kernel"' runs/traces/profile_0.json 2>/dev/null || echo no) kernels in the trace of 3 steps; $(complaint runs/profile.log)"
}
# Each kernel of a program, and of the libraries, is one of its parts.
rates() {
  is_ready rates || return 0
  train rates rates && grep -q 'GFLOP/s' runs/rates.log && same float32 rates &&
    ! sed -n '/^profile of 3 steps/,$p' runs/rates.log | grep -q 'cutlass\|xmma\|gemm' && good=0 || good=1
  verdict rates parts "$(sed -n '/^profile of 3 steps/,$p' runs/rates.log | sed -n 3p); $(complaint runs/rates.log)"
}

# ---- Programs that only run a model forward, with the weights that the processor's float32 has left ----

forward() { # PROGRAM FLAG...
  program=$1
  shift
  limited "${CAP:-60}" "bundles/$program/trainer" --weights references/float32/model.safetensors "$@" >"runs/$program.said" 2>"runs/$program.log"
}
number_of() { sed -n 's/.*"'"$1"'": *\([0-9.e+-]*\).*/\1/p' "$2"; }
evaluate() {
  is_ready evaluate || return 0
  if forward evaluate --data "$folder/train.bin" --format json; then
    good=0
    got=$(awk -v a="$(number_of loss runs/evaluate.said)" -v b="$(number_of loss references/evaluate.said)" \
      'BEGIN { d = a - b; if (d < 0) d = -d; if (b > 0) printf "%.2e", d / b; else print "none"; exit !(b > 0 && d <= 1e-4 * b) }') || good=1
    verdict evaluate loss "within $got of the processor's of the same batches (at most 1e-4); accuracy $(number_of accuracy runs/evaluate.said), there $(number_of accuracy references/evaluate.said)"
  else
    report evaluate loss FAILED "$(complaint runs/evaluate.log)"
  fi
}
# Tokens that are nearly as likely may be swapped: there the texts part.
generate() {
  is_ready generate || return 0
  if forward generate --temperature 0 --tokens 150 --prompt The; then
    same=$(cmp -l runs/generate.said references/generate.said 2>/dev/null | awk 'NR == 1 { print $1 - 1 }')
    same=${same:-$(wc -c <runs/generate.said)}
    [ "$same" -gt 40 ] && good=0 || good=1
    verdict generate text "the likeliest is the processor's for $same of $(wc -c <references/generate.said) bytes"
  else
    report generate text FAILED "$(complaint runs/generate.log)"
  fi
}

# ---- Ranks ----

# Sums of one order: four micro-batches a step of one GPU, then two of each of two.
topology() {
  is_ready topology || return 0
  if train topology topology; then
    compared topology float32 "$(difference topology references/float32/metrics.jsonl)" 2e-3 "one processor's of whole batches"
  else
    report topology float32 FAILED "$(complaint runs/topology.log)"
  fi
}
# Rank $3 of the $2 that train job $1.
train_rank() {
  log="runs/$1-$3.log"
  [ "$3" -gt 0 ] || log="runs/$1.log"
  NCCL_DEBUG=VERSION RANK=$3 WORLD_SIZE=$2 limited "${CAP:-60}" "bundles/$1/trainer" --data "$folder/train.bin" --project-dir "runs/$1" >"$log" 2>&1
}
# Trains job $1 on $2 GPUs.
train_ranks() {
  rm -rf "runs/$1"
  mkdir -p "runs/$1"
  others=
  for rank in $(seq $(($2 - 1))); do
    train_rank "$1" "$2" "$rank" &
    others="$others $!"
  done
  train_rank "$1" "$2" 0 && for other in $others; do wait "$other" || return 1; done
}
# Ranks that divide a model. NCCL takes no two ranks on one GPU: there, the kernels of `tensors` are compiled for it, and no more.
axes() {
  for job in tensors residual plan heads keys ring stages shards stage-shards; do
    is_ready "$job" || continue
    case $job in *shards) count=4 ;; *) count=2 ;; esac
    if [ "$gpus" -lt "$count" ]; then
      report ranks "$job" SKIPPED "$gpus GPUs, of $count"
    elif train_ranks "$job" "$count"; then
      compared ranks "$job" "$(difference "$job" references/float32/metrics.jsonl)" 2e-3 "one processor's"
    else
      report ranks "$job" FAILED "$(complaint "runs/$job.log")"
    fi
  done
}
ranks() {
  if [ "$gpus" -lt 2 ]; then
    for name in zero3 topology tensors residual plan heads keys ring stages shards stage-shards; do report ranks "$name" SKIPPED "one GPU, on which NCCL takes no two ranks"; done
    return 0
  fi
  if is_ready ranks; then
    if train_ranks ranks 2; then
      compared ranks zero3 "$(difference ranks references/float32/metrics.jsonl)" 2e-3 "one processor's; $(grep -om1 'NCCL version [^ ]*' runs/ranks.log || echo 'NCCL named no version')"
    else
      report ranks zero3 FAILED "$(complaint runs/ranks.log)"
    fi
  fi
  if is_ready topology-ranks; then
    train_ranks topology-ranks 2 && same topology topology-ranks && good=0 || good=1
    verdict ranks topology "the weights of two GPUs, bit by bit those of one that has all micro-batches; $(complaint runs/topology-ranks.log)"
  fi
  axes
}

# ---- Sanitizers ----

sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null || true)
sanitize() { # TOOL JOB
  if [ -z "$sanitizer" ]; then
    report sanitizer "$1-$2" SKIPPED "no compute-sanitizer"
  elif [ -f "bundles/$2.built" ] && there_is_time 60 sanitizer "$1-$2"; then
    rm -rf runs/sanitizer && mkdir -p runs/sanitizer
    status=0
    ACCEL_GRAPHS=no limited 50 "$sanitizer" --tool "$1" --error-exitcode 3 "bundles/$2/trainer" --data "$folder/train.bin" \
      --project-dir runs/sanitizer --steps 2 >runs/sanitizer.log 2>&1 || status=$?
    said=$(grep 'ERROR SUMMARY\|RACECHECK SUMMARY' runs/sanitizer.log | tail -1 || true)
    case $status in
    0) report sanitizer "$1-$2" ok "two steps: $said" ;;
    124 | 137) report sanitizer "$1-$2" SKIPPED "two steps were not over after 50 s" ;;
    *)
      # A machine whose driver lets no tool at the device says so before the program has run.
      if grep -q 'not supported\|Unable to\|Failed to initialize' runs/sanitizer.log && [ ! -f runs/sanitizer/metrics.jsonl ]; then
        report sanitizer "$1-$2" SKIPPED "$(grep -m1 'not supported\|Unable to\|Failed to initialize' runs/sanitizer.log)"
      else
        report sanitizer "$1-$2" FAILED "$(grep -m1 '========= [^C]' runs/sanitizer.log || complaint runs/sanitizer.log); $said"
      fi
      ;;
    esac
  fi
}
