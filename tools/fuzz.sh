#!/bin/sh
# Builds every tests/GROUP/fuzz_NAME.c with clang's libFuzzer and sanitizers, and runs each for a bounded time.
# usage: tools/fuzz.sh [GROUP/NAME]...
#        tools/fuzz.sh --folders   the folders that it compiles, under the build's warnings
#   FUZZ_SECONDS   for each target (default 30)
#   FUZZ_TURN=N    every second target, from the first or the second one as N is even or odd, has that time; the others
#                  run over their seeds and what is in build/fuzz/corpus, and no more
#   FUZZ_OPTIMIZE  -O1 (the default), which tries more inputs a second; -O0, which compiles in a fifth of the time
# New inputs are kept in build/fuzz/corpus/NAME; a crash's input is in build/fuzz/crashes.
set -eu
export LC_ALL=C
seconds=${FUZZ_SECONDS:-30}
out=build/fuzz
clang=$(command -v clang-19 || command -v clang-20 || command -v clang-18 || command -v clang-17 || command -v clang || true)
mkdir -p "$out" "$out/crashes"
echo 'int LLVMFuzzerTestOneInput(const unsigned char *d, unsigned long n); int LLVMFuzzerTestOneInput(const unsigned char *d, unsigned long n) { return d == 0 && n > 0; }' >"$out/probe.c"
if [ -z "$clang" ] || ! "$clang" -fsanitize=fuzzer,address "$out/probe.c" -o "$out/probe" 2>/dev/null; then
  echo "no clang with libFuzzer here (clang-19 and libclang-rt-19-dev)"
  exit 77
fi
linker= # LLVM's takes a quarter of the time for archives of this size
if "$clang" -fsanitize=fuzzer,address -fuse-ld=lld "$out/probe.c" -o "$out/probe" 2>/dev/null; then linker=-fuse-ld=lld; fi
# Folders without a parser that a target calls are left out.
runtime_folders() {
  for folder in runtime/*/; do
    folder=${folder%/}
    case ${folder#runtime/} in cuda | gpu | hip | mpi | nccl | onednn | run | tcp) ;; *) echo "$folder" ;; esac
  done
}

generator_folders() {
  for folder in gen/*/ gen/*/*/; do
    folder=${folder%/}
    if grep -qsx "${folder#gen/}" build/config/missing; then continue; fi
    case ${folder#gen/} in
    commands/export) echo "$folder" ;;
    commands | commands/* | emit | emit/* | format | import | plan | plan/* | program | provenance | search | server | statements | verify | verify/*) ;;
    *) echo "$folder" ;;
    esac
  done
}

if [ "${1:-}" = --folders ]; then
  runtime_folders
  generator_folders
  echo runtime/tcp
  exit
fi
ninja --quiet build/gen/op_table.c build/gen/embedded.c build/config/libclang.cflags build/config/missing

flags="-std=c17 -D_POSIX_C_SOURCE=200809L ${FUZZ_OPTIMIZE:--O1} -gline-tables-only -I. -Wall -Wextra -Wpedantic -Werror -fno-sanitize-recover=all -Wno-pass-failed -DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION"
instrument="-fsanitize=fuzzer-no-link,address,undefined"

compile() { # FOLDER ARCHIVE FLAG...
  folder=$1 archive=$2
  shift 2
  mkdir -p "$(dirname "$archive")"
  # shellcheck disable=SC2086
  sh tools/compile.sh "$archive" "$folder" "$clang" $flags $instrument "$@"
}

for folder in $(runtime_folders); do compile "$folder" "$out/lib/runtime/${folder##*/}.a" -fopenmp; done
rm -f "$out/lib/runtime.a"
ar rcs "$out/lib/runtime.a" "$out"/lib/runtime/*/*.o
compile runtime/tcp "$out/lib/tcp.a"
for folder in $(generator_folders); do compile "$folder" "$out/lib/$(echo "$folder" | tr / -).a" -Iinclude @build/config/libclang.cflags; done
mkdir -p "$out/generated"
cp build/gen/op_table.c build/gen/embedded.c "$out/generated"
compile "$out/generated" "$out/lib/gen-generated.a"

# The libraries that a group's targets are linked with.
libraries() {
  case $1 in
  tcp) echo "$out/lib/tcp.a $out/lib/runtime.a -fopenmp -ljansson -lm" ;;
  runtime) echo "$out/lib/runtime.a -fopenmp -ljansson -lm" ;;
  *) echo "-Wl,--start-group $(echo "$out"/lib/gen-*.a) $out/lib/runtime.a -Wl,--end-group -fopenmp @build/config/libclang.libs -lyaml -ljansson -lyajl -lpcre2-8 -lutf8proc -lcapstone -ldw -lelf -lz @build/config/optional.libs -lm" ;;
  esac
}

failed=0
number=0
for source in tests/*/fuzz_*.c; do
  [ -f "$source" ] || continue
  number=$((number + 1))
  bounds=-max_total_time=$seconds time=" in $seconds s"
  if [ -n "${FUZZ_TURN:-}" ] && [ $(((number + FUZZ_TURN) % 2)) = 0 ]; then bounds=-runs=0 time=; fi
  group=$(basename "$(dirname "$source")")
  name=$(basename "$source" .c)
  name=${name#fuzz_}
  if [ $# -gt 0 ]; then case " $* " in *" $group/$name "*) ;; *) continue ;; esac; fi
  target=$out/$group-$name
  # shellcheck disable=SC2046,SC2086
  "$clang" $flags $linker -fsanitize=fuzzer,address,undefined -o "$target" "$source" $(libraries "$group")
  corpus=$out/corpus/$group-$name
  mkdir -p "$corpus"
  seeds=tests/$group/corpus_$name
  [ -d "$seeds" ] || seeds=
  # Leaks are of no interest: the generator gives its memory back at its end, all at once.
  # shellcheck disable=SC2086
  if ASAN_OPTIONS=detect_leaks=0 "$target" "$bounds" -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="$out/crashes/$group-$name-" "$corpus" $seeds >"$target.log" 2>&1; then
    echo "ok $group/$name $(sed -n 's/^stat::number_of_executed_units: *//p' "$target.log") inputs$time"
  else
    echo "not ok $group/$name"
    tail -30 "$target.log"
    failed=1
  fi
done
exit $failed
