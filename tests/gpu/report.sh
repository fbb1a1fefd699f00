# shellcheck shell=sh disable=SC2154 # what run.sh and its other parts set
# What run.sh reports, and its time: sourced by it. report.txt has a line for people a result, report.json the same for
# programs; both are there after each stage, whatever ends the script.

began=$(date +%s)
limit=${LIMIT:-570}
stage=
: >report.lines
: >report.txt

# One result.
report() { # PART NAME RESULT DETAIL
  printf '%-12s %-34s %-8s %s\n' "$1" "$2" "$3" "$4" | tee -a report.txt
  # shellcheck disable=SC1003 # a quote and a backslash
  printf '{"part": "%s", "name": "%s", "result": "%s", "detail": "%s"}\n' "$1" "$2" "$3" "$(echo "$4" | tr '"\\' '__' | tr -d '\000-\037\177')" >>report.lines
}
verdict() { # PART NAME DETAIL: by $good, 0 where it went well
  if [ "$good" = 0 ]; then report "$1" "$2" ok "$3"; else report "$1" "$2" FAILED "$3"; fi
}
write_report() {
  printf '{"seconds": %s, "results": [\n%s\n]}\n' "$(($(date +%s) - began))" "$(sed '$!s/$/,/' report.lines)" >report.json.new
  mv report.json.new report.json
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
finish() {
  trap - EXIT
  end_others
  write_report
  failed=$(grep -c '"result": "FAILED"' report.lines || true)
  rm -f report.lines
  echo "$(grep -c ' ok ' report.txt || true) ok, $failed failed, $(grep -c ' SKIPPED ' report.txt || true) left out; $folder/report.json"
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
