#!/bin/sh
# fast
# The command is built without the parts that a build can leave out, and then says so where they are asked for; all else is as
# it was. A copy of the build is configured from scratch: nothing is compiled, the command alone is linked.
set -eu
tree=$PWD
copy=$tree/build/tests/without
rm -rf "$copy"
mkdir -p "$copy/build"
trap 'rm -rf "$copy"' EXIT
for entry in build.ninja gen runtime templates schemas include share tools examples; do ln -s "$tree/$entry" "$copy/$entry"; done
for entry in .ninja_log .ninja_deps accel-gen config gen lib libaccel-gen.a libaccel-runtime libaccel-runtime.a tools; do
  [ ! -e "build/$entry" ] || cp -a "build/$entry" "$copy/build/$entry"
done
cd "$copy"
failed=0
check() { # NAME COMMAND...
  name=$1
  shift
  if "$@" >said 2>&1; then echo "ok $name"; else
    echo "not ok $name"
    sed 's/^/  /' said
    failed=1
  fi
}
refuses() { # MESSAGE COMMAND...
  message=$1
  shift
  if build/accel-gen "$@" >refused 2>&1; then return 1; fi
  cat refused
  grep -q "$message" refused
}
WITHOUT='device_code statements' sh tools/configure.sh build/config
check 'it is built' ninja build/accel-gen
check 'no object of a part is linked' sh -c '! nm build/accel-gen | grep -E " [Tt] (device_claims|ptx_read|with_hash)$"'
echo '.version 8.4' >kernel.ptx
check 'it reads no PTX' refuses 'kernel.ptx: error: .* without its readers of PTX and SASS' audit kernel.ptx
check 'it reads no SASS' refuses 'without its readers of PTX and SASS' audit kernel.sass
check 'it writes no SBOM' refuses 'without its writers of SLSA' examples/jobs/gpt2.yaml -o trainer.c --provenance
check 'then it writes nothing' [ ! -e trainer.c ]
check 'it writes programs' build/accel-gen examples/jobs/gpt2.yaml -o trainer.c --manifest
check 'the programs are the same' sh -c "'$tree/build/accel-gen' examples/jobs/gpt2.yaml -o - | cmp - trainer.c"
check 'it knows no other part' sh -c '! WITHOUT=tokenizer sh tools/configure.sh build/config'
check 'the choice is kept' sh -c 'sh tools/configure.sh build/config && grep -qx statements build/config/without'
WITHOUT='' sh tools/configure.sh build/config
printf '%s\n' zstd archive pictures server >build/config/missing # as without their headers
: >build/config/optional.libs
printf '\050\265\057\375 ' >text.zst
check 'it is built without zstd, archives, images and a server' ninja build/accel-gen
check 'then it says what to install' refuses 'install libzstd-dev' data text.zst -o text.tok
mkdir -p images/a && printf '\211PNG\r\n\032\n' >images/a/1.png
tar -cf shard.tar kernel.ptx
check 'and for archives' refuses 'install libarchive-dev' data shard.tar -o text.tok
check 'and for images' refuses 'install libpng-dev and libjpeg-dev' data images -o images.npy
mkdir run && echo '{"step": 1, "loss": 1}' >run/metrics.jsonl
check 'and for a server' refuses 'install libmicrohttpd-dev' report run --serve
sh tools/configure.sh build/config
check 'it is built with them again' sh -c 'ninja build/accel-gen && build/accel-gen audit kernel.ptx | grep -q ptx-branches'
if [ ! -s build/config/missing ]; then check 'it reads zstd again' refuses 'within its compressed data' data text.zst -o text.tok; fi
exit $failed
