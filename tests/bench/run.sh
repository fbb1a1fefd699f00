#!/bin/sh
# ninja bench: our trainers against their peers, the models of the examples against theirs, where a step's time goes, the time to the first
# step, two ranks, and two that divide one model, the optimizer's step against PyTorch's, how long a program takes to make and to audit, text
# against transformers, and the template engine against Jinja2 and MiniJinja. BENCH holds options for tests/bench/peers.py; LLMC_DIR the
# source of llm.c; RESUME=1 keeps the rows that an earlier run of the same tree has left.
set -eu
python=$(sh tests/environment.sh)
resume=${RESUME:+--resume}
# shellcheck disable=SC2086
"$python" tests/bench/peers.py $resume ${BENCH:-}
# shellcheck disable=SC2086
"$python" tests/bench/roofline.py $resume
# shellcheck disable=SC2086
"$python" tests/bench/first_step.py $resume
# shellcheck disable=SC2086
"$python" tests/bench/models.py $resume
"$python" tests/bench/ranks.py
"$python" tests/bench/axes.py
"$python" tests/bench/optimizer.py
"$python" tests/bench/generate.py
"$python" tests/bench/generation.py
${CC:-cc} -std=c17 -D_POSIX_C_SOURCE=200809L -O2 -I. -o build/bench/jinja_bench tests/bench/jinja_bench.c build/libaccel-gen.a build/libaccel-runtime/base.a -ljansson -lm
"$python" tests/bench/jinja.py build/bench/jinja_bench
