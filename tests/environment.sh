#!/bin/sh
# Prints the Python of the oracles' environment; makes that environment first when it is not there. It lies outside the
# tree, in a folder named after what is in it, so that it is made once for each tests/requirements.txt.
set -eu
here=$(dirname "$0")
python=$(command -v python3)
key=$({ "$python" --version && cat "$here/requirements.txt"; } | sha256sum | cut -c1-12)
folder=${XDG_CACHE_HOME:-$HOME/.cache}/accel-gen/oracles-$key
if [ ! -f "$folder/complete" ]; then
  echo "making the Python environment of the oracles (5 GB, once) in $folder" >&2
  mkdir -p "$folder"
  "$python" -m venv "$folder" >&2
  "$folder/bin/python" -m pip install --quiet --disable-pip-version-check -r "$here/requirements.txt" >&2
  touch "$folder/complete"
fi
echo "$folder/bin/python"
