#!/bin/sh
# Every source is clean under clang as it is under gcc, compiled by the commands of build/compile_commands.json; and clangd knows
# the headers of each folder without that file, by compile_flags.txt. The command's warnings are the build's own. What the fuzz
# targets are linked with is not compiled here: clang compiles it under the same warnings for build/test_fuzz. Of the others every
# second one is, which SEED says; with CASES=all, each.
set -eu
clang=$(command -v clang-19 || command -v clang-20 || command -v clang-18 || command -v clang-17 || command -v clang || true)
if [ -z "$clang" ]; then
  echo "no clang here"
  exit 77
fi
ninja --quiet compdb
status=0
fuzzed=" $(sh tools/fuzz.sh --folders | tr '\n' ' ')" # nothing where clang has no libFuzzer

# compiles NAME FLAG...: the case NAME, by clang with these flags.
compiles() {
  name=$1
  shift
  if "$clang" "$@" -fsyntax-only; then
    echo "ok $name"
  else
    echo "not ok $name"
    status=1
  fi
}

mkdir -p build/tests/clang
sed -n 's/^{"directory": "[^"]*", "file": "\([^"]*\)", "command": "[^ ]* \(.*\)"},\{0,1\}$/\1 \2/p' build/compile_commands.json \
  >build/tests/clang/commands
if ! [ -s build/tests/clang/commands ]; then echo "not ok build/compile_commands.json has commands" && status=1; fi
number=${SEED:-0}
while read -r source flags; do
  number=$((number + 1))
  if [ "${CASES:-}" != all ] && [ $((number % 2)) = 0 ]; then continue; fi
  case $source in build/* | tests/model/good/semantics.c) continue ;; esac # made by the build; odd on purpose
  case $fuzzed in *" ${source%/*} "*) continue ;; esac
  # shellcheck disable=SC2086
  compiles "$source" $flags
done <build/tests/clang/commands

for folder in gen gen/* gen/*/* runtime/*; do
  case $folder in runtime/mpi | runtime/gpu | runtime/cuda | runtime/hip | runtime/nccl) continue ;; esac # other flags on each machine: compile_commands.json
  for source in "$folder"/*.c; do
    [ -f "$source" ] || continue
    compiles "$source by compile_flags.txt" @compile_flags.txt "$source"
    break
  done
done
exit $status
