#!/bin/sh
# What programs for GPUs are linked with: the runtime over CUDA or over HIP, where there is a toolkit
# (tools/cuda-toolkit.sh and tools/hip-toolkit.sh find them). Without one the archive is empty and pkg-config names what
# is missing; programs for CPUs need neither.
#
# usage: tools/gpu.sh KIND ARCHIVE FOLDERS COMPILER FLAG...  compiles folders of the runtime into one archive; KIND: cuda, hip
#        tools/gpu.sh KIND --pc PREFIX LIBDIR <IN >OUT        fills share/accel-runtime-KIND*.pc.in
set -eu
kind=$1
shift
toolkit=$(dirname "$0")/$kind-toolkit.sh

# The libraries without which there is no program, those of some programs, and those of several ranks.
case $kind in
cuda) needed=cudart more="cublasLt cudnn" ranks=nccl ;;
*) needed="amdhip64 hipblaslt" more='' ranks='' ;;
esac

# The flags of libraries; nothing, and a status, where one is missing.
# shellcheck disable=SC2086
libs_of() { sh "$toolkit" --libs $1 2>/dev/null; }

if [ "$1" = --pc ]; then
  version=$(sh tools/version.sh)
  requires='' libs='' traffic=''
  if libs_of "$needed" >/dev/null; then
    libs=$(libs_of "$needed $more" || libs_of "$needed")
    [ -z "$ranks" ] || traffic=$(libs_of "$ranks" || true)
  else
    requires=", $kind"
  fi
  sed -e "s|@prefix@|$2|" -e "s|@libdir@|$3|" -e "s|@version@|$version|" -e "s|@requires@|$requires|" \
    -e "s|@libs@|$libs|" -e "s|@traffic@|$traffic|"
  exit
fi

archive=$1 folders=$2
shift

# Whether all headers of the toolkit's libraries that the folders include are there. It goes without CUPTI's.
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
