#!/bin/sh
# What `ninja install` leaves is all that is needed: a model and a job in a folder of their own, and no source tree.
set -eu
prefix=$PWD/build/tests/scratch/prefix
away=$(mktemp -d)
trap 'rm -rf "$away"' EXIT
rm -rf "$prefix"
PREFIX=$prefix sh tools/install.sh >/dev/null
for file in bin/accel-gen lib/libaccel-runtime.a lib/pkgconfig/accel-runtime.pc include/accel/trainer.h \
  include/accel/evaluator.h include/accel/generator.h include/accel/model.h include/accel/images.h include/accel/losses.h share/accel-gen/job.schema.json share/accel-gen/plan.schema.json share/man/man1/accel-gen.1 \
  share/bash-completion/completions/accel-gen share/zsh/site-functions/_accel-gen share/fish/vendor_completions.d/accel-gen.fish; do
  if [ -f "$prefix/$file" ]; then echo "ok $file"; else echo "not ok $file" && exit 1; fi
done

mv "$prefix" "$away/moved" # an installed tree can move
cp examples/models/nanogpt.c "$away"
head -c 40000 build/gen/embedded.c >"$away/corpus.txt"
cat >"$away/job.yaml" <<'JOB'
model:
  source: nanogpt.c
  config: {n_layer: 1, n_head: 2, n_embd: 16, vocab_size: 256, block_size: 16, bias: true}
data:
  train: {path: corpus.txt, format: bytes}
  batch_size: 4
training: {steps: 20}
JOB
cd "$away"
moved/bin/accel-gen build job.yaml -o trainer && echo "ok build with an installed command"
./trainer >log && echo "ok the trainer runs"
[ -s runs/model.safetensors ] && echo "ok the weights are saved"

# By hand, as the program's first comment says it.
moved/bin/accel-gen job.yaml -o trainer.c
PKG_CONFIG_PATH=$away/moved/lib/pkgconfig
export PKG_CONFIG_PATH
# shellcheck disable=SC2046
${CC:-cc} -std=c17 -O2 -Wall -Wextra -Werror -o by-hand trainer.c $(pkg-config --cflags --libs accel-runtime)
./by-hand --steps 2 >log && echo "ok compiled by hand"
moved/bin/accel-gen build job.yaml --program generate -o writer
./writer --tokens 20 >text && [ -s text ] && echo "ok a text is written"
