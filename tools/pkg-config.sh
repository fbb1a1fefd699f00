#!/bin/sh
# Fills share/accel-runtime.pc.in, from standard input to standard output.
# usage: tools/pkg-config.sh PREFIX LIBDIR [LIBS]     LIBS: a file with further libraries, as tools/configure.sh writes it
set -eu
version=$(sh tools/version.sh)
libs=$(cat "${3:-build/config/runtime.libs}")
sed -e "s|@libs@|${libs:+ $libs}|" -e "s|@prefix@|$1|" -e "s|@libdir@|$2|" -e "s|@version@|$version|"
