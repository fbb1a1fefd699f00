#!/bin/sh
# All tests: installs what is missing, builds, makes the Python environment of the oracles, runs every group.
#
# usage: sh tests/run.sh [--fast] [GROUP or GROUP/NAME]...
#   --fast  the C programs and the short scripts alone, on what is built (`ninja test`)
#
# What is a test: in each folder tests/GROUP the programs test_NAME (from test_NAME.c), the scripts test_NAME.sh and
# the Python files test_NAME.py; tests/README.md has the rules. Prints a line a test and closes with
# "N passed, N failed, N skipped"; the exit status is 1 when any failed.
set -eu
cd "$(dirname "$0")/.."
fast=
if [ "${1:-}" = --fast ]; then fast=yes && shift; fi
wanted=$*
logs=build/tests/logs
passed=0 failed=0 skipped=0

if [ -z "$fast" ]; then
  sh tools/install-deps.sh --test
  mkdir -p build
  # A stage that does not compile fails here, and what does compile is tested all the same.
  ninja -k 0 all build/test-programs >build/ninja.log 2>&1 || {
    grep -v '^\[' build/ninja.log || true
    echo "FAIL  build"
    failed=1
  }
  PYTHON=$(sh tests/environment.sh)
  export PYTHON
fi
mkdir -p "$logs"
export LC_ALL=C
export CMOCKA_MESSAGE_OUTPUT=TAP
# What tests draw at random is the same in each run of a commit, and another on another day.
SEED=${SEED:-$(git log -1 --format=%cd --date=format:%Y%m%d 2>/dev/null || echo 1)}
export SEED
# Threads that wait by sleeping: a test must not starve because the machine has other work.
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}

# Whether the test GROUP/NAME was asked for.
asked() {
  [ -n "$wanted" ] || return 0
  for pattern in $wanted; do
    case $1 in "$pattern" | "$pattern"/*) return 0 ;; esac
  done
  return 1
}

now() { date +%s%N; }

# run GROUP/NAME COMMAND...: runs one test file and counts what it says; a file that says nothing in TAP's form is
# one test.
run() {
  name=$1
  shift
  asked "$name" || return 0
  log=$logs/$(echo "$name" | tr / -).log
  start=$(now)
  status=0
  timeout 900 "$@" >"$log" 2>&1 </dev/null || status=$?
  time=$(awk "BEGIN { printf \"%.2f\", ($(now) - $start) / 1e9 }")
  good=$(grep -c '^ok .*' "$log" || true)
  skips=$(grep -c '^ok .*# SKIP' "$log" || true)
  bad=$(grep -c '^not ok ' "$log" || true)
  good=$((good - skips))
  if [ $((good + bad + skips)) = 0 ]; then read_unittest; fi
  count
  report
}

# The counts of Python's unittest: "Ran 12 tests in 0.1s", "FAILED (failures=1, errors=2, skipped=3)".
read_unittest() {
  ran=$(sed -n 's/^Ran \([0-9]*\) tests* in .*/\1/p' "$log" | tail -1)
  [ -n "$ran" ] || return 0
  for word in failures errors skipped; do
    n=$(sed -n "s/^\(OK\|FAILED\) (.*$word=\([0-9]*\).*/\2/p" "$log" | tail -1)
    if [ "$word" = skipped ]; then skips=${n:-0}; else bad=$((bad + ${n:-0})); fi
  done
  good=$((ran - bad - skips))
}

# Adds one file's results: good, bad and skips as it printed them, and what its exit status says beside that.
count() {
  if [ "$status" = 77 ]; then
    skips=$((skips + 1))
  elif [ "$status" != 0 ] && [ "$bad" = 0 ]; then
    bad=1
  elif [ "$status" = 0 ] && [ $((good + bad + skips)) = 0 ]; then
    good=1
  fi
  passed=$((passed + good)) failed=$((failed + bad)) skipped=$((skipped + skips))
}

report() {
  word=ok
  if [ "$status" = 77 ]; then word=skip; fi
  if [ "$bad" != 0 ]; then word=FAIL; fi
  printf '%-5s %-44s %4d tests %8s s\n' "$word" "$name" $((good + bad + skips)) "$time"
  if [ "$status" = 77 ]; then tail -1 "$log" | sed 's/^/        /'; fi
  grep '^ok .*# SKIP' "$log" | sed 's/^/        /' || true
  if [ "$bad" != 0 ]; then
    if [ "$status" = 124 ]; then echo "        stopped after 900 s"; fi
    grep -v '^ok ' "$log" | tail -40 | sed 's/^/        /'
  fi
}

for program in build/tests/*/test_*; do
  case $program in *.*) continue ;; esac
  [ -x "$program" ] || continue
  group=$(basename "$(dirname "$program")")
  run "$group/$(basename "$program")" "$program"
done

for file in tests/*/test_*.sh tests/*/test_*.py tests/*/*/test_*.py; do
  [ -f "$file" ] || continue
  name=${file#tests/}
  case $file in
  *.sh) if [ -z "$fast" ] || grep -q '^# fast' "$file"; then run "${name%.sh}" sh "$file"; fi ;;
  *.py) if [ -z "$fast" ]; then run "${name%.py}" "$PYTHON" "$file"; fi ;;
  esac
done

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
