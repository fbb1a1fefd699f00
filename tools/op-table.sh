#!/bin/sh
# The table of operations, from the file names alone: gen/ops/layer_norm.c defines `op_file_layer_norm`.
# usage: tools/op-table.sh FOLDER >TABLE.c
set -eu
export LC_ALL=C
cd "$1"
set -- *.c
[ -f "$1" ] || shift
echo '/* Written by tools/op-table.sh from the file names of gen/ops. */'
echo '#include "gen/ir/op.h"'
echo
for file in "$@"; do echo "extern const struct op_file op_file_${file%.c};"; done
echo
echo 'const struct op_file *const op_files[] = {'
for file in "$@"; do echo "    &op_file_${file%.c},"; done
echo '    0, /* the end */'
echo '};'
echo "const int op_file_count = $#;"
