#!/bin/sh
# Compiles a part of the command into an archive, unless build/config/without names its folder: then the archive is empty.
# usage: tools/part.sh ARCHIVE FOLDER COMPILER FLAG...
set -eu
archive=$1 folder=$2
shift 2
if grep -qx "${folder##*/}" build/config/without; then set --; fi
exec sh tools/compile.sh "$archive" "$folder" "$@"
