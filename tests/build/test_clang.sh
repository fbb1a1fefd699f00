#!/bin/sh
# Every source is clean under clang as it is under gcc. The command's warnings are the build's own.
set -eu
clang=$(command -v clang-19 || command -v clang-20 || command -v clang-18 || command -v clang-17 || command -v clang || true)
if [ -z "$clang" ]; then
  echo "no clang here"
  exit 77
fi
[ -f build/config/libclang.cflags ] || sh tools/configure.sh build/config
status=0
mpi=$(sh tools/mpi.sh --cflags || true)
for folder in gen gen/* gen/*/* runtime/* tools tests/*; do
  case $folder in runtime/cuda | runtime/nccl) continue ;; esac # these want CUDA's headers
  for source in "$folder"/*.c; do
    [ -f "$source" ] || continue
    case $source in */fuzz_*) continue ;; esac
    if [ -z "$mpi" ] && grep -q '<mpi.h>' "$source"; then
      echo "ok $source # SKIP no MPI here"
      continue
    fi
    # shellcheck disable=SC2086
    if "$clang" -std=c17 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Wpedantic -Werror -I. -Ibuild/include -fopenmp \
      @build/config/libclang.cflags $mpi -fsyntax-only "$source"; then
      echo "ok $source"
    else
      echo "not ok $source"
      status=1
    fi
  done
done
exit $status
