#!/bin/sh
# Builds the program of this folder with what a bare machine has: a C compiler, and nvcc or hipcc for a program that runs on GPUs,
# or oneDNN (libdnnl-dev) for one that runs on processors; MPI (libopenmpi-dev) for several ranks on processors.
#
# usage: sh build.sh [OUTPUT]     OUTPUT: the program, by default the name in settings.sh
#   CC, CFLAGS     the compiler and its flags for the program; cc, or that of the job's processors, and those in settings.sh
#   AR, PKG_CONFIG the same of archives, and what finds jansson
#   CPPFLAGS, LDFLAGS  where headers and libraries are, besides what a compiler knows
#   RUNTIME_CFLAGS for the runtime's files; -O2 -g
#   NVCC, HIPCC    the compiler of kernels, and NVCCFLAGS, HIPCCFLAGS; tools/cuda-toolkit.sh or tools/hip-toolkit.sh looks for
#                  one, and says with --explain what it finds
#   TARGETS        architectures for which kernels are compiled, sm_90a or gfx90a; all that the program names
#   QUIET          not empty: nothing is said of what was built
#   JOBS           how many files are compiled at a time
set -eu
here=$(cd "$(dirname "$0")" && pwd)
output=${1:-}
case $output in '' | /*) ;; *) output=$PWD/$output ;; esac
cd "$here"
. ./settings.sh # kind, ranks, program, hooks, tools, flags_of_program
[ -n "$output" ] || output=$here/$program
# shellcheck disable=SC2154 # of settings.sh
case $tools in '') cc=${CC:-cc} ;; *) cc=${CC:-${tools}gcc} ;; esac
ar=${AR:-${tools}ar} pkg_config=${PKG_CONFIG:-${tools}pkg-config}
# shellcheck disable=SC2154 # of settings.sh
cflags=${CFLAGS:-$flags_of_program}
fast="-ffp-contract=fast -fno-math-errno -fno-trapping-math"
# gcc takes an address that members of a union share for the smallest one's, and clang does not know the names of that.
quiet="-Wno-unknown-warning-option -Wno-stringop-overflow -Wno-stringop-overread"
jobs=${JOBS:-$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)}

fail() {
  echo "build.sh: $1" >&2
  exit 1
}

mkdir -p objects
include="-I. -Iinclude ${CPPFLAGS:-}"
command -v "$cc" >/dev/null || fail "no $cc"

# JSON: the machine's jansson, else the one that came along.
machine=$("$cc" -dumpmachine)
if "$pkg_config" --exists jansson 2>/dev/null; then
  json=$("$pkg_config" --cflags jansson) json_libs=$("$pkg_config" --libs jansson)
elif [ -f lib/libjansson.a ] && [ "$(cat lib/machine)" = "${machine%%-*}" ]; then
  json=-Ilib json_libs=lib/libjansson.a
else
  fail "no jansson (libjansson-dev) for $machine"
fi

by_cudnn='runtime/cuda/attention runtime/cuda/attention_graph runtime/cuda/convolution runtime/cuda/engine'

# What the program needs besides a C compiler.
flags='' libs='' folders='' left_out=''
case $kind in
cuda)
  toolkit="sh tools/cuda-toolkit.sh"
  flags=$($toolkit --cflags)
  nvcc=$($toolkit --nvcc)
  folders="runtime/gpu runtime/cuda" parts="cudart cublasLt"
  if grep -qE 'accel/gpu/(attention|convolution).h' "$program.c"; then parts="$parts cudnn"; else left_out=$by_cudnn; fi
  if grep -q 'accel/gpu/trace.h' "$program.c"; then parts="$parts cupti"; else left_out="$left_out runtime/cuda/trace runtime/cuda/events"; fi
  if [ "$ranks" -gt 1 ]; then folders="runtime/nccl runtime/tcp $folders" parts="$parts nccl"; fi
  # shellcheck disable=SC2086
  libs="$($toolkit --libs $parts) -lstdc++"
  ;;
hip)
  toolkit="sh tools/hip-toolkit.sh"
  flags=$($toolkit --cflags)
  hipcc=$($toolkit --hipcc)
  folders="runtime/gpu runtime/hip"
  libs=$($toolkit --libs amdhip64 hipblaslt)
  libs="$libs -lstdc++"
  ;;
xla)
  folders=runtime/xla
  libs="${LDFLAGS:-} -ldl"
  ;;
*)
  # shellcheck disable=SC2086
  echo '#include <oneapi/dnnl/dnnl.h>' | "$cc" $include -E -x c - >/dev/null 2>&1 || fail "no oneDNN (libdnnl-dev) for $machine"
  libs="${LDFLAGS:-} -ldnnl"
  if [ "$ranks" -gt 1 ]; then
    folders=runtime/mpi
    if [ -n "$tools" ]; then
      flags=$("$pkg_config" --cflags ompi-c) || fail "no MPI (libopenmpi-dev) for $machine, which several ranks need"
      libs="$libs $("$pkg_config" --libs ompi-c)"
    else
      command -v mpicc >/dev/null || fail "no MPI (libopenmpi-dev), which several ranks on processors need"
      flags=$(mpicc --showme:compile 2>/dev/null || mpicc -compile_info | cut -d' ' -f2-)
      libs="$libs $(mpicc --showme:link 2>/dev/null || mpicc -link_info | cut -d' ' -f2-)"
    fi
    if echo '#include <hwloc.h>' | "$cc" -E -x c - >/dev/null 2>&1; then libs="$libs -lhwloc"; fi
  fi
  ;;
esac

# One source; the rest of the arguments is the compiler with its flags.
cat >objects/compile.sh <<'SCRIPT'
source=$1 object=$2
shift 2
exec "$@" -c -o "$object" "$source"
SCRIPT

# SQLite, for the files of Trackio alone.
if grep -q accel_sink_trackio "$program.c"; then
  # shellcheck disable=SC2086
  echo '#include <sqlite3.h>' | "$cc" $include -E -x c - >/dev/null 2>&1 || fail "no SQLite (libsqlite3-dev) for $machine, which tracking.log_with: trackio needs"
  libs="$libs -lsqlite3"
fi

# Where it is there, liburing for states on a disk and layers that come from one, which threads move otherwise.
if grep -q 'accel_disk_by_file\|accel_layers_from_files' "$program.c" && echo '#include <liburing.h>' | "$cc" $include -E -x c - >/dev/null 2>&1; then
  libs="$libs -luring"
fi

# An archive of each folder: one that comes earlier in the link answers for one that comes later. What knows
# of devices and of several ranks comes first.
for folder in runtime/*/; do
  folder=${folder%/}
  case " $folders " in *" $folder "*) ;; *) folders="$folders $folder" ;; esac
done
archives=
for folder in $folders; do
  name=$(echo "$folder" | tr / -)
  rm -rf "objects/$name" "objects/$name.a"
  mkdir "objects/$name"
  for source in "$folder"/*.c; do
    base=$(basename "$source" .c)
    case " $left_out " in
    *" $folder/$base "*) ;;
    *)
      echo "sh objects/compile.sh $source objects/$name/$base.o $cc -std=c17 -D_POSIX_C_SOURCE=200809L ${RUNTIME_CFLAGS:--O2 -g} -fopenmp $include $json $flags"
      ;;
    esac
  done | xargs -P "$jobs" -I '{}' sh -c '{}' || fail "the compiler failed"
  "$ar" rcs "objects/$name.a" "objects/$name"/*.o
  archives="$archives objects/$name.a"
done

# The architectures that the program says it is for.
named=${TARGETS:-$(sed -n 's/.*architectures\[\] = {\(.*\), NULL};/\1/p' "$program.c" | tr -d '",')}

# Those that this nvcc knows, as its flags.
targets() {
  known=$("$nvcc" --list-gpu-arch | sed 's/compute_//')
  for target in $named; do
    number=${target#sm_}
    case "
$known
" in
    *"
${number%a}
"*) printf -- '-gencode arch=compute_%s,code=%s ' "$number" "$target" ;;
    *) echo "build.sh: $nvcc knows no $target: left out" >&2 ;;
    esac
  done
}

case $kind in
cuda)
  kernels=objects/$program.cu.o
  # shellcheck disable=SC2046,SC2086
  "$nvcc" -std=c++17 -O3 ${NVCCFLAGS:-} $(targets) $include -c -o "$kernels" "$program.cu"
  ;;
hip)
  kernels=objects/$program.hip.o
  # shellcheck disable=SC2046,SC2086
  "$hipcc" -std=c++17 -O3 ${HIPCCFLAGS:-} $(printf -- '--offload-arch=%s ' $named) $include -c -o "$kernels" "$program.hip"
  ;;
esac
# shellcheck disable=SC2086
"$cc" $cflags $fast $quiet -fopenmp $include $flags -o "$output" "$program.c" ${hooks:-} ${kernels:-} \
  -Wl,--start-group $archives -Wl,--end-group $libs $json_libs -fopenmp -lm -lpthread
[ -n "${QUIET:-}" ] || echo "built $output"
