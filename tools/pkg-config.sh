#!/bin/sh
# Fills share/accel-runtime.pc.in, from standard input to standard output.
# usage: tools/pkg-config.sh PREFIX LIBDIR
set -eu
version=$(sed -n 's/^#define ACCEL_VERSION "\(.*\)"/\1/p' gen/base/version.h)
sed -e "s|@prefix@|$1|" -e "s|@libdir@|$2|" -e "s|@version@|$version|"
