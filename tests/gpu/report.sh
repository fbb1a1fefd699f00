# shellcheck shell=sh disable=SC2154 # what run.sh and its other parts set
# What run.sh reports, and its time: sourced by it. report.txt is for people: what was looked at, what came of it, and a
# line a result; report.json has the results for programs. Both are there after each stage, whatever ends the script, and at
# the end they are packed into report.tar.gz with the logs.

began=$(date +%s)
limit=${LIMIT:-570}
stage=
: >report.lines
: >report.results
rm -f report.tar.gz

# One result.
report() { # PART NAME RESULT DETAIL
  printf '%-12s %-34s %-8s %s\n' "$1" "$2" "$3" "$4" | tee -a report.results
  # shellcheck disable=SC1003 # a quote and a backslash
  printf '{"part": "%s", "name": "%s", "result": "%s", "detail": "%s"}\n' "$1" "$2" "$3" "$(echo "$4" | tr '"\\' '__' | tr -d '\000-\037\177')" >>report.lines
}
verdict() { # PART NAME DETAIL: by $good, 0 where it went well
  if [ "$good" = 0 ]; then report "$1" "$2" ok "$3"; else report "$1" "$2" FAILED "$3"; fi
}
explain() {
  cat <<TEXT
accel-gen writes training programs, in C and CUDA, from the description of a job. This is what its programs for NVIDIA's
GPUs did on one machine: whether they compute the right thing, and how fast they are next to PyTorch. Before, their kernels
were executed by an interpreter of NVIDIA's virtual instruction set; not on hardware.

$(date -u '+%Y-%m-%d %H:%M UTC'), after $(($(date +%s) - began)) s
GPU: ${gpu:-none}

TEXT
}
# Of each question how many results there are, by their parts.
summarize() {
  awk 'BEGIN {
         split("correctness pytorch evaluate generate overflow offload topology|graphs repeat resume|sanitizer|ranks|benchmark tuning profile rates|machine build start", parts, "|")
         split("is it correct?|are runs the same, bit by bit?|do the sanitizers find errors?|does it run on several GPUs, over NCCL?|how fast is it?|was it built and started?", questions, "|")
         for (q = 1; q in parts; q++) { n = split(parts[q], names, " "); for (i = 1; i <= n; i++) of[names[i]] = q } }
       { q = of[$1]; r = substr($0, 49, 8); sub(/ +$/, "", r); count[q, r]++ }
       END { for (q = 1; q in questions; q++)
               printf "%-42s %3d ok, %3d FAILED, %3d SKIPPED\n", questions[q], count[q, "ok"], count[q, "FAILED"], count[q, "SKIPPED"] }' report.results
  cat <<'TEXT'

ok: it is as it should be. FAILED: it is not, or it ended with an error. SKIPPED: it was not tried, for the reason given.
What programs said is in runs/NAME.log, and what compilers said in bundles/NAME.log; both are in report.tar.gz.

machine      the GPU with its compute capability, memory and driver; the toolkit; PyTorch
build        seconds to compile a program
correctness  losses of 200 steps, next to those of the same job's program for the processor
pytorch      the same, next to PyTorch's on this GPU, from the same weights and batches
graphs       weights after a run with CUDA graphs and one without; repeat: of two runs; resume: of one that was resumed
overflow     a loss scale that begins too large, and comes down
evaluate     a program that evaluates; generate: one that writes text; next to those for the processor
offload      states of the optimizer on the host; topology: sums in one order
profile      kernels as CUPTI sees them; rates: their GFLOP/s and GB/s
ranks        programs for two and four GPUs, next to one processor's losses
sanitizer    two steps under NVIDIA's compute-sanitizer
benchmark    training of GPT-2 (124m or 350m weights) in bf16, bN: N sequences of 1024 tokens a step. Tokens a second are the
             median of steps. The first step counts from the program's start. "in use" is the most that nvidia-smi saw, "arena"
             what the program had planned. MFU is 6 N + 12 L T C operations a token (N weights, L layers, T tokens a sequence,
             C columns), over the rate of a large matmul in PyTorch here, and over the rate in NVIDIA's documents.
             pytorch-...: nanoGPT's model under Accelerate with torch.compile
tuning       matmuls by the algorithm that cuBLASLt names first, and by the fastest

TEXT
}
write_report() {
  printf '{"seconds": %s, "results": [\n%s\n]}\n' "$(($(date +%s) - began))" "$(sed '$!s/$/,/' report.lines)" >report.json.new
  mv report.json.new report.json
  { explain && summarize && cat report.results; } >report.txt.new
  mv report.txt.new report.txt
}

left() { echo $((limit - $(date +%s) + began)); }
# What is left, at most $1 seconds.
within_cap() {
  now=$(left)
  if [ "$now" -gt "$1" ]; then now=$1; fi
  if [ "$now" -lt 1 ]; then now=1; fi
  echo "$now"
}
# A command that ends after $1 seconds, or what is left of them, with 124 or 137.
limited() {
  within=$(within_cap "$1")
  shift
  timeout -k 5 "$within" "$@"
}
# Whether there are $1 seconds for the part $2, case $3.
there_is_time() {
  if [ "$(left)" -ge "$1" ]; then return 0; fi
  report "$2" "$3" SKIPPED "no time is left"
  return 1
}

# Ends what may still run: $stage, what $background names, and PyTorch's compiling.
end_others() {
  end_compiling
  for process in $stage ${background:-}; do kill "$process" 2>/dev/null || true; done
}
# Everything that is to be sent back, as one file: the reports, and what programs and compilers said, but no weights.
pack_report() {
  sent=report.tar.gz
  { ls report.txt report.json measured-*.json && find runs bundles -maxdepth 2 \( -name '*.log' -o -name '*.jsonl' -o -name '*.said' -o -name topology.txt \) -size -1024k; } >report.files 2>/dev/null || true
  tar -czf report.tar.gz -T report.files 2>/dev/null || sent=report.txt
  rm -f report.files
}
finish() {
  trap - EXIT
  end_others
  write_report
  pack_report
  failed=$(grep -c '"result": "FAILED"' report.lines || true)
  echo "$(grep -c '"result": "ok"' report.lines || true) ok, $failed failed, $(grep -c '"result": "SKIPPED"' report.lines || true) left out; send back $folder/$sent"
  rm -f report.lines report.results
  [ "$failed" = 0 ] || exit 1
  exit 0
}
# Something that no part has foreseen: the report says so.
broken() {
  status=$?
  report machine script FAILED "ended early with status $status"
  finish
}
trap broken EXIT
trap 'exit 143' TERM INT

# A function of what follows, on its own: what it does not foresee ends it alone.
run_stage() { # NAME FUNCTION ARGUMENT...
  name=$1
  shift
  "$@" &
  stage=$!
  wait "$stage" || report machine "$name" FAILED "the stage ended early"
  stage=
  write_report
}
