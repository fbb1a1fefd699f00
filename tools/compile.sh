#!/bin/sh
# Compiles the C files of one folder, or of several, into an archive: the ones that changed, or whose headers did.
# A folder needs no list of its files, so that a new operation is a new file and nothing else.
#
# usage: tools/compile.sh ARCHIVE FOLDERS COMPILER FLAG...
#        tools/compile.sh ARCHIVE FOLDERS                    an archive without objects, where what the folders need is missing
#
# FOLDERS are divided by blanks; their files have different names.
#
# Writes ARCHIVE, ARCHIVE.d (what ninja must watch: each source and header, and the folder itself, which changes when
# a file comes or goes) and the objects in ARCHIVE's name without its ending.
# With COMPILE_COMMANDS=FILE it only appends the command of each source to FILE, a JSON object a line (tools/compdb.sh).
set -eu
archive=$1 folders=$2
shift 2

sources() {
  for folder in $folders; do
    for source in "$folder"/*.c; do
      [ ! -f "$source" ] || echo "$source"
    done
  done
}

if [ -n "${COMPILE_COMMANDS:-}" ]; then
  [ $# != 0 ] || exit 0
  command=$(printf '%s' "$*" | sed 's/[\\"]/\\&/g')
  for source in $(sources); do
    printf '{"directory": "%s", "file": "%s", "command": "%s -c %s"}\n' "$PWD" "$source" "$command" "$source"
  done >>"$COMPILE_COMMANDS"
  exit
fi
if [ $# = 0 ]; then
  rm -f "$archive"
  ar rcs "$archive"
  echo "$archive: $folders" >"$archive.d"
  exit
fi
objects=${archive%.a}
mkdir -p "$objects"

# Other flags: everything from scratch.
if [ "$(cat "$objects/flags" 2>/dev/null)" != "$*" ]; then
  rm -f "$objects"/*.o
  echo "$*" >"$objects/flags"
fi

# Whether the object $1 is missing, or older than something that its dependency file names.
stale() {
  [ -f "$1" ] || return 0
  for needed in $(sed -e 's/^[^:]*://' -e 's/\\$//' "$1.d"); do
    [ "$needed" -nt "$1" ] && return 0
    [ -e "$needed" ] || return 0
  done
  return 1
}

for object in "$objects"/*.o; do # objects of files that are gone
  name=${object##*/}
  case " $(sources | tr '\n' ' ')" in *"/${name%.o}.c "*) ;; *) rm -f "$object" "$object.d" ;; esac
done

for source in $(sources); do
  name=${source##*/}
  object=$objects/${name%.c}.o
  stale "$object" || continue
  rm -f "$object"
  printf '%s\n' "$source"
done >"$objects/todo"

compile() { # $1 source, the rest: compiler and flags
  source=$1
  shift
  name=${source##*/}
  object=$objects/${name%.c}.o
  "$@" -MMD -MF "$object.d" -MT "$archive" -c -o "$object" "$source"
}

# Two at a time; every file is tried, so that one run shows all errors.
failed=0
while read -r first; do
  compile "$first" "$@" & one=$!
  two=
  if read -r second; then compile "$second" "$@" & two=$!; fi
  wait "$one" || failed=1
  [ -z "$two" ] || wait "$two" || failed=1
done <"$objects/todo"
[ "$failed" = 0 ] || exit 1

rm -f "$archive"
set -- "$objects"/*.o
[ -f "$1" ] || shift
ar rcs "$archive" "$@"
{
  echo "$archive: $folders"
  for object in "$@"; do cat "$object.d"; done
} >"$archive.d"
