#!/bin/sh
# All tests: installs what is missing, builds, makes the Python environment of the oracles, runs every group.
#
# usage: sh tests/run.sh [--fast] [GROUP or GROUP/NAME]...
#   --fast  the C programs and the short scripts alone, on what is built (`ninja test`)
#   TEST_JOBS=N runs N files at a time, else one more than there are processors, as some wait most of their time
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
failed=0

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
rm -f "$logs"/*.counts
export LC_ALL=C
export CMOCKA_MESSAGE_OUTPUT=TAP
# What tests draw at random is the same in each run until tests/seed changes, so that a failure comes of the change.
SEED=${SEED:-$(cat tests/seed)}
export SEED
# Threads that wait by sleeping: a test must not starve because the machine has other work.
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}

# Whether the test GROUP/NAME was requested.
is_wanted() {
  [ -n "$wanted" ] || return 0
  for pattern in $wanted; do
    case $1 in "$pattern" | "$pattern"/*) return 0 ;; esac
  done
  return 1
}

# Every test file that was requested, a line each: GROUP/NAME COMMAND...
list() {
  for program in build/tests/*/test_*; do
    case $program in *.*) continue ;; esac
    [ -x "$program" ] || continue
    name=$(basename "$(dirname "$program")")/$(basename "$program")
    if is_wanted "$name"; then echo "$name $program"; fi
  done
  for file in tests/*/test_*.sh tests/*/test_*.py tests/*/*/test_*.py; do
    [ -f "$file" ] || continue
    name=${file#tests/}
    name=${name%.*}
    is_wanted "$name" || continue
    case $file in
    *.sh) if [ -z "$fast" ] || grep -q '^# fast' "$file"; then echo "$name sh $file"; fi ;;
    *.py) if [ -z "$fast" ]; then echo "$name $PYTHON $file"; fi ;;
    esac
  done
}

# The same, those that import PyTorch or transformers in one line for a folder with an imports.py, where they are several: one process
# imports it for all of them.
share_imports() {
  while read -r name command; do
    file=${command##* } && folder=-
    case $file in
    *.py) if [ -f "${file%/*}/imports.py" ] && grep -qE '^(import|from) (torch|transformers|accelerate|peers)' "$file"; then folder=${file%/*}; fi ;;
    esac
    echo "$folder $name $command"
  done | awk -v python="${PYTHON:-}" '
    $1 == "-" { print substr($0, 3); next }
    { files[$1] = files[$1] " " $NF; lines[$1] = substr($0, length($1) + 2); count[$1]++ }
    END { for (folder in files) print (count[folder] > 1 ? "together " python " tests/together.py" files[folder] : lines[folder]) }'
}

# The same, those with a line "# long" first, so that none of them runs alone at the end.
long_first() {
  while read -r name command; do
    position=2
    if [ "$name" = together ]; then position=1; fi
    case $command in *tests/*.py | *tests/*.sh) if grep -q '^# long' "${command##* }"; then position=1; fi ;; esac
    echo "$position $name $command"
  done | sort -s -k 1,1 | cut -d ' ' -f 2-
}

# Each file reports its own failures; one whose report failed is a failure too, and the sum is printed all the same.
list | share_imports | long_first | xargs -r -P "${TEST_JOBS:-$(($(nproc) + 1))}" -L 1 sh tests/run_one.sh || {
  echo "FAIL  a file of tests could not be reported"
  failed=1
}
find "$logs" -name '*.counts' -exec cat {} + |
  awk -v failed="$failed" '{ passed += $1; failed += $2; skipped += $3 }
       END { printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped; exit failed > 0 }'
