#!/bin/sh
# fast
# No two files of the generator define one name: a linker takes the first that it meets in an archive, and says nothing. No
# two files of tests have one name: the counts of one would replaces the other's.
set -eu
failed=0
twice=$(nm --defined-only build/libaccel-gen.a build/lib/device_code.a build/lib/statements.a 2>/dev/null | awk '$2 ~ /^[TDRBC]$/ { print $3 }' | sort | uniq -d)
if [ -z "$twice" ]; then
  echo "ok each name is defined once"
else
  echo "not ok each name is defined once: $(echo "$twice" | tr '\n' ' ')"
  failed=1
fi
twice=$(ls tests/*/test_*.c tests/*/test_*.sh tests/*/test_*.py tests/*/*/test_*.py | sed 's/\.[a-z]*$//' | sort | uniq -d)
if [ -z "$twice" ]; then
  echo "ok each test has a name of its own"
else
  echo "not ok each test has a name of its own: $(echo "$twice" | tr '\n' ' ')"
  failed=1
fi
exit $failed
