#!/bin/sh
# Every fuzz target over its seeds, and half of them for a short time, which SEED says; `ninja fuzz` and FUZZ_SECONDS run them for longer.
# long
FUZZ_TURN=${SEED:-0} FUZZ_SECONDS=${FUZZ_SECONDS:-1} FUZZ_OPTIMIZE=-O0 exec sh tools/fuzz.sh
