#!/bin/sh
# The Debian package and the wheel: built from what is built, clean, and what they unpack trains without the tree.
set -eu
tree=$PWD
work=$tree/build/tests/packages
rm -rf "$work" && mkdir -p "$work/job"
trap 'rm -rf "$work"' EXIT
failed=0
check() { # NAME COMMAND...
  name=$1
  shift
  if "$@" >"$work/said" 2>&1; then echo "ok $name"; else
    echo "not ok $name"
    tail -20 "$work/said" | sed 's/^/  /'
    failed=1
  fi
}
skip() { echo "ok $1 # SKIP $2"; }

cp examples/models/nanogpt.c "$work/job/model.c"
seq 1 400 >"$work/job/corpus.txt"
cat >"$work/job/job.yaml" <<'END'
model: {source: model.c, config: {n_layer: 1, n_head: 2, n_embd: 16, vocab_size: 256, block_size: 16, bias: false}}
data: {train: {path: corpus.txt, format: bytes}, batch_size: 2}
optimizer: {name: adamw, lr: 1e-3}
training: {steps: 2, seed: 1}
checkpoint: {project_dir: run}
END

trains() { # COMMAND: builds and trains in the job's folder; the tree's build is not found from there
  (cd "$work/job" && rm -rf run trainer && env -u PKG_CONFIG_PATH "$1" build job.yaml -o trainer && ./trainer && test -s run/metrics.jsonl)
}

version=$(build/accel-gen version | sed -n '1s/^accel-gen \([^ ]*\).*/\1/p')
if ! command -v dh >/dev/null || ! command -v chrpath >/dev/null || ! command -v lintian >/dev/null; then
  skip 'Debian package' 'debhelper, chrpath or lintian is not installed'
else
  check 'ninja deb builds a package that lintian finds clean' ninja deb
  package=build/packages/accel-gen_${version}_$(dpkg --print-architecture).deb
  check 'the package has the version of the command' sh -c "[ \"\$(dpkg-deb -f '$package' Version)\" = '$version' ]"
  check 'it unpacks' dpkg-deb -x "$package" "$work/deb"
  PKG_CONFIG_LIBDIR=$work/deb/usr/lib/$(dpkg-architecture -q DEB_HOST_MULTIARCH)/pkgconfig:$(pkg-config --variable pc_path pkg-config)
  export PKG_CONFIG_LIBDIR
  check 'the command of the package trains' trains "$work/deb/usr/bin/accel-gen"
  unset PKG_CONFIG_LIBDIR
fi

check 'a wheel is built' sh -c 'PYTHON="$PYTHON" PATH=/usr/bin:/bin:$PATH sh tools/wheel.sh'
wheel=$(echo build/packages/accel_gen-"$version"-py3-none-linux_*.whl)
"$PYTHON" -m venv "$work/venv"
check 'auditwheel reads it' "$PYTHON" -m auditwheel show "$wheel"
check 'pip installs it' "$work/venv/bin/pip" install --quiet --no-index --no-deps "$wheel"
check 'its command has the version' sh -c "'$work/venv/bin/accel-gen' version | grep -q '$version'"
check 'the command of the wheel trains' trains "$work/venv/bin/accel-gen"
exit $failed
