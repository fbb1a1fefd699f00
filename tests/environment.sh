#!/bin/sh
# Prints the Python of the oracles' environment; makes that environment first when it is not there. It is outside the
# tree, in a folder named after what is in it, so that it is made once for each tests/requirements.txt; an older one of
# the same Python is taken as a start, by hard links, so that a line more costs what it installs and not 5 GB.
set -eu
here=$(dirname "$0")
python=$(command -v python3)
key=$({ "$python" --version && cat "$here/requirements.txt"; } | sha256sum | cut -c1-12)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/accel-gen
folder=$cache/oracles-$key

# The newest environment that is complete and of this Python; nothing where there is none.
older() {
  for complete in $(ls -t "$cache"/oracles-*/complete 2>/dev/null); do
    if [ "$("$(dirname "$complete")/bin/python" --version)" = "$("$python" --version)" ]; then
      dirname "$complete"
      return
    fi
  done
}

if [ ! -f "$folder/complete" ]; then
  echo "making the Python environment of the oracles (5 GB, once) in $folder" >&2
  made=$folder.$$
  mkdir -p "$cache"
  start=$(older)
  if [ -n "$start" ] && cp -al "$start" "$made"; then
    rm "$made/complete"
  else
    "$python" -m venv "$made" >&2
  fi
  "$made/bin/python" -m pip install --quiet --disable-pip-version-check -r "$here/requirements.txt" >&2
  touch "$made/complete"
  rm -rf "$folder"
  mv "$made" "$folder"
fi
echo "$folder/bin/python"
