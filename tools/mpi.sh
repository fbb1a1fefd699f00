#!/bin/sh
# What programs of several ranks are linked with: the runtime over MPI, where there is one. Without MPI the archive is
# empty and pkg-config says what is missing; programs of one rank need neither.
#
# usage: tools/mpi.sh ARCHIVE COMPILER FLAG...       compiles runtime/mpi
#        tools/mpi.sh --cflags                      prints the flags for its headers; fails where there is no MPI
#        tools/mpi.sh --pc PREFIX LIBDIR <IN >OUT    fills share/accel-runtime-mpi.pc.in
set -eu

# Prints the flags of the kind $1, --cflags or --libs; fails where there is no MPI.
mpi_flags() {
  for package in mpi-c ompi-c mpich; do
    if pkg-config --exists "$package" 2>/dev/null; then
      pkg-config "$1" "$package"
      return
    fi
  done
  command -v mpicc >/dev/null 2>&1 || return 1
  case $1 in
  --cflags) mpicc --showme:compile 2>/dev/null || mpicc -compile_info | cut -d' ' -f2- ;;
  *) mpicc --showme:link 2>/dev/null || mpicc -link_info | cut -d' ' -f2- ;;
  esac
}

# The machine's topology: by hwloc where it is, else processors are counted.
hwloc_flags() {
  pkg-config --exists 'hwloc >= 2.0' 2>/dev/null || return 0
  if [ "$1" = --cflags ]; then echo "-DRUNTIME_HWLOC $(pkg-config --cflags hwloc)"; else pkg-config --libs hwloc; fi
}

if [ "$1" = --pc ]; then
  version=$(sh tools/version.sh)
  if libs=$(mpi_flags --libs); then requires= libs="$libs $(hwloc_flags --libs)"; else requires=", mpi" libs=; fi
  sed -e "s|@prefix@|$2|" -e "s|@libdir@|$3|" -e "s|@version@|$version|" -e "s|@requires@|$requires|" -e "s|@mpi@|$libs|"
  exit 0
fi

headers() {
  flags=$(mpi_flags --cflags) || return 1
  echo "$flags $(hwloc_flags --cflags)" | sed 's/-I/-isystem /g'
}

if [ "$1" = --cflags ]; then
  headers
  exit
fi

archive=$1
shift
if flags=$(headers); then
  # shellcheck disable=SC2086
  exec sh tools/compile.sh "$archive" runtime/mpi "$@" $flags
fi
sh tools/compile.sh "$archive" runtime/mpi
