#!/bin/sh
# Looks for mistakes in the C sources with clang-tidy 19, by the checks of .clang-tidy.
#
# usage: tools/tidy.sh [FILE...]   (`ninja tidy`: all of gen, runtime, tools and tests)
# Exits with status 77 where clang-tidy 19 is not installed.
set -eu
cd "$(dirname "$0")/.."
if ! command -v clang-tidy-19 >/dev/null; then
  echo "no clang-tidy-19 here (sh tools/install-deps.sh --test)"
  exit 77
fi
sh tools/compdb.sh
if [ $# = 0 ]; then
  # shellcheck disable=SC2046
  set -- $(sed -nE 's/^\{"directory": "[^"]*", "file": "((gen|runtime|tools)\/[^"]*|tests\/[a-z]+\/[^"\/]*|tests\/(cuda|hip)\/standin\/[^"]*)".*/\1/p' build/compile_commands.json)
fi
printf '%s\n' "$@" | xargs -P "$(nproc)" -n 8 clang-tidy-19 -p build --quiet 2>build/tidy.log
