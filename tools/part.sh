#!/bin/sh
# Compiles a part of the command into an archive. The archive is empty where build/config/without names its folder, or
# build/config/missing as one that lacks a library.
# usage: tools/part.sh ARCHIVE FOLDER COMPILER FLAG...
set -eu
archive=$1 folder=$2
shift 2
if grep -qx "${folder##*/}" build/config/without build/config/missing; then set --; fi
exec sh tools/compile.sh "$archive" "$folder" "$@"
