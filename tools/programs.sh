#!/bin/sh
# Links the test programs of one group: every test_NAME.o of the folder is a program; the other objects of the folder
# go into each, but the targets of the fuzzer (fuzz_NAME.o).
# usage: tools/programs.sh STAMP OBJECTS COMPILER LIBRARY...
set -eu
stamp=$1 objects=${2%.a}
compiler=$3
shift 3
shared=
for object in "$objects"/*.o; do
  case ${object##*/} in test_* | fuzz_* | '*.o') ;; *) shared="$shared $object" ;; esac
done
for object in "$objects"/test_*.o; do
  [ -f "$object" ] || continue
  # shellcheck disable=SC2086
  "$compiler" -o "${object%.o}" "$object" $shared -Wl,--start-group "$@" -Wl,--end-group
done
touch "$stamp"
