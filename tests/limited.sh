#!/bin/sh
# Runs a command within limits of time: of processors, which other work on the machine does not stretch, and of the
# clock, for what hangs. Both are those of the command and all that it started, in a session of its own.
#
# usage: limited.sh SECONDS_OF_PROCESSORS SECONDS COMMAND...
#        limited.sh SECONDS_OF_PROCESSORS SECONDS --session PID   those of a session that who waits for it has begun; until this is killed
#   LOOK=N  looks every N seconds (5)
# The exit status is the command's, or 124 when a limit ended it; the last line on standard error then says which.
set -eu
processors=$1 clock=$2
shift 2

# Processes of the session: "PID TICKS" a line, the ticks with those of children that have ended. A name may hold
# anything, so a process's fields begin after the last parenthesis.
members() {
  cat /proc/[0-9]*/stat 2>/dev/null | awk -v session="$session" '
    { pid = $1; sub(/.*\) /, ""); if ($4 == session) print pid, $12 + $13 + $14 + $15 }' || true
}

signal_all() {
  for pid in $(members | cut -d ' ' -f 1); do kill "-$1" "$pid" 2>/dev/null || true; done
}

end_all() {
  signal_all TERM
  for _ in 1 2 3 4 5; do
    [ -n "$(members)" ] || return 0
    sleep 1
  done
  signal_all KILL
}

# Ends the session at a limit. Nobody waits for the last sleep, so it holds no stream.
watch() {
  ticks=$(getconf CLK_TCK)
  until=$(($(date +%s) + clock))
  while sleep "${LOOK:-5}"; do
    used=$(members | awk -v ticks="$ticks" '{ sum += $2 } END { print int(sum / ticks) }')
    why=
    if [ "$(date +%s)" -ge "$until" ]; then why="$clock s"; fi
    if [ "$used" -ge "$processors" ]; then why="$processors s of processors"; fi
    if [ -n "$why" ]; then
      echo "$why" >"$stopped"
      end_all
      return
    fi
  done
}

stopped=$(mktemp)
if [ "$1" = --session ]; then
  session=$2
  trap 'rm -f "$stopped"' EXIT
  watch >/dev/null 2>&1 </dev/null
  echo "stopped after $(cat "$stopped")" >&2
  exit 124
fi
# What a shell starts in the background ignores the signals of a keyboard, what nohup starts that of a terminal that is gone,
# and so would what a test starts.
env --default-signal=HUP,INT,QUIT setsid "$@" &
session=$!
watch >/dev/null 2>&1 </dev/null &
watcher=$!
trap 'kill "$watcher" 2>/dev/null || true; rm -f "$stopped"' EXIT
trap 'end_all; exit 143' TERM INT HUP
status=0
wait "$session" || status=$?
if [ -s "$stopped" ]; then
  wait "$watcher" || true
  echo "stopped after $(cat "$stopped")" >&2
  status=124
fi
exit "$status"
