#!/bin/sh
# Reviews and accepts changes of what tests/model expects: writes new messages and graphs, shows the differences, and
# asks whether they stay.
# usage: tests/model/accept.sh [--yes]   from the root of the tree
set -eu
expected="tests/model/bad tests/model/snapshots"
# shellcheck disable=SC2086
if [ -n "$(git status --porcelain -- $expected)" ]; then
  echo "commit or drop the changes in $expected first" >&2
  exit 1
fi
build/tests/model/test_models --accept | grep written || true
# shellcheck disable=SC2086
git add --intent-to-add -- $expected
# shellcheck disable=SC2086
git --no-pager diff --stat --patch -- $expected
[ "${1:-}" = --yes ] && exit 0
printf 'keep these? [y/N] '
read -r answer
case $answer in
y*) ;;
*)
  # shellcheck disable=SC2086
  git reset --quiet -- $expected && git checkout -- $expected && git clean -fq -- $expected
  ;;
esac
