#!/bin/sh
# fast
# The C sources are formatted as .clang-format says.
set -eu
status=0
found=$(sh tools/format.sh --check) || status=$?
case $status in
0) echo "ok the C sources are formatted" ;;
1) printf '%s\n' "$found" | sed 's/.*/not ok &: not formatted; run `ninja format`/' ;;
*) printf '%s\n' "$found" ;;
esac
exit $status
