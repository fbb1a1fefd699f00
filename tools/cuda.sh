#!/bin/sh
# What programs for GPUs are linked with: the runtime over CUDA, where there is a toolkit (tools/cuda-toolkit.sh finds
# it). Without one the archive is empty and pkg-config names what is missing; programs for CPUs need neither.
#
# usage: tools/cuda.sh ARCHIVE FOLDERS COMPILER FLAG...  compiles folders of the runtime into one archive
#        tools/cuda.sh --pc PREFIX LIBDIR <IN >OUT        fills share/accel-runtime-cuda*.pc.in
set -eu
toolkit=$(dirname "$0")/cuda-toolkit.sh

if [ "$1" = --pc ]; then
  version=$(sed -n 's/^#define ACCEL_VERSION "\(.*\)"/\1/p' gen/base/version.h)
  requires='' libs='' traffic=''
  if sh "$toolkit" --libs cudart >/dev/null 2>&1; then
    libs=$(sh "$toolkit" --libs cudart cublasLt cudnn 2>/dev/null || sh "$toolkit" --libs cudart)
    traffic=$(sh "$toolkit" --libs nccl 2>/dev/null || true)
  else
    requires=", cuda"
  fi
  sed -e "s|@prefix@|$2|" -e "s|@libdir@|$3|" -e "s|@version@|$version|" -e "s|@requires@|$requires|" \
    -e "s|@cuda@|$libs|" -e "s|@nccl@|$traffic|"
  exit
fi

archive=$1 folders=$2
shift

# Whether all headers of CUDA's libraries that the folders include are there. It goes without CUPTI's.
has_headers() {
  [ -n "$flags" ] || return 1
  probe=$(mktemp)
  # shellcheck disable=SC2046
  sed -n 's/^#include <\(cu[A-Za-z_]*\|nccl\|nvtx3.nvToolsExt\)\.h>.*/#include <\1.h>/p' $(for folder in $folders; do echo "$folder"/*.[ch]; done) | grep -v cupti.h | sort -u >"$probe"
  # shellcheck disable=SC2086
  ${CC:-cc} $flags -E -o /dev/null -x c "$probe" 2>/dev/null || { rm -f "$probe" && return 1; }
  rm -f "$probe"
}

flags=$(sh "$toolkit" --cflags 2>/dev/null || true)
if has_headers; then
  # shellcheck disable=SC2086
  exec sh tools/compile.sh "$archive" "$@" $flags
fi
sh tools/compile.sh "$archive" "$folders"
