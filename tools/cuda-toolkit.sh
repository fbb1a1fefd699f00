#!/bin/sh
# Finds CUDA: the compiler, the headers, and the libraries that a CUDA trainer is linked with. Looks, in this order, in
#   CUDA_HOME or CUDA_PATH      as it is named
#   the folder of nvcc          that PATH leads to
#   /usr/local/cuda, and the newest /usr/local/cuda-*
#   /opt/cuda, /usr             the distribution's packages
#   nvidia-* wheels             site-packages/nvidia/*/{include,lib} of VIRTUAL_ENV, of PYTHON, of python3
# A part that is not in the first of them that has the runtime (cuDNN, NCCL) is taken from the next that has it. Toolkits
# older than 12.4 are passed over.
#
# usage: tools/cuda-toolkit.sh --cflags           where headers are, for C and for nvcc
#        tools/cuda-toolkit.sh --libs PART...     what is linked: cudart cublasLt cudnn nccl cupti
#        tools/cuda-toolkit.sh --nvcc             the compiler
#        tools/cuda-toolkit.sh --version          of the headers: 13.0
#        tools/cuda-toolkit.sh --explain          all of it, for people
# Status 1, and a line on standard error, when something that was asked for is missing.
set -eu

oldest=12040

# Prints roots, a line each.
roots() {
  [ -z "${CUDA_HOME:-}" ] || echo "$CUDA_HOME"
  [ -z "${CUDA_PATH:-}" ] || echo "$CUDA_PATH"
  nvcc=$(command -v nvcc 2>/dev/null || true)
  [ -z "$nvcc" ] || dirname "$(dirname "$(readlink -f "$nvcc")")"
  echo /usr/local/cuda
  ls -d /usr/local/cuda-* 2>/dev/null | sort -t- -k2 -Vr || true
  printf '%s\n' /opt/cuda /usr
  for folder in "${VIRTUAL_ENV:-/nonexistent}"/lib/python3*/site-packages/nvidia/*; do echo "$folder"; done
  for python in "${PYTHON:-}" python3; do
    [ -n "$python" ] || continue
    "$python" -c 'import glob, nvidia
for path in nvidia.__path__: print("\n".join(sorted(glob.glob(path + "/*"), reverse=True)))' 2>/dev/null || true
  done
}

# The folders of headers and of libraries below the root $1.
headers_of() { for d in "$1/include" "$1"/targets/*-linux/include "$1/extras/CUPTI/include"; do if [ -d "$d" ]; then echo "$d"; fi; done; }
libraries_of() {
  for d in "$1/lib64" "$1"/targets/*-linux/lib "$1/lib" "$1"/lib/*-linux-gnu "$1/extras/CUPTI/lib64"; do if [ -d "$d" ]; then echo "$d"; fi; done
}

# Whether the header $1/cuda_runtime_api.h is of a toolkit that is new enough.
new_enough() {
  version=$(sed -n 's/^#define CUDART_VERSION  *\([0-9]*\).*/\1/p' "$1/cuda_runtime_api.h" | head -1)
  [ "${version:-0}" -ge "$oldest" ]
}

all_roots=$(roots | awk '!seen[$0]++')

# The first folder of headers that has the file $1.
header() {
  for root in $all_roots; do
    for folder in $(headers_of "$root"); do
      [ -f "$folder/$1" ] || continue
      if [ "$1" = cuda_runtime_api.h ] && ! new_enough "$folder"; then continue; fi
      echo "$folder"
      return
    done
  done
  return 1
}

# The library lib$1.so, with a version after it where the wheels leave no plain name.
library() {
  for root in $all_roots; do
    for folder in $(libraries_of "$root"); do
      for file in "$folder/lib$1.so" "$folder/lib$1.so".[0-9] "$folder/lib$1.so".[0-9][0-9]; do
        if [ -e "$file" ]; then
          echo "$file"
          return
        fi
      done
    done
  done
  return 1
}

compiler() {
  if [ -n "${NVCC:-}" ]; then
    echo "$NVCC"
    return
  fi
  for root in $all_roots; do
    if [ -x "$root/bin/nvcc" ] && [ -n "$(headers_of "$root")" ]; then
      echo "$root/bin/nvcc"
      return
    fi
  done
  return 1
}

missing() {
  echo "cuda-toolkit: no $1 (CUDA 12.4 or later): set CUDA_HOME, install the toolkit, or the wheels $2" >&2
  exit 1
}

wheel_of() {
  case $1 in
  cublasLt) echo nvidia-cublas ;;
  cudnn) echo nvidia-cudnn-cu13 ;;
  nccl) echo nvidia-nccl-cu13 ;;
  cupti) echo nvidia-cuda-cupti ;;
  *) echo nvidia-cuda-runtime ;;
  esac
}

cflags() {
  runtime=$(header cuda_runtime_api.h) || missing cuda_runtime_api.h nvidia-cuda-runtime
  {
    echo "$runtime"
    for file in cublasLt.h cudnn.h nccl.h cupti.h nvtx3/nvToolsExt.h crt/host_defines.h; do
      [ -f "$runtime/$file" ] || header "$file" || true
    done
  } | awk '$0 != "/usr/include" && !seen[$0]++ { printf "%s-isystem %s", separator, $0; separator = " " } END { print "" }'
}

libs() {
  found=
  for part in "$@"; do
    file=$(library "$part") || missing "lib$part" "$(wheel_of "$part")"
    found="$found$file -Wl,-rpath,$(dirname "$file") "
  done
  echo "$found" | awk '{ for (i = 1; i <= NF; i++) if (!seen[$i]++) printf "%s%s", (n++ ? " " : ""), $i; print "" }'
}

version() {
  runtime=$(header cuda_runtime_api.h) || missing cuda_runtime_api.h nvidia-cuda-runtime
  number=$(sed -n 's/^#define CUDART_VERSION  *\([0-9]*\).*/\1/p' "$runtime/cuda_runtime_api.h" | head -1)
  echo "$((number / 1000)).$((number % 1000 / 10))"
}

explain() {
  echo "version   $(version 2>/dev/null || echo none)"
  echo "compiler  $(compiler || echo none)"
  for part in cudart cublasLt cudnn nccl cupti; do printf '%-9s %s\n' "$part" "$(library "$part" || echo none)"; done
  for file in cuda_runtime_api.h cublasLt.h cudnn.h nccl.h cupti.h; do
    printf '%-18s %s\n' "$file" "$(header "$file" || echo none)"
  done
}

case ${1:-} in
--cflags) cflags ;;
--libs) shift && libs "$@" ;;
--nvcc) compiler || missing nvcc nvidia-cuda-nvcc ;;
--version) version ;;
--explain) explain ;;
*) sed -n '2,/^set -eu/p' "$0" | sed -n 's/^# \{0,1\}//p' >&2 && exit 2 ;;
esac
