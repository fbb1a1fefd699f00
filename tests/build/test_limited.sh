#!/bin/sh
# What bounds a test file: seconds of processors of all its processes together, and of the clock where none computes.
set -u
work=build/tests/scratch/limited
rm -rf "$work" && mkdir -p "$work"
failed=0

# is NAME STATUS LAST_LINE PROCESSORS CLOCK COMMAND...
is() {
  name=$1 wanted=$2 line=$3
  shift 3
  status=0
  LOOK=1 sh tests/limited.sh "$@" >"$work/log" 2>&1 || status=$?
  if [ "$status" = "$wanted" ] && [ "$(tail -1 "$work/log")" = "$line" ]; then
    echo "ok $name"
  else
    echo "not ok $name: status $status instead of $wanted, and the last line '$(tail -1 "$work/log")'"
    failed=1
  fi
}

is "a status is passed on" 3 "said" 60 60 sh -c 'echo said; exit 3'
is "processors of two children count together" 124 "stopped after 1 s of processors" 1 60 \
  sh -c 'for i in 1 2; do sh -c "while :; do :; done" & done; echo $! >"$0"; wait' "$work/pid"
is "its children end with it" 0 "no" 60 60 sh -c 'if kill -0 "$(cat "$0")" 2>/dev/null; then echo yes; else echo no; fi' "$work/pid"
is "processors of children that have ended count" 124 "stopped after 1 s of processors" 1 60 \
  sh -c 'while :; do timeout 0.2 sh -c "while :; do :; done"; done'
is "what waits ends by the clock" 124 "stopped after 2 s" 60 2 sleep 600
is "what ignores signals ends, too" 124 "stopped after 2 s" 60 2 sh -c 'trap "" TERM; while :; do sleep 600; done'
is "signals of a terminal are not ignored" 0 "00" 60 60 sh -c 'sed -n "s/^SigIgn:.*\(..\)$/\1/p" /proc/self/status'
setsid sleep 600 &
is "a session that another process began" 124 "stopped after 2 s" 60 2 --session $!
if kill -0 $! 2>/dev/null; then
  echo "not ok its processes have ended"
  failed=1
fi
exit $failed
