#!/bin/sh
# The version of all that is built, and the commit that it is built from.
#
# usage: tools/version.sh                  prints the version
#        tools/version.sh --commit FILE.c  writes the commit as a text of C, where the file has another one so far
#
# ACCEL_COMMIT=NAME names the commit of a tree without git, such as an unpacked archive.
set -eu

if [ "${1:-}" != --commit ]; then
  sed -n 's/^#define ACCEL_VERSION "\(.*\)"/\1/p' include/accel/version.h
  exit
fi

# Of this tree, not of a repository that it is in; a tree whose files differ says so.
commit=${ACCEL_COMMIT:-}
if [ -z "$commit" ] && [ -e .git ]; then
  commit=$(git describe --always --match='' --abbrev=12 --dirty=' with changes' 2>/dev/null || true)
fi
mkdir -p "$(dirname "$2")"
printf 'extern const char accel_commit[];\nconst char accel_commit[] = "%s";\n' "$commit" >"$2.new"
if cmp -s "$2.new" "$2"; then rm "$2.new"; else mv "$2.new" "$2"; fi
