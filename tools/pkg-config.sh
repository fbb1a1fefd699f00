#!/bin/sh
# Fills share/accel-runtime.pc.in, from standard input to standard output.
# usage: tools/pkg-config.sh PREFIX LIBDIR
set -eu
version=$(sh tools/version.sh)
sed -e "s|@prefix@|$1|" -e "s|@libdir@|$2|" -e "s|@version@|$version|"
