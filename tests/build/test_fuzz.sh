#!/bin/sh
# Every fuzz target for a short time; `ninja fuzz` and FUZZ_SECONDS run them for longer.
# long
FUZZ_SECONDS=${FUZZ_SECONDS:-1} FUZZ_OPTIMIZE=-O0 exec sh tools/fuzz.sh
