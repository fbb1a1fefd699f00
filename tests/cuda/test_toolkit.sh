#!/bin/sh
# fast
# tools/cuda-toolkit.sh over trees made for it: each kind of folder, an order of them, versions that are too old.
set -eu
out=build/tests/cuda/toolkit
rm -rf "$out"
mkdir -p "$out"
out=$(cd "$out" && pwd)

# A tree at $1: headers of version $2 and the libraries named after it.
tree() {
  root=$1 number=$2
  shift 2
  mkdir -p "$root/include/crt" "$root/lib"
  echo "#define CUDART_VERSION  $number" >"$root/include/cuda_runtime_api.h"
  : >"$root/include/crt/host_defines.h"
  for name in "$@"; do : >"$root/lib/$name"; done
}

# The script with no other folder to look in than the ones that a case makes.
sed -e "s|/usr/local/cuda|$out/local/cuda|" -e "s|^  printf .*opt/cuda /usr$|  echo $out/distribution|" \
  -e 's|for python in .*|for python in "${PYTHON:-}"; do|' tools/cuda-toolkit.sh >"$out/lookup.sh"
lookup() { env -u CUDA_HOME -u CUDA_PATH -u VIRTUAL_ENV -u PYTHON PATH=/usr/bin:/bin "$@"; }

is() { # WHAT EXPECTED GOT
  if [ "$2" = "$3" ]; then echo "ok $1"; else echo "not ok $1: expected '$2', got '$3'" && failed=1; fi
}
failed=0

is "nothing is nothing" 1 "$(lookup sh "$out/lookup.sh" --libs cudart >/dev/null 2>&1 || echo $?)"
is "and is said" "cuda-toolkit: no cuda_runtime_api.h (CUDA 12.4 or later): set CUDA_HOME, install the toolkit, or the wheels nvidia-cuda-runtime" \
  "$(lookup sh "$out/lookup.sh" --cflags 2>&1 || true)"

tree "$out/distribution" 12060 libcudart.so
is "the distribution's" 12.6 "$(lookup sh "$out/lookup.sh" --version)"
tree "$out/local/cuda-12.8" 12080 libcudart.so
is "a version next to it" 12.8 "$(lookup sh "$out/lookup.sh" --version)"
tree "$out/local/cuda" 13000 libcudart.so
is "the usual folder first" 13.0 "$(lookup sh "$out/lookup.sh" --version)"
tree "$out/home" 12040 libcudart.so libcublasLt.so.12
is "CUDA_HOME before it" 12.4 "$(lookup CUDA_HOME="$out/home" sh "$out/lookup.sh" --version)"
is "a library that has a version alone" "$out/home/lib/libcublasLt.so.12 -Wl,-rpath,$out/home/lib" \
  "$(lookup CUDA_HOME="$out/home" sh "$out/lookup.sh" --libs cublasLt)"
tree "$out/old" 11080 libcudart.so
is "one that is too old is passed over" 13.0 "$(lookup CUDA_HOME="$out/old" sh "$out/lookup.sh" --version)"

# Wheels: each library is a folder of its own.
site=$out/venv/lib/python3.11/site-packages/nvidia
tree "$site/cuda_runtime" 12090 libcudart.so.12
mkdir -p "$site/nccl/lib" "$site/nccl/include"
: >"$site/nccl/lib/libnccl.so.2"
: >"$site/nccl/include/nccl.h"
is "what the toolkit lacks comes from wheels" "$site/nccl/lib/libnccl.so.2 -Wl,-rpath,$site/nccl/lib" \
  "$(lookup VIRTUAL_ENV="$out/venv" sh "$out/lookup.sh" --libs nccl)"
is "and its headers" "-isystem $out/local/cuda/include -isystem $site/nccl/include" \
  "$(lookup VIRTUAL_ENV="$out/venv" sh "$out/lookup.sh" --cflags)"
rm -rf "$out/distribution" "$out"/local
is "wheels alone" 12.9 "$(lookup VIRTUAL_ENV="$out/venv" sh "$out/lookup.sh" --version)"
is "a part that is nowhere" "cuda-toolkit: no libcudnn (CUDA 12.4 or later): set CUDA_HOME, install the toolkit, or the wheels nvidia-cudnn-cu13" \
  "$(lookup VIRTUAL_ENV="$out/venv" sh "$out/lookup.sh" --libs cudnn 2>&1 || true)"
exit "$failed"
