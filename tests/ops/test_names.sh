#!/bin/sh
# Nothing outside gen/ops spells the name of a kind, except the table of rewrites: the other stages make nodes by
# gen/ops/support/nodes.h and ask a node's kind for its fields.
set -eu
cd "$(dirname "$0")/../.."
status=0

# no WHAT PATTERN EXCEPT: no source outside gen/ops, and outside what finds kinds by name, holds the pattern.
no() {
  if found=$(grep -rnE "$2" gen --include='*.[ch]' | grep -vE '^gen/(ops/|ir/op\.[ch]:|plan/graph/rewrites\.c:)' | grep -vE "$3"); then
    echo "not ok - $1"
    echo "$found" | sed 's/^/# /'
    status=1
  else
    echo "ok - $1"
  fi
}

no "no node is made by a name" 'builder_(op|node|unary|binary)\([^;]*"' '^$'
no "no kind is found by a name" 'op_kind_find\(' '^gen/ir/(builder\.c:.*op_kind_find\(kind_name\)|names\.c:)'
no "no function of a model is found by a name" 'op_function_find\("' '^$'
no "no kind is recognized by its name" 'strcmp\([^;]*kind->name' '^$'
exit $status
