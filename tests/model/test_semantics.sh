#!/bin/sh
# fast
# tests/model/good/semantics.c holds assertions about C itself. The reader must find them true (its snapshot shows a
# graph); here the compiler says that they are. The header and the examples must also be clean C17 for it.
set -eu
out=build/tests/scratch/model
mkdir -p "$out"
cc=${CC:-cc}
$cc -std=c17 -w -DRUN -Iinclude -o "$out/semantics" tests/model/good/semantics.c -lm
"$out/semantics"
echo "ok semantics natively"
for model in examples/models/*.c tests/model/good/*.c; do
  case $model in */semantics.c) continue ;; esac
  # gcc wants every member of a row that begins with a key and names the others, as of a table `published`.
  $cc -std=c17 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Wpedantic -Werror -Wno-missing-field-initializers -Iinclude -fsyntax-only "$model"
  echo "ok $model is C17"
done
