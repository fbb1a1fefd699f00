#!/bin/sh
# No two files of the generator define one name: a linker takes the first that it meets in an archive, and says nothing.
set -eu
twice=$(nm --defined-only build/libaccel-gen.a 2>/dev/null | awk '$2 ~ /^[TDRBC]$/ { print $3 }' | sort | uniq -d)
if [ -z "$twice" ]; then
  echo "ok each name is defined once"
else
  echo "not ok each name is defined once: $(echo "$twice" | tr '\n' ' ')"
  exit 1
fi
