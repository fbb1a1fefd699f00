#!/bin/sh
# Runs one test file and counts what it says; a file that says nothing in TAP's form or unittest's is one test.
#
# usage: run_one.sh GROUP/NAME COMMAND...
#        run_one.sh together COMMAND...   files that report themselves (together.py), by the next line
#        run_one.sh --report GROUP/NAME STATUS SECONDS SECONDS_OF_PROCESSORS   counts what is in its log
#   build/tests/logs/GROUP-NAME.log     what it printed
#   build/tests/logs/GROUP-NAME.counts  "passed failed skipped", for the sum
set -eu
case $1 in
together) shift && exec "$@" ;;
--report) name=$2 ;;
*) name=$1 && shift ;;
esac
log=build/tests/logs/$(echo "$name" | tr / -)
good=0 bad=0 skips=0 status=0

now() { date +%s%N; }

read_tap() {
  skips=$(grep -c '^ok .*# SKIP' "$log.log" || true)
  good=$(($(grep -c '^ok .*' "$log.log" || true) - skips))
  bad=$(grep -c '^not ok ' "$log.log" || true)
}

# The counts of Python's unittest: "Ran 12 tests in 0.1s", "FAILED (failures=1, errors=2, skipped=3)".
read_unittest() {
  ran=$(sed -n 's/^Ran \([0-9]*\) tests* in .*/\1/p' "$log.log" | tail -1)
  [ -n "$ran" ] || return 0
  for word in failures errors skipped; do
    n=$(sed -n "s/^\(OK\|FAILED\) (.*$word=\([0-9]*\).*/\2/p" "$log.log" | tail -1)
    if [ "$word" = skipped ]; then skips=${n:-0}; else bad=$((bad + ${n:-0})); fi
  done
  good=$((ran > bad + skips ? ran - bad - skips : 0)) # a class that fails to set up has an error, and no test that ran
}

# What the exit status says in addition to the file's own counts.
read_status() {
  if [ "$status" = 77 ]; then
    skips=$((skips + 1))
  elif [ "$status" != 0 ] && [ "$bad" = 0 ]; then
    bad=1
  elif [ "$status" = 0 ] && [ $((good + bad + skips)) = 0 ]; then
    good=1
  fi
}

report() {
  word=ok
  if [ "$status" = 77 ]; then word=skip; fi
  if [ "$bad" != 0 ]; then word=FAIL; fi
  printf '%-5s %-44s %4d tests %8s s, %7s s of processors\n' "$word" "$name" $((good + bad + skips)) "$time" "$work"
  if [ "$status" = 77 ]; then tail -1 "$log.log" | sed 's/^/        /'; fi
  grep '^ok .*# SKIP' "$log.log" | sed 's/^/        /' || true
  if [ "$bad" != 0 ]; then
    grep -v '^ok ' "$log.log" | tail -40 | sed 's/^/        /'
  fi
}

# Of the file's log, its exit status and how long it took.
close() {
  status=$1 time=$2 work=$3
  read_tap
  if [ $((good + bad + skips)) = 0 ]; then read_unittest; fi
  read_status
  echo "$good $bad $skips" >"$log.counts"
  # One write, as other files report at the same time.
  text=$(report)
  printf '%s\n' "$text"
}

if [ "$1" = --report ]; then
  close "$3" "$4" "$5"
  exit
fi

# A process that a test left may still write there for a moment; what cannot be removed then says so and fails nothing.
clear_folder() {
  rm -rf "$TMPDIR" 2>/dev/null || { sleep 2 && rm -rf "$TMPDIR"; } || true
}

# What a file leaves in its folder for temporary files goes when it ends; others than its user may look for theirs there.
TMPDIR=$(mktemp -d)
export TMPDIR
chmod 755 "$TMPDIR"
trap 'clear_folder' EXIT
trap 'exit 143' TERM INT

start=$(now)
sh tests/limited.sh 600 3600 "$@" >"$log.log" 2>&1 </dev/null || status=$?
time=$(awk "BEGIN { printf \"%.2f\", ($(now) - $start) / 1e9 }")
# Of all processes below this one; the second line: "1m2.50s 0m3.00s", of the user and of the system.
times >"$log.times"
work=$(awk -F '[ms ]+' 'NR == 2 { printf "%.2f", 60 * $1 + $2 + 60 * $3 + $4 }' "$log.times")
rm "$log.times"
close "$status" "$time" "$work"
