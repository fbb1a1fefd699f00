#!/bin/sh
# Links the test programs of one group: every test_NAME.o of the folder is a program; the other objects of the folder
# go into each, but programs of their own that a script of the tests drives (NAME_driver.o) and the targets of the fuzzer (fuzz_NAME.o).
# usage: tools/programs.sh STAMP OBJECTS COMPILER LIBRARY...
set -eu
stamp=$1 objects=${2%.a}
compiler=$3
shift 3
shared=
for object in "$objects"/*.o; do
  case ${object##*/} in test_* | fuzz_* | *_driver.o | '*.o') ;; *) shared="$shared $object" ;; esac
done
for object in "$objects"/test_*.o "$objects"/*_driver.o; do
  [ -f "$object" ] || continue
  case $object in *_driver.o) shared= ;; esac
  # shellcheck disable=SC2086
  "$compiler" -o "${object%.o}" "$object" $shared -Wl,--start-group "$@" -Wl,--end-group
done
touch "$stamp"
