#!/bin/sh
# tools/hip-toolkit.sh, and `accel-gen build` of a HIP program by it: with a library that has hipBLASLt's names alone, as Debian
# has no package of it. The program says at start that there is no GPU.
set -eu
tree=$PWD
here=$tree/build/tests/scratch/hip
rm -rf "$here"
mkdir -p "$here/rocm/lib"
failed=0
is() { # WHAT EXPECTED GOT
  if [ "$2" = "$3" ]; then echo "ok $1"; else echo "not ok $1: expected '$2', got '$3'" && failed=1; fi
}
toolkit() { sh tools/hip-toolkit.sh "$@" 2>&1 || true; }

is "a part that is nowhere" "hip-toolkit: no libnothing: set ROCM_PATH, or install ROCm or the package libamdhip64-dev" "$(toolkit --libs nothing)"
if ! sh tools/hip-toolkit.sh --hipcc >/dev/null 2>&1 || ! sh tools/hip-toolkit.sh --libs amdhip64 >/dev/null 2>&1; then
  echo "ok a HIP program is built # SKIP no HIP: $(toolkit --hipcc)"
  exit $failed
fi
sed -n 's/^hipblasStatus_t \(hipblasLt[A-Za-z]*\)(.*/int \1(void) { return 1; }/p' runtime/hip/names/cublasLt.h |
  "${CC:-cc}" -shared -fPIC -x c -o "$here/rocm/lib/libhipblaslt.so" -
export ROCM_PATH="$here/rocm" # for what is not there: all else is taken from where it is
is "a part in ROCM_PATH" "$here/rocm/lib/libhipblaslt.so -Wl,-rpath,$here/rocm/lib" "$(toolkit --libs hipblaslt)"
is "what pkg-config says of both" "1" "$(sh tools/gpu.sh hip --pc prefix libdir <share/accel-runtime-hip.pc.in | grep -c '^Libs: .*amdhip64.so.*hipblaslt.so')"

# hipcc takes ROCM_PATH for its own libraries.
printf '#!/bin/sh\nunset ROCM_PATH\nexec "%s" "$@"\n' "$(env -u ROCM_PATH sh tools/hip-toolkit.sh --hipcc)" >"$here/hipcc"
chmod +x "$here/hipcc"
export HIPCC="$here/hipcc" RUNTIME_CFLAGS=-O0
if (cd examples/jobs && "$tree/build/accel-gen" build table.yaml --set devices.kind=hip -o "$here/trainer") >"$here/log" 2>&1; then
  echo "ok a HIP program is built"
else
  cat "$here/log" && echo "not ok a HIP program is built" && exit 1
fi
if [ -e /dev/kfd ]; then exit $failed; fi
status=0
(cd "$here" && ./trainer) >"$here/log" 2>&1 || status=$?
is "and says that there is no GPU" "1 error: no GPU on this machine" "$status $(head -1 "$here/log")"
exit $failed
