#!/bin/sh
# ninja bench: our trainers beside their peers, the optimizer's step beside PyTorch's, the template engine beside Jinja2
# and MiniJinja, how long a program takes to make and to audit, and text beside transformers. BENCH holds options for
# tests/bench/peers.py; LLMC_DIR the source of llm.c.
set -eu
python=$(sh tests/environment.sh)
# shellcheck disable=SC2086
"$python" tests/bench/peers.py ${BENCH:-}
"$python" tests/bench/ranks.py
"$python" tests/bench/optimizer.py
"$python" tests/bench/generate.py
"$python" tests/bench/generation.py
${CC:-cc} -std=c17 -D_POSIX_C_SOURCE=200809L -O2 -I. -o build/bench/jinja_bench tests/bench/jinja_bench.c build/libaccel-gen.a -ljansson -lm
"$python" tests/bench/jinja.py build/bench/jinja_bench
