#!/bin/sh
# fast
# The command line: exit statuses, messages, and that an output appears whole or not at all.
set -u
gen=$PWD/build/accel-gen
work=build/tests/scratch/commands
rm -rf "$work" && mkdir -p "$work"
failed=0

# expect NAME STATUS PATTERN COMMAND...: the exit status, and a line of its output that matches
expect() {
  name=$1 wanted=$2 pattern=$3
  shift 3
  status=0
  "$@" >"$work/out" 2>&1 </dev/null || status=$?
  if [ "$status" = "$wanted" ] && { [ -z "$pattern" ] || grep -q -e "$pattern" "$work/out"; }; then
    echo "ok $name"
  else
    echo "not ok $name: status $status instead of $wanted, or nothing matches '$pattern' in:"
    sed 's/^/#   /' "$work/out"
    failed=1
  fi
}

job=examples/jobs/quickstart.yaml
expect "no argument: overview" 0 '^usage: accel-gen JOB -o FILE.c' "$gen"
expect "--help" 0 '^usage: accel-gen JOB -o FILE.c' "$gen" --help
expect "--version" 0 '^accel-gen [0-9]*\.[0-9]*\.[0-9]*\( (commit [0-9a-f]*\( with changes\)*)\)*$' "$gen" --version
ranks=build/tests/scratch/commands/ranks.yaml
sed 's/^data:/devices: {nodes: 2, per_node: 4}\ndata:/' "$job" >"$ranks"
expect "launch by mpirun" 0 'HWLOC_COMPONENTS=-opencl .*mpirun --bind-to none -n 8 --host a:4,b:4 ./trainer --steps 3$' \
  env -u HWLOC_COMPONENTS "$gen" launch --by mpirun --hosts a,b --print "$ranks" trainer --steps 3
expect "launch by srun" 0 '^srun --nodes=2 --ntasks-per-node=4 --kill-on-bad-exit=1 ./trainer$' \
  "$gen" launch --by srun --print "$ranks" trainer
expect "launch by srun with processors" 0 '^srun --nodes=2 --ntasks-per-node=4 --kill-on-bad-exit=1 --cpus-per-task=6 ./trainer$' \
  env SLURM_CPUS_PER_TASK=6 "$gen" launch --by srun --print "$ranks" trainer
sed 's/nodes: 2/kind: cuda, nodes: 2/' "$ranks" >"$work/gpus.yaml"
expect "launch of GPUs that are started" 0 '^./trainer --steps 3$' \
  env RANK=1 WORLD_SIZE=8 MASTER_ADDR=a "$gen" launch --print "$work/gpus.yaml" trainer --steps 3
expect "plan of a network" 0 '^predicted [0-9.]* ms a step in collectives; a step of 40.000 ms takes' \
  "$gen" plan "$job" --nodes 64 --latency 20 --bandwidth 1250 --step 40
expect "plan of no network" 2 'a number greater than 0 is needed instead of fast' "$gen" plan "$job" --latency fast
expect "launch of one" 0 '^./trainer --steps 3$' "$gen" launch --print "$job" trainer --steps 3
expect "launch with --set" 0 '^srun --nodes=2 --ntasks-per-node=3 --kill-on-bad-exit=1 ./trainer --set 1$' \
  "$gen" launch --by srun --print --set devices.nodes=2 "$job" --set devices.per_node=3 trainer --set 1
expect "launch with --set of no value" 2 'needs KEY=VALUE, not devices.nodes' "$gen" launch --set devices.nodes "$job" trainer
expect "launch with --set of an unknown key" 2 'devices.node' "$gen" launch --set devices.node=2 "$job" trainer
expect "launch of nothing" 2 '^usage: accel-gen launch' "$gen" launch "$job"
expect "help of a command" 0 '^usage: accel-gen plan' "$gen" help plan
expect "--help of a command" 0 '^usage: accel-gen build' "$gen" build --help
expect "help of a group" 0 'lr' "$gen" help optimizer
expect "help of a key" 0 'learning rate' "$gen" help optimizer.lr
expect "help of nothing" 2 "no help on 'nonsense'" "$gen" help nonsense
expect "help of a key without its group" 0 '^optimizer.lr: a number greater than 0' "$gen" help lr
expect "help of a misspelt key" 2 "no help on 'optimizr.lr'; did you mean 'optimizer.lr'" "$gen" help optimizr.lr
expect "help of a key of another group" 2 "no help on 'training.lr'; did you mean 'optimizer.lr'" "$gen" help training.lr
expect "an option before the command" 2 'the command comes first, before every option: check' "$gen" --set a=b check "$job"
expect "help of a group that is a command, too" 0 '^data: a group of keys' "$gen" help job.data
expect "an unknown command" 2 "unknown command 'buidl'; did you mean 'build'?" "$gen" buidl "$job"
expect "an unknown command like no other" 2 "unknown command 'unheard', and no file has this name" "$gen" unheard
expect "an unknown word of a command" 2 'the word after checkpoint is list, show, verify, diff or merge, not lst' "$gen" checkpoint lst .
expect "a misspelt option" 2 'unknown option --resolve; did you mean --resolved?' "$gen" check "$job" --resolve
expect "launch with a key" 0 'mpirun --bind-to none -n 2 ./trainer -v$' \
  "$gen" launch --by mpirun --print --set devices.per_node=2 --set data.batch_size=2 "$job" trainer -v
expect "an unknown option" 2 'unknown option --frobnicate' "$gen" "$job" --frobnicate
expect "an option of another command" 2 'does not take --resolved' "$gen" plan "$job" --resolved
expect "a missing value" 2 'a value is missing after -o' "$gen" "$job" -o
expect "a flag with a value" 2 'no value belongs to --json' "$gen" plan "$job" --json=yes
expect "two jobs" 2 'one argument too many' "$gen" check "$job" "$job"
expect "no job" 2 'a job file is missing' "$gen" check
expect "a job that is not there" 2 'nowhere.yaml' "$gen" check nowhere.yaml
expect "--set without a value" 2 'needs KEY=VALUE' "$gen" check "$job" --set training.steps
expect "--set of an unknown key" 2 'trainin' "$gen" check "$job" --set trainin.steps=3
expect "--program of an unknown kind" 2 'train, evaluate or generate' "$gen" "$job" --program=sing
expect "--color of an unknown kind" 2 'auto, always or never' "$gen" check "$job" --color=red
expect "build without an output" 2 'an output is missing' "$gen" build "$job"
expect "no output" 2 'an output is missing' "$gen" "$job"
expect "check" 0 '' "$gen" check "$job"
expect "check without the model" 2 "cannot read the model '.*none.c': No such" "$gen" check "$job" --set model.source=none.c
expect "check of an unknown number of the model" 2 "has no 'n_layers'; did you mean 'n_layer'" "$gen" check "$job" --set model.config.n_layers=2
expect "check of a number of another type" 2 "'n_layer' must be a whole number" "$gen" check "$job" --set model.config.n_layer=1.5
expect "check of shapes" 2 "nanogpt.c:[0-9]*:[0-9]*: error: reshape" "$gen" check "$job" --set model.config.n_head=5 --resolved
expect "check of the plan" 2 'memory.limit' "$gen" check "$job" --set memory.limit=1MB
expect "check of the hooks" 2 'cannot read the hooks' "$gen" check "$job" --set 'hooks={source: none.c, on_step: on_log}'
expect "model check's words" 0 'set data.features=N' "$gen" help model
expect "check --resolved" 0 'eval_fraction' "$gen" check "$job" --resolved
expect "plan" 0 'parameters' "$gen" plan "$job"
expect "plan --json" 0 '"arena_bytes"' "$gen" plan "$job" --json
expect "an unwritable output" 1 'cannot write' "$gen" "$job" -o "$work/none/trainer.c"
expect "an unwritable program" 1 'cannot write .*none/trainer: No such' "$gen" build "$job" -o "$work/none/trainer"
expect "a model that is not there" 2 "--set model.source=none.c: error: cannot read the model '.*none.c': No such" \
  "$gen" "$job" -o - --set model.source=none.c
expect "a program that is not there" 2 'none.c: error: cannot read it: No such' "$gen" audit "$work/none.c"
expect "generate to standard output" 0 'int main' "$gen" "$job" -o -
expect "an empty value" 2 'a value is missing after --bundle' "$gen" build "$job" --bundle ''
expect "a bundle and an output" 2 'replaces -o' "$gen" build "$job" --bundle "$work/bundle" -o "$work/program"
expect "a bundle instead of a file" 1 'Not a directory' "$gen" build "$job" --bundle "$work/out"
expect "templates that are not there" 2 'names a folder, which is not' "$gen" "$job" -o - --templates "$work/none"
expect "checkpoints that are not there" 1 'none: No such file' "$gen" checkpoint list "$work/none"
expect "checkpoints of a file" 1 'quickstart.yaml: Not a directory' "$gen" checkpoint list "$job"
expect "help to a full disk" 1 'No space left' sh -c "$gen help >/dev/full"
expect "an unknown pass" 2 'pass' "$gen" plan "$job" --dump nonsense
expect "a folder without templates" 1 'template' "$gen" "$job" -o "$work/x.c" --templates "$work"

# A job that fails leaves what was there.
echo old >"$work/kept.c"
"$gen" "$job" -o "$work/kept.c" --set training.steps=no >/dev/null 2>&1
expect "a bad job leaves the old output" 0 '^old$' cat "$work/kept.c"
left=$(find "$work" -name '*.c.??????')
expect "nothing is left next to it" 0 '^$' echo "$left"

# Colours: never where nobody asked, always where somebody did.
"$gen" check "$job" --set training.steps=no --color=always >"$work/colour" 2>&1
expect "--color always" 0 "$(printf '\033')" cat "$work/colour"
"$gen" check "$job" --set training.steps=no >"$work/plain" 2>&1
if grep -q "$(printf '\033')" "$work/plain"; then echo "not ok no colours in a file" && failed=1; else echo "ok no colours in a file"; fi

# The same inputs give the same bytes, from any folder.
"$gen" "$job" -o "$work/one.c" >/dev/null 2>&1 && "$gen" "$job" -o "$work/two.c" >/dev/null 2>&1
expect "audit" 0 '0 broken' "$gen" audit "$work/one.c"
expect "audit of nothing" 2 'a program in C is missing' "$gen" audit
expect "audit of a folder" 2 'cannot read it: Is a directory' "$gen" audit "$work"
expect "audit of a file without an end" 2 'zero: error: the C parser needs more than 1024 MiB of memory' "$gen" audit /dev/zero
expect "audit of the device's half" 2 "accel-gen audit $work/two.c reads both" "$gen" audit "$work/two.cu"
expect "a table of measurements without an end" 2 "dev/zero': File too large" "$gen" plan "$job" --tuning /dev/zero
expect "audit of no C" 2 'error' "$gen" audit "$job"
expect "audit --fail-on of nothing" 2 'is broken, unproved or never' "$gen" audit "$work/one.c" --fail-on maybe
expect "generate with a manifest" 0 '' "$gen" "$job" -o "$work/kept.c" --manifest
expect "a manifest of standard output" 2 'must name a file' "$gen" "$job" -o - --manifest
expect "explain" 0 'template  program/program.c.j2' "$gen" explain "$work/kept.c:3"
expect "explain --json" 0 '"keys"' "$gen" explain "$work/kept.c:3" --json
expect "explain --key" 0 'optimizer.lr = ' "$gen" explain --key optimizer.lr "$work/kept.c"
expect "explain --key of a group" 0 '"key": "training.seed"' "$gen" explain --key training "$work/kept.c" --json
expect "explain --key of nothing" 2 "did you mean 'optimizer.lr'" "$gen" explain --key optimizer.lrr "$work/kept.c"
expect "explain of no line" 2 'names no line' "$gen" explain "$work/kept.c"
expect "explain of a line with its column" 0 'kept.c:3: ' "$gen" explain "$work/kept.c:3:14"
expect "explain of a line that is not there" 2 'there is no line 99999' "$gen" explain "$work/kept.c:99999"
expect "explain of a line beyond all numbers" 2 'there is no line 99999999999999999999;' "$gen" explain "$work/kept.c:99999999999999999999:3"
expect "explain of a line of no program" 2 "':3' names no line" "$gen" explain :3
expect "explain of a line and no number" 2 "names no line" "$gen" explain "$work/kept.c:3x"
expect "explain without a manifest" 1 'writes the program and its manifest' "$gen" explain "$work/one.c:3"
echo >>"$work/kept.c"
expect "explain of a changed program" 1 'not the program that its manifest describes' "$gen" explain "$work/kept.c:3"
echo '{' >"$work/kept.manifest.json"
expect "explain with a broken manifest" 1 'kept.manifest.json:' "$gen" explain "$work/kept.c:3"
expect "diff of the same" 0 'step path: the same' "$gen" diff "$job" "$work/one.c"
expect "diff of one" 2 'a second one is missing' "$gen" diff "$job"
expect "diff of three" 2 'one argument too many' "$gen" diff "$job" "$job" "$job"
expect "audit --regenerate of no manifest" 2 'not JSON' "$gen" audit --regenerate "$work/kept.manifest.json"
expect "the same bytes twice" 0 '' cmp "$work/one.c" "$work/two.c"
(cd examples/jobs && "$gen" quickstart.yaml -o "../../$work/three.c") >/dev/null 2>&1
expect "no absolute path in the program" 1 '' grep -q "$PWD" "$work/one.c"
expect "from another folder" 0 '' test -s "$work/three.c"
printf 'x{{ a|length }}' >"$work/t.j2"
printf 'a: [1, 2]\n' >"$work/values.yaml"
printf '{"a": "abc"}' >"$work/values.json"
head -c 200000 /dev/zero | tr '\0' '[' >"$work/deep.yaml"
expect "render with YAML" 0 '^x2$' "$gen" render "$work/t.j2" "$work/values.yaml"
expect "render with JSON" 0 '^x3$' "$gen" render "$work/t.j2" "$work/values.json"
expect "render with values that are nested too deep" 1 'values.* too deep or too many' "$gen" render "$work/t.j2" "$work/deep.yaml"

exit $failed
