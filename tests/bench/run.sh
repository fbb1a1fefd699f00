#!/bin/sh
# ninja bench: our trainers beside their peers. BENCH holds options for tests/bench/peers.py; LLMC_DIR the source of llm.c.
set -eu
python=$(sh tests/environment.sh)
# shellcheck disable=SC2086
exec "$python" tests/bench/peers.py ${BENCH:-}
