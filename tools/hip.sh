#!/bin/sh
# What programs for AMD's GPUs are linked with: the runtime over HIP, where its headers are (libamdhip64-dev, or ROCm in
# ROCM_PATH or /opt/rocm). Without them the archive is empty.
#
# usage: tools/hip.sh ARCHIVE FOLDERS COMPILER FLAG...   compiles folders of the runtime into one archive
set -eu
archive=$1 folders=$2
shift
for include in "${ROCM_PATH:-/opt/rocm}/include" /usr/include; do
  [ -f "$include/hip/hip_runtime_api.h" ] || continue
  # What both kinds of GPUs share names the stream of CUDA, which has HIP's type here.
  exec sh tools/compile.sh "$archive" "$@" -D__HIP_PLATFORM_AMD__ -DCUstream_st=ihipStream_t -Iruntime/hip/names -isystem "$include"
done
sh tools/compile.sh "$archive" "$folders"
