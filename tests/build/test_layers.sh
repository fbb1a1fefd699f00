#!/bin/sh
# fast
# A stage includes what docs/architecture.md says that it knows of, and nothing else; within gen/plan, each folder only those
# that come before it, and none of them gen/plan itself.
set -eu
failed=0
layer() { # FOLDER ALLOWED...
  folder=$1
  shift
  strange=$(grep -hoE '^#include "(gen|runtime|include)/[a-z_/]+/' "$folder"/*.[ch] | sed 's/#include "//; s/\/$//' | sort -u | while read -r included; do
    [ "$included" = "$folder" ] && continue
    for allowed in "$@"; do [ "$included" = "$allowed" ] && continue 2; done
    echo "$included"
  done)
  if [ -z "$strange" ]; then
    echo "ok $folder"
  else
    echo "not ok $folder: it includes $(echo "$strange" | tr '\n' ' ')"
    failed=1
  fi
}
common='gen/base gen/ir gen/spec gen/ops/support gen/tuning gen/program'
layer gen/base
layer gen/jinja gen/base
layer gen/spec gen/base
layer gen/c gen/base
layer gen/ir gen/base
layer gen/ops gen/ops/support
layer gen/ops/support gen/ir
layer gen/model gen/base gen/c gen/ir gen/spec
layer gen/tuning gen/base gen/spec
layer gen/program gen/base gen/ir gen/spec gen/tuning
layer gen/plan/graph $common
layer gen/plan/memory $common gen/plan/graph
layer gen/plan/kernels $common gen/plan/graph gen/plan/memory
layer gen/plan/ranks $common gen/plan/graph gen/plan/memory gen/plan/kernels
layer gen/plan/report $common gen/plan/graph gen/plan/memory gen/plan/kernels gen/plan/ranks
layer gen/plan $common gen/plan/graph gen/plan/memory gen/plan/kernels gen/plan/ranks gen/plan/report
layer gen/emit gen/base gen/ir gen/jinja gen/spec gen/program gen/plan/graph gen/plan/memory gen/plan/kernels gen/plan/ranks
layer gen/audit gen/base gen/c
layer gen/provenance gen/base
layer gen/tokenizer gen/base runtime/base
layer gen/commands/cli gen/base gen/spec gen/program gen/plan/ranks runtime/files
layer gen/commands/generate gen/base gen/spec gen/model gen/program gen/plan gen/plan/kernels gen/plan/ranks gen/plan/report gen/tuning gen/emit gen/provenance gen/commands/cli runtime/data runtime/report
layer gen/commands/tune gen/base gen/spec gen/ir gen/program gen/plan/kernels gen/tuning gen/commands/cli gen/commands/generate
layer gen/commands/inspect gen/base gen/spec gen/model gen/plan/report gen/emit gen/audit gen/provenance gen/commands/cli gen/commands/generate
layer gen/commands/launch gen/spec gen/commands/cli runtime/base
layer gen/commands/checkpoint gen/base gen/commands/cli runtime/base runtime/checkpoint runtime/files runtime/weights
layer gen/commands/data gen/tokenizer gen/commands/cli runtime/base runtime/data runtime/files
layer gen/commands/render gen/base gen/jinja gen/commands/cli
unnamed=$(find gen -mindepth 1 -type d | LC_ALL=C sort | while read -r folder; do
  ls "$folder"/*.[ch] >/dev/null 2>&1 || continue
  grep -q "^layer $folder\( \|\$\)" "$0" || echo "$folder"
done)
if [ -n "$unnamed" ]; then echo "not ok every stage stands here: $unnamed" && failed=1; else echo "ok every stage stands here"; fi
exit $failed
