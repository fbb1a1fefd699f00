#!/bin/sh
# Writes build/compile_commands.json, by which clangd and clang-tidy know how each C file is compiled: the commands of the build,
# as ninja and tools/compile.sh run them. Run it again after a file is added.
#
# usage: tools/compdb.sh   (`ninja compdb`)
set -eu

others='-std=c17 -D_POSIX_C_SOURCE=200809L -I. -Iinclude -fopenmp'
mkdir -p build
entries=build/compile_commands.$$
rm -f "$entries"

# The entry of the file $1 that the rest of the arguments compile.
entry() {
  file=$1
  shift
  command=$(printf '%s' "$*" | sed 's/[\\"]/\\&/g')
  printf '{"directory": "%s", "file": "%s", "command": "%s"}\n' "$PWD" "$file" "$command" >>"$entries"
}

ninja -t commands all build/test-programs >"$entries.all"
while read -r command; do
  case $command in
  sh\ tools/mpi.sh\ --pc* | sh\ tools/gpu.sh\ *\ --pc*) ;;
  sh\ tools/compile.sh\ * | sh\ tools/part.sh\ * | sh\ tools/mpi.sh\ * | sh\ tools/gpu.sh\ *)
    COMPILE_COMMANDS=$entries sh -c "$command" </dev/null
    ;;
  \$*.c | \$*.c\ *) # one file
    file=$(printf '%s\n' "$command" | grep -oE '[^ ]+\.c( |$)' | tail -1)
    command=$(eval "echo \"$command\"" | sed -E 's/ -MMD| -MF [^ ]+| -o [^ ]+| -Wl,[^ ]+//g; s/ +$//')
    entry "${file% }" "$command"
    ;;
  esac
done <"$entries.all"
# Models, and programs that tests compile by themselves; not seeds of fuzzers, nor what is no C by itself.
find examples tests -name '*.c' ! -path '*/corpus_*' ! -path 'tests/model/bad/*' ! -path 'tests/optimizer/unchanged/*' |
  LC_ALL=C sort | while read -r file; do
  grep -qF "\"file\": \"$file\"" "$entries" && continue
  flags=$others
  if grep -q '<mpi.h>' "$file"; then flags="$flags $(sh tools/mpi.sh --cflags || true)"; fi
  entry "$file" "${CC:-cc} $flags -c $file"
done

{
  echo '['
  sed '$!s/$/,/' "$entries"
  echo ']'
} >"$entries.json"
mv "$entries.json" build/compile_commands.json
rm "$entries" "$entries.all"
