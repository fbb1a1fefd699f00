#!/bin/sh
# What depends on the processor, tried for processors that this machine may not have: the runtime's loops and emitted
# programs are compiled for each by gcc and clang, and programs run on this processor where it has the instructions, under
# qemu's model of the processor where qemu has them (it has no AVX-512), and train as the one made for this machine does.
# oneDNN is configured for each processor that this one can stand for (ONEDNN_MAX_CPU_ISA).
#
# usage: sh tools/processors.sh [--fast]
#   --fast  the loops for each processor and a program for it by one compiler, those by the other one and the program in
#           the other precision with another SEED, and of the tests matmuls alone: half a minute of processors; else all
#           by both, and all tests that ask for the processor, with each of oneDNN's sets
#
# A line a case in TAP's form. A line with "# SKIP compiled, not run" is of a processor that nothing here can stand for.
set -eu
cd "$(dirname "$0")/.."
fast=
if [ "${1:-}" = --fast ]; then fast=yes; fi
[ "$(uname -m)" = x86_64 ] || { echo "this machine's processor is not of x86-64"; exit 77; }
PYTHON=${PYTHON:-$(sh tests/environment.sh)}
out=build/tests/processors
rm -rf "$out"
mkdir -p "$out"
failed=0
export OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive PKG_CONFIG_PATH="$PWD/build"

# NAME  -march  devices.arch  its flag in /proc/cpuinfo  oneDNN's set  qemu's model
processors() {
  cat <<'END'
haswell haswell x86-64-v3 avx2 AVX2 Haswell
zen3 znver3 x86-64-v3 avx2 AVX2 EPYC-Milan
skylake-avx512 skylake-avx512 avx512 avx512dq AVX512_CORE -
cooperlake cooperlake avx512-bf16 avx512_bf16 AVX512_CORE_BF16 -
sapphirerapids sapphirerapids amx amx_tile AVX512_CORE_AMX -
END
}

has() {
  grep -m 1 '^flags' /proc/cpuinfo | grep -qw "$1"
}

# say NAME LOG COMMAND...: the command's case; what it printed where it fails.
say() {
  name=$1 log=$out/$2.log
  shift 2
  if "$@" >"$log" 2>&1; then
    echo "ok $name"
    return 0
  fi
  echo "not ok $name"
  tail -20 "$log" | sed 's/^/# /'
  failed=1
  return 1
}

# ---- The runtime's loops: clang says where one that is to be vector code is not; gcc's must use the widest registers ----

# Those of MPI need its headers, those of CUDA its compiler.
LOOPS=$(grep -rlE 'omp simd|RT_FOR_WIDTHS|FOR_EACH_PROCESSOR' runtime --include='*.c' | grep -vE '/(mpi|nccl|cuda)/')

# clang 19 knows AVX10.1 in part, and warns of processors that have it.
quiet() { # COMPILER
  case $1 in clang*) echo -Wno-invalid-feature-combination ;; esac
}

compile_loops() { # COMPILER MARCH
  for file in $LOOPS; do
    # shellcheck disable=SC2046
    "$1" $(quiet "$1") -std=c17 -D_GNU_SOURCE -O3 "-march=$2" -fopenmp -ffp-contract=fast -fno-math-errno -fno-trapping-math \
      -mprefer-vector-width=512 -Wall -Wextra -Wpedantic -Werror -I. -S -o "$out/$(basename "$file").s" "$file" || return 1
  done
}

widest_of() { # MARCH: registers of its loops; x86-64 stands for all, by clones
  case $1 in x86-64 | *avx512* | cooperlake | sapphirerapids) echo zmm ;; *) echo ymm ;; esac
}

uses() { # REGISTER
  grep -q "%$1" "$out/lines.c.s" || { echo "rt_widen_lines has no %$1"; return 1; }
}

loops() { # COMPILER MARCH
  compile_loops "$1" "$2" && uses "$(widest_of "$2")"
}

# ---- Programs ----

job() { # ARCH PRECISION
  cat <<END
model: {source: $PWD/examples/models/nanogpt.c, config: {n_layer: 2, n_head: 2, n_embd: 32, vocab_size: 256, block_size: 24}}
data: {train: {path: $PWD/README.md, format: bytes}, batch_size: 2}
optimizer: {name: adamw, lr: 0.01, clip_grad_norm: 1.0}
training: {steps: 4, seed: 3, deterministic: true}
tracking: {every: 1}
devices: {arch: $1}
precision: {mixed_precision: "$2"}
END
}

make_program() { # FOLDER MARCH ARCH PRECISION COMPILER
  mkdir -p "$1"
  job "$3" "$4" >"$1/job.yaml"
  build/accel-gen "$1/job.yaml" -o "$1/trainer.c" || return 1
  # shellcheck disable=SC2046
  "$5" -std=c17 -O3 "-march=$2" -fopenmp -ffp-contract=fast -fno-math-errno -fno-trapping-math -Wall -Wextra -Werror \
    "$1/trainer.c" -o "$1/trainer" $(pkg-config --cflags --libs accel-runtime)
}

# The losses of four steps of a program, run with what stands before it.
train() { # FOLDER PREFIX...
  folder=$1
  shift
  (cd "$folder" && rm -rf run && "$@" ./trainer) || return 1
  find "$folder" -name metrics.jsonl -exec grep -o '"loss": *[0-9.e+-]*' {} + | sed 's/.*: *//' >"$folder/losses"
  [ "$(wc -l <"$folder/losses")" = 4 ] || { echo "no four losses"; return 1; }
}

# As the one made for this machine, within roundings of 16 or of 32 bits.
same() { # FOLDER PRECISION PREFIX...
  folder=$1 precision=$2
  shift 2
  train "$folder" "$@" || return 1
  paste "$folder/losses" "$out/native-$precision/losses" |
    awk -v most="$([ "$precision" = bf16 ] && echo 5e-4 || echo 2e-6)" \
      '{ d = ($1 - $2) / $2; if (d > most || -d > most) { print "losses " $1 " and " $2 " of step " NR; bad = 1 } } END { exit bad }'
}

run_program() { # NAME FOLDER PRECISION FLAG SET MODEL
  if has "$4"; then
    say "$1 on this processor" "run" same "$2" "$3" env "ONEDNN_MAX_CPU_ISA=$5" || true
  fi
  if [ "$6" != - ] && command -v qemu-x86_64 >/dev/null; then
    say "$1 under qemu -cpu $6" "run" same "$2" "$3" qemu-x86_64 -cpu "$6" || true
  elif ! has "$4"; then
    without="qemu emulates none"
    [ "$6" = - ] || without="qemu-x86_64 (qemu-user) is not installed"
    echo "ok $1 # SKIP compiled, not run: this processor has no $4, and $without"
  fi
}

programs() { # NAME MARCH ARCH FLAG SET MODEL
  for precision in no bf16; do
    turn=$((turn + 1))
    [ -z "$fast" ] || [ $((turn % 2)) = 0 ] || continue
    for compiler in gcc clang-19; do
      command -v $compiler >/dev/null || continue
      # Which compiler made it matters little to the processor: one of each precision runs.
      runs=
      case $precision-$compiler in no-gcc | bf16-clang-19) runs=yes ;; esac
      [ -z "$fast" ] || [ -n "$runs" ] || continue
      folder=$out/$1-$precision-$compiler
      what="program for $1, mixed_precision $precision, by $compiler"
      say "$what compiles" "compile" make_program "$folder" "$2" "$3" $precision $compiler || continue
      [ -z "$runs" ] || run_program "$what" "$folder" $precision "$4" "$5" "$6"
    done
  done
}

# ---- Tests, with oneDNN for other processors ----

sets() { # of oneDNN that this processor has
  echo SSE41
  for pair in avx:AVX avx2:AVX2 avx512dq:AVX512_CORE avx512_bf16:AVX512_CORE_BF16 amx_tile:AVX512_CORE_AMX; do
    if has "${pair%:*}"; then echo "${pair#*:}"; fi
  done
}

tests() { # SET
  if [ -n "$fast" ]; then
    say "matmuls of oneDNN for $1" kernels env "ONEDNN_MAX_CPU_ISA=$1" "$PYTHON" tests/ops/kernels/test_kernels.py --how gcc matmul || true
    return
  fi
  for file in ops/kernels/test_kernels ops/kernels/test_bits16_kernels program/test_determinism program/test_precision program/test_processors; do
    say "$file with oneDNN for $1" "$(basename $file)" env "ONEDNN_MAX_CPU_ISA=$1" "$PYTHON" "tests/$file.py" || true
  done
}

turn=${SEED:-0}
for compiler in gcc clang-19; do
  turn=$((turn + 1))
  command -v $compiler >/dev/null || { echo "ok loops by $compiler # SKIP it is not installed"; continue; }
  for march in native x86-64 x86-64-v3 $(processors | cut -d ' ' -f 2); do
    turn=$((turn + 1))
    [ -z "$fast" ] || [ $((turn % 2)) = 0 ] || continue
    case $march in
    native) say "loops for this processor by $compiler" loops compile_loops $compiler native || true ;;
    *) say "loops for $march by $compiler" loops loops $compiler "$march" || true ;;
    esac
  done
done
for precision in no bf16; do
  say "program for this processor, mixed_precision $precision" native make_program "$out/native-$precision" native native $precision gcc &&
    say "its losses, mixed_precision $precision" native train "$out/native-$precision" env
done
processors >"$out/processors"
turn=${SEED:-0}
while read -r name march arch flag set model <&3; do
  turn=$((turn + 1)) # neighbours have different precisions
  programs "$name" "$march" "$arch" "$flag" "$set" "$model"
done 3<"$out/processors"
for set in $(sets); do tests "$set"; done
exit $failed
