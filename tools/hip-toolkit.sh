#!/bin/sh
# Finds HIP: the compiler, the headers, and the libraries that a trainer for AMD's GPUs is linked with. Looks, in this
# order, in ROCM_PATH, in the folder of the hipcc that PATH leads to, in /opt/rocm and the newest /opt/rocm-*, and in
# /usr, where the distribution's packages are (hipcc, libamdhip64-dev). What is not in the first of them is taken from
# the next that has it.
#
# usage: tools/hip-toolkit.sh --cflags             where headers are, and what the runtime's files are compiled with
#        tools/hip-toolkit.sh --libs PART...       what is linked: amdhip64 hipblaslt
#        tools/hip-toolkit.sh --hipcc              the compiler
#        tools/hip-toolkit.sh --explain            all of it, for people
# Status 1, and a line on standard error, when something that was asked for is missing.
set -eu

roots() {
  [ -z "${ROCM_PATH:-}" ] || echo "$ROCM_PATH"
  hipcc=$(command -v hipcc 2>/dev/null || true)
  [ -z "$hipcc" ] || dirname "$(dirname "$(readlink -f "$hipcc")")"
  echo /opt/rocm
  ls -d /opt/rocm-* 2>/dev/null | sort -t- -k2 -Vr || true
  echo /usr
}

all_roots=$(roots | awk '!seen[$0]++')

# The first file of those that a root has by one of the patterns.
first() {
  for root in $all_roots; do
    for pattern in "$@"; do
      for file in $root/$pattern; do
        if [ -e "$file" ]; then
          echo "$file"
          return
        fi
      done
    done
  done
  return 1
}

header() { first include/hip/hip_runtime_api.h; }
library() { first "lib/lib$1.so" "lib64/lib$1.so" "lib/*-linux-gnu/lib$1.so"; }
compiler() { if [ -n "${HIPCC:-}" ]; then echo "$HIPCC"; else first bin/hipcc; fi; }

missing() {
  echo "hip-toolkit: no $1: set ROCM_PATH, or install ROCm or the package $2" >&2
  exit 1
}

package_of() { case $1 in hipblaslt) echo hipblaslt-dev ;; *) echo libamdhip64-dev ;; esac; }

# The runtime's part that CUDA and HIP share names CUDA's calls, and the stream of CUDA.
cflags() {
  file=$(header) || missing hip_runtime_api.h libamdhip64-dev
  folder=${file%/hip/*}
  [ "$folder" = /usr/include ] && where='' || where=" -isystem $folder"
  echo "-D__HIP_PLATFORM_AMD__ -DCUstream_st=ihipStream_t -Iruntime/hip/names$where"
}

libs() {
  found=
  for part in "$@"; do
    file=$(library "$part") || missing "lib$part" "$(package_of "$part")"
    found="$found$file -Wl,-rpath,$(dirname "$file") "
  done
  echo "$found" | awk '{ for (i = 1; i <= NF; i++) if (!seen[$i]++) printf "%s%s", (n++ ? " " : ""), $i; print "" }'
}

explain() {
  echo "compiler  $(compiler || echo none)"
  echo "headers   $(header || echo none)"
  for part in amdhip64 hipblaslt; do printf '%-9s %s\n' "$part" "$(library "$part" || echo none)"; done
}

case ${1:-} in
--cflags) cflags ;;
--libs) shift && libs "$@" ;;
--hipcc) compiler || missing hipcc hipcc ;;
--explain) explain ;;
*) sed -n '2,/^set -eu/p' "$0" | sed -n 's/^# \{0,1\}//p' >&2 && exit 2 ;;
esac
