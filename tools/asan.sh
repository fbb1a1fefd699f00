#!/bin/sh
# Builds the generator, the runtime and the tests' programs with AddressSanitizer and UndefinedBehaviorSanitizer and runs
# the fast tests on them. All of it is done in a copy of the tree, build/asan, so that the usual build stays as it is.
#
# usage: tools/asan.sh [GROUP or GROUP/NAME]...   (`ninja asan`: all fast tests)
#   CC   the compiler (cc)
set -eu
cd "$(dirname "$0")/.."
copy=build/asan
mkdir -p "$copy"
# With the times of the sources, so that only what changed is compiled again.
for entry in $(git ls-files | cut -d / -f 1 | sort -u); do
  [ -e "$entry" ] || continue
  rm -rf "${copy:?}/$entry"
  cp -a "$entry" "$copy/$entry"
done
cd "$copy"
CC="${CC:-cc} -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"
export CC
# Leaks are not looked for: a program keeps what it has opened (matmuls, graphs, streams) until it ends.
export ASAN_OPTIONS="detect_leaks=0:${ASAN_OPTIONS:-}"
ninja all build/test-programs
exec sh tests/run.sh --fast "$@"
