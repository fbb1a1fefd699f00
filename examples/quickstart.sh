#!/bin/sh
# From nothing to a trained model: builds accel-gen, generates a trainer from a job and a GPT in C, trains it on the
# C sources of this project (or on FILE), and prints three short texts that the model generates.
#
# usage: sh examples/quickstart.sh [FILE]
set -eu
text=${1:-}
case $text in '' | /*) ;; *) text=$PWD/$text ;; esac
cd "$(dirname "$0")/.."

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[ -t 1 ] && [ -z "${NO_COLOR:-}" ] || say() { printf '\n%s\n' "$*"; }
show() { # prints a command, as one would type it, and runs it
  printf '$'
  for word; do
    case $word in *' '*) printf " '%s'" "$word" ;; *) printf ' %s' "$word" ;; esac
  done
  echo
  "$@"
}

sh tools/install-deps.sh
say "1. Build accel-gen"
show ninja --quiet

say "2. Gather a text"
work=build/quickstart
mkdir -p "$work"
if [ -n "$text" ]; then
  cp "$text" "$work/corpus.txt"
  prompt=$(awk 'NF { print $1; exit }' "$text")
else
  # What people wrote: no templates, no tests and none of their expected programs, whose long lines are mostly blanks.
  # Aligned code keeps at most eight blanks: after a sequence of nothing but blanks, a model predicts only blanks.
  find gen runtime include examples -name '*.[ch]' | LC_ALL=C sort | xargs cat | sed 's/ \{9,\}/        /g' >"$work/corpus.txt"
  prompt='static int '
fi
echo "$work/corpus.txt: $(wc -c <"$work/corpus.txt") bytes"

say "3. Generate the trainer and compile it"
show build/accel-gen plan examples/jobs/quickstart.yaml
show build/accel-gen examples/jobs/quickstart.yaml -o "$work/trainer.c"
show build/accel-gen build examples/jobs/quickstart.yaml -o "$work/trainer"
echo "$work/trainer.c: $(wc -l <"$work/trainer.c") lines"

say "4. Train"
rm -rf "$work/run"
# Threads that wait spin for a moment only, so that other work on the machine does not stretch every step.
export GOMP_SPINCOUNT="${GOMP_SPINCOUNT:-10000}"
show "$work/trainer"

say "5. Generate text"
show build/accel-gen build examples/jobs/quickstart.yaml --program generate -o "$work/generator"
for seed in 1 2 3; do
  show "$work/generator" --prompt "$prompt" --tokens 240 --temperature 0.7 --seed "$seed"
  echo
done
