#!/bin/sh
# What depends on the machine: where libclang is. Writes response files that gcc and clang read with @:
#   FOLDER/libclang.cflags, FOLDER/libclang.libs
# which parts of the command are left out, a line each:
#   FOLDER/without
# and which ones lack a library of the system, with the flags of those that are there:
#   FOLDER/missing, FOLDER/optional.libs
# and what programs are linked with for what the runtime found when it was compiled:
#   FOLDER/runtime.libs
# usage: [WITHOUT="PART..."] tools/configure.sh FOLDER
#   WITHOUT   device_code: the audit's readers of PTX and SASS; statements: SLSA's provenance and the SBOM of a program;
#             "": nothing. Without it a folder keeps what was chosen, which is nothing at first.
set -eu
out=$1
mkdir -p "$out"

# The folder of an LLVM installation of version 17 or later that has libclang with its header; the newest first.
find_llvm() {
  for tool in llvm-config-21 llvm-config-20 llvm-config-19 llvm-config-18 llvm-config-17 llvm-config; do
    command -v "$tool" >/dev/null 2>&1 && usable "$("$tool" --prefix)" && return
  done
  for version in 21 20 19 18 17; do
    usable "/usr/lib/llvm-$version" && return
  done
  echo "configure: no libclang 17 or later; install libclang-19-dev (sh tools/install-deps.sh)" >&2
  exit 1
}

usable() {
  [ -f "$1/include/clang-c/Index.h" ] && [ -e "$1/lib/libclang.so" ] || return 1
  minor=$(sed -n 's/^#define CINDEX_VERSION_MINOR //p' "$1/include/clang-c/Index.h")
  [ "${minor:-0}" -ge 64 ] || return 1 # 64 came with LLVM 16; clang_getCursorBinaryOperatorKind with 17
  grep -q clang_getCursorBinaryOperatorKind "$1/include/clang-c/Index.h" || return 1
  echo "$1"
}

llvm=$(find_llvm)
echo "-isystem $llvm/include" >"$out/libclang.cflags"
echo "-L$llvm/lib -Wl,-rpath,$llvm/lib -lclang" >"$out/libclang.libs"

if [ -n "${WITHOUT+set}" ] || [ ! -f "$out/without" ]; then
  : >"$out/without.new"
  for part in ${WITHOUT:-}; do
    case $part in
    device_code | statements) echo "$part" >>"$out/without.new" ;;
    *)
      echo "configure: WITHOUT=$part: the parts that can be left out are device_code and statements" >&2
      exit 1
      ;;
    esac
  done
  mv "$out/without.new" "$out/without"
fi

# Whether all headers of a list divided by commas are there.
has_headers() {
  for header in $(echo "$1" | tr , ' '); do
    printf '#include <stdio.h>\n#include <%s>\n' "$header" | ${CC:-cc} -E -x c - >/dev/null 2>&1 || return 1
  done
}

# Parts that need libraries of the system that may be missing: part, headers, flags of the linker.
: >"$out/missing.new"
: >"$out/optional.libs.new"
while read -r part headers flags; do
  if has_headers "$headers" </dev/null; then
    echo "$flags" >>"$out/optional.libs.new"
  else
    echo "$part" >>"$out/missing.new"
  fi
done <<END
zstd zstd.h -lzstd
archive archive.h,archive_entry.h -larchive
pictures png.h,jpeglib.h -lpng -ljpeg
server microhttpd.h -lmicrohttpd
END
: >"$out/runtime.libs"
if has_headers liburing.h; then echo "-Wl,--push-state,--as-needed -luring -Wl,--pop-state" >"$out/runtime.libs"; fi
mv "$out/missing.new" "$out/missing"
mv "$out/optional.libs.new" "$out/optional.libs"
