#!/bin/sh
# Formats the C sources of the tree with clang-format 19, by .clang-format. .clang-format-ignore lists what stays as it is.
# Another version of clang-format breaks some lines differently, so none other is taken.
#
# usage: tools/format.sh           rewrites the files (`ninja format`)
#        tools/format.sh --check   rewrites nothing, prints the first line of each file that differs, and fails if any does
# Exits with status 77 where clang-format 19 is not installed.
set -eu

clang_format=
for name in clang-format-19 clang-format; do
  case $("$name" --version 2>/dev/null || true) in *version\ 19.*) clang_format=$name && break ;; esac
done
if [ -z "$clang_format" ]; then
  echo "no clang-format 19 here (sh tools/install-deps.sh --test)"
  exit 77
fi

# Runs clang-format with the given options on all files.
each() {
  find gen runtime include examples tests tools -name '*.[ch]' -print0 | LC_ALL=C sort -z |
    xargs -0 -r -P 2 -n 50 "$clang_format" --style=file "$@"
}

case ${1:-} in
'') each -i ;;
--check)
  said=$(each --dry-run -Werror 2>&1) && exit 0
  differs=$(printf '%s\n' "$said" | sed -nE 's/^([^ ]+:[0-9]+):[0-9]+: error: code should be clang-formatted.*/\1/p' |
    sort -t: -k1,1 -k2,2n | sort -t: -k1,1 -su)
  if [ -n "$differs" ]; then printf '%s\n' "$differs" && exit 1; fi
  printf '%s\n' "$said"
  exit 2
  ;;
*) sed -n '2,/^set -eu/p' "$0" | sed -n 's/^# \{0,1\}//p' >&2 && exit 2 ;;
esac
