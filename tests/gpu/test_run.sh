#!/bin/sh
# tests/gpu/run.sh as far as it goes where there is no GPU: one job is packed, built and started, the rest is said to be
# left out. On a machine with a GPU this test is the script itself.
set -eu
if ! sh tools/cuda-toolkit.sh --nvcc >/dev/null 2>&1; then
  echo "no CUDA toolkit"
  exit 77
fi
folder=build/tests/scratch/gpu
rm -rf "$folder"
REFERENCE_STEPS=5 sh tests/gpu/pack.sh "$folder" float32 && echo "ok it packs"
RUNTIME_CFLAGS=-O0 TARGETS=sm_90a sh "$folder/run.sh" && echo "ok it runs"
for word in '"part": "build", "name": "float32", "result": "ok"' '"name": "gpu"'; do
  if grep -q "$word" "$folder/report.json"; then echo "ok $word"; else echo "not ok $word"; fi
done
"$PYTHON" -c 'import json, sys; print("ok a report of", len(json.load(open(sys.argv[1]))["results"]), "results")' "$folder/report.json"
grep '^.\{48\}SKIPPED' "$folder/report.txt" | while read -r part name rest; do echo "ok $part $name # SKIP ${rest#SKIPPED }"; done
