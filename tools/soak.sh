#!/bin/sh
# Random tests, again and again with new seeds and more draws, and tests of all cases of kernels and programs and of all
# combinations of ranks, until SOAK_MINUTES (30) are over or one fails. A failure prints its seed.
set -eu
export LC_ALL=C
end=$(($(date +%s) + 60 * ${SOAK_MINUTES:-30}))
PYTHON=$(sh tests/environment.sh)
export PYTHON
log=build/tests/soak.log
mkdir -p build/tests

try() { # NAME COMMAND...
  name=$1
  shift
  if [ "$(date +%s)" -ge "$end" ]; then return 0; fi
  status=0
  "$@" >"$log" 2>&1 || status=$?
  case $status in
  0) echo "ok    $name" ;;
  77) echo "skip  $name: $(tail -n 1 "$log")" ;;
  *)
    echo "FAIL  $name"
    tail -40 "$log"
    exit 1
    ;;
  esac
}

round=0
while [ "$(date +%s)" -lt "$end" ]; do
  round=$((round + 1))
  seed=$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')
  echo "round $round, seed $seed"
  try gradients env SEED="$seed" SHAPES=24 build/tests/ops/test_gradients
  try "a part of the meshes compared with one process" env SEED="$seed" "$PYTHON" tests/parallel/meshes.py --run --part seed/64
  if [ "$(tail -n 1 "$log" | cut -c 1-5)" = "part " ]; then echo "      $(tail -n 1 "$log")"; fi
  try "meshes with other keys" env SEED="$seed" "$PYTHON" tests/parallel/drawn_meshes.py 10
  try "meshes of three axes on CUDA" env SEED="$seed" "$PYTHON" tests/cuda/drawn_axes.py 8 1
  try "the audit of a part of the meshes on CUDA" env SEED="$seed" "$PYTHON" tests/parallel/meshes.py --audit --part seed/64
  try "random models" env SEED="$seed" PLAN_MODELS=1000 build/tests/plan/test_programs
  try "against PyTorch" "$PYTHON" tests/ops/test_against_torch.py --seed "$seed"
  try "every source under clang" env CASES=all sh tests/build/test_clang.sh
  try kernels "$PYTHON" tests/ops/kernels/test_kernels.py --all --seed "$seed"
  try "kernels in 16 bits" "$PYTHON" tests/ops/kernels/test_bits16_kernels.py --all
  try "recurrent models against PyTorch's" env SEED="$seed" DRAWS=8 "$PYTHON" tests/models/test_recurrent.py
  try "polynomials over all floats" "$PYTHON" tests/ops/kernels/test_support.py --all
  try "random jobs and models" env SEED="$seed" SMALL=yes "$PYTHON" tests/soak/test_soak.py 500
  try "the second reading against PyTorch" "$PYTHON" tests/verify/test_functions.py --all --seed "$seed"
  try "pairs of keys" env SEED="$seed" COUNT=2000 "$PYTHON" tests/program/test_combinations.py
  try templates "$PYTHON" tests/jinja/differential.py build/tests/jinja/render_driver --random 20000 --seed "$seed"
  try "files of GGUF in llama.cpp" "$PYTHON" tests/soak/test_llama_cpp.py
  try "500 kills" env SEED="$seed" KILLS=500 "$PYTHON" tests/runtime/test_checkpoints.py Checkpoints.test_kills
  try "stopped three times" env SEED="$seed" RESUMES=${RESUMES:-200} "$PYTHON" tests/program/test_resume_product.py
  try "every fault in every way" env FAULTS=all "$PYTHON" tests/runtime/test_checkpoints.py Checkpoints.test_faults \
    Checkpoints.test_kills_at_every_call
  try "ranks resume from ranks" env DIVISIONS=all "$PYTHON" tests/parallel/test_resume.py
  try "divisions with the same bits" env DIVISIONS=all "$PYTHON" tests/parallel/test_topology.py Divisions
  try "traffic of all divisions" env DIVISIONS=all "$PYTHON" tests/parallel/test_traffic.py Traffic.test_placements
  try "CUDA kernels by nvcc for other architectures" "$PYTHON" tests/cuda/test_kernels.py --all --ptx 80 --ptx 100 --seed "$seed"
  for architecture in 80 90a 100; do
    try "CUDA programs by nvcc for sm_$architecture" env SEED="$seed" "$PYTHON" tests/cuda/test_ptx.py --all --sm="$architecture"
  done
  try "attention and convolutions before cuDNN" "$PYTHON" tests/cuda/test_engines.py --all
  try "CUDA programs of example models by PTX, next to PyTorch" env SEED="$seed" "$PYTHON" tests/cuda/ptx_runs.py
  try "HIP programs under hipcc" "$PYTHON" tests/hip/test_compile.py --all
  for file in $(grep -lE '^(import|from) (rotation|noticing|compilers)\>' tests/*/test_*.py | sort -R); do # those of which a run tries a part
    try "all of $file" env SEED="$seed" CASES=all DIVISIONS=all DRAWS=8 "$PYTHON" "$file"
  done
  try fuzz env FUZZ_SECONDS="${FUZZ_SECONDS:-60}" sh tools/fuzz.sh
done
echo "$round rounds"
