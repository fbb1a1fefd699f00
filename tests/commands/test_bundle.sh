#!/bin/sh
# `accel-gen build --bundle`: the folder builds where there is a C compiler, oneDNN and the usual small tools, and no
# accel-gen, clang, ninja, pkg-config or MPI; the trainer is the one that `accel-gen build` makes, bit by bit. One for
# GPUs is compiled and linked where there is a toolkit, and says at start that there is no GPU.
set -eu
gen=$PWD/build/accel-gen
toolkit=$PWD/tools/cuda-toolkit.sh
here=$(pwd)/build/tests/scratch/bundle
rm -rf "$here"
mkdir -p "$here/bin"
cp examples/models/nanogpt.c "$here"
head -c 40000 build/gen/embedded.c >"$here/corpus.txt"
cat >"$here/job.yaml" <<'JOB'
model:
  source: nanogpt.c
  config: {n_layer: 1, n_head: 2, n_embd: 16, vocab_size: 256, block_size: 16, bias: true}
data:
  train: {path: corpus.txt, format: bytes}
  batch_size: 4
training: {steps: 5}
devices: {threads: 1}
tracking: {every: 1}
JOB
cd "$here"

# All that a bare machine has.
for tool in gcc as ld ar sh sed grep xargs dirname basename mkdir rm ln cat tr uname getconf awk head readlink sort ls env; do
  path=$(PATH=/usr/local/bin:/usr/bin:/bin command -v "$tool") && ln -s "$(readlink -f "$path")" "bin/$tool"
done
ln -sf gcc bin/cc
bare() { env -i PATH="$here/bin" HOME="$here" OMP_WAIT_POLICY=passive RUNTIME_CFLAGS=-O0 "$@"; }
for tool in pkg-config ninja clang mpicc accel-gen; do
  if bare sh -c "command -v $tool" >/dev/null; then echo "not ok the machine has $tool" && exit 1; fi
done

"$gen" build job.yaml --bundle cpu && echo "ok a bundle"
mv cpu moved
bare sh moved/build.sh >log 2>&1 || { cat log && echo "not ok it builds" && exit 1; }
echo "ok it builds on a bare machine"
bare moved/trainer --project-dir run-bundle >log && echo "ok its trainer runs"
"$gen" build job.yaml -o trainer
./trainer --project-dir run-build >log
if cmp run-bundle/model.safetensors run-build/model.safetensors; then echo "ok the same weights"; else echo "not ok the same weights"; fi
if ! sh "$toolkit" --nvcc >/dev/null 2>&1; then
  echo "ok a bundle for GPUs # SKIP no CUDA toolkit"
  exit 0
fi
gpu() { "$gen" build job.yaml --set devices.kind=cuda "$@"; }
gpu --bundle gpu
ln -s "$(readlink -f "$(PATH=/usr/local/bin:/usr/bin:/bin command -v g++)")" bin/g++ # which nvcc calls
bare CUDA_HOME="$(dirname "$(dirname "$(sh "$toolkit" --nvcc)")")" sh gpu/build.sh >log 2>&1 ||
  { cat log && echo "not ok a bundle for GPUs builds" && exit 1; }
echo "ok a bundle for GPUs builds"
status=0
CUDA_VISIBLE_DEVICES='' ./gpu/trainer --project-dir run-gpu >log 2>&1 || status=$?
if [ "$status" = 1 ] && grep -q '^error: no ' log; then echo "ok and says that there is no GPU"; else cat log && echo "not ok and says that there is no GPU"; fi
