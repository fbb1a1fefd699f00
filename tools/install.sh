#!/bin/sh
# Installs what the build made below PREFIX (default /usr/local); DESTDIR goes before it.
set -eu
prefix=${PREFIX:-/usr/local}
root=${DESTDIR:-}$prefix
put() { # MODE FILE FOLDER [NAME]
  mkdir -p "$root/$3"
  install -m "$1" "$2" "$root/$3/${4:-}"
}
put 755 build/accel-gen bin
put 644 build/libaccel-runtime.a lib
put 644 build/libaccel-mpi.a lib
for header in include/accel/*.h; do put 644 "$header" include/accel; done
for library in cuda hip nccl tcp; do put 644 "build/libaccel-$library.a" lib; done
for folder in cpu gpu; do
  for header in "include/accel/$folder"/*.h; do put 644 "$header" "include/accel/$folder"; done
done
for schema in job manifest measured plan tuning; do put 644 "schemas/$schema.schema.json" share/accel-gen; done
for kind in cuda hip; do put 755 "tools/$kind-toolkit.sh" share/accel-gen; done
put 644 build/share/accel-gen.1 share/man/man1
put 644 build/share/accel-gen.bash share/bash-completion/completions accel-gen
mkdir -p "$root/lib/pkgconfig"
# Relative to itself, so that the installed tree can move.
sh tools/pkg-config.sh '${pcfiledir}/../..' '${prefix}/lib' <share/accel-runtime.pc.in >"$root/lib/pkgconfig/accel-runtime.pc"
sh tools/mpi.sh --pc '${pcfiledir}/../..' '${prefix}/lib' <share/accel-runtime-mpi.pc.in >"$root/lib/pkgconfig/accel-runtime-mpi.pc"
for package in cuda cuda-ranks hip; do
  sh tools/gpu.sh "${package%-ranks}" --pc '${pcfiledir}/../..' '${prefix}/lib' <"share/accel-runtime-$package.pc.in" >"$root/lib/pkgconfig/accel-runtime-$package.pc"
done
echo "installed below $root"
