#!/bin/sh
# Installs what the build made below PREFIX (default /usr/local); DESTDIR goes before it. LIBDIR, relative to PREFIX
# (default lib), is the folder of libraries.
set -eu
prefix=${PREFIX:-/usr/local}
libdir=${LIBDIR:-lib}
root=${DESTDIR:-}$prefix
put() { # MODE FILE FOLDER [NAME]
  mkdir -p "$root/$3"
  install -m "$1" "$2" "$root/$3/${4:-}"
}
put 755 build/accel-gen bin
for library in runtime mpi cuda hip nccl tcp xla; do
  # Without its toolkit an archive has no member, and pkg-config names what is missing.
  [ -z "$(ar t "build/libaccel-$library.a")" ] || put 644 "build/libaccel-$library.a" "$libdir"
done
for header in include/accel/*.h; do put 644 "$header" include/accel; done
for folder in cpu gpu; do
  for header in "include/accel/$folder"/*.h; do put 644 "$header" "include/accel/$folder"; done
done
for schema in job manifest measured plan tuning; do put 644 "schemas/$schema.schema.json" share/accel-gen; done
for model in examples/models/*.[ch]; do put 644 "$model" share/accel-gen/models; done
for kind in cuda hip; do put 755 "tools/$kind-toolkit.sh" share/accel-gen; done
put 644 build/share/accel-gen.1 share/man/man1
put 644 build/share/accel-gen.bash share/bash-completion/completions accel-gen
# Where zsh looks: in /usr/local by itself, in /usr as Debian's packages have it.
if [ "$prefix" = /usr ]; then zsh=vendor-completions; else zsh=site-functions; fi
put 644 build/share/_accel-gen "share/zsh/$zsh"
put 644 build/share/accel-gen.fish share/fish/vendor_completions.d
mkdir -p "$root/$libdir/pkgconfig"
# Relative to itself, so that the installed tree can move.
up='${pcfiledir}/'$(echo "$libdir/pkgconfig" | sed 's|[^/][^/]*|..|g')
libs='${pcfiledir}/..'
packages=$root/$libdir/pkgconfig
sh tools/pkg-config.sh "$up" "$libs" <share/accel-runtime.pc.in >"$packages/accel-runtime.pc"
sh tools/pkg-config.sh "$up" "$libs" <share/accel-runtime-xla.pc.in >"$packages/accel-runtime-xla.pc"
sh tools/mpi.sh --pc "$up" "$libs" <share/accel-runtime-mpi.pc.in >"$packages/accel-runtime-mpi.pc"
for package in cuda cuda-ranks hip; do
  sh tools/gpu.sh "${package%-ranks}" --pc "$up" "$libs" <"share/accel-runtime-$package.pc.in" >"$packages/accel-runtime-$package.pc"
done
echo "installed below $root"
